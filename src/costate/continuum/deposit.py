"""The laser follows tracks: the tool path that results, and the time at which it lets each element be born."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from costate.continuum.checks import first, index_table, positive, rows_of_numbers
from costate.continuum.mesh import EVER, HexMesh
from costate.continuum.patterns import Track
from costate.continuum.toolpath import ToolPath

_BLOCK = 2_000_000
"""Largest number of pairs of element and segment that are looked at together."""


@dataclass(frozen=True)
class Process:
    """Motion of the laser."""

    speed: float = 0.01
    """Speed along tracks, with the laser on [m/s]."""
    travel: float = 0.05
    """Speed between tracks, with the laser off [m/s]."""
    dwell: float = 0.0
    """Rest after each layer, with the laser off [s]."""
    cooling: float = 0.0
    """Rest after the last layer, in place of the dwell [s]."""

    def __post_init__(self) -> None:
        positive(speed=self.speed, travel=self.travel)
        if not (0 <= self.dwell < np.inf and 0 <= self.cooling < np.inf):
            raise ValueError(f"dwell is {self.dwell} and cooling {self.cooling}; expected times of 0 s or more")


def path_of(layers: Sequence[Sequence[Track]], heights: Sequence[float], process: Process) -> ToolPath:
    """Return the path that follows the tracks of each layer at its height [m], from time 0 on."""
    rows: list[tuple[float, tuple[float, float, float], bool]] = []
    for k, (tracks, z) in enumerate(zip(layers, heights, strict=True)):
        for track in tracks:
            points = [(float(x), float(y), float(z)) for x, y in track]
            _move(rows, points[0], process.travel, False)
            for point in points[1:]:
                _move(rows, point, process.speed, True)
        rest = process.dwell if k < len(layers) - 1 else process.cooling
        if rest > 0:
            rows.append((rows[-1][0] + rest, rows[-1][1], False))
    times, positions, on = zip(*rows, strict=True)
    return ToolPath(np.array(times), np.array(positions), np.array(on))


def _move(rows: list, to: tuple[float, float, float], speed: float, on: bool) -> None:
    """Add a row at which a point is reached; nothing if the laser is there already."""
    if not rows:
        rows.append((0.0, to, False))
    elif (distance := float(np.linalg.norm(np.subtract(to, rows[-1][1])))) > 0:
        rows.append((rows[-1][0] + distance / speed, to, on))


def born_along(
    nodes: ArrayLike, elements: ArrayLike, path: ToolPath, ground: float = 0.0, reach: float = np.inf
) -> HexMesh:
    """Return a mesh whose elements are born as the laser passes them; those below the ground are there from the beginning.

    Args:
        nodes: Positions (N, 3) [m].
        elements: Nodes of each element (E, 8).
        path: Path at the heights of the tops of layers.
        ground: Height up to which the part is there from the beginning: the top of the base plate [m].
        reach: Greatest distance of an element's centre from the path of its layer, in the plane [m].
    """
    nodes = rows_of_numbers("nodes", nodes, 3, "positions in metres")
    elements = index_table("elements", elements, 8, len(nodes))
    X = nodes[elements]
    tops = X[:, :, 2].max(axis=1)
    built = np.flatnonzero(X[:, :, 2].mean(axis=1) > ground)
    birth = np.full(len(X), EVER)
    birth[built] = birth_times(X[built].mean(axis=1), tops[built], path, reach, built)
    return HexMesh.sorted(nodes, elements, birth)


def birth_times(
    centres: ArrayLike,
    tops: ArrayLike,
    path: ToolPath,
    reach: float = np.inf,
    names: Sequence[int] | NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return when elements are born (E,) [s]: as the laser passes the point of its layer that is nearest to their centre.

    The layer of an element is the lowest height at which the laser is on that is not below the top of the element; nearest is
    meant in the plane, and of points that are equally near the first one counts.

    Args:
        centres: Centres of the elements (E, 3) [m].
        tops: Heights of their top faces (E,) [m].
        path: Path whose heated segments are level.
        reach: Greatest distance of an element's centre from the path of its layer, in the plane [m].
        names: Numbers of the elements in errors (E,); None: counted from 0.
    """
    centres, tops = np.asarray(centres, dtype=np.float64), np.asarray(tops, dtype=np.float64)
    names = range(len(centres)) if names is None else names
    tolerance = 1e-6 * max(float(np.ptp(path.positions, axis=0).max()), 1e-3)
    segments = _heated(path, tolerance)
    heights = np.unique(np.round(segments.end[:, 2] / tolerance)) * tolerance
    level = np.searchsorted(heights, tops - 2 * tolerance)
    if (high := level >= len(heights)).any():
        k = first(high)
        raise ValueError(
            f"element {names[k]} reaches up to {tops[k]:g} m; the highest heated layer of the path is at {heights[-1]:g} m: "
            "give a path that builds all of the part, at the heights of the tops of its layers"
        )
    birth, distance = np.zeros(len(centres)), np.zeros(len(centres))
    for j in np.unique(level):
        track = segments.those(np.abs(segments.end[:, 2] - heights[j]) <= 2 * tolerance)
        mine = np.flatnonzero(level == j)
        for part in np.array_split(mine, 1 + len(mine) * len(track.end) // _BLOCK):
            birth[part], distance[part] = track.passing(centres[part, :2], tolerance)
    if (far := distance > reach).any():
        k = first(far)
        raise ValueError(
            f"element {names[k]} is {distance[k]:g} m from the path of its layer, beyond the reach of {reach:g} m: "
            "give a path that covers it, or a greater reach"
        )
    return birth


@dataclass(frozen=True)
class _Segments:
    """Segments with the laser on: from begin (S, 3) to end (S, 3) [m], from start (S,) to finish (S,) [s]."""

    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]

    def those(self, mask: NDArray[np.bool_]) -> _Segments:
        return _Segments(self.begin[mask], self.end[mask], self.start[mask], self.finish[mask])

    def passing(self, points: NDArray[np.float64], tie: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return when the laser passes nearest to points (P, 2), and at which distance in the plane."""
        a, d = self.begin[:, :2], self.end[:, :2] - self.begin[:, :2]
        along = ((points[:, None] - a) * d).sum(axis=2) / np.maximum((d * d).sum(axis=1), 1e-300)
        share = np.clip(along, 0.0, 1.0)
        distance = np.linalg.norm(points[:, None] - a - share[..., None] * d, axis=2)
        least = distance.min(axis=1)
        passed = np.where(distance <= least[:, None] + tie, self.start + share * (self.finish - self.start), np.inf)
        return passed.min(axis=1), least


def _heated(path: ToolPath, tolerance: float) -> _Segments:
    """Return the segments of a path with the laser on, which must be level."""
    on = path.on[1:]
    if not on.any():
        raise ValueError("the laser is never on along this path; expected rows with on = True")
    found = _Segments(path.positions[:-1][on], path.positions[1:][on], path.times[:-1][on], path.times[1:][on])
    climb = np.abs(found.end[:, 2] - found.begin[:, 2])
    if climb.max() > tolerance:
        k = np.flatnonzero(on)[int(climb.argmax())] + 1
        raise ValueError(
            f"the heated segment that ends at row {k} of the path climbs by {climb.max():g} m; expected level layers: "
            "births follow from the height of each layer, so put the climb into a segment with the laser off"
        )
    return found
