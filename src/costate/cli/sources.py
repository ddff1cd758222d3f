"""Sources that the command line shows: robots, worlds that were saved, and recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from costate.model import Model

WORLD = "world.json"
"""File in the folder of a saved world."""


def is_recording(source: str) -> bool:
    """Return whether a source is the folder of a recording."""
    return Path(source).is_dir() and not (Path(source) / WORLD).exists()


def load_source(source: str, package_dirs: Sequence[Path], inertia: Literal["refuse", "keep", "repair"]) -> Model:
    """Return the model of a built-in name, of a URDF or MJCF file, or of a saved world."""
    if Path(source).suffix.lower() == ".json" or Path(source).is_dir():
        from costate.sim.files.load import load_world

        return load_world(source).setup.scene.model
    from costate.model import load_model

    return load_model(source, package_dirs=package_dirs, inertia=inertia)
