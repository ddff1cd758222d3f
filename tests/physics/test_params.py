"""Parameters: constants fold away, symbols become inputs, and a symbol at its nominal value changes nothing."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from casadi import SX
from tests.physics.evaluate import evaluate
from tests.physics.strategies import random_state, tree_of

from costate.physics import Parameters
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.forward_dynamics import forward_dynamics
from costate.physics.dynamics.rnea import rnea
from costate.physics.params import KINDS, exact_rotation


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "planar", "spherical", "floating"])
@pytest.mark.parametrize("parameter", list(KINDS))
def test_symbol_at_its_nominal_value(kind: str, parameter: str) -> None:
    """A symbol at its nominal value gives the result of the constant, with other folding, regrouping and frames."""
    model = tree_of("revolute", kind, "revolute")
    constant = Parameters.of(model)
    name = {"link": "link2", "joint": "joint1", "model": ""}[KINDS[parameter][0]]
    symbolic, extra = constant.symbolic([(parameter, name)])
    q, v, x = SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("x", model.nv)
    outputs = [
        [algorithm(model, p, q, v, x) for algorithm in (rnea, forward_dynamics)] + [ca.densify(crba(model, p, q))]
        for p in (constant, symbolic)
    ]
    state = random_state(model)
    (theta,) = extra.values()
    expected = evaluate([q, v, x], outputs[0], *state)
    for ours, theirs in zip(
        evaluate([q, v, x, theta], outputs[1], *state, constant.number((parameter, name))), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


def test_a_symbolic_axis_need_not_be_normalised() -> None:
    model = tree_of("revolute", "revolute")
    params, extra = Parameters.of(model).symbolic([("axis", "joint1")])
    q, v, x = SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("x", model.nv)
    (axis,) = extra.values()
    state = random_state(model)
    expected = evaluate([q, v, x], [rnea(model, Parameters.of(model), q, v, x)], *state)[0]
    ours = evaluate([q, v, x, axis], [rnea(model, params, q, v, x)], *state, 3.0 * model.joints[1].axis)[0]
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_only_symbols_are_inputs() -> None:
    model = tree_of("revolute", "spherical")
    params, extra = Parameters.of(model).symbolic([("mass", "link1"), ("gravity", "")])
    assert list(extra) == ["mass:link1", "gravity"]
    q, v, a = SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("a", model.nv)
    free = ca.symvar(rnea(model, params, q, v, a))
    allowed = {str(s) for x in (q, v, a, *extra.values()) for s in ca.vertsplit(ca.vec(x))}
    assert {str(s) for s in free} <= allowed


def test_quarter_turns_are_exact() -> None:
    c, s = np.cos(np.pi / 2), np.sin(np.pi / 2)
    turn = exact_rotation(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]))
    assert (turn == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]).all()
    almost = np.array([[1e-12, -1, 0], [1, 1e-12, 0], [0, 0, 1]])
    assert (exact_rotation(almost) == almost).all()


def test_errors_say_what_there_is() -> None:
    params = Parameters.of(tree_of("revolute"))
    with pytest.raises(KeyError, match=r"link0.*link1"):
        params["mass", "forearm"]
    with pytest.raises(KeyError, match=r"armature.*gravity"):
        params["colour", "link1"]
    with pytest.raises(ValueError, match=r"\(2, 1\).*\(3, 1\)"):
        params.replace({("com", "link1"): np.zeros(2)})
