"""Points in a mesh: which element holds them, and with which weights its nodes count."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from costate.continuum.hexahedron import CORNERS, shape_slopes
from costate.continuum.mesh import HexMesh

CANDIDATES = 12
"""Elements with the nearest centres that may hold a point."""
ROUNDING = 1e-6
"""Distance by which a point may lie outside of an element, in the element's own coordinates."""


def locate(mesh: HexMesh, points: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nodes (S, 8) of the elements that hold points (S, 3) [m], and the weights (S, 8) of the nodes."""
    points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    nodes, weights = np.zeros((len(points), 8), np.int64), np.zeros((len(points), 8))
    for k, point in enumerate(points):
        near = np.argsort(((mesh.centres - point) ** 2).sum(1))[:CANDIDATES]
        xi = _own_coordinates(mesh.nodes[mesh.elements[near]], point)
        outside = np.abs(xi).max(1)
        best = int(np.argmin(outside))
        if not outside[best] <= 1 + ROUNDING:
            raise ValueError(
                f"sensor {k} at {point.tolist()} m lies in no element of {mesh!r}; give points inside the part"
            )
        nodes[k] = mesh.elements[near[best]]
        weights[k] = (0.5 * (1 + xi[best] * CORNERS)).prod(1)
    return nodes, weights


def _own_coordinates(X: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where a point is in the own coordinates of elements with corners X (n, 8, 3), by Newton's method."""
    xi = np.zeros((len(X), 3))
    for _ in range(20):
        n = (0.5 * (1 + xi[:, None, :] * CORNERS)).prod(2)
        J = np.einsum("eai,eix->eax", shape_slopes(xi), X)
        missing = point - np.einsum("ei,eix->ex", n, X)
        xi = np.clip(xi + np.linalg.solve(np.swapaxes(J, 1, 2), missing[..., None])[..., 0], -3, 3)
    return xi
