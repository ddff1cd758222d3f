"""Pictures and films of particles and grids, without a screen: `render_particles(times, x, "sand.mp4")`, `render_grid(...)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from costate.collision.mesh.triangles import UNIT
from costate.core.names import unknown
from costate.draw.backdrop import THEMES
from costate.draw.camera import Camera, framing_points
from costate.draw.part.still import with_scale
from costate.draw.particles.cloud import Cloud, cloud_of, grid_cloud
from costate.draw.shading import Painter, painter
from costate.draw.triangles import Triangles
from costate.draw.video import STILLS, writer_for

PAPER = {"light": (255, 255, 255), "dark": (18, 22, 29)}
"""Colours around a grid."""
FEW = 500
"""Largest number of particles that are drawn as round balls; others have 20 faces."""
MARGIN = 0.22
"""Share of a picture's width that is left for the scale of colours of a grid."""


def render_particles(
    times: Any,
    positions: Any,
    file: str | Path,
    values: Any = None,
    *,
    title: str = "",
    unit: str = "",
    limits: tuple[float, float] | None = None,
    radius: float | None = None,
    frame: int = -1,
    seconds: float | None = None,
    fps: float = 30.0,
    size: tuple[int, int] = (960, 540),
    camera: Camera | None = None,
    theme: str = "light",
    ground: bool = True,
) -> Path:
    """Draw particles into a file; returns its path.

    Args:
        times: Times of the frames (K,) [s].
        positions: Positions (K, N, 2) or (K, N, 3) [m].
        file: .png or .jpg for one frame; .gif, .webp, .mp4 or .webm for a film.
        values: Numbers or kinds (N,) or (K, N), which choose colours.
        title: What the numbers are.
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest.
        radius: Radius of a particle [m]; None: one that fits.
        frame: Frame that a still shows.
        seconds: Duration of a film [s]; None: that of the motion.
        fps: Frames per second of a film.
        size: Width and height [pixels].
        camera: Camera, in metres; None: one that sees all particles.
        theme: "light" or "dark".
        ground: Draw the ground and its grid, unless particles lie in a plane.
    """
    cloud = cloud_of(times, positions, values, radius=radius, unit=unit, limits=limits)
    paint = _painter(cloud, size, camera, _theme(theme), ground)
    shape = _ball(cloud.count)

    def picture(k: int) -> np.ndarray:
        image = paint.picture(balls_at(cloud, k, shape), None)
        return image if cloud.plain else with_scale(image, cloud, title, theme)

    return _write(cloud, file, frame, seconds, fps, picture)


def render_grid(
    times: Any,
    values: Any,
    file: str | Path,
    *,
    title: str = "",
    unit: str = "",
    limits: tuple[float, float] | None = None,
    axis: int = 2,
    index: int | None = None,
    frame: int = -1,
    seconds: float | None = None,
    fps: float = 30.0,
    size: tuple[int, int] = (720, 540),
    theme: str = "light",
) -> Path:
    """Draw a grid into a file, its first axis to the right and its second upwards; returns its path.

    Args:
        times: Times of the frames (K,) [s].
        values: Numbers of the cells (K, nx, ny) or (K, nx, ny, nz).
        file: .png or .jpg for one frame; .gif, .webp, .mp4 or .webm for a film.
        title: What the numbers are.
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest.
        axis: Axis of a grid in 3D along which is looked.
        index: Layer of a grid in 3D that is shown; None: the mean of all layers.
        frame: Frame that a still shows.
        seconds: Duration of a film [s]; None: that of the motion.
        fps: Frames per second of a film.
        size: Width and height [pixels].
        theme: "light" or "dark".
    """
    cloud = grid_cloud(times, values, unit=unit, limits=limits, axis=axis, index=index)
    _theme(theme)
    shape = tuple(round(float(x) + 0.5) for x in cloud.at(0).max(0)[[0, 2]])
    return _write(
        cloud,
        file,
        frame,
        seconds,
        fps,
        lambda k: with_scale(cells_at(cloud, k, shape, size, theme), cloud, title, theme),
    )


def cells_at(
    cloud: Cloud, frame: int, shape: tuple[int, ...], size: tuple[int, int], theme: str = "light"
) -> np.ndarray:
    """Return the cells (nx, ny) of a grid as a picture (height, width, 3), with room for a scale at its right."""
    from PIL import Image

    width, height = size
    colors = np.ascontiguousarray(cloud.colors(frame).reshape(*shape, 3).transpose(1, 0, 2)[::-1])
    room = (round(width * (1 - MARGIN)), height)
    scale = 0.96 * min(room[0] / shape[0], room[1] / shape[1])
    cells = Image.fromarray(colors).resize((round(scale * shape[0]), round(scale * shape[1])), Image.Resampling.NEAREST)
    picture = Image.new("RGB", size, PAPER[theme])
    picture.paste(cells, ((room[0] - cells.width) // 2, (height - cells.height) // 2))
    return np.asarray(picture)


def balls_at(cloud: Cloud, frame: int, shape: tuple[np.ndarray, np.ndarray]) -> Triangles:
    """Return the particles of a frame as small balls. shape: points on the unit sphere (P, 3), and faces (F, 3)."""
    points, faces = shape
    middle = cloud.metre * cloud.at(frame)
    corners = middle[:, None] + cloud.metre * cloud.radius * points
    n = cloud.count
    colors = np.ones((n, 4), np.float32)
    colors[:, :3] = cloud.colors(frame) / 255.0
    return Triangles(
        corners.reshape(-1, 3).astype(np.float32),
        np.tile(points, (n, 1)).astype(np.float32),
        (len(points) * np.arange(n)[:, None, None] + faces).reshape(-1, 3).astype(np.int32),
        np.repeat(np.arange(n, dtype=np.int32), len(points)),
        colors,
    )


def _ball(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a ball: as round as others for few particles, else an icosahedron."""
    if count <= FEW:
        mesh = UNIT["sphere"]()
        return np.asarray(mesh.vertices, float), np.asarray(mesh.faces)
    golden = (1 + np.sqrt(5)) / 2
    points = np.array([np.roll((0.0, a, b * golden), k) for k in range(3) for a in (-1, 1) for b in (-1, 1)])
    gaps = np.linalg.norm(points[:, None] - points, axis=-1)
    faces = [f for f in combinations(range(12), 3) if all(gaps[i, j] < 2.1 for i, j in combinations(f, 2))]
    outward = [f if np.linalg.det(points[list(f)]) > 0 else f[::-1] for f in faces]
    return points / np.linalg.norm(points[0]), np.array(outward)


def _theme(theme: str) -> str:
    if theme not in THEMES:
        raise ValueError(unknown("theme", theme, THEMES))
    return theme


def _painter(cloud: Cloud, size: tuple[int, int], camera: Camera | None, theme: str, ground: bool) -> Painter:
    """Return what draws the particles, in lengths of the drawing."""
    if camera is None:
        where = {"azimuth": -90.0, "elevation": 0.0} if cloud.flat else {}
        camera = framing_points(cloud.metre * cloud.corners, size[0] / size[1], **where)
    else:
        camera = Camera(cloud.metre * camera.position, cloud.metre * camera.target, camera.fov)
    low = cloud.metre * float(cloud.box[0][2])
    return painter(camera, size, low if ground and not cloud.flat else None, THEMES[theme])


def _write(
    cloud: Cloud, file: str | Path, frame: int, seconds: float | None, fps: float, picture: Callable[[int], np.ndarray]
) -> Path:
    """Write one frame, or all of them as a film."""
    file = Path(file)
    write = writer_for(file)
    if not -cloud.frames <= frame < cloud.frames:
        raise ValueError(f"frame is {frame}; expected one of {cloud.frames}, from 0 on, or from -1 on backwards")
    length = float(cloud.times[-1] - cloud.times[0]) if seconds is None else seconds
    moments = np.linspace(cloud.times[0], cloud.times[-1], max(1, round(length * fps)))
    still = file.suffix.lower() in STILLS
    chosen = [frame % cloud.frames] if still else [cloud.frame_at(t) for t in moments]

    def images() -> Iterator[np.ndarray]:
        last, image = -1, np.zeros(0)
        for k in chosen:
            if k != last:
                last, image = k, picture(k)
            yield image

    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, images(), fps)
    return file
