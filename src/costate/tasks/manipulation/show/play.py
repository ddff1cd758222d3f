"""A hand at work on a page: drag the object, and the policy plans anew from where it lies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.core.arrays import Array
from costate.tasks.manipulation.execute import OBJECT
from costate.tasks.manipulation.proposer import Proposer
from costate.tasks.manipulation.show.arrows import COLORS, LONGEST, PROPOSED, Proposals, painted
from costate.tasks.manipulation.task import about_z
from costate.train.run import Run
from costate.viewer import play
from costate.viewer.play import PACE, PACES

if TYPE_CHECKING:
    import viser

WAIT, STAY, BACK = 0.4, 0.8, 1.2
"""Time that the object lies still before the hand moves, that it is held in the end, and that the hand takes to go back [s]."""
STILL = 0.02
"""Speed of an object that lies still [m/s, rad/s]."""
PATIENCE = 3.0
"""Longest time to wait for an object that does not come to rest [s]."""
SLACK, TILTED = 0.005, 0.05
"""An object so far outside of the range of starts [m], or tilted by twice as much [rad], is put back into it."""
NEW, MASS, FRICTION = "a new place each time", "mass [g]", "friction"
THICK = 0.0025
"""Radius of an arrow [m]."""


class HandPlay(play.Play):
    """A cycle: wait until the object lies still, act (the policy), stay, go back, again. Letting go of the object cuts it short."""

    OPTIONS: ClassVar[dict[str, Any]] = {PACE: ("quarter", *(name for name in PACES if name != "quarter"))}
    NOTE = "Drag the object with the mouse, a little: when you let go, the hand plans anew."

    def __init__(self, server: viser.ViserServer, task: Any, controller: Any, seed: int = 0, dark: bool = False):
        self.phase, self._dragged, self._from = "wait", False, torch.zeros(0)
        o = task.options
        one = (1.0, 1.0)
        usual = replace(o, scales=one, masses=one, frictions=one, wide=task.is_wide)
        usual = replace(usual, place=0.0) if task.hinge else usual
        self._acting, self._home = controller.begin(), torch.tensor(task.step.hand.home)
        self._proposals, self._arrows = Proposals(task.step), None
        super().__init__(server, type(task)(usual), controller, seed, dark)
        low, high = (np.array(corner) for corner in task.box())
        middle = (low + high) / 2
        server.initial_camera.look_at = tuple(middle)
        server.initial_camera.position = tuple(middle + np.array([0.4, 0.35, 0.12]))

    @classmethod
    def controller_of(cls, run: Run) -> Any:
        """Return the policy itself: no file of a network holds it."""
        return run.policy

    def options(self) -> dict[str, Any]:
        """Return the options of the page."""
        o = self.task.options
        return {
            NEW: True,
            MASS: (1e3 * o.mass, 500 * o.mass, 2e3 * o.mass),
            FRICTION: (o.friction, 0.5 * o.friction, 1.5 * o.friction),
            **self.OPTIONS,
        }

    # --- the cycle ------------------------------------------------------------------------------------------------

    def _command(self, state: Tensor, step: int) -> Tensor:
        """Return the targets of the servos; what is changed of the state counts."""
        self.live.speed = PACES[self.option(PACE)]
        mass = self.option(MASS) / 1e3
        inertia = self.episodes.inertia[0] * mass / self.task.options.mass
        given = self.episodes.params | {"friction": torch.full((1, 1), self.option(FRICTION), dtype=torch.float64)}
        given |= {f"mass:{OBJECT}/body": torch.full((1, 1), mass, dtype=torch.float64)}
        given |= {f"inertia:{OBJECT}/body": inertia[None]}
        self.live.params = {name: value[0] for name, value in given.items()}
        if step == 0:
            self._enter("wait", step, state)
        self._advance(state, step)
        if self.phase == "act":
            self._states.append(state.clone())
            return self._act(state, step - self._since)
        part = 1.0 if self.phase == "wait" else min(1.0, (step - self._since) * self.task.options.dt / BACK)
        if self.phase == "stay":
            return self._held
        return self._from + part**2 * (3 - 2 * part) * (self._home - self._from)

    def _act(self, state: Tensor, step: int) -> Tensor:
        """Return the targets that the policy gives."""
        with torch.no_grad():
            seen = self.task.see(state[None], step, self.episodes, [])
            self._held = self.task.control(self.timed(self._acting, seen))[0]
        return self._held

    def _advance(self, state: Tensor, step: int) -> None:
        """Go to the next phase, if it is time."""
        seconds = (step - self._since) * self.task.options.dt
        grip = self.live.hand.grip
        dragging = grip is not None and self.live.hand.links[grip.link] == f"{OBJECT}/body"
        let_go, self._dragged = self._dragged and not dragging, dragging
        if dragging and self.phase == "wait":
            self._since = step
        elif let_go and self.phase != "wait":
            self._enter("go back", step, state, place=False)
        elif self.phase == "wait" and (seconds >= PATIENCE or (seconds >= WAIT and self._still(state))):
            self._within(state)
            self._enter("act", step, state)
        elif self.phase == "act" and step - self._since >= self.task.steps:
            self._judge([*self._states, state])
            self._enter("stay", step, state)
        elif self.phase == "stay" and seconds >= STAY:
            self._enter("go back", step, state, place=True)
        elif self.phase == "go back" and seconds >= BACK:
            if self._place and self.option(NEW):
                self.episodes = self._drawn()
                state.copy_(self.episodes.state[0])
            self._enter("wait", step, state)

    def _enter(self, phase: str, step: int, state: Tensor, place: bool = False) -> None:
        self.phase, self._since, self._place = phase, step, place
        if phase == "act":
            self._acting, self._states = self.controller.begin(), []
        if phase in ("wait", "go back"):
            self._from = self._home if phase == "wait" else state[: self.task.step.nq].clone()

    def _still(self, state: Tensor) -> bool:
        """Return whether the object lies still."""
        n = self.task.world.setup.scene.model.nq + self.task.step.nq
        return bool((state[n:].abs() < STILL).all())

    def _within(self, state: Tensor) -> None:
        """Put an object that lies outside of the range of starts upright at the nearest place in it; a cube has four equal yaws."""
        if self.task.hinge:
            return
        n, middle = self.task.step.nq, state.new_tensor(self.task.middle[:2])
        x, y, z, w = state[n + 3 : n + 7].tolist()
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        near = torch.clamp(state[n : n + 2] - middle, -self.task.options.place, self.task.options.place) + middle
        if bool((near - state[n : n + 2]).norm() > SLACK) or x * x + y * y > TILTED**2:
            self.task._put(state[None], torch.ones(1, dtype=state.dtype), torch.zeros(1, 3, dtype=state.dtype))
            state[n : n + 2] = near
            state[-6:] = 0.0
        turned = torch.tensor((yaw + np.pi / 4) % (np.pi / 2) - np.pi / 4, dtype=state.dtype)
        state[n + 3 : n + 7] = about_z(turned)

    # --- what is seen ---------------------------------------------------------------------------------------------

    def _after(self, live: Any) -> None:
        super()._after(live)
        action, drawn = getattr(self._acting, "action", None), np.zeros((0, 9))
        if isinstance(self.controller, Proposer) and self.phase == "act" and action is not None:
            scale, pose = self.episodes.thing[0, :1], self.task.pose(live.state)
            points, forces = self._proposals(action[0], scale, pose)
            drawn = painted(points, forces, LONGEST / (1.5 * self.task.step.physics.force), COLORS[PROPOSED])
        self._show_arrows(drawn)

    def _show_arrows(self, drawn: Array) -> None:
        points = np.stack([drawn[:, :3], drawn[:, :3] + drawn[:, 3:6]], 1).astype(np.float32)
        colors = np.round(255 * drawn[:, 6:]).astype(np.uint8)
        if self._arrows is not None:
            self._arrows.visible = len(drawn) > 0
        if len(drawn) and self._arrows is None:
            self._arrows = self.server.scene.add_arrows(
                "/proposals", points, colors, shaft_radius=THICK, head_radius=2.4 * THICK, head_length=6 * THICK
            )
        elif len(drawn) and self._arrows is not None:
            self._arrows.points, self._arrows.colors = points, colors

    def rows(self) -> dict[str, str]:
        """Return the rows of the read-out."""
        return super().rows() | {"now": self.phase}
