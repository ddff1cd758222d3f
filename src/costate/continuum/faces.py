"""Faces of a growing mesh: each is exposed from the birth of its first element to the birth of its second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costate.continuum.checks import first

SIDES = np.array([[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [2, 3, 7, 6], [0, 4, 7, 3], [1, 2, 6, 5]])
"""Corners of the six faces of an element, counter-clockwise seen from outside: bottom, top, front, back, left, right."""


@dataclass(frozen=True, eq=False)
class Faces:
    """Faces that are exposed for some time."""

    faces: NDArray[np.int64]
    """Nodes (F, 4), counter-clockwise seen from outside of the element that is born first."""
    birth: NDArray[np.float64]
    """Times at which they become exposed (F,) [s]; -inf for those that are there from the beginning."""
    death: NDArray[np.float64]
    """Times at which they are covered (F,) [s]; inf for those that never are."""
    element: NDArray[np.int64]
    """Elements that are born first, whose outward side they are (F,)."""
    areas: NDArray[np.float64]
    """Areas (F,) [m^2]: exact for flat faces, by 2 x 2 Gauss points for twisted ones."""

    def __len__(self) -> int:
        return len(self.faces)

    def exposed(self, time: float) -> NDArray[np.bool_]:
        """Tell which faces are exposed at a time [s]: birth <= time < death (F,)."""
        return (self.birth <= time) & (time < self.death)


def faces_of(nodes: NDArray[np.float64], elements: NDArray[np.int64], birth: NDArray[np.float64]) -> Faces:
    """Return every face that is exposed for some time, of elements in the order of their births.

    A face between two elements that are born together never is.
    """
    sides = elements[:, SIDES].reshape(-1, 4)
    element = np.repeat(np.arange(len(elements)), 6)
    one, other = _pairs(sides)
    born = birth[element[one]]
    covered = np.full(len(one), np.inf)
    covered[other >= 0] = birth[element[other[other >= 0]]]
    seen = one[born < covered]
    return Faces(
        sides[seen],
        born[born < covered],
        covered[born < covered],
        element[seen],
        quadrilateral_areas(nodes[sides[seen]]),
    )


def quadrilateral_areas(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the areas of quadrilaterals with corners X (F, 4, 3) [m], by 2 x 2 Gauss points (F,) [m^2]."""
    u, v = (a.ravel() / np.sqrt(3) for a in np.meshgrid([-1, 1], [-1, 1]))
    du = 0.25 * np.stack([v - 1, 1 - v, 1 + v, -1 - v], axis=1)
    dv = 0.25 * np.stack([u - 1, -1 - u, 1 + u, 1 - u], axis=1)
    normals = np.cross(np.einsum("gn,fnk->fgk", du, X), np.einsum("gn,fnk->fgk", dv, X))
    return np.linalg.norm(normals, axis=2).sum(axis=1)


def _pairs(sides: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the second place of every set of four nodes among rows, -1 where there is no second."""
    key = np.sort(sides, axis=1)
    order = np.lexsort(key.T)  # stable: of two equal rows the earlier comes first
    same = (key[order[1:]] == key[order[:-1]]).all(axis=1)
    if (thrice := same[1:] & same[:-1]).any():
        k = first(thrice)
        owners = ", ".join(str(m // 6) for m in order[k : k + 3])
        raise ValueError(
            f"elements {owners} share the face with nodes {sides[order[k]].tolist()}; a face belongs to one or two elements: "
            "remove elements that overlap"
        )
    begins = np.r_[True, ~same][: len(order)]
    starts = np.flatnonzero(begins)
    has_second = np.r_[same, False][starts]
    other = np.full(len(starts), -1)
    other[has_second] = order[starts[has_second] + 1]
    return order[starts], other
