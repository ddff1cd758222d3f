"""Nodes at one place become one node."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from costate.continuum.checks import index_table, rows_of_numbers


def merged(nodes: ArrayLike, elements: ArrayLike, distance: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return nodes and elements with nodes closer than a distance made one; the first of them stays where it is.

    Args:
        nodes: Positions (N, 3) [m].
        elements: Nodes of each element (E, 8).
        distance: Distance below which nodes are one [m]; much less than the shortest edge.
    """
    nodes = rows_of_numbers("nodes", nodes, 3, "positions in metres")
    elements = index_table("elements", elements, 8, len(nodes))
    if not 0 < distance < np.inf:
        raise ValueError(f"merge is {distance}; expected a distance above 0 m, much less than the shortest edge")
    label = np.arange(len(nodes))
    one, other = _near(nodes, distance)
    while True:
        least = np.minimum(label[one], label[other])
        if (least == label[one]).all() and (least == label[other]).all():
            break
        np.minimum.at(label, one, least)
        np.minimum.at(label, other, least)
    kept, new = np.unique(label, return_inverse=True)
    return nodes[kept], new.reshape(-1)[elements]


def _near(nodes: NDArray[np.float64], distance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of nodes closer than a distance: all if they lie in clusters smaller than that, far from each other."""
    ones, others = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    # Nodes this close share a box in at least one of eight grids of boxes twice as wide, shifted by half a box.
    boxes = [[_ranks(np.floor(x / (2 * distance) + shift)) for x in nodes.T] for shift in (0.0, 0.5)]
    for i, j, k in np.ndindex(2, 2, 2):
        x, y, z = boxes[i][0], boxes[j][1], boxes[k][2]
        group = (x * (y.max(initial=0) + 1) + y) * (z.max(initial=0) + 1) + z
        rest = np.arange(len(nodes))
        while len(rest):
            _, start, back = np.unique(group[rest], return_index=True, return_inverse=True)
            lead = rest[start][back.reshape(-1)]
            near = np.linalg.norm(nodes[rest] - nodes[lead], axis=1) < distance
            ones.append(lead[near & (lead != rest)])
            others.append(rest[near & (lead != rest)])
            rest = rest[~near]
    return np.concatenate(ones), np.concatenate(others)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each value how many different ones are smaller."""
    return np.unique(values, return_inverse=True)[1].reshape(-1)
