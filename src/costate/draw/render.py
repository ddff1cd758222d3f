"""Pictures and films without a screen: `cs.render(world, states, "clip.mp4")`.

Everything is drawn on the processor, by loops that are compiled (`compiled`), so that there is no graphics driver to miss and the
same states give the same picture on every machine.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costate.collision.mesh.triangles import UNIT
from costate.core.arrays import Array
from costate.core.names import unknown
from costate.draw.backdrop import THEMES
from costate.draw.camera import Camera, framing_points
from costate.draw.marks import Trails, arrow
from costate.draw.poses import Motion
from costate.draw.recording import Recording, record
from costate.draw.shading import painter
from costate.draw.triangles import Triangles, joined, triangles_of
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
    progress: bool | None = None,
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
        progress: Show how far a film is, on the standard error output; None: if that is a terminal.
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
    return render_recording(
        recording,
        path,
        size=size,
        fps=fps,
        frame=frame,
        camera=camera,
        theme=theme,
        ground=ground,
        progress=progress,
    )


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
    progress: bool | None = None,
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
    drawn = frames(recording, chosen, size, camera or whole_view(motion, size), theme, ground)
    told = sys.stderr.isatty() if progress is None else progress
    write(path, _told(drawn, len(chosen), path.name) if told and not still else drawn, fps)
    return path


def _told(drawn: Iterator[np.ndarray], count: int, name: str) -> Iterator[np.ndarray]:
    """Yield frames, and show how many there are already."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(drawn, total=count, description=escape(name))


def frames(
    recording: Recording,
    chosen: Sequence[int],
    size: tuple[int, int],
    camera: Camera,
    theme: str = "light",
    ground: bool = True,
) -> Iterator[np.ndarray]:
    """Yield frames of a recording as RGB bytes (height, width, 3), drawn by as many threads as torch has."""
    motion = recording.motion
    level = motion.drawing.ground
    if level is None:
        level = float(motion.bounds[0][2])
    paint = painter(camera, size, level if ground else None, THEMES[theme])
    scene = _Scene(recording)
    yield from _in_order(lambda k: paint.picture(scene.solid(k), scene.above(k)), chosen, torch.get_num_threads())


def _in_order(draw: Callable[[int], np.ndarray], chosen: Sequence[int], threads: int) -> Iterator[np.ndarray]:
    """Yield the frames chosen, each drawn once for as often as it is repeated; a few are drawn ahead."""
    steps = [(k, len(list(same))) for k, same in groupby(chosen)]
    if len(steps) == 1 or threads == 1:
        for k, times in steps:
            yield from repeat(draw(k), times)
        return
    with ThreadPoolExecutor(threads, "costate-film") as pool:
        ahead: deque[Future[np.ndarray]] = deque()
        try:
            for n, (_, times) in enumerate(steps):
                while len(ahead) <= threads and n + len(ahead) < len(steps):
                    ahead.append(pool.submit(draw, steps[n + len(ahead)][0]))
                yield from repeat(ahead.popleft().result(), times)
        finally:
            for future in ahead:
                future.cancel()


class _Scene:
    """The triangles of a recording, frame by frame."""

    def __init__(self, recording: Recording):
        self.recording, motion = recording, recording.motion
        self.bodies = solids(motion)
        index = [motion.drawing.links.index(link) for link in recording.trails]
        paths = motion.links[:, :, index, :, 3].reshape(motion.frames, -1, 3)
        self.trails = Trails(paths, 0.003 * motion.extent) if index else None

    def solid(self, frame: int) -> Triangles:
        motion = self.recording.motion
        placed = self.bodies.moved(motion.instances(frame).reshape(-1, 3, 4))
        sides = [side for s in motion.surfaces for side in s.at(frame)]
        return joined([placed, *sides, *([self.trails.at(frame)] if self.trails else [])])

    def above(self, frame: int) -> Triangles:
        """Return the arrows, which start inside of links and are drawn over them."""
        thick = 0.006 * self.recording.motion.extent
        found = [a for frames in self.recording.arrows.values() for a in frames[frame]]
        marks = [mark for a in found for mark in arrow(a[:3], a[3:6], (*a[6:], 1.0), thick)]
        soup = joined([triangles_of(UNIT[m.mesh](), m.scale, m.color) for m in marks])
        return soup.moved(np.array([m.pose for m in marks])) if marks else soup


def solids(motion: Motion) -> Triangles:
    """Return the triangles of all links of all samples, each instance in its own frame."""
    meshes = motion.drawing.meshes
    one = [triangles_of(meshes[part.mesh], part.scale, part.color) for part in motion.drawing.instances]
    return joined(one * motion.samples)


def bodies(motion: Motion, frame: int) -> Triangles:
    """Return the triangles of all links of all samples in the world."""
    return solids(motion).moved(motion.instances(frame).reshape(-1, 3, 4))


def _film_frames(times: Array, fps: float) -> list[int]:
    """Return the state shown in each frame of a film in real time."""
    count = max(1, round(float(times[-1]) * fps) + 1)
    return np.searchsorted(times, np.arange(count) / fps - 1e-9).clip(0, len(times) - 1).tolist()


def whole_view(motion: Motion, size: tuple[int, int]) -> Camera:
    """Return a camera that sees all of a motion in a picture of a size (width, height)."""
    return framing_points(motion.outline, size[0] / size[1])
