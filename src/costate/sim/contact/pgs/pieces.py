"""A substep of hard contact in pieces: motions, cut at the impacts between them.

    while time is left:
        if a row that touches approaches fast:   impact    velocities jump, no time goes by            (impact.py)
        else:                                    motion    until the next impact, or the substep's end

An impact sees the configuration and the velocities of its own time, and what is left of the substep goes on from there. So its
derivative is that of the motion: the time of impact depends on the state, and is found by Newton's method on the true distances. A
motion solves for the velocity v' at the end of the time h that is left, as a substep without impacts would, and goes along

    v(t) = v + t (v' - v) / h,     q(t) = q + t (base + t slope)

up to the first time t at which a row that approaches fast closes. Where it has closed already, that time is zero or just before,
and its derivative is the same. A subclass of `Pieces` adds the stages for its storage of rows and velocities (dense.py, pairwise/).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.setup import Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

NEWTON = 4
"""Newton's steps for the time of an impact."""
CREEP = 1e-6
"""Speed of approach below which no time of impact is looked for [m/s or rad/s]."""
END = 1e-9
"""Part of the substep before its end in which an impact is left to the next one."""
CARRY = ("x", "clock", "marks", "sums", "residual", "start")
"""Values that pieces hand on: state; time left [s] and number of pieces so far; marks of rows (targets.py); impulses so
far; residual; forces of the last motion, to start from (of size 0 without warm start)."""


@dataclass(frozen=True, eq=False)
class Scope:
    """A program under construction with names for its values, all of which the programs inside it may read."""

    b: ProgramBuilder
    values: dict[str, Var]

    @staticmethod
    def of(name: str, sizes: Mapping[str, int]) -> Scope:
        """Return a scope whose values are the inputs of a new program."""
        b = ProgramBuilder(name)
        return Scope(b, dict(zip(sizes, b.inputs(*sizes.values()), strict=True)))

    def __getitem__(self, name: str) -> Var:
        return self.values[name]

    def __setitem__(self, name: str, value: Var) -> None:
        self.values[name] = value

    def inside(self, name: str) -> Scope:
        """Return the scope of a program inside this one."""
        return Scope.of(name, {k: v.size for k, v in self.values.items()})

    def pick(self, names: Sequence[str]) -> list[Var]:
        return [self.values[k] for k in names]


class Pieces(ABC):
    """The stages of a substep. A scope has the values of CARRY, the further inputs of the step (i1, i2, ...), and what `piece`
    and `solve` add: among it `waits` (hits,), which says what rows wait for an impact."""

    size: int
    """Number of impulses."""
    hits: int
    """Number of rows that can strike: normals and limits."""

    def __init__(self, options: PGS, setup: Setup):
        self.options, self.setup = replace(options, impacts=options.impacts_of(setup)), setup

    # --- what depends on the storage ------------------------------------------------------------------------------

    def constants(self, b: ProgramBuilder, args: Sequence[Var]) -> dict[str, Var]:
        """Add what is the same for all pieces, with names for it. args: values of Symbols.inputs."""
        return {}

    def each(self, b: ProgramBuilder, fn: Callable[..., SX], vectors: Sequence[Var], shared: Sequence[Var] = ()) -> Var:
        """Add a function of every element of some vectors, which are as long as all impulses or all rows that can strike, and of
        what all elements share."""
        return b.trace(fn, *vectors, *shared)

    @abstractmethod
    def piece(self, scope: Scope) -> Program:
        """Return the program of a piece: CARRY and what all pieces share -> CARRY. It is an impact or a motion, or both, and reads
        `gap`, `touches`, `waits` and `strikes` of the rows: see targets.py."""

    @abstractmethod
    def solve(self, scope: Scope) -> tuple[Var, Var]:
        """Add the sweeps of a motion over all the time that is left; return impulses (size,) and residual."""

    @abstractmethod
    def travel(self, scope: Scope, tau: Var) -> Var:
        """Add the state after a time tau of a motion that was solved."""

    @abstractmethod
    def estimate(self, scope: Scope) -> Var:
        """Add the earliest time at which a row that waits closes in a motion that was solved, with the levers of its start; the end
        of the motion where none does."""

    @abstractmethod
    def closer(self, scope: Scope) -> tuple[Var, Var]:
        """Add one of Newton's steps for that time from an earlier result `tau`: return the time, and those of all rows, (hits,)."""

    # --- the loop -------------------------------------------------------------------------------------------------

    def substep(self, b: ProgramBuilder, args: Sequence[Var], start: Var) -> tuple[Var, Var, Var, Var]:
        """Add a substep; return the state, impulses and residual after it, and impulses to start the next one from. start: impulses
        to start from, if any."""
        clock, dt = b.constant([self.setup.dt, 0]), self.setup.dt
        x, shared = self.split(b, args)
        forces = self.each(b, lambda p: p / dt, [start]) if start.size else start
        carry = [x, clock, b.zeros(self.hits), b.zeros(self.size), b.zeros(1), forces]
        shared |= self.constants(b, args)
        sizes = dict(zip(CARRY, carry, strict=True)) | shared
        body = self.piece(Scope.of("piece", {k: v.size for k, v in sizes.items()}))
        if self.hits:
            limit = 2 * (self.options.impacts or 0) + 1
            carry, _ = b.while_loop(lambda x, clock, *_: clock[0] > 0, body, limit, carry, list(shared.values()))
        else:
            carry = b.call(body, *carry, *shared.values())
        x, _, _, impulses, residual, forces = carry
        return x, impulses, residual, self.each(b, lambda f: f * dt, [forces]) if start.size else start

    def split(self, b: ProgramBuilder, args: Sequence[Var]) -> tuple[Var, dict[str, Var]]:
        """Return positions and velocities, which pieces change, and names of what they do not: activations of actuators, if there
        are some, and all further inputs. args: values of Symbols.inputs."""
        moving = self.setup.nq + self.setup.nv
        shared = {f"i{k}": v for k, v in enumerate(args[1:], 1)}
        if not self.setup.na:
            return args[0], shared
        return b.slice(args[0], 0, moving), shared | {"act": b.slice(args[0], moving, self.setup.na)}

    def inputs(self, scope: Scope, x: Var | None = None) -> list[Var]:
        """Return the values of Symbols.inputs, at the positions and velocities of a scope or at others."""
        x = scope["x"] if x is None else x
        state = scope.b.concat(x, scope["act"]) if self.setup.na else x
        count = sum(name[0] == "i" and name[1:].isdigit() for name in scope.values)
        return [state, *scope.pick([f"i{k}" for k in range(1, count + 1)])]

    def motion(self, scope: Scope) -> list[Var]:
        """Add a motion; return the values of CARRY after it."""
        b, clock = scope.b, scope["clock"]
        impulses, residual = self.solve(scope)
        tau, marks = self._until(scope)
        x = self.travel(scope, tau)

        def after(clock: SX, tau: SX, old: SX, residual: SX) -> list[SX]:
            left = ca.if_else(tau < clock[0], clock[0] - tau, 0)
            return [ca.vertcat(left, clock[1] + 1), ca.fmax(old, residual)]

        sums = self.each(b, lambda p, new, tau, c: p + new * (tau / c[0]), [scope["sums"], impulses], [tau, clock])
        start = scope["start"]
        if start.size:
            start = self.each(b, lambda p, clock: p / clock[0], [impulses], [clock])
        later, worst = b.trace(after, clock, tau, scope["residual"], residual)
        return [x, later, marks, sums, worst, start]

    # --- the time of the next impact ------------------------------------------------------------------------------

    def _until(self, scope: Scope) -> tuple[Var, Var]:
        """Add the time at which a motion ends, and marks of the rows that it closes, (hits,)."""
        b = scope.b
        if not self.hits:
            return b.slice(scope["clock"], 0, 1), b.zeros(0)
        scope["tau"] = self.estimate(scope)
        sooner = b.trace(lambda tau, clock: tau < clock[0], *scope.pick(("tau", "clock")))
        inside = scope.inside("refine"), scope.inside("keep")
        refined = inside[0].b.program(*self._refined(inside[0]))
        kept = inside[1].b.program(inside[1]["tau"], inside[1].b.zeros(self.hits))
        tau, marks = b.cond(sooner, refined, kept, *scope.values.values())
        return tau, marks

    def _refined(self, scope: Scope) -> list[Var]:
        """Add Newton's steps: every row that waits says when it would close, and the earliest one counts."""
        b = scope.b
        shared = {k: v.size for k, v in scope.values.items() if k != "tau"}
        body = Scope.of("newton", {"tau": 1, "times": self.hits} | shared)
        found = self.closer(body)
        start = [scope["tau"], b.zeros(self.hits)]
        (tau, times), _, _ = b.scan(body.b.program(*found), NEWTON, start, shared=scope.pick(list(shared)))

        def is_sooner(tau: SX, clock: SX) -> SX:
            return tau < clock[0] - END * self.setup.dt

        def mark(times: SX, waits: SX, tau: SX, clock: SX) -> SX:
            return ca.logic_and(ca.logic_and(waits, times <= tau), is_sooner(tau, clock))

        marks = self.each(b, mark, [times, scope["waits"]], [tau, scope["clock"]])
        end = b.trace(lambda tau, clock: ca.if_else(is_sooner(tau, clock), tau, clock[0]), tau, scope["clock"])
        return [end, marks]


def meeting(gap: SX, base: SX, slope: SX, waits: SX, h: SX) -> SX:
    """Return the first time at which gap + t base + t^2 slope = 0, or h where a row does not wait or they do not meet."""
    square = base**2 - 4 * slope * gap
    below = -base + ca.sqrt(ca.if_else(square > 0, square, 1))
    meets = ca.logic_and(ca.logic_and(waits, square > 0), below > CREEP)
    return ca.if_else(meets, 2 * gap / ca.if_else(meets, below, 1), h)


def closing(tau: SX, gap: SX, rate: SX, waits: SX, h: SX, earliest: float) -> SX:
    """Return when a row closes, by one of Newton's steps from the time tau; 2 h where it does not."""
    meets = ca.logic_and(waits, rate < -CREEP)
    return ca.if_else(meets, ca.fmax(tau - gap / ca.if_else(meets, rate, -1), earliest), 2 * h)


def least(values: list[SX]) -> SX:
    """Return the least of some values, compared in pairs: a short chain of dependent operations."""
    while len(values) > 1:
        values = [ca.fmin(*values[i : i + 2]) if values[i + 1 :] else values[i] for i in range(0, len(values), 2)]
    return values[0]
