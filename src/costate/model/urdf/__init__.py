"""Robots from URDF files, and back."""

from costate.model.urdf.inertia import Faulty
from costate.model.urdf.reader import read_urdf
from costate.model.urdf.writer import write_urdf

__all__ = ["Faulty", "read_urdf", "write_urdf"]
