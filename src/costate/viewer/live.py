"""Worlds that run while one looks: a policy at control rate, bodies to drag and push, options to change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from costate.core.arrays import Array as Floats
from costate.draw.poses import Kinematics, motion_of
from costate.sim.divergence import SimulationError
from costate.viewer.layers import Layers
from costate.viewer.markdown import as_written
from costate.viewer.server import add_ground, look
from costate.viewer.stage import Touched

if TYPE_CHECKING:
    import viser

    from costate.sim import World

FPS = 60.0
"""Frames sent per second, at most. A world that is stepped more often is shown at this rate; nothing is queued."""
BEHIND = 0.25
"""Longest delay that a world makes up for [s]; one that is slower is left to fall behind."""

Policy = Callable[[torch.Tensor, int], torch.Tensor]


class Live:
    """A world that runs in real time on a page.

        live = Live(server, world, policy, options={"target height": (0.5, 0.2, 0.8)})
        live.run()                       # until live.stop(), or for run(seconds=10)
        live.options["target height"].value

    Dragging a body with the left button pulls it towards the pointer with a spring; "push" gives the chosen body a knock.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        world: World,
        policy: Policy | None = None,
        state: torch.Tensor | None = None,
        options: Mapping[str, Any] | None = None,
        on_step: Callable[[Live], None] | None = None,
        dark: bool = False,
    ):
        """Show a world on a page.

        policy: (state (nx,), number of the step) -> control (nu,); None: no control.
        options: Name -> start value: a bool, a sequence of strings to choose from, or (value, low, high).
        on_step: Called after every step.
        """
        self.server, self.world, self.policy, self.on_step = server, world, policy, on_step
        self.start = world.initial_state(dtype=torch.float64) if state is None else state.detach().clone()
        self.state, self.step_number = self.start.clone(), 0
        self.running, self.frames_sent = True, 0
        self.speed = 1.0
        """1 is real time, less is slow motion."""
        self.params: Mapping[str, torch.Tensor] | None = None
        """Parameters of the world that differ from its own."""
        self._stopped, self._turn = threading.Event(), threading.RLock()
        self._kinematics = Kinematics(world.setup.scene.model)
        motion = motion_of(world, self.start)
        self._size = motion.extent
        self.layers = Layers(server, "/scene", motion.drawing, motion.links[0], motion.model, motion.extent)
        self.hand = Hand(server, world, self.layers, motion.extent)
        low, _ = motion.bounds
        ground = float(low[2]) if motion.drawing.ground is None else motion.drawing.ground
        add_ground(server, ground, motion.extent, dark)
        look(server, motion.outline)
        self.options: dict[str, Any] = {}
        self._page(options or {})

    def _page(self, options: Mapping[str, Any]) -> None:
        gui = self.server.gui
        with gui.add_folder("live"):
            self._pause = gui.add_button("pause")
            again = gui.add_button("start again")
            self._told = gui.add_markdown("")
        self._pause.on_click(lambda _: self._toggle())
        again.on_click(lambda _: self.reset())
        self.hand.page()
        if options:
            with gui.add_folder("options"):
                for name, value in options.items():
                    self.options[name] = _option(gui, name, value)
        with gui.add_folder("show", expand_by_default=False):
            self.layers.check_boxes()

    def _toggle(self) -> None:
        self.running = not self.running
        self._pause.label = "pause" if self.running else "go on"

    def reset(self) -> None:
        """Go back to the start."""
        with self._turn:  # not in the middle of a step, whose result would undo it
            self._restart()

    def _restart(self) -> None:
        self.state, self.step_number = self.start.clone(), 0

    def stop(self) -> None:
        self._stopped.set()

    def step(self) -> None:
        """Do one control step, with what the user's hand does."""
        with self._turn:
            try:
                control = None if self.policy is None else self.policy(self.state, self.step_number).detach()
                with torch.no_grad():
                    pulled = self.hand.wrenches(self.links())
                    self.state = self.world.step(self.state, control, self.params, pulled)
                self.step_number += 1
            except SimulationError as error:
                print(f"starting again: {error}", flush=True)
                self._told.content = f"started again: {as_written(str(error))}"
                self._restart()
        if self.on_step:
            self.on_step(self)

    def links(self) -> Floats:
        """Return the poses of the links now, (1, links, 3, 4)."""
        return self._kinematics(self.state[None])

    def show(self) -> None:
        links = self.links()
        self.layers.move(links)
        self.hand.show(links)
        self.frames_sent += 1

    def run(self, seconds: float | None = None) -> None:
        """Step in real time and show at most FPS times a second, until `stop`, or for a while."""
        dt = self.world.dt
        begun = due = last_shown = time.monotonic()
        told, steps_told = begun, self.step_number
        while not self._stopped.is_set() and (seconds is None or time.monotonic() - begun < seconds):
            now = time.monotonic()
            if not self.running:
                due = now
                self._stopped.wait(0.02)
                continue
            due = max(due, now - BEHIND)
            while due <= now and not self._stopped.is_set():
                self.step()
                due += dt / self.speed
                now = max(now, time.monotonic() - 1 / FPS)
                if time.monotonic() - last_shown > 1 / FPS:
                    break
            if time.monotonic() - last_shown >= 1 / FPS:
                self.show()
                last_shown = time.monotonic()
            if last_shown - told > 1.0:
                rate = (self.step_number - steps_told) * dt / (last_shown - told)
                self._told.content = f"{self.step_number * dt:.1f} s, {rate:.2f} x real time"
                told, steps_told = last_shown, self.step_number
            self._stopped.wait(max(0.0, min(due - time.monotonic(), 1 / FPS)))


def _option(gui: Any, name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return gui.add_checkbox(name, value)
    if isinstance(value, Sequence) and value and all(isinstance(v, str) for v in value):
        return gui.add_dropdown(name, tuple(value))
    try:
        start, low, high = map(float, value)
    except (TypeError, ValueError):
        raise ValueError(
            f"option {name!r}: a bool, strings to choose from or (value, low, high) is expected; {value!r} given"
        ) from None
    return gui.add_slider(name, low, high, (high - low) / 200, start)


@dataclass(frozen=True, eq=False)
class Grip:
    """A point of a link that is being dragged."""

    link: int
    at: Floats
    """Point in the link frame, shape (3,)."""
    goal: Floats
    """Position of the pointer, world axes, shape (3,)."""


class Hand:
    """The hand of the user on bodies: a damped spring to the pointer, and pushes."""

    FREQUENCY = 10.0
    """Frequency of the spring with what it drags [rad/s]; less where steps are long, to stay stable."""
    REACH = 3.0
    """Stretch along an axis beyond which the spring pulls no harder, as a multiple of the size of the scene."""
    PUSH_TIME = 0.1
    """Duration of a push [s]."""

    def __init__(self, server: viser.ViserServer, world: World, layers: Layers, size: float):
        self.server, self.world, self.layers, self.size = server, world, layers, size
        self.model = world.setup.scene.model
        self.links = [link.name for link in self.model.links]
        # One kernel for all bodies that can be moved: grabbing another one must not wait for a compiler.
        self.movable = [self.links[k] for k in _moving(self.model)]
        self.grip: Grip | None = None
        self._last: tuple[int, Floats] | None = None
        self._push: tuple[str, Floats, int] | None = None
        self._line = server.scene.add_line_segments(
            "/hand", np.zeros((1, 2, 3)), (217, 115, 26), thickness=0.006 * size, visible=False
        )
        layers.shapes.on_drag(self._dragged)

    def page(self) -> None:
        gui = self.server.gui
        if not self.movable:
            return
        with gui.add_folder("push", expand_by_default=False):
            body = gui.add_dropdown("body", tuple(self.movable))
            way = gui.add_dropdown("towards", ("+x", "-x", "+y", "-y", "+z", "-z"))
            speed = gui.add_slider("change of speed [m/s]", 0.0, 3.0, 0.05, 1.0)
            push = gui.add_button("push")
        push.on_click(lambda _: self.push(body.value, _direction(way.value) * speed.value))

    def push(self, link: str, change: Floats) -> None:
        """Apply a force for a moment that would change the velocity of the link, were it alone, by so much [m/s]."""
        mass = self.model.link(link).inertia.mass
        steps = max(1, round(self.PUSH_TIME / self.world.dt))
        self._push = link, np.asarray(change, float) * mass / (steps * self.world.dt), steps

    def _dragged(self, touched: Touched, event: Any) -> None:
        if event.phase == "end" or self.links[touched.link] not in self.movable:
            self.grip = None
            self._line.visible = False
            return
        held, goal, start = self.grip, np.array(event.end_position, float), np.array(event.start_position, float)
        if not (np.isfinite(goal).all() and np.isfinite(start).all()):
            return
        pose = self.layers.links[touched.sample, touched.link]
        at = pose[:, :3].T @ (start - pose[:, 3])
        if np.linalg.norm(at) > self.REACH * self.size:  # no pointer is there
            return
        if event.phase == "start" or held is None:
            held = Grip(touched.link, at, goal)
        self.grip = replace(held, goal=goal)

    def show(self, links: Floats) -> None:
        """Show the line from the grip to the pointer."""
        if (grip := self.grip) is not None:
            self._line.points = np.stack([_point(grip, links), grip.goal])[None].astype(np.float32)
            self._line.visible = True

    def wrenches(self, links: Floats) -> dict[str, torch.Tensor]:
        """Force and torque at the origin of each movable link, world axes, (6,)."""
        found = {name: torch.zeros(6, dtype=torch.float64) for name in self.movable}
        if (grip := self.grip) is not None:
            p = _point(grip, links)
            force = self._spring(grip, p)
            found[self.links[grip.link]] += torch.as_tensor(
                np.concatenate([force, np.cross(p - links[0, grip.link, :, 3], force)])
            )
        else:
            self._last = None
        if (push := self._push) is not None:
            link, force, left = push
            k = self.links.index(link)
            com = links[0, k, :, :3] @ self.model.links[k].inertia.com  # through the centre of mass: no turn
            found[link] += torch.as_tensor(np.concatenate([force, np.cross(com, force)]))
            self._push = (link, force, left - 1) if left > 1 else None
        return found

    def _spring(self, grip: Grip, p: Floats) -> Floats:
        """Return the force of a critically damped spring, for the mass that hangs on the link."""
        known = self._last is not None and self._last[0] == grip.link
        velocity = (p - self._last[1]) / self.world.dt if known and self._last else np.zeros(3)
        self._last = grip.link, p
        w = min(self.FREQUENCY, 0.25 / self.world.dt)
        stretch = np.clip(grip.goal - p, -self.REACH * self.size, self.REACH * self.size)
        return self._mass(grip.link) * (w**2 * stretch - 2 * w * velocity)

    def _mass(self, k: int) -> float:
        """Return the mass of all links the joint of this one carries, so that a spring on a light fingertip moves an arm."""
        carried = {k}
        for i, parent in enumerate(self.model.parents):
            if parent + 1 in carried:
                carried.add(i + 1)
        return max(sum(self.model.links[i].inertia.mass for i in carried), 0.1)


def _point(grip: Grip, links: Floats) -> Floats:
    pose = links[0, grip.link]
    return pose[:, :3] @ grip.at + pose[:, 3]


def _direction(name: str) -> Floats:
    axis = np.eye(3)["xyz".index(name[1])]
    return axis if name[0] == "+" else -axis


def _moving(model: Any) -> list[int]:
    """Return the links with a mass that some joint moves."""
    moving = {0: False}
    for i, joint in enumerate(model.joints):
        moving[i + 1] = moving[model.parents[i] + 1] or joint.kind != "fixed"
    return [k for k, moves in moving.items() if moves and model.links[k].inertia.mass > 0]
