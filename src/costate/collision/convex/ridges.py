"""Least depth of round solids: from directions nearby to those of largest separation, on ridges and off them.

Where one solid is round and the other has straight edges, the separation has a ridge along the directions normal to such an edge:
it is smooth along the ridge, and has a kink across it. A search that does not know the ridge ends a few degrees beside it.

    on_ridges    tries directions all around every edge, and closes in on the best
    climbed      takes steps of Newton, or uphill, that are kept if the separation grows
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.contact_point import tangents
from costate.collision.convex.axes import better
from costate.collision.convex.pair import Pair, PairKind
from costate.collision.shapes.solid import length
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var

AROUND = 24
"""Directions tried around an edge."""
CLOSER = 12
"""Times that the way to the next direction around an edge is halved."""
CLIMB, UPHILL = 8, 0.1
"""Number of steps uphill, and the length of the first one [rad]."""

Step = Callable[[Pair, SX, SX, SX], SX]
"""A step of Newton (pair, direction, flat, whether there is a flat) -> direction."""


def has_ridges(kind: PairKind) -> bool:
    """Return whether one of the solids is round all over. Two that have flat faces or straight edges meet along these."""
    return any(solid.is_round and not solid.edge_axes for solid in (kind.a, kind.b))


def on_ridges(b: ProgramBuilder, kind: PairKind, best: list[Var], numbers: list[Var]) -> list[Var]:
    """Return the best direction so far, or a better one that is normal to an edge; and its separation."""
    angles = 2 * np.pi * np.arange(AROUND) / AROUND
    turns = b.constant(np.stack([np.cos(angles), np.sin(angles)], 1))
    halves = b.constant(np.pi / AROUND * 0.5 ** np.arange(CLOSER))
    for side, solid in enumerate((kind.a, kind.b)):
        for axis in solid.edge_axes:
            none = [b.constant([1.0, 0, 0]), b.constant(-1e9)]
            found, _, _ = b.scan(kind.body(_around(side, axis)), AROUND, none, sequences=[turns], shared=numbers)
            found, _, _ = b.scan(kind.body(_beside(side, axis)), CLOSER, found, sequences=[halves], shared=numbers)
            best = list(b.trace(better, *found, *best))
    return best


def _edge(pair: Pair, side: int, axis: int) -> SX:
    return SX.eye(3)[:, axis] if side else pair.R[:, axis]


def _around(side: int, axis: int) -> Callable[..., tuple[SX, SX]]:
    def tried(pair: Pair, best: SX, most: SX, turn: SX) -> tuple[SX, SX]:
        t1, t2 = tangents(_edge(pair, side, axis))
        n = turn[0] * t1 + turn[1] * t2
        return better(n, pair.separation(n), best, most)

    return tried


def _beside(side: int, axis: int) -> Callable[..., tuple[SX, SX]]:
    def tried(pair: Pair, best: SX, most: SX, angle: SX) -> tuple[SX, SX]:
        across = ca.cross(_edge(pair, side, axis), best)
        here, there = ca.cos(angle) * best, ca.sin(angle) * across
        for n in (here + there, here - there):
            best, most = better(n, pair.separation(n), best, most)
        return best, most

    return tried


def climbed(b: ProgramBuilder, kind: PairKind, best: list[Var], numbers: list[Var], newton: Step) -> list[Var]:
    """Return the best direction so far after a few steps uphill, and its separation."""

    def step(pair: Pair, n: SX, s: SX, reach: SX) -> tuple[SX, SX, SX]:
        gradient = pair.difference(-n)  # a support function's gradient is its point
        uphill = gradient - ca.dot(gradient, n) * n
        moved = n + reach * uphill / length(uphill)
        trial = moved / length(moved)
        most, height = better(trial, pair.separation(trial), n, s)
        quick = newton(pair, n, SX.zeros(3), SX(0))
        most, height = better(quick, pair.separation(quick), most, height)
        return most, height, ca.if_else(height > s, reach, reach / 4)

    (n, s, _), _, _ = b.scan(kind.body(step), CLIMB, [*best, b.constant(UPHILL)], shared=numbers)
    return [n, s]
