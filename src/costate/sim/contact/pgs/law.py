"""The law of one contact: its normal and friction impulses, solved together.

    u + A p is the velocity after an impulse p,   0 <= p_n  _|_  u_n + A_n p >= 0,   |p_t| <= mu p_n, against the sliding

Rows that are solved one after the other (normal, then friction) need not have a fixed point where leaning levers couple them: with
mu |A_nt| > A_nn they cycle. Here a contact sticks if the impulse that stops it altogether lies within the friction bound. Else it
slides, along the direction in which it would slide after the last visit, and the normal impulse counts what friction adds to it.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

BLOCK = 13
"""Numbers of a contact that its law reads: A (nn, n1, n2, 11, 12, 22), then the inverse and the first entry of a softened A, in
which rows that cannot move are heavy."""
UNMOVED = 1e-12
"""Part of the reference mobility below which nothing moves along a row: rounding, squared."""
HEAVY = 1e9
"""Inverse mobility given to a row that cannot move, in units of the reference: its impulses are too small to see."""
LEAST_COUPLED = 0.05
"""Part of A_nn that is left at least when friction adds to the normal load (else there is no solution: Painleve)."""
ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def mobility(own: SX, reference: SX, cfm: float) -> SX:
    """Return the diagonal A[k, k] of a row, softened by cfm. reference: how easily its contact point moves in any direction; a row
    that moves less than rounding in comparison becomes too heavy to move."""
    return ca.if_else(own > UNMOVED * reference, own * (1 + cfm), HEAVY * reference + 1e-30)


def block_numbers(A: SX, cfm: float) -> SX:
    """Return the BLOCK numbers of a contact from its A (3, 3)."""
    reference = ca.trace(A)
    soft = SX(A)
    for k in range(3):
        soft[k, k] = mobility(A[k, k], reference, cfm)
    inverse = _inverse(soft)
    return ca.vertcat(*(A[i, j] for i, j in ENTRIES), *(inverse[i, j] for i, j in ENTRIES), soft[0, 0])


def own_change(block: SX, impulse: SX) -> SX:
    """Return the change of a contact's speeds by its own impulses, (3,)."""
    return _symmetric(block[:6]) @ impulse


def contact_law(u: SX, block: SX, old: SX, mu: SX, cone: str) -> SX:
    """Return the impulses (normal, two tangents) of a contact. u: its speeds without these impulses, (3,); old: the impulses of the
    last visit, (3,)."""
    A, inverse, ease = _symmetric(block[:6]), _symmetric(block[6:12]), block[12]
    stick = -inverse @ u
    inside = stick[1] ** 2 + stick[2] ** 2 <= (mu * stick[0]) ** 2
    if cone != "cone":
        inside = ca.logic_and(ca.fabs(stick[1]) <= mu * stick[0], ca.fabs(stick[2]) <= mu * stick[0])
    pressed = u[0] < 0
    sticks = ca.logic_and(ca.logic_and(pressed, stick[0] > 0), inside)
    d, size = _against_sliding(u, A, old, mu, cone)
    # The direction of friction is d / size: one division, p_n = -u_n / (A_nn + mu A_nt d / size).
    coupled = ca.fmax(size * ease + mu * (A[0, 1] * d[0] + A[0, 2] * d[1]), LEAST_COUPLED * size * ease)
    scale = ca.if_else(pressed, -u[0] / coupled, 0)
    return ca.if_else(sticks, stick, scale * ca.vertcat(size, mu * d[0], mu * d[1]))


def _against_sliding(u: SX, A: SX, old: SX, mu: SX, cone: str) -> tuple[SX, SX]:
    """Return the direction of friction at its bound, (2,), and its length (1 where there is no direction)."""
    ease = ca.fmax(ca.fmax(A[1, 1], A[2, 2]), UNMOVED * ca.trace(A) + 1e-30)
    push = ease * old[1:] - (u[1:] + A[1:, :] @ old)
    if cone == "cone":
        square = ca.sumsqr(push)
        return push, ca.if_else(square > 0, ca.sqrt(square), 1)
    most = ease * mu * old[0]
    sign = ca.if_else(push > 0, 1, ca.if_else(push < 0, -1, 0))
    part = push / ca.if_else(most > 0, most, 1)
    return ca.if_else(ca.logic_and(most > 0, ca.fabs(push) < most), part, sign), SX(1)


def within(x: SX, most: SX) -> SX:
    """Return x, or the bound that it is beyond. A bound of zero holds whatever x does, so there is no derivative: shapes that are
    apart and do not move sideways feel no friction in their gradient (minimum and maximum would share it among equal
    arguments)."""
    free = ca.if_else(most > 0, x, 0)
    return ca.if_else(x > most, most, ca.if_else(x < -most, -most, free))


def _symmetric(x: SX) -> SX:
    a, b, c, d, e, f = ca.vertsplit(x)
    return ca.vertcat(ca.horzcat(a, b, c), ca.horzcat(b, d, e), ca.horzcat(c, e, f))


def _inverse(A: SX) -> SX:
    """Return the inverse of a symmetric matrix (3, 3)."""
    rows = [A[:, k] for k in range(3)]
    sides = [ca.cross(rows[(k + 1) % 3], rows[(k + 2) % 3]) for k in range(3)]
    return ca.horzcat(*sides).T / ca.dot(rows[0], sides[0])
