"""All points of a model, and the elements between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from costate.continuum.cloth.body import CLOTH, ROPE, Cloth, Rope
from costate.continuum.cloth.elements import Bend, Element, Hinge, Seam, Segment, Triangle
from costate.continuum.cloth.topology import Pattern, hinges_of
from costate.kernel.fields import Entities


@dataclass(frozen=True, eq=False)
class Group:
    """Elements of one kind."""

    name: str
    element: Element
    table: np.ndarray
    """Points of the elements (n, k)."""
    material: str
    """Set of numbers that they read: `triangles`, `segments` or `seams`."""
    owners: np.ndarray
    """Rows of it that an element reads (n, j)."""
    columns: tuple[int, ...] | None = None
    """Columns of these that matter; None: all."""

    @property
    def entities(self) -> Entities:
        """The elements as a set."""
        return Entities(self.name, len(self.table))


@dataclass(frozen=True, eq=False)
class Scene:
    """Points of all bodies, one body after another."""

    bodies: tuple[Cloth | Rope, ...]
    seams: np.ndarray
    """Points that are sewn together (n, 2)."""
    curved: bool
    """True if rest shapes may be curved."""

    @cached_property
    def starts(self) -> list[int]:
        """Number of the first point of every body."""
        return np.cumsum([0, *(b.count for b in self.bodies)]).tolist()

    @property
    def count(self) -> int:
        """Number of points."""
        return self.starts[-1]

    @property
    def points(self) -> np.ndarray:
        """Positions at the beginning (count, 3) [m]."""
        return np.concatenate([b.points for b in self.bodies])

    @property
    def rest(self) -> np.ndarray:
        """Positions in the rest shape (count, 3) [m]."""
        return np.concatenate([b.rest for b in self.bodies])

    @cached_property
    def triangles(self) -> np.ndarray:
        """Points of all triangles (n, 3)."""
        found = [b.triangles + k for b, k in zip(self.bodies, self.starts, strict=False) if isinstance(b, Cloth)]
        return np.concatenate([np.zeros((0, 3), np.int64), *found])

    @cached_property
    def segments(self) -> np.ndarray:
        """Points of all segments of ropes (n, 2)."""
        found = [k + _chain(b.count, 2) for b, k in zip(self.bodies, self.starts, strict=False) if isinstance(b, Rope)]
        return np.concatenate([np.zeros((0, 2), np.int64), *found])

    @cached_property
    def materials(self) -> dict[str, np.ndarray]:
        """Numbers of the material of every triangle (n, 9) and segment (n, 3), as elements read them."""
        cloth = [_columns(b, CLOTH, b.warp) for b in self.bodies if isinstance(b, Cloth)]
        rope = [_columns(b, ROPE, ()) for b in self.bodies if isinstance(b, Rope)]
        found = {"triangles": cloth, "segments": rope}
        return {name: np.concatenate(rows) for name, rows in found.items() if rows}

    @cached_property
    def groups(self) -> list[Group]:
        """All kinds of elements that there are."""
        found = []
        tri, seg, seams = self.triangles, self.segments, self.seams
        if len(tri):
            found.append(Group("triangles", Triangle(), tri, "triangles", np.arange(len(tri))[:, None]))
            hinges, owners = hinges_of(tri)
            if len(hinges):
                found.append(Group("hinges", Hinge(self.curved), hinges, "triangles", owners, (4,)))
        if len(seg):
            found.append(Group("segments", Segment(), seg, "segments", np.arange(len(seg))[:, None]))
            joined = np.nonzero(seg[1:, 0] == seg[:-1, 1])[0]
            if len(joined):
                bends = np.column_stack([seg[joined], seg[joined + 1, 1]])
                found.append(Group("bends", Bend(), bends, "segments", np.column_stack([joined, joined + 1])))
        if len(seams):
            found.append(Group("seams", Seam(), seams, "seams", np.arange(len(seams))[:, None]))
        return found

    @cached_property
    def pattern(self) -> Pattern:
        """Places of the blocks of the matrix."""
        full = [g.table for g in self.groups if not g.element.isotropic]
        return Pattern(self.count, full, [g.table for g in self.groups if g.element.isotropic])

    @property
    def body_of(self) -> np.ndarray:
        """Number of the body of every point."""
        return np.repeat(np.arange(len(self.bodies)), [b.count for b in self.bodies])

    def slice_of(self, body: int) -> slice:
        """Return the points of a body."""
        return slice(self.starts[body], self.starts[body + 1])


def _chain(count: int, k: int) -> np.ndarray:
    return np.arange(count - k + 1)[:, None] + np.arange(k)


def _columns(body: Cloth | Rope, names: Iterable[str], more: Sequence[float]) -> np.ndarray:
    values = body.values()
    columns = [values[n] for n in names]
    return np.column_stack([*columns, *(np.full(len(columns[0]), v) for v in more)])
