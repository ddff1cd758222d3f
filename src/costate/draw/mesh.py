"""Meshes that pictures are made of (see costate.collision.mesh.triangles, where shapes say what they look like)."""

from costate.collision.mesh.triangles import UNIT, Floats, Mesh, unit_sphere

__all__ = ["UNIT", "Floats", "Mesh", "unit_sphere"]
