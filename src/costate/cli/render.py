"""`costate render ROBOT|RECORDING FILE`: a picture or a film, without a screen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Options:
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ROBOT|RECORDING")]
    """Built-in name, URDF or MJCF file, saved world (world.json); or the folder of a recording."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """.png or .jpg for a picture; .gif, .webp, .mp4 or .webm for a film."""
    size: tuple[int, int] = (960, 540)
    """Width and height [pixels]."""
    theme: Literal["light", "dark"] = "light"
    """Colours of the ground and the sky."""
    fps: float = 30.0
    """Frames per second of a film."""
    frame: int = -1
    """State of a recording that a picture shows."""
    package_dirs: tuple[Path, ...] = ()
    """Folders in which the packages of package://... meshes are looked for."""
    inertia: Literal["refuse", "keep", "repair"] = "refuse"
    """Answer to inertias that no body can have."""


def run(options: Options) -> None:
    from costate.cli.sources import is_recording, load_source

    if is_recording(options.source):
        from costate.draw.recording import load_recording
        from costate.draw.render import render_recording

        recording = load_recording(options.source)
        path = render_recording(
            recording, options.out, size=options.size, fps=options.fps, frame=options.frame, theme=options.theme
        )
    else:
        model = load_source(options.source, options.package_dirs, options.inertia)
        from costate.draw.render import render
        from costate.physics.integrate import neutral

        q = neutral(model) if model.home is None else model.home
        path = render(model, q, options.out, size=options.size, theme=options.theme)
    print(path)
