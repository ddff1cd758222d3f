"""The classical Runge-Kutta method on constrained accelerations, as MuJoCo has it.

Each of the four stages solves the contact problem anew. Stages and sums are in the axes of the step's start (advance.py), where
velocities of turning bodies may be added. Rotations are integrated as rotation vectors u from the start (Munthe-Kaas): with the
angular velocity w in the body's axes, du/dt = w + u x w / 2 + ...
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.model import Model
from costate.physics.algebra.spatial import cross
from costate.physics.joints import JOINTS
from costate.sim.integrate.advance import advance, turned_back
from costate.sim.setup import Symbols

TABLEAU = ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, 0.0))
"""Weight of every stage in the sums, and the part of the step to the next stage."""


def runge_kutta(b: ProgramBuilder, s: Symbols, acceleration: Program, args: list[Var]) -> Var:
    """Add the state after a step. acceleration: (x, u, parameters, wrenches) -> a (nv,), in axes that stand still."""
    nv, nx = s.setup.nv, s.setup.nx
    body = ProgramBuilder("stage")
    x, carried = body.input("x", nx), body.input("carried", 4 * nv)
    numbers, x0 = body.input("numbers", 2), body.input("x0", nx)
    rest = [body.input(f"i{k}", v.size) for k, v in enumerate(args[1:])]
    (a,) = body.call(acceleration, x, *rest)
    for name, value in zip(("x_after", "carried_after"), body.call(_stage(s), x0, carried, numbers, a), strict=True):
        body.output(name, value)
    (tableau,) = b.call(ca.Function("tableau", [], [SX([n for row in TABLEAU for n in row])]))
    (start,) = b.call(ca.Function("start", [s.x], [ca.vertcat(s.v, SX.zeros(3 * nv))]), args[0])
    (_, carried), _, _ = b.scan(body.program(), len(TABLEAU), [args[0], start], [tableau], args)
    return b.call(_end(s), args[0], carried)[0]


def _stage(s: Symbols) -> ca.Function:
    """Return (x0, carried, (weight, part), a) -> (x of the next stage, carried).

    carried: velocity of the stage, way from the start to it, sums of rates of the way and of accelerations, each (nv,).
    """
    setup, dt = s.setup, s.setup.dt
    nv = setup.nv
    carried, numbers, a = SX.sym("carried", 4 * nv), SX.sym("numbers", 2), SX.sym("a", nv)
    v, way, sum_v, sum_a = ca.vertsplit(carried, nv)
    a_start = turned_back(setup.scene.model, way, a)
    v = _way_rate(setup.scene.model, way, v)
    way_next = numbers[1] * dt * v
    v_next = s.v + numbers[1] * dt * a_start
    x = advance(setup.scene.model, s.q, way_next, v_next, 1.0)
    after = ca.vertcat(v_next, way_next, sum_v + numbers[0] * v, sum_a + numbers[0] * a_start)
    return ca.Function("stage", [s.x, carried, numbers, a], [x, after])


def _way_rate(model: Model, way: SX, v: SX) -> SX:
    """Return the rate of the way from the start at velocities v, (nv,)."""
    rows = SX(v)
    for j, i in zip(model.joints, model.v_index, strict=True):
        if j.kind in ("floating", "spherical"):
            at = slice(i + len(JOINTS[j.kind].linear), i + j.nv)
            rows[at] = _vector_rate(way[at], v[at])
    return rows


def _vector_rate(u: SX, w: SX) -> SX:
    """Return w + u x w / 2 + c u x (u x w), c = (1 - |u|/2 cot(|u|/2)) / |u|^2, (3,)."""
    n2 = ca.dot(u, u)
    small = n2 < 1e-4
    half = ca.sqrt(ca.if_else(small, 1, n2)) / 2
    exact = (1 - half * ca.cos(half) / ca.sin(half)) / (4 * half**2)
    c = ca.if_else(small, 1 / 12 + n2 / 720 + n2**2 / 30240, exact)
    turned = cross(u, w)
    return w + turned / 2 + c * cross(u, turned)


def _end(s: Symbols) -> ca.Function:
    setup = s.setup
    carried = SX.sym("carried", 4 * setup.nv)
    _, _, sum_v, sum_a = ca.vertsplit(carried, setup.nv)
    x = advance(setup.scene.model, s.q, sum_v, s.v + setup.dt * sum_a, setup.dt)
    return ca.Function("end", [s.x, carried], [x])
