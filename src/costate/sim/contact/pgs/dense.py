"""Hard contact: projected Gauss-Seidel on impulses; bounces happen at their time within the step.

    v' = v_free + W lambda,   W = M^-1 J^T,   J v' >= target,   lambda >= 0   (friction: |lambda_t| <= mu lambda_n)

The sweeps are a scan whose carried state is lambda; its adjoint is the reversed sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.options import PGS
from costate.sim.contact.pgs.mappable import is_mapped
from costate.sim.contact.pgs.pairwise import mapped_step
from costate.sim.contact.pgs.sweep import Sweep, make_sweep
from costate.sim.contact.pgs.targets import target_of
from costate.sim.contact.rows import Row, constraint_rows
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import Free, free_motion
from costate.sim.setup import Setup, Symbols


@dataclass(frozen=True, eq=False)
class Problem:
    """The contact problem of a step as expressions."""

    rows: list[Row]
    sweep: Sweep
    W: SX
    """(nv, n)."""
    c: SX
    """J v_free - target, (n,)."""
    rest: SX | None
    """Part of the step that is left after the impact, (n,); None where nothing bounces: impulses then act all along."""
    more: dict[str, SX]
    """Further right-hand sides like c, by what their solution is for."""


def pgs_step(setup: Setup, warm: bool = False) -> Program:
    """One substep as a program: (x, u, parameters, wrenches) -> (x', impulses, residual).

    warm: The program has one more input after x, the impulses to start from. residual: largest speed [m/s or rad/s] by which one
    more sweep would change a row, (1,).
    """
    if is_mapped(setup):
        return mapped_step(setup, warm)
    options = setup.contact
    assert isinstance(options, PGS)
    s = Symbols(setup)
    free = free_motion(s, s.q, s.v, s.u, joint_friction=not options.joint_friction)
    rows = constraint_rows(s, s.q, s.contacts(), setup.dt)
    b = ProgramBuilder("step")
    args = [b.input("i0", setup.nx)]
    (start,) = [b.input("start", max(len(rows), 1))] if warm else b.call(_zeros(max(len(rows), 1)))
    args += [b.input(f"i{k}", x.numel()) for k, x in enumerate(s.inputs) if k]
    if not rows:
        return _without_rows(b, s, args, free.velocity)
    problem = make_problem(s, options, rows, free)
    rest = [] if problem.rest is None else [problem.rest]
    outputs = [free.velocity, _nonzeros(problem.W), problem.sweep.system, _bounds(rows), *rest, problem.c]
    outputs += problem.more.values()
    v_free, w, system, bounds, *found = s.call(b, "prepare", outputs, args)
    sides = found[len(rest) :]
    carry = _first(b, problem, start, w)
    ends = [_sweeps(b, problem.sweep, options.sweeps, carry, [system, sides[0], bounds])]
    zero = b.call(_zeros(problem.sweep.carry_size))[0] if sides[1:] else carry
    ends += [_sweeps(b, problem.sweep, options.sweeps, zero, [system, c, bounds]) for c in sides[1:]]
    solved = [b.slice(end, 0, len(rows)) for end in ends]
    finish = _finish(setup, s, problem, list(problem.more))
    (x,) = b.call(finish, args[0], v_free, w, *solved, *found[: len(rest)])
    impulses = solved[0]
    b.output("x", x)
    b.output("impulses", impulses)
    (again,) = b.call(problem.sweep.function, ends[0], system, sides[0], bounds)
    b.output("residual", b.call(_residual(problem.sweep, len(rows)), ends[0], again, system)[0])
    return b.program()


def _without_rows(b: ProgramBuilder, s: Symbols, args: list[Var], velocity: SX) -> Program:
    used = s.v if s.setup.integrator == "explicit" else velocity
    after = advance(s.setup.scene.model, s.q, used, velocity, s.setup.dt)
    (x,) = b.call(ca.Function("free", s.inputs, [after]), *args)
    b.output("x", x)
    for name in ("impulses", "residual"):
        b.output(name, b.call(_zeros(1))[0])
    return b.program()


def _zeros(n: int) -> ca.Function:
    return ca.Function("zeros", [], [SX.zeros(n)])


def _first(b: ProgramBuilder, problem: Problem, start: Var, w: Var) -> Var:
    """What the sweeps carry where they start from impulses."""
    if problem.sweep.carry_size == start.size:
        return start
    impulse, entries = SX.sym("lambda", start.size), SX.sym("w", w.size)
    carry = ca.vertcat(impulse, SX(problem.W.sparsity(), entries) @ impulse)
    return b.call(ca.Function("carry", [impulse, entries], [ca.densify(carry)]), start, w)[0]


def _sweeps(b: ProgramBuilder, sweep: Sweep, sweeps: int, start: Var, shared: list[Var]) -> Var:
    return b.scan(sweep.function, sweeps, start, shared=shared)[0][0]


def _residual(sweep: Sweep, n: int) -> ca.Function:
    before, after = SX.sym("before", sweep.carry_size), SX.sym("after", sweep.carry_size)
    system = SX.sym("system", sweep.system.numel())
    return ca.Function("residual", [before, after, system], [ca.mmax(ca.fabs(after - before)[:n] / system[-n:])])


def make_problem(s: Symbols, options: PGS, rows: list[Row], free: Free) -> Problem:
    """`more` holds what is solved beside the impulses: "push" (split correction), "jump" (explicit integration)."""
    J = ca.vertcat(*(r.J for r in rows))
    W = ca.sparsify(ca.horzcat(*(_sparse_solve(free.factor, r.J.T) for r in rows)))
    before = J @ s.v
    c, push, rest = _offsets(s, options, rows, J @ free.velocity, before)
    more = {"push": push} if options.correction == "split" else {}
    if s.setup.integrator == "explicit":
        # Positions move with the velocity before the step, so their impacts are those of that velocity.
        more["jump"], _, rest = _offsets(s, options, rows, before, before)
    return Problem(rows, make_sweep(rows, J, W, options), W, c, None if rest.is_constant() else rest, more)


def _offsets(s: Symbols, options: PGS, rows: list[Row], speed: SX, before: SX) -> tuple[SX, SX, SX]:
    """Speeds less targets, minus the speeds that undo overlap, and the parts of the step after the impacts, (n,) each."""
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
    """Friction coefficients and bounds, one per row (0 where there is none)."""
    return ca.vertcat(*(SX(0) if r.bound is None else r.bound for r in rows))


def _finish(setup: Setup, s: Symbols, problem: Problem, more: list[str]) -> ca.Function:
    """Velocities after the impulses, and positions that know when they came."""
    pattern, n = problem.W.sparsity(), len(problem.rows)
    v_free, w, impulse = SX.sym("v", setup.nv), SX.sym("w", pattern.nnz()), SX.sym("lambda", n)
    others = {name: SX.sym(name, n) for name in more}
    rest = [] if problem.rest is None else [SX.sym("rest", n)]
    W = SX(pattern, w)
    after = v_free + W @ impulse
    start, jump = (s.v, others["jump"]) if "jump" in others else (v_free, impulse)
    travelled = start + W @ (rest[0] * jump if rest else jump)
    if "push" in others:
        travelled = travelled + W @ others["push"]
    x = advance(setup.scene.model, s.q, travelled, after, setup.dt)
    return ca.Function("finish", [s.x, v_free, w, impulse, *others.values(), *rest], [x])
