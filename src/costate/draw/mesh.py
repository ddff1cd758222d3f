"""Meshes that pictures are made of (see costate.collision.mesh.triangles, where shapes say what they look like)."""

from costate.collision.mesh.triangles import UNIT, Mesh, unit_sphere
from costate.core.arrays import Array as Floats

__all__ = ["UNIT", "Floats", "Mesh", "unit_sphere"]
