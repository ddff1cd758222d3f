"""Pictures and films of cloth: `render_cloth(model, history.times, history.x, "towel.mp4")`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from costate.collision.kinds import KINDS
from costate.continuum.cloth.model import ClothModel
from costate.core.arrays import Array
from costate.core.names import unknown
from costate.draw.backdrop import THEMES
from costate.draw.camera import Camera, framing_points
from costate.draw.cloth.surface import BACK, COLORS, frames_of, normals_of, surface
from costate.draw.shading import painter
from costate.draw.triangles import Triangles, joined, triangles_of
from costate.draw.video import STILLS, writer_for
from costate.model.shape import Shape

GREY = (0.62, 0.62, 0.66, 1.0)
"""Colour of shapes."""


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
) -> Path:
    """Draw cloth and ropes, and shapes that do not move, into a file; returns its path.

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
    """
    if theme not in THEMES:
        raise ValueError(unknown("theme", theme, THEMES))
    frames, file = frames_of(x), Path(file)
    write, still = writer_for(file), _shapes(model)
    moments = np.asarray(times, float)
    count = max(1, round((moments[-1] - moments[0]) * fps))
    film = [int(np.searchsorted(moments, t)) for t in np.linspace(moments[0], moments[-1], count)]
    chosen = [range(len(frames))[frame]] if file.suffix.lower() in STILLS else film
    seen = frames.reshape(-1, 3)
    camera = camera or framing_points(np.stack([seen.min(0), seen.max(0)]), size[0] / size[1])
    paint = painter(camera, size, float(seen[:, 2].min()), THEMES[theme])

    def drawn() -> Iterator[np.ndarray]:
        for k in chosen:
            yield paint.picture(joined([*still, *cloth_at(model, frames[k])]), None)

    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, drawn(), fps)
    return file


def cloth_at(model: ClothModel, x: Array) -> list[Triangles]:
    """Return both sides of every body at positions x (points, 3)."""
    found = []
    for k, (points, triangles) in enumerate(surface(model, x)):
        normals = normals_of(points, triangles)
        color = np.array(COLORS[k % len(COLORS)], np.float32)
        for sign, share in ((1, 1.0), (-1, BACK)):
            faces = triangles if sign > 0 else triangles[:, ::-1]
            shade = color * np.array([share, share, share, 1.0], np.float32)
            found.append(
                Triangles(
                    np.ascontiguousarray(points, np.float32),
                    np.ascontiguousarray(sign * normals, np.float32),
                    np.ascontiguousarray(faces, np.int32),
                    np.zeros(len(points), np.int32),
                    shade[None],
                )
            )
    return found


def _shapes(model: ClothModel) -> list[Triangles]:
    """Return the shapes that do not move, planes apart: the ground stands for them."""
    found = []
    for collider in model.colliders:
        shape = collider.shape
        if collider.moves or not isinstance(shape, Shape) or shape.kind == "plane":
            continue
        for part in KINDS[shape.kind].parts(shape):
            pose = np.zeros((1, 3, 4))
            R, t = shape.pose.rotation @ part.pose.rotation, shape.pose.rotation @ part.pose.translation
            pose[0, :, :3], pose[0, :, 3] = R, t + shape.pose.translation
            found.append(triangles_of(part.mesh(), part.scale, GREY).moved(pose))
    return found
