"""Robots to look at: a slider for every joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.core.arrays import Array as Floats
from costate.core.display import number
from costate.draw.drawing import model_of
from costate.draw.poses import Kinematics, Motion, motion_of
from costate.model import Model
from costate.physics.integrate import neutral
from costate.viewer.layers import Layers
from costate.viewer.server import add_ground, look

if TYPE_CHECKING:
    import viser

BEYOND = {"revolute": np.pi, "continuous": np.pi, "prismatic": 1.0}
"""Range of a slider where a joint has no limits [rad or m]."""


FRONT = -15.0
"""Direction from which a row of robots is seen [degrees]."""


class Robots:
    """Several robots side by side, each with a folder of sliders."""

    def __init__(self, server: viser.ViserServer, sources: Sequence[Any], dark: bool = False):
        models = [model_of(s) for s in sources]
        starts = [_start(m) for m in models]
        motions = [motion_of(m, q) for m, q in zip(models, starts, strict=True)]
        offsets = _in_a_row(motions)
        self.server = server
        self.shown = [
            _Shown(server, f"/robot{k}", m, q, motion, at, len(models) > 1)
            for k, (m, q, motion, at) in enumerate(zip(models, starts, motions, offsets, strict=True))
        ]
        low = np.min([motion.bounds[0] + at for motion, at in zip(motions, offsets, strict=True)], 0)
        high = np.max([motion.bounds[1] + at for motion, at in zip(motions, offsets, strict=True)], 0)
        add_ground(server, float(min(low[2], 0.0)), float(np.linalg.norm(high - low)), dark)
        # Several stand in a row along y, and are seen from the front.
        points = np.concatenate([motion.outline + at for motion, at in zip(motions, offsets, strict=True)])
        look(server, points, FRONT if len(models) > 1 else -55.0)


def _start(model: Model) -> Floats:
    return np.array(neutral(model) if model.home is None else model.home, float)


def _in_a_row(motions: Sequence[Motion]) -> list[Floats]:
    """Return offsets along y that keep the robots apart."""
    offsets, y = [], 0.0
    for k, motion in enumerate(motions):
        low, high = motion.bounds
        y = 0.0 if k == 0 else y - low[1]
        offsets.append(np.array([0.0, y, 0.0]))
        y += high[1] + 0.25 * motion.extent
    return offsets


class _Shown:
    """One robot, its sliders and its layers."""

    def __init__(
        self,
        server: viser.ViserServer,
        path: str,
        model: Model,
        q: Floats,
        motion: Motion,
        at: Floats,
        several: bool,
    ):
        """Show a robot. path: of its nodes in the scene; names of robots may be alike, or hold anything."""
        self.model, self.q, self.at = model, q, at
        self._kinematics = Kinematics(model)
        self.layers = Layers(server, path, motion.drawing, self._links(), model, motion.extent)
        with server.gui.add_folder(model.name, expand_by_default=True):
            about = f"{len(model.links)} links, {model.nv} degrees of freedom, {number(model.total_mass)} kg"
            server.gui.add_markdown(about)
            self._sliders(server)
            with server.gui.add_folder("show", expand_by_default=not several):
                self.layers.check_boxes()

    def _links(self) -> Floats:
        links = self._kinematics(self.q[None])
        links[..., 3] += self.at
        return links

    def _sliders(self, server: viser.ViserServer) -> None:
        with server.gui.add_folder("joints"):
            sliders = [
                (self._slider(server, j, k), k) for j, k in zip(self.model.joints, self.model.q_index, strict=True)
            ]
            sliders = [(s, k, float(self.q[k])) for s, k in sliders if s is not None]
            reset = server.gui.add_button("back to the start")

            @reset.on_click
            def _(_: Any) -> None:
                for slider, k, value in sliders:
                    self.q[k] = value
                    slider.value = float(np.clip(value, slider.min, slider.max))
                self.layers.move(self._links())

    def _slider(self, server: viser.ViserServer, joint: Any, k: int) -> Any:
        if joint.kind not in BEYOND or joint.mimic:
            return None
        beyond = BEYOND[joint.kind]
        low = float(joint.lower[0]) if np.isfinite(joint.lower[0]) else -beyond
        high = float(joint.upper[0]) if np.isfinite(joint.upper[0]) else beyond
        if high <= low:
            return None
        unit = "m" if joint.kind == "prismatic" else "rad"
        value = float(np.clip(self.q[k], low, high))
        hint = f"{joint.kind}, {number(low, 4)} to {number(high, 4)} {unit}" + (
            "" if np.isfinite(joint.lower[0]) else ", no limits"
        )
        step = (high - low) / 1000
        slider = server.gui.add_slider(joint.name, low, high, step, value, hint=hint)

        @slider.on_update
        def _(event: Any) -> None:
            self.q[k] = event.target.value
            self.layers.move(self._links())

        return slider
