"""Limits on what files of unknown origin and very large models may ask for. Each can be raised by an environment variable."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """A largest count or size, and what it counts."""

    default: int
    counts: str
    condition: str = "if you trust the file"
    """Condition under which it is sound to raise the limit."""


LIMITS = {
    "operations": Limit(3_000_000, "operations of straight-line code", "if you can wait for hours and have the memory"),
    "mimic_chain": Limit(100, "mimic joints that follow each other in a row"),
    "mesh_mb": Limit(2048, "MB of a mesh file"),
    "mesh_unpacked_mb": Limit(256, "MB that a mesh file unpacks to"),
    "mesh_parts": Limit(5000, "parts of a mesh file"),
    "mjcf_files": Limit(1000, "files included by an MJCF file"),
    "mjcf_folders": Limit(100, "folders of the meshes and textures of an MJCF file"),
    "mjcf_copies": Limit(20_000, "elements made by <replicate>, <composite> and <flexcomp>"),
    "mjcf_asset_mb": Limit(256, "MB of one asset of an MJCF file"),
    "mjcf_rows": Limit(100_000, "rows, contacts, keys or user numbers"),
    "mjcf_memory_mb": Limit(4096, "MB of memory for MuJoCo's stack"),
    "text_mb": Limit(256, "MB of a text file"),
    "json_mb": Limit(32, "MB of a JSON file"),
    "log_mb": Limit(1024, "MB of numbers in a log"),
    "network_values": Limit(10_000_000, "numbers in a network, for one sample"),
    "read_seconds": Limit(60, "seconds of processor time for reading a file"),
    "read_memory_mb": Limit(2048, "MB of memory for reading a file"),
}
"""Limits by name. The environment variable of "mimic_chain" is COSTATE_MAX_MIMIC_CHAIN."""


def limit(name: str) -> int:
    """Return a limit: that of its environment variable, or the default."""
    given = os.environ.get(_variable(name))
    if given is None:
        return LIMITS[name].default
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise ValueError(f"{_variable(name)}={given[:40]!r} is not a limit; a whole number is expected")
    return int(given)


def excess(name: str, asked: float) -> str | None:
    """Return None if a limit allows what is asked for, or else words that name the limit and say how to raise it."""
    if asked <= limit(name):
        return None
    return f"{asked:,.0f} {LIMITS[name].counts} exceed the limit of {limit(name):,}; {_raised(name)}"


def exceeded(name: str) -> str:
    """Return words for a limit that was met in reading, where nobody knows how much more it would have taken."""
    return f"the limit of {limit(name):,} {LIMITS[name].counts} was met; {_raised(name)}"


def _raised(name: str) -> str:
    return f"{LIMITS[name].condition}, set the environment variable {_variable(name)} to a higher number"


def _variable(name: str) -> str:
    return f"COSTATE_MAX_{name.upper()}"
