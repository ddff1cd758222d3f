"""A substep of hard contact in pieces: motions, cut at the impacts between them.

    while time is left:
        if a row that touches approaches fast:   impact    velocities jump, no time goes by            (impact.py)
        else:                                    motion    until the next impact, or the substep's end

An impact sees the configuration and the velocities of its own time, and what is left of the substep goes on from there. So its
derivative is that of the motion: the time of impact depends on the state, and is found by Newton's method on the true distances. A
motion solves for the velocity v' at the end of the time h that is left, as a substep without impacts would, and goes along

    v(t) = v + t (v' - v) / h,     q(t) = q + t (base + t slope)

up to the first time t at which a row that approaches fast closes. Where it has closed already, that time is zero or just before,
and its derivative is the same. A subclass of `Pieces` adds the stages for its storage of rows
and velocities (dense.py, pairwise/).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""Values that pieces hand on: state; time left [s] and number of pieces so far; rows that a motion has just closed; impulses so
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
    """The stages of a substep. A scope has the values of CARRY, the further inputs of the step (i1, i2, ...), and what `prepare`
    and `solve` add."""

    size: int
    """Number of impulses."""
    hits: int
    """Number of rows that can strike: normals and limits."""

    def __init__(self, options: PGS, setup: Setup):
        self.options, self.setup = options, setup

    # --- what depends on the storage ------------------------------------------------------------------------------

    @abstractmethod
    def prepare(self, scope: Scope) -> None:
        """Set what the methods below read, among it `gap` and `waits` (hits,) and `strikes` (1,): see targets.py."""

    @abstractmethod
    def impact(self, scope: Scope) -> tuple[Var, Var]:
        """Add an impact; return the state after it, and impulses (size,)."""

    @abstractmethod
    def solve(self, scope: Scope) -> tuple[Var, Var]:
        """Add the sweeps of a motion over all the time that is left; return impulses (size,) and residual. Set `base_speed` and
        `slope_speed`: speeds of the rows that can strike along base and slope, (hits,)."""

    @abstractmethod
    def travel(self, scope: Scope, tau: Var) -> Var:
        """Add the state after a time tau of a motion that was solved."""

    @abstractmethod
    def look(self, scope: Scope, tau: Var) -> tuple[Var, Var]:
        """Add gaps and their rates of change after a time tau of a motion that was solved, (hits,) each."""

    # --- the loop -------------------------------------------------------------------------------------------------

    def substep(self, b: ProgramBuilder, args: Sequence[Var], start: Var) -> list[Var]:
        """Add a substep; return the values of CARRY after it. start: impulses to start from, if any."""
        x, *rest = args
        clock = b.constant([self.setup.dt, 0])
        forces = b.trace(lambda p: p / self.setup.dt, start) if start.size else start
        carry = [x, clock, b.zeros(self.hits), b.zeros(self.size), b.zeros(1), forces]
        sizes = {f"i{k}": v.size for k, v in enumerate(rest, 1)}
        body = self._piece(dict(zip(CARRY, (v.size for v in carry), strict=True)) | sizes)
        if not self.hits:
            return b.call(body, *carry, *rest)
        found, _ = b.while_loop(lambda x, clock, *_: clock[0] > 0, body, 2 * self.options.impacts + 1, carry, rest)
        return found

    def _piece(self, sizes: Mapping[str, int]) -> Program:
        scope = Scope.of("piece", sizes)
        self.prepare(scope)
        if not self.hits:
            return scope.b.program(*self._motion(scope))
        inside = scope.inside("impact"), scope.inside("motion")
        branches = inside[0].b.program(*self._impact(inside[0])), inside[1].b.program(*self._motion(inside[1]))
        return scope.b.program(*scope.b.cond(scope["strikes"], *branches, *scope.values.values()))

    def _impact(self, scope: Scope) -> list[Var]:
        b = scope.b
        x, impulses = self.impact(scope)
        clock = b.trace(lambda c: ca.vertcat(c[0], c[1] + 1), scope["clock"])
        sums = b.add(scope["sums"], impulses)
        return [x, clock, b.zeros(self.hits), sums, *scope.pick(("residual", "start"))]

    def _motion(self, scope: Scope) -> list[Var]:
        b = scope.b
        impulses, residual = self.solve(scope)
        tau, marks = self._until(scope)
        x = self.travel(scope, tau)

        def after(clock: SX, tau: SX, sums: SX, impulses: SX, old: SX, residual: SX) -> list[SX]:
            h = clock[0]
            left = ca.if_else(tau < h, h - tau, 0)
            return [ca.vertcat(left, clock[1] + 1), sums + impulses * (tau / h), ca.fmax(old, residual), impulses / h]

        values = scope["clock"], tau, scope["sums"], impulses, scope["residual"], residual
        clock, sums, worst, forces = b.trace(after, *values)
        return [x, clock, marks, sums, worst, forces if scope["start"].size else scope["start"]]

    # --- the time of the next impact ------------------------------------------------------------------------------

    def _until(self, scope: Scope) -> tuple[Var, Var]:
        """Add the time at which a motion ends, and marks of the rows that it closes, (hits,)."""
        b = scope.b
        if not self.hits:
            return b.slice(scope["clock"], 0, 1), b.zeros(0)
        names = "clock", "gap", "waits", "base_speed", "slope_speed"
        scope["tau"], sooner = b.trace(self._estimate, *scope.pick(names))
        inside = scope.inside("refine"), scope.inside("keep")
        refined = inside[0].b.program(*self._refined(inside[0]))
        kept = inside[1].b.program(inside[1]["tau"], inside[1].b.zeros(self.hits))
        tau, marks = b.cond(sooner, refined, kept, *scope.values.values())
        return tau, marks

    def _estimate(self, clock: SX, gap: SX, waits: SX, base: SX, slope: SX) -> list[SX]:
        """Return the earliest time at which gap + t base + t^2 slope = 0, and whether that is before the end."""
        h, times = clock[0], []
        for k in range(self.hits):
            square = base[k] ** 2 - 4 * slope[k] * gap[k]
            below = -base[k] + ca.sqrt(ca.if_else(square > 0, square, 1))
            meets = ca.logic_and(ca.logic_and(waits[k], square > 0), below > CREEP)
            times.append(ca.if_else(meets, 2 * gap[k] / ca.if_else(meets, below, 1), h))
        first = _least([h, *times])
        return [first, first < h]

    def _refined(self, scope: Scope) -> list[Var]:
        """Add Newton's steps: every row that waits says when it would close, and the earliest one counts."""
        b = scope.b
        shared = {k: v.size for k, v in scope.values.items() if k != "tau"}
        body = Scope.of("newton", {"tau": 1, "times": self.hits} | shared)
        found = body.b.trace(self._closer, *body.pick(("tau", "clock", "waits")), *self.look(body, body["tau"]))
        start = [scope["tau"], b.zeros(self.hits)]
        (tau, times), _, _ = b.scan(body.b.program(*found), NEWTON, start, shared=scope.pick(list(shared)))

        def end(tau: SX, times: SX, clock: SX) -> list[SX]:
            sooner = tau < clock[0] - END * self.setup.dt
            return [ca.if_else(sooner, tau, clock[0]), ca.if_else(sooner, times <= tau, 0)]

        return list(b.trace(end, tau, times, scope["clock"]))

    def _closer(self, tau: SX, clock: SX, waits: SX, gap: SX, rate: SX) -> list[SX]:
        """Return the earliest time at which a row closes, no later than the end, and the times of all rows."""
        h, times = clock[0], []
        for k in range(self.hits):
            meets = ca.logic_and(waits[k], rate[k] < -CREEP)
            times.append(
                ca.if_else(meets, ca.fmax(tau - gap[k] / ca.if_else(meets, rate[k], -1), -self.setup.dt), 2 * h)
            )
        return [_least([h, *times]), ca.vertcat(*times)]


def _least(values: list[SX]) -> SX:
    """Return the least of some values, compared in pairs: a short chain of dependent operations."""
    while len(values) > 1:
        values = [ca.fmin(*values[i : i + 2]) if values[i + 1 :] else values[i] for i in range(0, len(values), 2)]
    return values[0]
