"""B-splines, by which a particle shares its numbers with the nodes around it, axis by axis.

    spread    node (i, j, ..) gets w_i w_j .. (q + A (x_node - x))
    collect   sums over nodes of w u, and of w u (x_node - x)^T

Both work one axis at a time, so that the sums over 9 to 64 nodes share their factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import casadi as ca
import numpy as np


def _quadratic(t: ca.SX) -> list[ca.SX]:
    return [0.5 * (1.5 - t) ** 2, 0.75 - (t - 1) ** 2, 0.5 * (t - 0.5) ** 2]


def _cubic(t: ca.SX) -> list[ca.SX]:
    u = t - 1
    r = 1 - u
    return [r * r * r / 6, (0.5 * u - 1) * u * u + 2 / 3, (0.5 * r - 1) * r * r + 2 / 3, u * u * u / 6]


@dataclass(frozen=True)
class Spline:
    """A kernel: weights of the nodes along one axis."""

    nodes: int
    """Nodes along each axis."""
    shift: float
    """The lowest node is floor(x / dx - shift)."""
    moment: float
    """Sum over nodes of w (x_node - x)^2, in cells squared, over 1."""
    weights: Callable[[ca.SX], list[ca.SX]]
    """Weights of the nodes, from the distance t of the particle from the lowest one in cells."""

    def offsets(self, shape: Sequence[int]) -> list[int]:
        """Return the numbers of the nodes relative to the lowest one, in a grid whose last axis runs fastest."""
        strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
        return [int(np.dot(node, strides)) for node in product(range(self.nodes), repeat=len(shape))]

    def base(self, X: ca.SX) -> ca.SX:
        """Return the lowest node along each axis, from the position X in cells."""
        return ca.floor(X - self.shift)

    def around(self, X: ca.SX) -> list[list[tuple[ca.SX, ca.SX]]]:
        """Return for every axis and node the weight w, and w (node - x) in cells."""
        t = X - self.base(X)
        axes = ([t[k], self.weights(t[k])] for k in range(X.shape[0]))
        return [[(w, w * (i - t)) for i, w in enumerate(weights)] for t, weights in axes]


SPLINES = {
    "quadratic": Spline(3, 0.5, 0.25, _quadratic),
    "cubic": Spline(4, 1.0, 1 / 3, _cubic),
}


def spread(around: Sequence[Sequence[tuple[ca.SX, ca.SX]]], q: ca.SX, A: ca.SX, mass: ca.SX) -> list[ca.SX]:
    """Return what each node gets: w (q + A (node - x)), and w mass; A is per cell."""
    if not around:
        return [ca.vertcat(q, mass)]
    found = []
    for w, wd in around[0]:
        found += spread(around[1:], w * q + wd * A[:, 0], w * A[:, 1:], w * mass)
    return found


def collect(around: Sequence[Sequence[tuple[ca.SX, ca.SX]]], u: Sequence[ca.SX]) -> list[ca.SX]:
    """Return sums over nodes of w u, and of w u (node - x) along each axis."""
    if not around:
        return [u[0]]
    size = len(u) // len(around[0])
    inner = [collect(around[1:], u[i * size : (i + 1) * size]) for i in range(len(around[0]))]
    along = sum((wd * part[0] for (_, wd), part in zip(around[0], inner, strict=True)), 0 * inner[0][0])
    sums = [
        sum((w * part[k] for (w, _), part in zip(around[0], inner, strict=True)), 0 * along)
        for k in range(len(inner[0]))
    ]
    return [sums[0], along, *sums[1:]]
