"""Fields: solids that are known by samples."""

from __future__ import annotations

from abc import abstractmethod

from casadi import SX

from costate.collision.shapes.solid import Solid
from costate.kernel.ir.program import Program


class Field(Solid):
    """A solid known by sampled values, which only a program can look up (see mesh/field_pairs.py)."""

    key: str
    """Digest of the samples."""

    def distance(self, p: SX) -> SX:
        raise ValueError(f"{type(self).__name__} cannot be part of a composition: it is looked up by a program")

    @abstractmethod
    def lookup(self) -> Program:
        """Return a program (point (3,) in its frame, its sizes) -> (distance [m], unit normal (3,))."""
