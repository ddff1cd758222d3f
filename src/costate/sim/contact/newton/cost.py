"""Costs of constraints: what a deviation x = J a - aref costs, the forces that follow, and how these change.

Every function is of one block; x (dim,) as a list, D its weight, mu its friction coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

Values = Sequence[SX]


@dataclass(frozen=True, eq=False)
class Cost:
    """Derivatives of a block's cost, both signs and patterns known beforehand."""

    kind: str
    """Kind: contact | limit | friction | equality."""
    dim: int
    cone: str
    impratio: float

    def edges(self, x: Values, mu: Values) -> list[SX]:
        """Return the scalars whose signs decide: x itself, or the edges of a pyramid."""
        if self.dim == 1:
            return [x[0]]
        return [e for xk, m in zip(x[1:], mu, strict=True) for e in (x[0] + m * xk, x[0] - m * xk)]

    @property
    def is_elliptic(self) -> bool:
        return self.kind == "contact" and self.dim > 1 and self.cone == "elliptic"

    def value(self, x: Values, D: SX, mu: Values) -> SX:
        if self.kind == "equality":
            return sum((D / 2 * xk**2 for xk in x), SX(0))
        if self.kind == "friction":
            reach = mu[0] / D
            size = ca.fabs(x[0])
            return ca.if_else(size < reach, D * x[0] ** 2 / 2, mu[0] * (size - reach / 2))
        if not self.is_elliptic:
            return sum((D / 2 * ca.fmin(e, 0) ** 2 for e in self.edges(x, mu)), SX(0))
        zone = self._zone(x, D, mu)
        bottom = sum((w * xk**2 / 2 for w, xk in zip(self._weights(D, mu), x, strict=True)), SX(0))
        return ca.if_else(zone.middle, zone.Dm * zone.over**2 / 2, ca.if_else(zone.bottom, bottom, 0))

    def force(self, x: Values, D: SX, mu: Values) -> list[SX]:
        """Return -d value / dx, (dim,)."""
        if self.kind == "equality":
            return [-D * xk for xk in x]
        if self.kind == "friction":
            # Not two nested bounds: at a friction of 0 they meet, and their derivatives by it would cancel.
            return [ca.if_else(ca.fabs(x[0]) * D < mu[0], -D * x[0], -mu[0] * ca.sign(x[0]))]
        if self.is_elliptic:
            return self._elliptic_force(x, D, mu)
        pushes = [-D * ca.fmin(e, 0) for e in self.edges(x, mu)]
        if self.dim == 1:
            return pushes
        along = [m * (pushes[2 * k] - pushes[2 * k + 1]) for k, m in enumerate(mu)]
        return [_sum(pushes), *along]

    def hessian(self, x: Values, D: SX, mu: Values) -> SX:
        """Return d^2 value / dx^2, (dim, dim)."""
        if self.kind == "equality":
            return D * SX.eye(self.dim)
        if self.kind == "friction":
            return D * (ca.fabs(x[0]) * D < mu[0])
        if self.is_elliptic:
            return self._elliptic_hessian(x, D, mu)
        on = [ca.if_else(e < 0, D, 0) for e in self.edges(x, mu)]
        if self.dim == 1:
            return on[0]
        H = SX(self.dim, self.dim)
        H[0, 0] = _sum(on)
        for k, m in enumerate(mu):
            H[0, k + 1] = H[k + 1, 0] = m * (on[2 * k] - on[2 * k + 1])
            H[k + 1, k + 1] = m * m * (on[2 * k] + on[2 * k + 1])
        return H

    def along(self, x: Values, y: Values, step: SX, D: SX, mu: Values) -> tuple[SX, SX]:
        """Return the first and second derivative of the value at x + step y, in the step."""
        if (self.kind == "contact" and not self.is_elliptic) or self.kind == "limit":
            first, second = SX(0), SX(0)
            for e, rate in zip(self.edges(x, mu), self.edges(y, mu), strict=True):
                at = e + step * rate
                first = first + ca.fmin(at, 0) * rate
                second = second + ca.if_else(at < 0, rate * rate, 0)
            return D * first, D * second
        z = [xk + step * yk for xk, yk in zip(x, y, strict=True)]
        rates = ca.vertcat(*y)
        first = -ca.dot(ca.vertcat(*self.force(z, D, mu)), rates)
        return first, ca.bilin(self.hessian(z, D, mu), rates, rates)

    # --- elliptic -------------------------------------------------------------------------------------------------

    def _weights(self, D: SX, mu: Values) -> list[SX]:
        return [D, *(D * self.impratio * (m / mu[0]) ** 2 for m in mu)]

    def _zone(self, x: Values, D: SX, mu: Values) -> _Zone:
        slope = mu[0] / self.impratio**0.5
        N = x[0] * slope
        U = [xk * m for xk, m in zip(x[1:], mu, strict=True)]
        T2 = _sum([u * u for u in U])
        slides = T2 > 0
        T = ca.if_else(slides, ca.sqrt(ca.if_else(slides, T2, 1)), 0)
        top, bottom = slope * T <= N, slope * N + T <= 0
        middle = ca.logic_and(ca.logic_not(top), ca.logic_not(bottom))
        acting = D > 0
        return _Zone(
            slope, U, ca.if_else(middle, T, 1), N - slope * T, D / (slope**2 * (1 + slope**2)),
            ca.logic_and(acting, ca.logic_and(bottom, ca.logic_not(top))), ca.logic_and(acting, middle),
        )  # fmt: skip

    def _elliptic_force(self, x: Values, D: SX, mu: Values) -> list[SX]:
        z = self._zone(x, D, mu)
        push = -z.Dm * z.over * z.slope
        sliding = [push, *(-push / z.T * u * m for u, m in zip(z.U, mu, strict=True))]
        sticking = [-w * xk for w, xk in zip(self._weights(D, mu), x, strict=True)]
        return [ca.if_else(z.middle, a, ca.if_else(z.bottom, b, 0)) for a, b in zip(sliding, sticking, strict=True)]

    def _elliptic_hessian(self, x: Values, D: SX, mu: Values) -> SX:
        z = self._zone(x, D, mu)
        scale = [z.slope, *mu]
        t = [u / z.T for u in z.U]
        toward = [SX(1), *(-z.slope * tk for tk in t)]
        bend = -z.slope * z.over / z.T
        weights = self._weights(D, mu)
        H = SX(self.dim, self.dim)
        for i in range(self.dim):
            for j in range(i + 1):
                value = toward[i] * toward[j]
                if i and j:
                    value = value + bend * ((1 if i == j else 0) - t[i - 1] * t[j - 1])
                value = z.Dm * scale[i] * scale[j] * value
                rest = ca.if_else(z.bottom, weights[i], 0) if i == j else SX(0)
                H[i, j] = H[j, i] = ca.if_else(z.middle, value, rest)
        return H


@dataclass(frozen=True, eq=False)
class _Zone:
    """The state of an elliptic contact: sticking (bottom), sliding (middle) or free."""

    slope: SX
    U: list[SX]
    T: SX
    """Size of the scaled sliding part; 1 where it is not used."""
    over: SX
    """Negative in the middle zone: depth inside of the dual cone."""
    Dm: SX
    bottom: SX
    middle: SX


def _sum(terms: Sequence[SX]) -> SX:
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return total
