"""Robots from MJCF files, read with MuJoCo, and parts of MJCF written."""

from costate.model.mjcf.reader import read_mjcf

__all__ = ["read_mjcf"]
