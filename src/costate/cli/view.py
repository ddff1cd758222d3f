"""`costate view ROBOT...`, `costate view RECORDING`: robots and motions in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Options:
    sources: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ROBOT|RECORDING")]
    """Built-in names, URDF or MJCF files, saved worlds (world.json); or the folder of a recording."""
    port: int = 8080
    """The next free one is taken, and said, if it is not free."""
    dark: bool = False
    """A dark page."""
    package_dirs: tuple[Path, ...] = ()
    """Folders in which the packages of package://... meshes are looked for."""
    inertia: Literal["refuse", "keep", "repair"] = "refuse"
    """Answer to inertias that no body can have."""


def run(options: Options) -> None:
    from importlib.util import find_spec

    from costate.cli.sources import is_recording, load_source
    from costate.core.extras import needs

    if not options.sources:
        raise ValueError(
            "nothing to view: name a built-in robot (see `costate robots`), a URDF or MJCF file, or a recording"
        )
    if find_spec("viser") is None:  # said before anything heavy is loaded
        raise ImportError(needs("the viewer", "viser", "view"))
    folders = [s for s in options.sources if is_recording(s)]
    if folders and len(options.sources) > 1:
        raise ValueError(f"{folders[0]} is a folder: a recording is viewed alone")
    models = [load_source(s, options.package_dirs, options.inertia) for s in options.sources if s not in folders]
    from costate.draw.recording import load_recording
    from costate.viewer.view import view

    view(load_recording(folders[0]) if folders else models, port=options.port, dark=options.dark, block=True)
