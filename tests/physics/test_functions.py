"""The table of robot functions: shapes, errors, and how many operations they take."""

from __future__ import annotations

import casadi as ca
import pytest
from tests.physics.strategies import tree_of

from costate.model import load_model
from costate.model.model import Model
from costate.physics import FUNCTIONS, Parameters, build, build_vjp

SHAPES = {
    "jacobian": {"J": (6, "nv")},
    "jacobian_dot": {"J_dot": (6, "nv")},
    "link_velocity": {"linear": (3, 1), "angular": (3, 1)},
    "link_acceleration": {"linear": (3, 1), "angular": (3, 1)},
    "forward_kinematics": {"position": (3, 1), "rotation": (3, 3)},
    "mass_matrix": {"M": ("nv", "nv")},
    "inverse_dynamics": {"tau": ("nv", 1)},
    "forward_dynamics": {"a": ("nv", 1)},
    "inverse_dynamics_jacobians": dict.fromkeys(("dtau_dq", "dtau_dv", "dtau_da"), ("nv", "nv")),
    "forward_dynamics_jacobians": {"a": ("nv", 1)} | dict.fromkeys(("da_dq", "da_dv", "da_dtau"), ("nv", "nv")),
    "bias_forces": {"h": ("nv", 1)},
    "gravity_torques": {"g": ("nv", 1)},
    "center_of_mass": {"com": (3, 1)},
    "com_jacobian": {"J": (3, "nv")},
    "kinetic_energy": {"energy": (1, 1)},
    "potential_energy": {"energy": (1, 1)},
    "momentum": {"momentum": (6, 1)},
    "momentum_matrix": {"A": (6, "nv")},
    "integrate": {"q": ("nq", 1)},
    "difference": {"v": ("nv", 1)},
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_shapes(name: str) -> None:
    model = tree_of("floating", "revolute", "spherical", "planar")
    options = {"link": "link2"} if "link" in FUNCTIONS[name].options else {}
    inputs, outputs = build(model, Parameters.of(model), name, **options)
    sizes = {"nq": model.nq, "nv": model.nv}
    expected = {key: tuple(sizes.get(n, n) for n in shape) for key, shape in SHAPES[name].items()}
    assert {key: value.shape for key, value in outputs.items()} == expected
    assert all(value.is_dense() for value in outputs.values())
    assert tuple(inputs) == FUNCTIONS[name].inputs


def test_all_links_at_once() -> None:
    model = tree_of("revolute", "prismatic")
    _, outputs = build(model, Parameters.of(model), "forward_kinematics", with_quaternion=True)
    assert list(outputs) == [f"{part}:link{i}" for i in range(3) for part in ("position", "rotation", "quaternion")]


def test_errors_say_what_there_is() -> None:
    model = tree_of("revolute")
    params = Parameters.of(model)
    with pytest.raises(KeyError, match="mass_matrix"):
        build(model, params, "inertia_matrix")
    with pytest.raises(KeyError, match=r"tool.*link0.*link1"):
        build(model, params, "jacobian", link="tool")
    with pytest.raises(TypeError, match="link="):
        build(model, params, "jacobian")
    with pytest.raises(TypeError, match="passive"):
        build(model, params, "mass_matrix", passive=None)
    with pytest.raises(ValueError, match="no derivative of its own"):
        build_vjp(model, params, "mass_matrix")


def operations(inputs: dict[str, ca.SX], outputs: dict[str, ca.SX]) -> int:
    """Count the instructions after common subexpressions are merged, loads and stores included."""
    return ca.Function("f", list(inputs.values()), ca.cse(list(outputs.values()))).n_instructions()


@pytest.fixture(scope="module")
def ur5() -> Model:
    return load_model("ur5")


@pytest.mark.parametrize(
    ("name", "budget"),
    [("inverse_dynamics", 340), ("mass_matrix", 230), ("forward_dynamics", 590), ("forward_dynamics_jacobians", 2_600)],
)
def test_operations_of_the_ur5(ur5: Model, name: str, budget: int) -> None:
    """The code does not get longer: a change that makes it slower is found here, not in a benchmark months later."""
    params = Parameters.of(ur5)
    assert operations(*build(ur5, params, name)) <= budget


def test_operations_of_the_adjoint(ur5: Model) -> None:
    """The adjoint stays short; differentiating a textbook's articulated body algorithm takes 4,700 operations."""
    params = Parameters.of(ur5)
    assert operations(*build_vjp(ur5, params, "forward_dynamics")) <= 1_030
