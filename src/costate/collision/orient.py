"""Directions from directions."""

from __future__ import annotations

import casadi as ca
from casadi import SX


def tangents(n: SX) -> tuple[SX, SX]:
    """Two unit vectors normal to a unit vector and to each other (Duff et al., Building an Orthonormal Basis, Revisited, 2017)."""
    sign = ca.if_else(n[2] < 0, -1, 1)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    return (
        ca.vertcat(1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]),
        ca.vertcat(b, sign + n[1] ** 2 * a, -n[1]),
    )
