"""The laws of hard contact, one block of rows at a time: what each impulse must be, and how it answers to velocities.

A block has speeds u = J v, targets t and impulses l. Each law is a projection: l = P(y) with y = l + (t - u) / ease (Alart and
Curnier, 1991). `ease` is a constant of the size of the block's own mobility, so that y tells at once whether a row is open, sticks
or slides. Around that guess a law is linear,

    l' = aim - C (u' - u)

A row that is closed is held by C = 1 / (eps ease) about its last impulse: the error that eps leaves shrinks by eps at each
iteration, and rows that share a load keep the shares they had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

STILL = 1e-30
"""Square of an impulse below which it has no direction [N^2 s^2]."""
EDGE = 1e-12
"""Least part of its bound that a sliding impulse is beyond it."""


SINGLE = 1e-10
"""Spacing of numbers that tells float64 from float32."""


def by_type(spacing: SX, pair: tuple[float, float]) -> SX:
    """Return the number of the pair for float64, or for float32. spacing: that of the kernel's numbers."""
    return ca.if_else(spacing < SINGLE, *pair)


@dataclass(frozen=True, eq=False)
class Answer:
    """The law of a block around a guess; lists have an element per row."""

    aim: list[SX]
    """Impulses at the speeds of the guess."""
    C: dict[tuple[int, int], SX]
    """Minus the change of row i's impulse by row j's speed."""
    P: list[SX]
    """Projection of y: the impulses themselves where the guess is the solution."""
    by_bound: list[SX]
    """Change of the impulses by the block's friction coefficient, or by its bound."""
    keep: dict[tuple[int, int], SX]
    """Part of row j's last impulse in row i's: all of it where a row is closed, the friction of it where it slides."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows with one law.

    A "contact" has a normal and two tangents within a cone of friction; "push" only pushes (a smooth contact, a limit); "rub" is
    friction within a bound (of joints); "hold" holds both ways (an equality); "soft" pushes like a spring, see correct.py.
    """

    kind: str
    rows: tuple[int, ...]
    ease: float
    """Change of its speeds by a unit impulse, about [1/kg or 1/(kg m^2)]."""

    def answer(self, u: Sequence[SX], t: Sequence[SX], impulses: Sequence[SX], bound: SX, stiff: SX) -> Answer:
        """Return the law around a guess. bound: friction coefficient of a contact, largest impulse of "rub"; stiff: 1 / eps."""
        return LAWS[self.kind]([x - y for x, y in zip(t, u, strict=True)], list(impulses), bound, stiff, self.ease)


def _push(short: list[SX], impulses: list[SX], bound: SX, stiff: SX, ease: float) -> Answer:
    y = impulses[0] + short[0] / ease
    on, k = y > 0, stiff / ease
    aim = ca.if_else(on, impulses[0] + k * short[0], 0)
    C, keep = {(0, 0): ca.if_else(on, k, 0)}, {(0, 0): ca.if_else(on, 1, 0)}
    return Answer([aim], C, [ca.if_else(on, y, 0)], [SX(0)], keep)


def _rub(short: list[SX], impulses: list[SX], bound: SX, stiff: SX, ease: float) -> Answer:
    # A bound of 0 holds nothing: what is pulled from rest is as free as without friction.
    y, k = impulses[0] + short[0] / ease, stiff / ease
    sticks, sign = ca.logic_and(ca.fabs(y) <= bound, bound > 0), ca.sign(y)
    aim = ca.if_else(sticks, impulses[0] + k * short[0], sign * bound)
    P = ca.if_else(sticks, y, sign * bound)
    C, keep = {(0, 0): ca.if_else(sticks, k, 0)}, {(0, 0): ca.if_else(sticks, 1, 0)}
    return Answer([aim], C, [P], [ca.if_else(sticks, 0, sign)], keep)


def _hold(short: list[SX], impulses: list[SX], bound: SX, stiff: SX, ease: float) -> Answer:
    k = stiff / ease
    return Answer([impulses[0] + k * short[0]], {(0, 0): k}, [impulses[0] + short[0] / ease], [SX(0)], {(0, 0): SX(1)})


def _soft(short: list[SX], impulses: list[SX], bound: SX, stiff: SX, ease: float) -> Answer:
    pushes = short[0] > 0
    force = ca.if_else(pushes, short[0] / ease, 0)
    return Answer([force], {(0, 0): ca.if_else(pushes, 1 / ease, 0)}, [force], [SX(0)], {})


def _contact(short: list[SX], impulses: list[SX], mu: SX, stiff: SX, ease: float) -> Answer:
    y = [x + s / ease for x, s in zip(impulses, short, strict=True)]
    k = stiff / ease
    # Open, stick or slide; where it slides, friction is at its bound along d.
    on, square, bound = y[0] > 0, y[1] ** 2 + y[2] ** 2, mu * y[0]
    inside = square <= bound**2
    sticks, slides = ca.logic_and(on, inside), ca.logic_and(on, ca.logic_not(inside))
    size = ca.sqrt(ca.if_else(square > STILL, square, 1))
    d = [y[1] / size, y[2] / size]
    # Across d friction turns with the sliding: by mu l_n / |u_t|, from the part of y that is within the bound.
    part = ca.if_else(slides, bound / size, 0)
    turn = ca.if_else(slides, ca.fmin(part / (ease * ca.fmax(1 - part, EDGE)), k), 0)
    hold, rub = ca.if_else(on, k, 0), ca.if_else(sticks, k, 0)
    drag = ca.if_else(slides, mu * hold, 0)
    C = {
        (0, 0): hold,
        (1, 0): drag * d[0],
        (2, 0): drag * d[1],
        (1, 1): rub + turn * d[1] * d[1],
        (2, 2): rub + turn * d[0] * d[0],
        (1, 2): -turn * d[0] * d[1],
        (2, 1): -turn * d[0] * d[1],
    }
    normal = ca.if_else(on, impulses[0] + k * short[0], 0)
    across = turn * (d[1] * short[1] - d[0] * short[2])
    slid = [mu * normal * d[0] + across * d[1], mu * normal * d[1] - across * d[0]]
    stuck = [impulses[i] + k * short[i] for i in (1, 2)]
    aim = [normal, *(ca.if_else(sticks, a, ca.if_else(slides, b, 0)) for a, b in zip(stuck, slid, strict=True))]
    P = [ca.if_else(on, y[0], 0)]
    P += [ca.if_else(sticks, y[i + 1], ca.if_else(slides, bound * d[i], 0)) for i in (0, 1)]
    held, stuck = ca.if_else(on, 1, 0), ca.if_else(sticks, 1, 0)
    keep = {(0, 0): held, (1, 1): stuck, (2, 2): stuck}
    keep |= {(i, 0): ca.if_else(slides, mu * d[i - 1], 0) for i in (1, 2)}
    return Answer(aim, C, P, [SX(0), *(ca.if_else(slides, impulses[0] * x, 0) for x in d)], keep)


LAWS = {"contact": _contact, "push": _push, "rub": _rub, "hold": _hold, "soft": _soft}
"""Kind of a block -> its law."""
