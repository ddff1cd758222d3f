"""Pictures and films without a screen: `cs.render(world, states, "clip.mp4")`.

Everything is drawn by `raster.py` and `shading.py` on the processor, so that there is no graphics driver to miss and the
same states give the same picture on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costate.collision.mesh.triangles import UNIT
from costate.core.arrays import Array
from costate.core.names import unknown
from costate.draw.camera import Camera, framing
from costate.draw.marks import TRAIL, Mark, arrow, trail
from costate.draw.poses import Motion
from costate.draw.recording import Recording, record
from costate.draw.shading import THEMES, encoded, picture
from costate.draw.triangles import Triangles, joined, placed
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
    gradient: Any = None,
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
        gradient: dLoss/dstates, dLoss/dq or dLoss/dcontrols along the motion: arrows that show where the loss falls.
        trails: Links whose path so far is drawn.
        dt: Time between states [s]; None: the world's.
    """
    recording = record(
        source,
        states,
        contacts=contacts,
        gradient=gradient,
        trails=trails,
        dt=dt,
        samples=samples,
        spacing=spacing,
    )
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
        raise ValueError(unknown("theme", theme, THEMES))
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
    """Yield frames of a recording as RGB bytes (height, width, 3)."""
    motion = recording.motion
    level = motion.drawing.ground
    if level is None:
        level = float(motion.bounds[0][2])
    for k in chosen:
        soup = joined([bodies(motion, k), _marks(_trails(recording, k))])
        arrows = _marks(_arrows(recording, k))
        yield encoded(picture(soup, camera, size, level if ground else None, THEMES[theme], arrows))


def bodies(motion: Motion, frame: int) -> Triangles:
    """Return the triangles of all links of all samples."""
    meshes = motion.drawing.meshes
    parts = [
        (part, pose)
        for sample in motion.instances(frame)
        for part, pose in zip(motion.drawing.instances, sample, strict=True)
    ]
    return joined([placed(meshes[part.mesh], pose, part.scale, part.color) for part, pose in parts])


def _marks(marks: Sequence[Mark]) -> Triangles:
    return joined([placed(UNIT[m.mesh](), m.pose, m.scale, m.color) for m in marks])


def _film_frames(times: Array, fps: float) -> list[int]:
    """Return the state shown in each frame of a film in real time."""
    count = max(1, round(float(times[-1]) * fps) + 1)
    return np.searchsorted(times, np.arange(count) / fps - 1e-9).clip(0, len(times) - 1).tolist()


def _whole_view(motion: Motion, size: tuple[int, int]) -> Camera:
    low, high = motion.bounds
    if motion.drawing.ground is not None:
        low = np.append(low[:2], min(low[2], motion.drawing.ground))
    return framing(low, high, size[0] / size[1])


def _arrows(recording: Recording, frame: int) -> list[Mark]:
    thick = 0.006 * recording.motion.extent
    found = [a for frames in recording.arrows.values() for a in frames[frame]]
    return [mark for a in found for mark in arrow(a[:3], a[3:6], (*a[6:], 1.0), thick)]


def _trails(recording: Recording, frame: int) -> list[Mark]:
    motion, marks = recording.motion, []
    for link in recording.trails:
        path = motion.links[: frame + 1, :, motion.drawing.links.index(link), :, 3]
        for sample in range(motion.samples):
            marks += trail(path[:: max(1, len(path) // 200), sample], TRAIL, 0.003 * motion.extent)
    return marks
