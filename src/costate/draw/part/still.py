"""Pictures and films of a part that grows, without a screen: `render_part(mesh, times, T, "wall.png", path=path)`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from costate.collision.mesh.triangles import UNIT
from costate.continuum.mesh import HexMesh
from costate.continuum.toolpath import ToolPath
from costate.core.arrays import Array
from costate.core.display import number, ticks
from costate.core.names import unknown
from costate.draw.backdrop import THEMES
from costate.draw.camera import Camera, framing_points
from costate.draw.marks import arrow
from costate.draw.part.colors import colored, table
from costate.draw.part.growth import Growth, growth_of
from costate.draw.shading import Painter, painter
from costate.draw.triangles import Triangles, joined, triangles_of
from costate.draw.video import STILLS, writer_for


class Scaled(Protocol):
    """Anything with numbers as colours."""

    @property
    def unit(self) -> str:
        """Unit of the numbers."""
        ...

    @property
    def limits(self) -> tuple[float, float]:
        """Numbers at the ends of the scale of colours."""
        ...


PATCHES = 60_000
"""Number of patches of one colour into which the faces that are seen are divided, at most, unless there are more faces."""
FINEST = 8
"""Number of patches along an edge, at most."""
LASER = (0.92, 0.22, 0.14, 0.85)
"""Colour of the laser."""


def render_part(
    mesh: HexMesh,
    times: Any,
    values: Any,
    file: str | Path,
    *,
    title: str = "temperature",
    unit: str = "K",
    limits: tuple[float, float] | None = None,
    path: ToolPath | None = None,
    frame: int = -1,
    seconds: float = 10.0,
    fps: float = 20.0,
    size: tuple[int, int] = (960, 540),
    camera: Camera | None = None,
    theme: str = "light",
    ground: bool = True,
) -> Path:
    """Draw a part that grows, with a colour for a number at every node, into a file; returns its path.

    Args:
        mesh: Elements in the order of their births.
        times: Times of the frames (K,) [s].
        values: Numbers at the nodes (K, N).
        file: .png or .jpg for one frame; .gif, .webp, .mp4 or .webm for a film.
        title: What the numbers are.
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest of nodes that are born.
        path: Path of the laser, which is drawn where it is on.
        frame: Frame that a still shows.
        seconds: Duration of a film [s].
        fps: Frames per second of a film.
        size: Width and height [pixels].
        camera: Camera, in metres; None: one that sees the whole part.
        theme: "light" or "dark".
        ground: Draw the ground and its grid.
    """
    if theme not in THEMES:
        raise ValueError(unknown("theme", theme, THEMES))
    file = Path(file)
    write = writer_for(file)
    growth = growth_of(mesh, times, values, unit=unit, limits=limits, path=path)
    if not -growth.frames <= frame < growth.frames:
        raise ValueError(f"frame is {frame}; expected one of {growth.frames}, from 0 on, or from -1 on backwards")
    moments = np.linspace(growth.times[0], growth.times[-1], max(1, round(seconds * fps)))
    still = file.suffix.lower() in STILLS
    chosen = [frame % growth.frames] if still else [growth.frame_at(t) for t in moments]
    paint = _painter(growth, size, camera, theme, ground)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, _frames(growth, chosen, paint, title, theme), fps)
    return file


def _painter(growth: Growth, size: tuple[int, int], camera: Camera | None, theme: str, ground: bool) -> Painter:
    """Return what draws the part, in lengths of the drawing."""
    if camera is None:
        camera = framing_points(growth.metre * growth.outline, size[0] / size[1])
    else:
        camera = Camera(growth.metre * camera.position, growth.metre * camera.target, camera.fov)
    return painter(camera, size, growth.metre * float(growth.box[0][2]) if ground else None, THEMES[theme])


def _frames(growth: Growth, chosen: list[int], paint: Painter, title: str, theme: str) -> Iterator[np.ndarray]:
    last, image = -1, np.zeros(0)
    for k in chosen:
        if k != last:
            last, image = k, with_scale(paint.picture(part_at(growth, k), laser_at(growth, k)), growth, title, theme)
        yield image


def part_at(growth: Growth, frame: int) -> Triangles:
    """Return the faces that are seen in a frame, in patches that have the colour of their middle."""
    quads = growth.mesh.surface(growth.times[frame])
    n = int(np.clip(np.sqrt(PATCHES / max(len(quads), 1)), 1, FINEST))
    X = _divided(growth.metre * growth.mesh.nodes[quads], n)
    values = _divided(growth.values[frame][quads][..., None], n).mean(1)[:, 0]
    normals = np.cross(X[:, 2] - X[:, 0], X[:, 3] - X[:, 1])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-20)
    first = 4 * np.arange(len(X))[:, None]
    colors = np.ones((len(X), 4), np.float32)
    colors[:, :3] = colored(values, *growth.limits) / 255.0
    return Triangles(
        np.ascontiguousarray(X.reshape(-1, 3), np.float32),
        np.repeat(normals, 4, 0).astype(np.float32),
        (first + np.array([[0, 1, 2, 0, 2, 3]])).reshape(-1, 3).astype(np.int32),
        np.repeat(np.arange(len(X), dtype=np.int32), 4),
        colors,
    )


def _divided(corners: Array, n: int) -> Array:
    """Return n x n bilinear parts of quadrilaterals with numbers at their corners (F, 4, c), shape (F n n, 4, c)."""
    u, v = (
        a.ravel()[:, None] + np.array(b) for a, b in zip(np.mgrid[:n, :n], ([0, 1, 1, 0], [0, 0, 1, 1]), strict=True)
    )
    u, v = u / n, v / n
    shares = np.stack([(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v], -1)
    return np.einsum("pqk,fkc->fpqc", shares, corners).reshape(-1, 4, corners.shape[-1])


def laser_at(growth: Growth, frame: int) -> Triangles | None:
    """Return the laser as an arrow onto its spot; None while it is off."""
    spots, on = growth.spots
    if not on[frame]:
        return None
    high = np.array([0.0, 0.0, growth.metre * growth.laser_length])
    marks = arrow(growth.metre * spots[frame] + high, -high, LASER, 0.006 * growth.size * growth.metre)
    return joined([triangles_of(UNIT[m.mesh](), m.scale, m.color) for m in marks]).moved(
        np.array([m.pose for m in marks])
    )


def with_scale(image: np.ndarray, growth: Scaled, title: str, theme: str) -> np.ndarray:
    """Return a picture (height, width, 3) with the scale of colours and the time in its right upper corner."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = image.shape[:2]
    line = max(10, round(height / 36))
    ink = (29, 36, 48) if theme == "light" else (228, 232, 238)
    picture = Image.fromarray(image)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(line)
    right, top, tall, wide = width - line, round(3.2 * line), round(0.5 * height), line
    label = f"{title} [{growth.unit}]" if growth.unit else title
    draw.text((right, line), label, ink, font, anchor="ra")
    bar = table()[np.linspace(len(table()) - 1, 0, tall).round().astype(int)]
    picture.paste(Image.fromarray(np.repeat(bar[:, None], wide, 1)), (right - wide, top))
    low, high = growth.limits
    for t in ticks(low, high, 5):
        y = top + round((tall - 1) * (high - t) / (high - low))
        draw.line([(right - wide - line // 3, y), (right - wide, y)], ink)
        draw.text((right - wide - line // 2, y), number(t, 6), ink, font, anchor="rm")
    return np.asarray(picture)
