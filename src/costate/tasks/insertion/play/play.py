"""Insertion, played live: a policy at work again and again, while the user moves the socket, pushes the arm and adds noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from costate.tasks.insertion.play.servo import Servo
from costate.tasks.insertion.scene import ARM_Q, SOCKET_V, SOCKET_XY
from costate.tasks.insertion.task import Insertion
from costate.train.controller import Controller
from costate.viewer import play
from costate.viewer.play import PACE, PACES, start_play
from costate.viewer.server import PORT
from costate.viewer.view import Page

if TYPE_CHECKING:
    import viser


STAY, BACK = 0.6, 0.9
"""Time that the bottle stays seated, and that the arm takes to go back [s]."""
SLIDE = 0.05
"""Largest distance over which a moving socket takes the bottle along [m]."""
OUT, PATIENCE = 0.08, 1.0
"""Height above the seat at which the bottle is out of the socket [m]; time after which a jammed one is given up [s]."""
PUSHED = "ur5/wrist_1_link"
SPEED, DIRECTION = "belt speed [m/s]", "belt direction [degrees]"
JOINT_NOISE, SOCKET_NOISE, FORCE = "joint noise [mrad]", "socket noise [mm]", "push [N]"


def play_insertion(
    task: Insertion, controller: Controller, port: int = PORT, dark: bool = False, seed: int = 0
) -> tuple[Page, Play]:
    """Open a page on which the policy runs; `page.wait()` runs it until interrupted."""
    return start_play(Play, task, controller, port, dark, seed)


class Play(play.Play):
    """A cycle: insert (the policy), stay, pull out, go back to a new start (a plain servo), again."""

    NOTE = "Drag the socket or the arm with the mouse."

    def __init__(
        self, server: viser.ViserServer, task: Insertion, controller: Controller, seed: int = 0, dark: bool = False
    ):
        self.servo, self.phase, self.error = Servo(task), "insert", float("nan")
        super().__init__(server, task, controller, seed, dark)
        with server.gui.add_folder("knock"):
            push = server.gui.add_button("push the arm", hint="a knock sideways; or drag any link with the mouse")
        push.on_click(lambda _: self.push())
        x, y = task.options.center
        server.initial_camera.position = (x + 0.85, y - 1.0, 0.72)
        server.initial_camera.look_at = (x - 0.12, y, 0.24)

    @property
    def goal(self) -> Tensor:
        """State at the start of the next insertion, (18,)."""
        return self.episodes.state[0]

    @property
    def seated_error(self) -> float:
        """Distance of the bottle from its seat when it should last have been seated [m]."""
        return self.last_error

    def options(self) -> dict[str, Any]:
        """Return the options of the page."""
        o = self.task.options
        return {
            SPEED: (0.5 * o.belt_speed if o.moving else 0.0, 0.0, o.belt_speed),
            DIRECTION: (90.0, -180.0, 180.0),
            JOINT_NOISE: (0.0, 0.0, 5.0),
            SOCKET_NOISE: (0.0, 0.0, 2.0),
            FORCE: (100.0, 0.0, 400.0),
            **self.OPTIONS,
        }

    def push(self, force: float | None = None) -> None:
        """Push the wrist for a tenth of a second, in a random direction of the plane [N]; None: as strong as chosen."""
        angle = 2 * np.pi * float(torch.rand(1, generator=self.random))
        hand = self.live.hand
        strength: float = self.option(FORCE) if force is None else force
        change = strength * hand.PUSH_TIME / hand.model.link(PUSHED).inertia.mass
        hand.push(PUSHED, change * np.array([np.cos(angle), np.sin(angle), 0.0]))

    # --- the cycle ------------------------------------------------------------------------------------------------

    def _command(self, state: Tensor, step: int) -> Tensor:
        """Return the control of a step; called before every step: what is changed of the state counts."""
        if step == 0:
            self._enter("insert", step)
        self._convey(state)
        self._advance(state, step)
        self.live.speed = PACES[self.option(PACE)]
        if self.phase == "insert":
            self._states.append(state.clone())
            return self._act(state, step - self._since)
        if self.phase == "go back":
            return self.servo.towards(state, self.goal[ARM_Q])
        return self.servo.over_socket(state, 0.0 if self.phase == "stay" else OUT + 0.05)

    def _act(self, state: Tensor, step: int) -> Tensor:
        """Return the policy's command, from what it would measure."""
        if step == 0:
            self.controller.begin()
        seen = state.numpy().copy()
        noise = torch.randn(8, generator=self.random, dtype=torch.float64).numpy()
        seen[:6] += 1e-3 * self.option(JOINT_NOISE) * noise[:6]
        seen[SOCKET_XY] += 1e-3 * self.option(SOCKET_NOISE) * noise[6:]
        return torch.from_numpy(self.timed(self.controller.action, seen, step))

    def _convey(self, state: Tensor) -> None:
        """Move the carriage as the belt does, or the hand that holds it; it never turns."""
        grip = self.live.hand.grip
        held = grip is not None and self.live.hand.links[grip.link].startswith("socket")
        state[8] = state[17] = 0.0
        if not held:
            state[SOCKET_V] = self.belt()

    def belt(self) -> Tensor:
        """Return the velocity of the conveyor [m/s], (2,)."""
        angle = np.radians(self.option(DIRECTION))
        return self.option(SPEED) * torch.tensor([np.cos(angle), np.sin(angle)], dtype=torch.float64)

    def _advance(self, state: Tensor, step: int) -> None:
        """Go to the next phase, if it is time."""
        steps, seconds = step - self._since, (step - self._since) * self.task.options.dt
        speed = float(state[SOCKET_V].norm())
        if self.phase == "insert" and steps >= self.task.steps:
            self._judge([*self._states, state])
            self._enter("stay", step)
        elif self.phase == "stay" and seconds >= min(STAY, SLIDE / max(speed, 1e-9)):
            self._enter("pull out", step)
        elif self.phase == "pull out" and (self.servo.height(state) > OUT or seconds > PATIENCE):
            self.episodes = self._drawn()
            self._place_socket(state)
            self._enter("go back", step)
        elif self.phase == "go back" and seconds >= BACK:
            self._enter("insert", step)

    def _enter(self, phase: str, step: int) -> None:
        self.phase, self._since, self._states = phase, step, []

    def _place_socket(self, state: Tensor) -> None:
        """Place the next socket upstream, so that it passes when the arm is ready. One at rest stays, unless it is out of range."""
        o, belt = self.task.options, self.belt()
        center = torch.tensor(o.center, dtype=torch.float64)
        if bool((belt != 0).any()) or bool(((state[SOCKET_XY] - center).abs() > 1.5 * o.target_range).any()):
            place = 2 * torch.rand(2, generator=self.random, dtype=torch.float64) - 1
            phase = float(torch.rand(1, generator=self.random))
            state[SOCKET_XY] = center + o.target_range * place - (BACK + phase * o.seconds) * belt

    # --- the read-out ---------------------------------------------------------------------------------------------

    def rows(self) -> dict[str, str]:
        """Return the rows of the read-out."""
        o = self.task.options
        away = self.live.state[SOCKET_XY] - torch.tensor(o.center, dtype=torch.float64)
        far = self.phase == "insert" and bool((away.abs() > o.target_range + o.moving * 0.1).any())
        self.error, usual = float(self.task.errors(self.live.state)[0].norm()), super().rows()
        return {
            "error when seated": f"**{1e3 * self.seated_error:.2f} mm**" if self.tried else "",
            "error now": f"{1e3 * self.error:.2f} mm",
            "success": usual["success"],
            "time per action": usual["time per action"],
            "now": "outside the trained range" if far else self.phase,
        }
