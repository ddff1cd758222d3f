"""Rounds that find a solution where Newton's method alone does not: heaps in which many points share few bodies, jammed levers.

Coulomb's law becomes that of a convex problem if the normal speed of a contact counts mu |u_t| more (De Saxce, 1992), and that
number is taken from the last round. A round is then a step of the method of multipliers on

    minimise over v:    v' M v / 2 - p' v  +  sum over blocks of  (eps ease / 2) |P(l + (t - J v - shift) / (eps ease))|^2

by Newton's method with exact line search, whose impulses P are those to start the next round from. After each round a few
iterations of the exact law (solve.py) are tried from there; the first that converges is the answer. If none does, there may be no
solution (Painleve), and the best of the rounds counts. Impulses of a round take energy, never give it: P . (u + shift) is 0 at its
solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import factor
from costate.sim.contact.hard.law import STILL, Block, by_type
from costate.sim.contact.newton.solve import FAR, line_step

if TYPE_CHECKING:
    from costate.sim.contact.hard.solve import Solver

FIRST = (1e-3, 1e-2)
LEAST = (1e-7, 1e-4)
"""Compliance of rows by their ease in the first round and at least, in float64 and in float32."""
HARDER = 0.6
"""Factor of the compliance from round to round."""
STEPS = 16
"""Newton steps of a round at most."""
POLISH = 3
"""Iterations of the exact law after a round."""
LINE_SEARCH = 20
"""Steps of a line search at most."""
NEGLIGIBLE = 1e-12
"""Decrease of the cost of a round that is not worth a step, relative to the energy of the motion."""
LIGHT = 1e-9
"""Energy below which a motion counts as having this one [J]."""


@dataclass(frozen=True, eq=False)
class Rescue:
    """The rounds of a solver's problems."""

    solver: Solver
    rounds: int

    def add(self, b: ProgramBuilder, given: Sequence[Var], end: Sequence[Var]) -> list[Var]:
        """Add rounds for the samples that are not solved: return v, l and state. given: inputs of the solver; end: v, l and state
        where Newton's method gave up."""
        start = [*end, given[-2], given[-1], b.trace(lambda spacing: by_type(spacing, FIRST), given[0])]
        shared = list(given[:-2])
        found, _ = b.while_loop(
            lambda v, impulses, state, *_: state[0] > 0, self._round(shared), self.rounds, start, shared
        )
        return found[:3]

    def _round(self, shared: Sequence[Var]) -> Program:
        """Build (v, l, state, v and l of the last round, eps, numbers) -> the same."""
        p = self.solver.problem
        b = ProgramBuilder("round")
        v, impulses, state, v_last, l_last, eps, *numbers = b.inputs(
            p.nv, p.n, 2, p.nv, p.n, 1, *(x.size for x in shared)
        )
        spacing, m, momentum, j, t, bounds = numbers
        u, aims = b.trace(self._shifted, j, v_last, t, bounds)
        own = [m, momentum, j, aims, bounds, l_last, eps]
        (v_new, u_new, _), _ = b.while_loop(
            lambda v, u, busy, *_: busy, self._step(own), STEPS, [v_last, u, b.constant([1.0])], own
        )
        l_new = b.trace(lambda u, *rest: self._convex(u, *rest)[0], u_new, aims, bounds, l_last, eps)
        # The velocities that these impulses cause: Newton's last step may have left some momentum over.
        balanced = b.trace(self._balanced, m, momentum, j, l_new)
        ahead = b.trace(self._state, spacing, j, balanced, t, l_new, bounds)
        tried, _ = b.while_loop(
            self.solver.going, self.solver.iteration, POLISH, [v_new, l_new, u_new, b.constant([1.0, 0.0])], numbers
        )
        chosen = b.trace(
            self._chosen, spacing, v, impulses, state, balanced, l_new, ahead, tried[0], tried[1], tried[3]
        )
        harder = b.trace(lambda eps, spacing: ca.fmax(HARDER * eps, by_type(spacing, LEAST)), eps, spacing)
        return b.program(*chosen, v_new, l_new, harder)

    def _shifted(self, j: SX, v: SX, t: SX, bounds: SX) -> list[SX]:
        """Return u = J v, and targets that count the sliding."""
        u = ca.densify(self.solver.problem.rows(j) @ v)
        aims = SX(t)
        for k, block in enumerate(self.solver.problem.blocks):
            if block.kind == "contact":
                n, x, y = block.rows
                aims[n] = t[n] - bounds[k] * ca.sqrt(u[x] ** 2 + u[y] ** 2)
        return [u, aims]

    def _balanced(self, m: SX, momentum: SX, j: SX, impulses: SX) -> SX:
        p = self.solver.problem
        return factor(p.mass(m)).solve(ca.densify(momentum + p.rows(j).T @ impulses))

    def _state(self, spacing: SX, j: SX, v: SX, t: SX, impulses: SX, bounds: SX) -> SX:
        u = ca.densify(self.solver.problem.rows(j) @ v)
        return self.solver.state(spacing, v, u, t, impulses, bounds, SX(0))

    def _chosen(self, *given: SX) -> list[SX]:
        """Return the exact solution if there is one, else the best of the rounds."""
        spacing, v, impulses, state, v_new, l_new, new, v_try, l_try, tried = given
        solved = self.solver.accepted(spacing, v_try, tried)[0] == 0
        # What Newton's method left at first is not kept, however small its residual: it may be anything.
        better = ca.logic_or(state[0] == 1, new[1] < state[1])
        pick = [ca.if_else(better, a, b) for a, b in ((v_new, v), (l_new, impulses), (new, state))]
        pick = [ca.if_else(solved, a, b) for a, b in zip((v_try, l_try, tried), pick, strict=True)]
        busy = self.solver.accepted(spacing, pick[0], pick[2])[0]
        return [pick[0], pick[1], ca.vertcat(2 * busy, pick[2][1])]

    # --- a step of a round --------------------------------------------------------------------------------------------

    def _step(self, shared: Sequence[Var]) -> Program:
        """Build (v, u, busy, numbers of the round) -> v, u, busy."""
        p = self.solver.problem
        b = ProgramBuilder("step")
        v, u, _, m, momentum, j, aims, bounds, centre, eps = b.inputs(p.nv, p.n, 1, *(x.size for x in shared))

        def direction(v: SX, u: SX, m: SX, momentum: SX, j: SX, *law: SX) -> list[SX]:
            J, M = p.rows(j), p.mass(m)
            impulses, C = self._convex(u, *law)
            pull = M @ v - momentum
            slope = pull - J.T @ impulses
            step = -factor(ca.tril(M + J.T @ (C @ J))).solve(ca.densify(slope))
            slopes = ca.vertcat(ca.dot(step, pull), ca.dot(step, M @ step), ca.dot(step, slope))
            least = NEGLIGIBLE * ca.fmax(ca.fabs(ca.dot(momentum, v)), LIGHT)
            return [step, ca.densify(J @ step), slopes, least]

        law = [aims, bounds, centre, eps]
        step, du, slopes, least = b.trace(direction, v, u, m, momentum, j, *law)

        def search(state: SX, slopes: SX, u: SX, du: SX, *law: SX) -> SX:
            impulses, C = self._convex(u + state[0] * du, *law)
            return line_step(state, slopes, ca.vertcat(-ca.dot(du, impulses), ca.dot(du, C @ du)))

        start = b.constant([1.0, 0.0, FAR, 1.0, 0.0])
        (state,), _ = b.while_loop(lambda state, *_: state[3], search, LINE_SEARCH, start, [slopes, u, du, *law])

        def stepped(v: SX, u: SX, step: SX, du: SX, state: SX, slopes: SX, least: SX) -> list[SX]:
            done = ca.logic_or(state[4] > 0, -slopes[2] <= least)
            return [v + state[0] * step, u + state[0] * du, ca.if_else(done, 0, 1)]

        return b.program(*b.trace(stepped, v, u, step, du, state, slopes, least))

    def _convex(self, u: SX, t: SX, bounds: SX, centre: SX, eps: SX) -> tuple[SX, SX]:
        """Return the impulses of a round at some speeds, and minus their change by speeds, (n, n), which is symmetric."""
        p, impulses, entries = self.solver.problem, [SX(0)] * self.solver.problem.n, {}
        for k, block in enumerate(p.blocks):
            soft = eps * block.ease
            y = [centre[i] + (t[i] - u[i]) / soft for i in block.rows]
            found, bend = _projected(block, y, bounds[k])
            for i, value in zip(block.rows, found, strict=True):
                impulses[i] = value
            for (i, j), value in bend.items():
                entries[block.rows[j], block.rows[i]] = value / soft
        keys = sorted(entries)
        pattern = ca.Sparsity.triplet(p.n, p.n, [i for _, i in keys], [j for j, _ in keys])
        return ca.vertcat(*impulses), SX(pattern, ca.vertcat(*(entries[k] for k in keys)))


def _projected(block: Block, y: list[SX], bound: SX) -> tuple[list[SX], dict[tuple[int, int], SX]]:
    """Return the nearest impulses that a block may have, and their derivative."""
    if block.kind == "hold":
        return y, {(0, 0): SX(1)}
    if block.kind == "push":
        return [ca.fmax(y[0], 0)], {(0, 0): ca.if_else(y[0] > 0, 1, 0)}
    if block.kind == "rub":
        return [ca.fmax(ca.fmin(y[0], bound), -bound)], {(0, 0): ca.if_else(ca.fabs(y[0]) < bound, 1, 0)}
    square = y[1] ** 2 + y[2] ** 2
    size = ca.sqrt(ca.if_else(square > STILL, square, STILL))
    inside, polar = size <= bound * y[0], bound * size <= -y[0]
    d, part = [y[1] / size, y[2] / size], 1 / (1 + bound**2)
    # On the mantle of the cone: along it, and around it.
    along = part * (y[0] + bound * size)
    around = bound * along / size
    normal = [along, bound * along * d[0], bound * along * d[1]]
    g = [SX(1), bound * d[0], bound * d[1]]
    across = [SX(0), d[1], -d[0]]
    bend = {(i, j): part * g[i] * g[j] + around * across[i] * across[j] for i in range(3) for j in range(3)}

    def cases(one: SX | float, mantle: SX) -> SX:
        return ca.if_else(inside, one, ca.if_else(polar, 0, mantle))

    return [cases(a, x) for a, x in zip(y, normal, strict=True)], {
        (i, j): cases(float(i == j), value) for (i, j), value in bend.items()
    }
