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
from costate.sim.forces.general import rates
from costate.sim.integrate.advance import advance, turned_back
from costate.sim.setup import Setup

TABLEAU = ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, 0.0))
"""Weight of every stage in the sums, and the part of the step to the next stage."""


def runge_kutta(b: ProgramBuilder, setup: Setup, acceleration: Program, args: list[Var]) -> Var:
    """Add positions and velocities after a step.

    acceleration: (x, u, parameters, wrenches) -> a (nv,), in axes that stand still.
    """
    model, dt, nq, nv, nx = setup.scene.model, setup.dt, setup.nq, setup.nv, setup.nx

    start_v, start_a = nq, nq + nv

    def stage(x: SX, x0: SX, carried: SX, numbers: SX, a: SX, u: SX) -> tuple[SX, SX]:
        """Return x of the next stage, and what it carries.

        carried: velocity of the stage, way from the start to it, sums of rates of the way and of accelerations, each (nv,);
        numbers: weight of the stage, part of the step to the next one.
        """
        v, way, sum_v, sum_a = ca.vertsplit(carried, nv)
        a_start = turned_back(model, way, a)
        v = _way_rate(model, way, v)
        way_next = numbers[1] * dt * v
        v_next = x0[start_v:start_a] + numbers[1] * dt * a_start
        after = ca.vertcat(v_next, way_next, sum_v + numbers[0] * v, sum_a + numbers[0] * a_start)
        moved = advance(setup, x0[:nq], way_next, v_next, 1.0)
        if setup.na:
            moved = ca.vertcat(moved, x0[start_a:] + numbers[1] * dt * rates(setup, x[start_a:], u))
        return moved, after

    def end(x0: SX, carried: SX) -> SX:
        _, _, sum_v, sum_a = ca.vertsplit(carried, nv)
        return advance(setup, x0[:nq], sum_v, x0[start_v:start_a] + dt * sum_a, dt)

    body = ProgramBuilder("stage")
    x, carried, numbers, x0, *rest = body.inputs(nx, 4 * nv, 2, *(v.size for v in args))
    (a,) = body.call(acceleration, x, *rest)
    after = body.program(*body.trace(stage, x, x0, carried, numbers, a, rest[0]))
    start = b.trace(lambda x: ca.vertcat(x[start_v:start_a], SX.zeros(3 * nv)), args[0])
    (_, carried), _, _ = b.scan(after, len(TABLEAU), [args[0], start], [b.constant(TABLEAU)], args)
    return b.trace(end, args[0], carried)


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
