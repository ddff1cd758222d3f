"""The hexahedron with eight nodes: shape functions, volumes, and shapes that no computation can use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CORNERS = np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]])
"""Corners of the reference element (8, 3), in the order of an element's nodes."""

FLAT = 1e-9
"""An element whose det(dx/dxi) is below this share of its greatest extent, cubed, counts as flat."""


def shape_slopes(xi: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return dN/dxi of the eight shape functions at points xi (G, 3) of the reference element: (G, 3, 8)."""
    factors = 0.5 * (1 + xi[:, None, :] * CORNERS)
    slopes = [0.5 * CORNERS[:, a] * np.delete(factors, a, axis=2).prod(axis=2) for a in range(3)]
    return np.stack(slopes, axis=1)


def jacobians(nodes: NDArray[np.float64], elements: NDArray[np.int64], at: float) -> NDArray[np.float64]:
    """Return det(dx/dxi) of each element at the eight points at * (+-1, +-1, +-1) (E, 8)."""
    J = shape_slopes(at * CORNERS)[None] @ nodes[elements][:, None]
    return np.einsum("egk,egk->eg", J[:, :, 0], np.cross(J[:, :, 1], J[:, :, 2]))


def volumes(nodes: NDArray[np.float64], elements: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the volumes of elements (E,) [m^3]; 2 x 2 x 2 Gauss points are exact for them."""
    return jacobians(nodes, elements, 1 / np.sqrt(3)).sum(axis=1)


def check_shapes(nodes: NDArray[np.float64], elements: NDArray[np.int64], names: Sequence[Any] | None = None) -> None:
    """Raise if elements are inverted, flat or folded, with the names of the first few; without names they are counted from 0."""
    if not len(elements):
        return
    # At the corners: an element with a positive volume may still be turned inside out near one of them.
    X = nodes[elements]
    size = np.ptp(X, axis=1).max(axis=1)
    bad = np.flatnonzero(~(jacobians(nodes, elements, 1.0).min(axis=1) > FLAT * size**3))  # also what is not a number
    if len(bad):
        label = [bad[i] if names is None else names[bad[i]] for i in range(min(5, len(bad)))]
        k = bad[0]
        raise ValueError(
            f"{len(bad)} of {len(elements)} elements have a bad shape (number {', '.join(map(str, label))}"
            f"{', ...' if len(bad) > 5 else ''}); element {label[0]} {_fault(nodes, elements[k], size[k])}"
        )


def _fault(nodes: NDArray[np.float64], element: NDArray[np.int64], size: float) -> str:
    if len(set(element.tolist())) < 8:
        return f"has a node twice ({element.tolist()}): only hexahedra are supported, no wedges, pyramids or tetrahedra"
    if volumes(nodes, element[None])[0] < -FLAT * size**3:
        return (
            "is inverted: its bottom face must be counter-clockwise seen from its top face; swap its nodes 0-3 with 4-7"
        )
    return "is flat, or folded at a corner: move its nodes apart"
