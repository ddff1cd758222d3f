"""Meshes of hexahedra that are born one after the other, as a printed part grows, and the faces they expose.

Nodes of an element are in the usual order: the bottom face counter-clockwise seen from above, then the top face above it.

         7 ------- 6
        /|        /|          z
       4 ------- 5 |          |  y
       | 3 ------|-2          | /
       |/        |/           |/
       0 ------- 1            +---- x
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from costate.continuum.checks import first, index_table, rows_of_numbers
from costate.continuum.faces import Faces, faces_of
from costate.continuum.hexahedron import check_shapes, volumes
from costate.continuum.merge import merged

EVER = -np.inf
"""Birth time of what is there from the beginning, such as a base plate [s]."""


@dataclass(frozen=True, eq=False)
class HexMesh:
    """Hexahedra with eight nodes, in the order in which they are born: those alive at any time are the first ones."""

    nodes: NDArray[np.float64]
    """Positions (N, 3) [m]."""
    elements: NDArray[np.int64]
    """Nodes of each element (E, 8): the bottom face counter-clockwise seen from above, then the top face."""
    birth: NDArray[np.float64]
    """Times at which the elements are born (E,) [s], ascending; -inf for those that are there from the beginning."""

    def __post_init__(self) -> None:
        nodes = rows_of_numbers("nodes", self.nodes, 3, "positions in metres")
        elements = index_table("elements", self.elements, 8, len(nodes))
        birth = np.array(self.birth, dtype=np.float64)
        if birth.shape != (len(elements),):
            raise ValueError(f"birth has the shape {birth.shape}; expected a time for each of {len(elements)} elements")
        if np.isnan(birth).any() or (birth == np.inf).any():
            k = first(np.isnan(birth) | (birth == np.inf))
            raise ValueError(
                f"birth of element {k} is {birth[k]}; expected a time in seconds, or -inf: there from the start"
            )
        if len(birth) and (late := birth[1:] < birth[:-1]).any():
            k = first(late) + 1
            raise ValueError(
                f"element {k} is born at {birth[k]:g} s, before element {k - 1} at {birth[k - 1]:g} s: elements must be in the "
                "order of their births; HexMesh.sorted(nodes, elements, birth) puts them into it"
            )
        for name, value in (("nodes", nodes), ("elements", elements), ("birth", birth)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        check_shapes(nodes, elements)

    @classmethod
    def sorted(
        cls, nodes: ArrayLike, elements: ArrayLike, birth: ArrayLike | float = EVER, merge: float | None = None
    ) -> HexMesh:
        """Return a mesh with the elements put into the order of their births; equal times keep the order given.

        Args:
            nodes: Positions (N, 3) [m].
            elements: Nodes of each element (E, 8).
            birth: Times of birth (E,) [s], or one for all.
            merge: Distance below which nodes become one [m]; None leaves them as they are.
        """
        nodes = rows_of_numbers("nodes", nodes, 3, "positions in metres")
        elements = index_table("elements", elements, 8, len(nodes))
        if merge is not None:
            nodes, elements = merged(nodes, elements, merge)
        check_shapes(nodes, elements)  # here, so that an error has the numbers that the caller knows
        times = np.asarray(birth, dtype=np.float64)
        if times.shape not in ((), (len(elements),)):
            raise ValueError(
                f"birth has the shape {times.shape}; expected a time for each of {len(elements)} elements, or one"
            )
        times = np.broadcast_to(times, len(elements))
        order = np.argsort(times, kind="stable")
        return cls(nodes, elements[order], times[order])

    @cached_property
    def volumes(self) -> NDArray[np.float64]:
        """Volumes of the elements (E,) [m^3]."""
        return volumes(self.nodes, self.elements)

    @property
    def volume(self) -> float:
        """Volume of all elements [m^3]."""
        return float(self.volumes.sum())

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """Means of the nodes of each element (E, 3) [m]."""
        return self.nodes[self.elements].mean(axis=1)

    @cached_property
    def node_birth(self) -> NDArray[np.float64]:
        """Birth times of the nodes (N,) [s]: that of their first element; inf for a node of none."""
        first = np.full(len(self.nodes), np.inf)
        np.minimum.at(first, self.elements.ravel(), np.repeat(self.birth, 8))
        return first

    def alive(self, time: float) -> int:
        """Return how many elements are born at a time [s]: they are the first ones."""
        return int(np.searchsorted(self.birth, time, side="right"))

    def faces(self) -> Faces:
        """Return every face that is exposed for some time; one between elements born together never is."""
        return self._faces

    @cached_property
    def _faces(self) -> Faces:
        return faces_of(self.nodes, self.elements, self.birth)

    def surface(self, time: float = np.inf) -> NDArray[np.int64]:
        """Return the faces that are seen at a time [s] as quadrilaterals (F, 4), counter-clockwise seen from outside."""
        faces = self.faces()
        shown = faces.exposed(time) if time < np.inf else faces.death == np.inf
        return faces.faces[shown]

    def __repr__(self) -> str:
        return f"HexMesh({len(self.nodes)} nodes, {len(self.elements)} elements, {self.volume:.4g} m^3)"
