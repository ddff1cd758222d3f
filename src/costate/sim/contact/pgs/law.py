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
ALONG = 1e-6
"""Part of a row's mobility below which it only moves along with others: above the rounding of float32."""
HEAVY = 1e9
"""Inverse mobility given to a row that cannot move, in units of the reference: its impulses are too small to see."""
LEAST_COUPLED = 0.05
"""Part of A_nn that is left at least when friction adds to the normal load (else there is no solution: Painleve)."""
STILL = 1e-30
"""Square of a speed below which sliding has no direction [m^2/s^2]."""
ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def mobility(own: SX, reference: SX, cfm: float) -> SX:
    """Return the diagonal A[k, k] of a row, softened by cfm. reference: how easily its contact point moves in any direction; a row
    that moves less than rounding in comparison becomes too heavy to move."""
    return ca.if_else(own > UNMOVED * reference, own * (1 + cfm), HEAVY * reference + 1e-30)


def block_numbers(A: SX, cfm: float) -> SX:
    """Return the BLOCK numbers of a contact from its A (3, 3)."""
    ease = mobility(A[0, 0], ca.trace(A), cfm)
    inverse = _stopping(A, ease, cfm)
    return ca.vertcat(*(A[i, j] for i, j in ENTRIES), *(inverse[i, j] for i, j in ENTRIES), ease)


def _stopping(A: SX, ease: SX, cfm: float) -> SX:
    """Return the inverse of a contact's A, (3, 3), eliminated row after row. A row that only moves along with those before it is
    left out (one hinge moves a point of its link along a line): stopping those stops it, too."""
    first = 1 / ease
    l1, l2 = A[0, 1] * first, A[0, 2] * first
    s11, s12, s22 = A[1, 1] - A[0, 1] * l1, A[1, 2] - A[0, 1] * l2, A[2, 2] - A[0, 2] * l2
    second = _one_over(s11, A[1, 1], cfm)
    m = s12 * second
    third = _one_over(s22 - s12 * m, A[2, 2], cfm)
    L = ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(-l1, 1, 0), ca.horzcat(m * l1 - l2, -m, 1))
    return L.T @ ca.diag(ca.vertcat(first, second, third)) @ L


def _one_over(left: SX, own: SX, cfm: float) -> SX:
    """Return the inverse of what is left of a row's mobility, 0 where that is rounding."""
    moves = left > ALONG * own + 1e-30
    return ca.if_else(moves, 1 / ca.if_else(moves, left * (1 + cfm), 1), 0)


def own_change(block: SX, impulse: SX) -> SX:
    """Return the change of a contact's speeds by its own impulses, (3,)."""
    return _symmetric(block[:6]) @ impulse


def contact_law(u: SX, block: SX, old: SX, mu: SX, cone: str) -> SX:
    """Return the impulses (normal, two tangents) of a contact. u: its speeds without these impulses, (3,); old: the impulses of the
    last visit, (3,)."""
    A, inverse, ease = _symmetric(block[:6]), _symmetric(block[6:12]), block[12]
    if cone != "cone":
        return _row_by_row(u, A, ease, old, mu)
    stick = -inverse @ u
    pressed = u[0] < 0
    inside = stick[1] ** 2 + stick[2] ** 2 <= (mu * stick[0]) ** 2
    sticks = ca.logic_and(ca.logic_and(pressed, stick[0] > 0), inside)
    # The push of friction that would stop the sliding, as the last visit left it, times its mobility.
    mobile = ca.fmax(ca.fmax(A[1, 1], A[2, 2]), UNMOVED * ca.trace(A) + 1e-30)
    push = mobile * old[1:] - (u[1:] + A[1:, :] @ old)
    return ca.if_else(sticks, stick, ca.if_else(pressed, _slide(u, A, ease, mu, push), 0))


def _slide(u: SX, A: SX, ease: SX, mu: SX, push: SX) -> SX:
    """Return the impulses of a contact that slides, with friction along push: p_n = -u_n / (A_nn + mu A_nt push / |push|)."""
    square = ca.sumsqr(push)
    d = push / ca.sqrt(ca.if_else(square > STILL, square, 1))
    coupled = ca.fmax(ease + mu * (A[0, 1] * d[0] + A[0, 2] * d[1]), LEAST_COUPLED * ease)
    normal = -u[0] / coupled
    return ca.vertcat(normal, mu * normal * d)


def _row_by_row(u: SX, A: SX, ease: SX, old: SX, mu: SX) -> SX:
    """Return the impulses with a bound for each direction of friction by itself: one row after the other, each with the last
    impulses of the others. This has a fixed point only where mu |A_nt| < A_nn."""
    found = [old[k] for k in range(3)]
    for k in range(3):
        speed = u[k] + sum((A[k, j] * found[j] for j in range(3) if j != k), SX(0))
        own = ease if k == 0 else ca.fmax(A[k, k], UNMOVED * ca.trace(A) + 1e-30)
        found[k] = ca.if_else(speed < 0, -speed / ease, 0) if k == 0 else within(-speed / own, mu * found[0])
    return ca.vertcat(*found)


def within(x: SX, most: SX) -> SX:
    """Return x, or the bound that it is beyond. A bound of zero holds whatever x does, so there is no derivative: shapes that are
    apart and do not move sideways feel no friction in their gradient (minimum and maximum would share it among equal
    arguments)."""
    free = ca.if_else(most > 0, x, 0)
    return ca.if_else(x > most, most, ca.if_else(x < -most, -most, free))


def _symmetric(x: SX) -> SX:
    a, b, c, d, e, f = ca.vertsplit(x)
    return ca.vertcat(ca.horzcat(a, b, c), ca.horzcat(b, d, e), ca.horzcat(c, e, f))
