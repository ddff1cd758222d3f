"""Motions to play: time, curves, forces, trails, and the gradient made visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate.core.arrays import Array as Floats
from costate.core.display import number
from costate.draw.marks import TRAIL, ramp
from costate.draw.recording import Curves, Recording
from costate.draw.surfaces import Surface
from costate.viewer.layers import Layers
from costate.viewer.markdown import as_written
from costate.viewer.playback import Playback
from costate.viewer.server import add_ground, look

if TYPE_CHECKING:
    import viser

COLORS = ("#2a63b8", "#d9731a", "#2f8f4e", "#c0392f", "#7a57ad", "#8a6d3b", "#c2569b", "#4c8f9c")


class Player(Playback):
    """Plays a recording on a page."""

    def __init__(self, server: viser.ViserServer, recording: Recording, dark: bool = False):
        self.recording, self.motion = recording, recording.motion
        super().__init__(server, recording.motion.times)
        motion = self.motion
        self.layers = Layers(server, "/scene", motion.drawing, motion.links[0], motion.source, motion.extent)
        self._surfaces = [_Sheet(server, s) for s in motion.surfaces]
        self._marks = _Marks(server, recording)
        low, _ = motion.bounds
        ground = float(low[2]) if motion.drawing.ground is None else motion.drawing.ground
        add_ground(server, ground, motion.extent, dark)
        look(server, motion.outline)
        self._controls()
        self._curves()
        self._heat = _Heat(server, recording.heat, float(motion.times[-1])) if recording.heat else None
        self.start()

    # --- the page -------------------------------------------------------------------------------------------------

    def _controls(self) -> None:
        gui, motion = self.server.gui, self.motion
        with gui.add_folder("motion"):
            self.controls()
            if motion.samples > 1:
                gui.add_markdown(f"samples {', '.join(map(str, motion.chosen))}")
        with gui.add_folder("show"):
            self.layers.check_boxes()
            self._marks.check_boxes(gui)

    def _curves(self) -> None:
        for title, curves in self.recording.curves.items():
            with self.server.gui.add_folder(title, expand_by_default=False):
                add_curves(self.server, self.motion.times, curves)

    # --- time -----------------------------------------------------------------------------------------------------

    def draw(self, frame: int) -> None:
        self.layers.move(self.motion.links[frame])
        for sheet in self._surfaces:
            sheet.show(frame)
        self._marks.show(frame)

    def tell(self) -> None:
        super().tell()
        if self._heat:
            self._heat.show(self.time)


class _Sheet:
    """A surface that changes its shape."""

    def __init__(self, server: viser.ViserServer, surface: Surface):
        self.surface = surface
        self._node = server.scene.add_mesh_simple(
            f"/surfaces/{surface.name}",
            surface.points[0].astype(np.float32),
            surface.faces.astype(np.uint32),
            color=np.round(255 * np.asarray(surface.color[:3])).astype(np.uint8),
            side="double",
        )

    def show(self, frame: int) -> None:
        self._node.vertices = self.surface.points[frame].astype(np.float32)


class _Marks:
    """Arrows and trails, with a check box each."""

    def __init__(self, server: viser.ViserServer, recording: Recording):
        self.server, self.recording = server, recording
        self._on: dict[str, bool] = dict.fromkeys(recording.arrows, True) | (
            {"trails": True} if recording.trails else {}
        )
        self._nodes: dict[str, Any] = {}
        self._frame = 0
        self._thick = 0.006 * recording.motion.extent

    def check_boxes(self, gui: Any) -> None:
        for title in self._on:
            box = gui.add_checkbox(title, True)
            box.on_update(lambda event, title=title: self._switch(title, event.target.value))

    def _switch(self, title: str, on: bool) -> None:
        self._on[title] = on
        self.show(self._frame)

    def show(self, frame: int) -> None:
        self._frame = frame
        for title, frames in self.recording.arrows.items():
            arrows = frames[frame] if self._on[title] and frame < len(frames) else np.zeros((0, 9))
            self._arrows(title, arrows)
        if self.recording.trails:
            self._trails(frame if self._on["trails"] else 0)

    def _arrows(self, title: str, arrows: Floats) -> None:
        points = np.stack([arrows[:, :3], arrows[:, :3] + arrows[:, 3:6]], 1).astype(np.float32)
        colors = np.round(255 * arrows[:, 6:]).astype(np.uint8)
        if len(arrows) and title not in self._nodes:
            r, name = self._thick, f"/marks/{title.replace(' ', '_')}"
            self._nodes[title] = self.server.scene.add_arrows(
                name, points, colors, shaft_radius=r, head_radius=2.4 * r, head_length=6 * r
            )
        elif len(arrows):
            self._nodes[title].points, self._nodes[title].colors = points, colors
        if title in self._nodes:
            self._nodes[title].visible = len(arrows) > 0

    def _trails(self, frame: int) -> None:
        motion = self.recording.motion
        every = max(1, frame // 200)
        segments = [np.zeros((0, 2, 3))]
        for link in self.recording.trails:
            path = motion.links[: frame + 1 : every, :, motion.drawing.links.index(link), :, 3]
            segments.append(np.stack([path[:-1], path[1:]], 2).reshape(-1, 2, 3))
        points = np.concatenate(segments).astype(np.float32)
        if len(points) and "trails" not in self._nodes:
            color = tuple(round(255 * c) for c in TRAIL[:3])
            self._nodes["trails"] = self.server.scene.add_line_segments(
                "/marks/trails", points, np.array(color), thickness=0.6 * self._thick
            )
        elif len(points):
            self._nodes["trails"].points = points
        if "trails" in self._nodes:
            self._nodes["trails"].visible = len(points) > 0


class _Heat:
    """A strip of colour for each coordinate of the gradient, with the present time as a line."""

    ROW, WIDTH = 14, 360

    def __init__(self, server: viser.ViserServer, heat: Curves, end: float):
        self.end = end
        scale = np.abs(heat.values).max(0)
        steps = np.linspace(0, len(heat.values) - 1, self.WIDTH).round().astype(int)
        rows = ramp((heat.values / np.where(scale > 0, scale, 1.0))[steps].T)
        self._strip = np.round(255 * rows).astype(np.uint8).repeat(self.ROW, 0)
        self._strip[self.ROW - 1 :: self.ROW] = 255
        with server.gui.add_folder("gradient"):
            self._image = server.gui.add_image(self._at(0.0), format="png")
            lines = [f"{as_written(n)}: &plusmn;{number(s)}" for n, s in zip(heat.names, scale, strict=True)]
            server.gui.add_markdown("from top to bottom, blue below zero, red above:  \n" + "  \n".join(lines))

    def _at(self, now: float) -> np.ndarray:
        image = self._strip.copy()
        x = int((self.WIDTH - 1) * (now / self.end if self.end else 0.0))
        image[:, max(0, x - 1) : x + 1] = 0
        return image

    def show(self, now: float) -> None:
        self._image.image = self._at(now)


def add_curves(server: viser.ViserServer, times: Floats, curves: Curves) -> Any:
    """Add a plot of curves over time to the folder that is open on the page."""
    import viser.uplot as uplot

    count = len(curves.values)
    series = [uplot.Series(label="time [s]")]
    series += [
        uplot.Series(label=name, stroke=COLORS[k % len(COLORS)], width=1.5) for k, name in enumerate(curves.names)
    ]
    data = (np.asarray(times[:count], float), *np.asarray(curves.values, float).T.copy())
    scales = {"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True)}
    return server.gui.add_uplot(data, tuple(series), scales=scales, legend=uplot.Legend(show=True), aspect=1.4)
