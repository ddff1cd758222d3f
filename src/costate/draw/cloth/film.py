"""Pictures and films of cloth: `render_cloth(model, history.times, history.x, "towel.mp4")`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from costate.continuum.cloth.model import ClothModel
from costate.draw.camera import Camera
from costate.draw.cloth.motion import record_cloth
from costate.draw.render import render_recording


def render_cloth(
    model: ClothModel,
    times: Any,
    x: Any,
    file: str | Path,
    *,
    frame: int = -1,
    fps: float = 30.0,
    size: tuple[int, int] = (960, 540),
    camera: Camera | None = None,
    theme: str = "light",
    **around: Any,
) -> Path:
    """Draw cloth and ropes, and what is around them, into a file; returns its path.

    Args:
        model: Model of the cloth.
        times: Times of the frames (frames,) [s].
        x: Positions in every frame (frames, points, 3) [m].
        file: .png or .jpg for one frame; .gif, .webp, .mp4 or .webm for a film in real time.
        frame: Frame that a still shows.
        fps: Frames per second of a film.
        size: Width and height [pixels].
        camera: Camera; None: one that sees everything, always.
        theme: "light" or "dark".
        around: `robot`, `poses` and `drawn` as in `record_cloth`: robots, and shapes that move.
    """
    recording = record_cloth(model, times, x, **around)
    return render_recording(recording, file, size=size, fps=fps, frame=frame, camera=camera, theme=theme)
