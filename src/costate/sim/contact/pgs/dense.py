"""Hard contact: projected Gauss-Seidel on impulses; bounces happen at their time within the step.

    v' = v_free + W lambda,   W = M^-1 J^T,   J v' >= target,   lambda >= 0   (friction: |lambda_t| <= mu lambda_n)

The sweeps are a scan whose carried state is lambda; its adjoint is the reversed sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.model import substep_inputs
from costate.sim.contact.pgs.sweep import Sweep, make_sweep
from costate.sim.contact.pgs.targets import target_of
from costate.sim.contact.rows import Row, constraint_rows
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import Free, free_motion
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


@dataclass(frozen=True, eq=False)
class Problem:
    """The contact problem of a step as expressions."""

    rows: list[Row]
    sweep: Sweep
    W: SX
    """Changes of velocity by unit impulses M^-1 J^T, (nv, n)."""
    c: SX
    """Speeds less targets J v_free - target, (n,)."""
    rest: SX | None
    """Part of the step that is left after the impact, (n,); None where nothing bounces: impulses then act all along."""
    more: dict[str, SX]
    """Further right-hand sides like c, by what their solution is for."""


def dense_substep(options: PGS, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`. Its carry are the impulses to start from.

    residual: largest speed [m/s or rad/s] by which one more sweep would change a row, (1,).
    """
    s = Symbols(setup)
    free = free_motion(s, s.q, s.v, s.u, joint_friction=not options.joint_friction)
    rows = constraint_rows(s, s.q, s.contacts(), setup.dt)
    n = len(rows)
    b = ProgramBuilder("substep")
    carry, args = substep_inputs(b, s, n if options.warms(setup) else 0)
    if not rows:
        return _without_rows(b, s, args, free.velocity, carry)
    problem = make_problem(s, options, rows, free)
    rest = [] if problem.rest is None else [problem.rest]
    outputs = [free.velocity, _nonzeros(problem.W), problem.sweep.system, _bounds(rows), *rest, problem.c]
    outputs += problem.more.values()
    v_free, w, system, bounds, *found = s.call(b, "prepare", outputs, args)
    sides = found[len(rest) :]
    still = b.zeros(problem.sweep.carry_size)
    starts = [_started(b, problem, carry, w) if carry.size else still, *(still for _ in sides[1:])]
    ends = [
        b.scan(problem.sweep.function, options.sweeps, start, shared=[system, c, bounds])[0][0]
        for start, c in zip(starts, sides, strict=True)
    ]
    solved = [b.slice(end, 0, n) for end in ends]
    x = b.trace(_finish(setup, problem), args[0], v_free, w, *solved, *found[: len(rest)])
    (again,) = b.call(problem.sweep.function, ends[0], system, sides[0], bounds)
    residual = b.trace(lambda x, y, system: ca.mmax(ca.fabs(y - x)[:n] / system[-n:]), ends[0], again, system)
    return b.program(x, solved[0] if carry.size else carry, solved[0], residual)


def _without_rows(b: ProgramBuilder, s: Symbols, args: list[Var], velocity: SX, carry: Var) -> Program:
    travelled = s.v if s.setup.method.travels_before else velocity
    after = advance(s.setup.scene.model, s.q, travelled, velocity, s.setup.dt)
    (x,) = s.call(b, "free", [after], args)
    return b.program(x, carry, b.zeros(1), b.zeros(1))


def _started(b: ProgramBuilder, problem: Problem, start: Var, w: Var) -> Var:
    """Return what the sweeps carry where they start from impulses."""
    if problem.sweep.carry_size == start.size:
        return start
    pattern = problem.W.sparsity()
    return b.trace(lambda impulse, w: ca.vertcat(impulse, SX(pattern, w) @ impulse), start, w)


def make_problem(s: Symbols, options: PGS, rows: list[Row], free: Free) -> Problem:
    """Return the problem of a step. Its `more` holds right-hand sides that are solved besides: "push" (split correction) and "jump"
    (explicit integration)."""
    J = ca.vertcat(*(r.J for r in rows))
    W = ca.sparsify(ca.horzcat(*(_sparse_solve(free.factor, r.J.T) for r in rows)))
    before = J @ s.v
    c, push, rest = _offsets(s, options, rows, J @ free.velocity, before)
    more = {"push": push} if options.correction == "split" else {}
    if s.setup.method.travels_before:
        # Positions move with the velocity before the step, so their impacts are those of that velocity.
        more["jump"], _, rest = _offsets(s, options, rows, before, before)
    return Problem(rows, make_sweep(rows, J, W, options), W, c, None if rest.is_constant() else rest, more)


def _offsets(s: Symbols, options: PGS, rows: list[Row], speed: SX, before: SX) -> tuple[SX, SX, SX]:
    """Return speeds less targets, minus the speeds that undo overlap, and the parts of the step after the impacts, (n,) each."""
    restitution = s.contact_value("restitution")
    c, push, rest = [], [], []
    for k, row in enumerate(rows):
        target, undo, left = target_of(row, speed[k], before[k], restitution, options, s.setup.dt)
        c.append(speed[k] - target)
        push.append(-undo)
        rest.append(left)
    for k, row in enumerate(rows):  # friction acts as long as its contact does
        if row.kind == "tangent":
            rest[k] = rest[row.contact]
    return ca.vertcat(*c), ca.vertcat(*push), ca.vertcat(*rest)


def _sparse_solve(factor, column: SX) -> SX:
    return ca.sparsify(factor.solve(column))


def _nonzeros(A: SX) -> SX:
    return ca.vec(SX(A.nz[:]))  # of a row it is a row


def _bounds(rows: list[Row]) -> SX:
    """Return friction coefficients and bounds, one per row (0 where there is none)."""
    return ca.vertcat(*(SX(0) if r.bound is None else r.bound for r in rows))


def _finish(setup: Setup, problem: Problem) -> Callable[..., SX]:
    """Return the function (x, v_free, w, impulses, solutions of `more`, [rest]) -> next state. It advances velocities by the
    impulses, and positions by the time at which they came."""
    nq, nv = setup.nq, setup.nv

    def finish(x: SX, v_free: SX, w: SX, impulse: SX, *given: SX) -> SX:
        others, rest = dict(zip(problem.more, given, strict=False)), given[len(problem.more) :]
        W = SX(problem.W.sparsity(), w)
        start, jump = (x[nq : nq + nv], others["jump"]) if "jump" in others else (v_free, impulse)
        travelled = start + W @ (rest[0] * jump if rest else jump)
        if "push" in others:
            travelled = travelled + W @ others["push"]
        return advance(setup.scene.model, x[:nq], travelled, v_free + W @ impulse, setup.dt)

    return finish
