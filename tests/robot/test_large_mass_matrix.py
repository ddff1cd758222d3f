"""Robots with hundreds of joints: every function and gradient finishes, or says why not before it starts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from tests.physics.strategies import SLOW, random_inertia, random_models, random_rotation
from tests.robot.reference import random_states, relative_error

import costate as cs
from costate.audit.pinocchio_reference import Reference
from costate.model.joint import Joint, Mimic
from costate.model.model import Link, Model
from costate.model.transform import Transform
from costate.physics import Parameters
from costate.robot import large_mass_matrix
from costate.robot.kernels import robot_kernel

ROUNDING = 1e-12
"""Some thousand operations in both, in another order; entries of a matrix are compared with its largest one."""


def tree(joints: int, reach: int, mimics: bool = False) -> Model:
    """Return a robot whose joints hang on one of the last `reach` links: 1 makes a chain. Mimics: every third follows the first."""
    rng = np.random.default_rng(joints + reach)
    links, made = [Link("l0", random_inertia(rng))], []
    for i in range(1, joints + 1):
        parent = f"l{rng.integers(max(0, i - reach), i)}"
        links.append(Link(f"l{i}", random_inertia(rng)))
        origin = Transform(random_rotation(rng), rng.normal(size=3) * 0.1)
        mimic = Mimic("j1", 0.5, 0.1) if mimics and i % 3 == 0 else None
        made.append(Joint(f"j{i}", "revolute", parent, f"l{i}", origin, np.eye(3)[i % 3], armature=0.01, mimic=mimic))
    return Model("tree", tuple(links), tuple(made))


@settings(max_examples=4, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(random_models(2, 8, mimics=True))
def test_the_loop_gives_the_mass_matrix_of_any_robot(model: Model) -> None:
    """All kinds of joints, branches, mimic joints: compared with the straight-line code, which other tests compare with others."""
    q = random_states(model, 3)["q"]
    expected = robot_kernel(model, "mass_matrix").apply([q])[0]
    found = large_mass_matrix.large_mass_matrix(model, Parameters.of(model), {}).apply([q])[0]
    assert relative_error(found, expected.numpy()) < ROUNDING


def test_gradients_of_the_loop_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """In q and in a learnable mass and armature; the matrix is symmetric to the bit."""
    monkeypatch.setattr(large_mass_matrix, "PAIRS", 0)
    model = tree(7, 2, mimics=True)
    keys = [("mass", "l5"), ("armature", "j2")]
    kernel = robot_kernel(model, "mass_matrix", keys)
    assert len(kernel.signature.inputs) == 3 and len(kernel.program.stages) > 1
    x = random_states(model, 2)["q"], torch.tensor([1.3]).double(), torch.tensor([0.2]).double()
    assert cs.gradcheck(lambda *inputs: kernel.apply(inputs)[0], x, names=("q", "mass", "armature")).ok
    M = kernel.apply(x)[0]
    assert torch.equal(M, M.mT)


@pytest.mark.parametrize("reach", [1, 9])
def test_a_hundred_joints(reach: int) -> None:
    model = tree(100, reach)
    M = cs.Robot(model).mass_matrix(x := random_states(model, 1)["q"])
    reference = Reference(model)({"q": x[0].numpy(), **{k: np.zeros(model.nv) for k in ("v", "a", "tau")}}, "l100")
    assert large_mass_matrix.is_large(model) == (reach == 1)
    assert relative_error(M[0], reference["mass_matrix"]) < ROUNDING


def test_what_is_too_long_is_refused_before_it_starts() -> None:
    robot, coupled = cs.Robot(tree(600, 1)), cs.Robot(tree(600, 1, mimics=True))
    q, v = coupled.neutral(), torch.zeros(coupled.nv, dtype=torch.float64)
    refused = "mass matrix of {} velocities, with up to 600 .* in a row.* exceed the limit of .* COSTATE_MAX_OPERATIONS"
    with pytest.raises(ValueError, match=refused.format(400)):
        coupled.forward_dynamics(q, v, v)
    with pytest.raises(ValueError, match=refused.format(600)):
        cs.World(robots=[robot], dt=1e-3).step(torch.zeros(1200, dtype=torch.float64), v.new_zeros(600))


def test_the_compiler_refuses_what_is_too_long(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    zero = torch.zeros(6, dtype=torch.float64)
    monkeypatch.setenv("COSTATE_MAX_OPERATIONS", "100")
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path))
    with pytest.raises(
        ValueError, match=r"too long to compile: \d+ operations .* limit of 100; .* COSTATE_MAX_OPERATIONS"
    ):
        cs.load_robot("ur5").inverse_dynamics(zero, zero, zero)


@pytest.mark.study
@pytest.mark.parametrize("reach", [1, 9])
def test_six_hundred_joints(reach: int) -> None:
    """Laws between functions that are computed in other ways, and every gradient. (Pinocchio would take gigabytes of memory.)"""
    model = tree(600, reach)
    robot = cs.Robot(model)
    q, v, a, tau = (random_states(model, 1)[k][0] for k in ("q", "v", "a", "tau"))
    rest = torch.zeros_like(v)
    M, J = robot.mass_matrix(q), robot.jacobian(q, "l600")
    pushed = robot.inverse_dynamics(q, rest, a) - robot.inverse_dynamics(q, rest, rest)
    assert relative_error(M @ a, pushed.numpy()) < 1e-9
    assert relative_error(v @ M @ v / 2, robot.kinetic_energy(q, v).numpy()) < 1e-9
    assert relative_error(J @ v, robot.link_velocity(q, v, "l600").numpy()) < 1e-9
    torques = robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau))
    assert relative_error(torques, tau.numpy(), scale=float(torques.abs().max())) < 1e-6
    functions = {
        "kinematics": (lambda q: robot.forward_kinematics(q, "l600").position, (q,)),
        "jacobian": (lambda q: robot.jacobian(q, "l600"), (q,)),
        "mass matrix": (robot.mass_matrix, (q,)),
        "inverse dynamics": (robot.inverse_dynamics, (q, v, a)),
        "forward dynamics": (robot.forward_dynamics, (q, v, tau)),
    }
    for name, (function, inputs) in functions.items():
        report = cs.gradcheck(
            function, inputs, step=1e-3, directions=1, forward_mode=False, second_order=False, float32=False
        )
        assert report.ok, f"{name}: {report}"
