"""Pictures and films without a screen: `cs.render(world, states, "clip.mp4")`.

Everything is drawn by `raster.py` and `shading.py` on the processor, so that there is no graphics driver to miss and the
same states give the same picture on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costate.draw.camera import Camera, framing
from costate.draw.marks import TRAIL, Mark, arrow, trail
from costate.draw.mesh import UNIT, Floats, Mesh
from costate.draw.poses import Motion
from costate.draw.recording import Recording, record
from costate.draw.shading import THEMES, Triangles, encoded, picture
from costate.draw.video import STILLS, writer_for


def render(
    source: Any,
    states: Any,
    path: str | Path,
    *,
    size: tuple[int, int] = (960, 540),
    fps: float = 30.0,
    frame: int = -1,
    samples: Sequence[int] | int | None = None,
    spacing: float | None = None,
    camera: Camera | None = None,
    theme: str = "light",
    ground: bool = True,
    contacts: bool = False,
    trails: Sequence[str] = (),
    dt: float | None = None,
) -> Path:
    """Draw a world, a robot or a model into a file; returns its path.

    Args:
        states: (T, nx), (T, B, nx) or (nx,); configurations (nq) alone will do.
        path: .png or .jpg for one frame; .gif, .webp, .mp4 or .webm for a film in real time.
        size: Width and height [pixels].
        fps: Frames per second of a film.
        frame: Which state a still shows.
        samples: Which samples of a batch, or how many, side by side; spacing 0 draws them into one another.
        camera: None: one that sees everything, always.
        theme: "light" or "dark".
        ground: Draw the ground and its grid; at the lowest point where the model has no plane.
        contacts: Draw contact forces as arrows (worlds only).
        trails: Links whose path so far is drawn.
        dt: Time between states [s]; None: the world's.
    """
    recording = record(source, states, contacts=contacts, trails=trails, dt=dt, samples=samples, spacing=spacing)
    return render_recording(recording, path, size=size, fps=fps, frame=frame, camera=camera, theme=theme, ground=ground)


def render_recording(
    recording: Recording,
    path: str | Path,
    *,
    size: tuple[int, int] = (960, 540),
    fps: float = 30.0,
    frame: int = -1,
    camera: Camera | None = None,
    theme: str = "light",
    ground: bool = True,
) -> Path:
    """Draw a recording into a file; arguments as in `render`."""
    path = Path(path)
    write = writer_for(path)
    if theme not in THEMES:
        raise ValueError(f"unknown theme {theme!r}; use one of {', '.join(THEMES)}")
    motion = recording.motion
    still = path.suffix.lower() in STILLS
    chosen = [range(motion.frames)[frame]] if still else _film_frames(motion.times, fps)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, frames(recording, chosen, size, camera or _whole_view(motion, size), theme, ground), fps)
    return path


def frames(
    recording: Recording,
    chosen: Sequence[int],
    size: tuple[int, int],
    camera: Camera,
    theme: str = "light",
    ground: bool = True,
) -> Iterator[np.ndarray]:
    """Frames of a recording as RGB bytes (height, width, 3)."""
    motion = recording.motion
    level = motion.drawing.ground
    if level is None:
        level = float(motion.bounds[0][2])
    for k in chosen:
        soup = triangles(motion, k, _marks(recording, k))
        yield encoded(picture(soup, camera, size, level if ground else None, THEMES[theme]))


def triangles(motion: Motion, frame: int, marks: Sequence[Mark] = ()) -> Triangles:
    """All triangles of a frame, in the world."""
    drawing = motion.drawing
    placed = motion.instances(frame)
    corners, normals, colors = [np.zeros((0, 3, 3))], [np.zeros((0, 3, 3))], [np.zeros((0, 4))]

    def add(mesh: Mesh, pose: Floats, scale: Floats, color: Any) -> None:
        R, p = pose[:, :3], pose[:, 3]
        n = mesh.normals / scale @ R.T
        corners.append((mesh.vertices * scale @ R.T + p)[mesh.faces])
        normals.append((n / np.linalg.norm(n, axis=1, keepdims=True))[mesh.faces])
        colors.append(np.broadcast_to(np.asarray(color, float), (len(mesh.faces), 4)))

    for sample in placed:
        for part, pose in zip(drawing.instances, sample, strict=True):
            add(drawing.meshes[part.mesh], pose, part.scale, part.color)
    for mark in marks:
        add(UNIT[mark.mesh](), mark.pose, mark.scale, mark.color)
    return Triangles(np.concatenate(corners), np.concatenate(normals), np.concatenate(colors))


def _film_frames(times: Floats, fps: float) -> list[int]:
    """The state shown in each frame of a film in real time."""
    count = max(1, round(float(times[-1]) * fps) + 1)
    return np.searchsorted(times, np.arange(count) / fps - 1e-9).clip(0, len(times) - 1).tolist()


def _whole_view(motion: Motion, size: tuple[int, int]) -> Camera:
    low, high = motion.bounds
    if motion.drawing.ground is not None:
        low = np.append(low[:2], min(low[2], motion.drawing.ground))
    return framing(low, high, size[0] / size[1])


def _marks(recording: Recording, frame: int) -> list[Mark]:
    """Arrows of a frame, and the trails up to it."""
    motion, marks = recording.motion, []
    for arrows in recording.arrows.values():
        for a in arrows[frame]:
            marks += arrow(a[:3], a[3:6], (*a[6:], 1.0), 0.006 * motion.extent)
    for link in recording.trails:
        path = motion.links[: frame + 1, :, motion.drawing.links.index(link), :, 3]
        for sample in range(motion.samples):
            marks += trail(path[:: max(1, len(path) // 200), sample], TRAIL, 0.003 * motion.extent)
    return marks
