"""Insertion, played live: a policy at work again and again, while the user moves the socket, pushes the arm and adds noise."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from costate.tasks.insertion import Insertion, Trajectory, judge
from costate.tasks.insertion.task import ARM_Q, SOCKET_V, SOCKET_XY
from costate.train.controller import Controller
from costate.viewer.live import Live
from costate.viewer.play_servo import Servo
from costate.viewer.server import PORT, start
from costate.viewer.view import Page

if TYPE_CHECKING:
    import viser

Tensor = torch.Tensor

STAY, BACK = 0.6, 0.9
"""How long the bottle stays seated, and the arm takes to go back [s]."""
SLIDE = 0.05
"""A moving socket takes the bottle along for at most this far [m]."""
OUT, PATIENCE = 0.08, 1.0
"""The bottle is out of the socket at this height above the seat [m]; a jammed one is given up after a while [s]."""
PUSHED = "ur5/wrist_1_link"
TOLD = 0.2
"""How often the read-out changes [s]."""
SPEED, DIRECTION = "belt speed [m/s]", "belt direction [degrees]"
JOINT_NOISE, SOCKET_NOISE, FORCE, PACE = "joint noise [mrad]", "socket noise [mm]", "push [N]", "pace"
OPTIONS: dict[str, Any] = {
    SPEED: (0.0, 0.0, 0.3),
    DIRECTION: (90.0, -180.0, 180.0),
    JOINT_NOISE: (0.0, 0.0, 5.0),
    SOCKET_NOISE: (0.0, 0.0, 2.0),
    FORCE: (100.0, 0.0, 400.0),
    PACE: ("real time", "half", "quarter", "tenth"),
}
PACES = {"real time": 1.0, "half": 0.5, "quarter": 0.25, "tenth": 0.1}


def play_insertion(
    task: Insertion, controller: Controller, port: int = PORT, dark: bool = False, seed: int = 0
) -> tuple[Page, Play]:
    """Open a page on which the policy runs; `page.wait()` runs it until interrupted."""
    server = start(port, label="costate play insertion", dark=dark)
    try:
        play = Play(server, task, controller, seed, dark)
    except BaseException:
        server.stop()
        raise
    return Page(server, play.live), play


class Play:
    """A cycle: insert (the policy), stay, pull out, go back to a new start (a plain servo), again."""

    def __init__(
        self, server: viser.ViserServer, task: Insertion, controller: Controller, seed: int = 0, dark: bool = False
    ):
        self.task, self.controller, self.servo = task, controller, Servo(task)
        self.random = torch.Generator().manual_seed(seed)
        self.phase, self.tried, self.succeeded = "insert", 0, 0
        self.action_times: deque[float] = deque(maxlen=100)
        """Of the policy's latest actions [s]."""
        self.error = self.seated_error = float("nan")
        """Distance of the bottle from its seat: now, and when it should last have been seated [m]."""
        self._since, self._told_at = 0, 0.0
        self._states: list[Tensor] = []
        with server.gui.add_folder("insertion"):
            self.readout = server.gui.add_markdown("")
            push = server.gui.add_button("push the arm", hint="a knock sideways; or drag any link with the mouse")
        push.on_click(lambda _: self.push())
        self.goal = task.sample(1, self.random, torch.float64)[0]
        speed = (0.5 * task.options.belt_speed if task.options.moving else 0.0, 0.0, task.options.belt_speed)
        self.live = Live(server, task.shown, self._command, self.goal, OPTIONS | {SPEED: speed}, self._after, dark)
        x, y = task.options.center
        server.initial_camera.position = (x + 0.85, y - 1.0, 0.72)
        server.initial_camera.look_at = (x - 0.12, y, 0.24)
        self._warm_up()

    def _warm_up(self) -> None:
        """Compile before anybody looks."""
        self.live.step()
        judge(self.task, Trajectory(self.live.state.expand(self._steps + 1, 1, -1), torch.zeros(self._steps, 1, 6)))
        self.live.reset()

    @property
    def _steps(self) -> int:
        return self.task.options.horizon + self.task.options.hold

    def push(self, force: float | None = None) -> None:
        """A knock on the wrist for a tenth of a second, in a random direction of the plane [N]; None: as strong as chosen."""
        angle = 2 * np.pi * float(torch.rand(1, generator=self.random))
        hand = self.live.hand
        strength: float = self.option(FORCE) if force is None else force
        change = strength * hand.PUSH_TIME / hand.model.link(PUSHED).inertia.mass
        hand.push(PUSHED, change * np.array([np.cos(angle), np.sin(angle), 0.0]))

    def option(self, name: str) -> Any:
        """What the user has chosen."""
        return self.live.options[name].value

    # --- the cycle ------------------------------------------------------------------------------------------------

    def _command(self, state: Tensor, step: int) -> Tensor:
        """Called before every step; what is changed of the state counts."""
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
        """The policy's command, from what it would measure."""
        seen = state.numpy().copy()
        noise = torch.randn(8, generator=self.random, dtype=torch.float64).numpy()
        seen[:6] += 1e-3 * self.option(JOINT_NOISE) * noise[:6]
        seen[SOCKET_XY] += 1e-3 * self.option(SOCKET_NOISE) * noise[6:]
        begun = time.perf_counter()
        command = self.controller.action(seen, step)
        self.action_times.append(time.perf_counter() - begun)
        return torch.from_numpy(command)

    def _convey(self, state: Tensor) -> None:
        """The carriage goes as the belt does, or the hand that holds it; it never turns."""
        grip = self.live.hand.grip
        held = grip is not None and self.live.hand.links[grip.link].startswith("socket")
        state[8] = state[17] = 0.0
        if not held:
            state[SOCKET_V] = self.belt()

    def belt(self) -> Tensor:
        """Velocity of the conveyor [m/s], (2,)."""
        angle = np.radians(self.option(DIRECTION))
        return self.option(SPEED) * torch.tensor([np.cos(angle), np.sin(angle)], dtype=torch.float64)

    def _advance(self, state: Tensor, step: int) -> None:
        """To the next phase, if it is time."""
        steps, seconds = step - self._since, (step - self._since) * self.task.options.dt
        speed = float(state[SOCKET_V].norm())
        if self.phase == "insert" and steps >= self._steps:
            self._judge(state)
            self._enter("stay", step)
        elif self.phase == "stay" and seconds >= min(STAY, SLIDE / max(speed, 1e-9)):
            self._enter("pull out", step)
        elif self.phase == "pull out" and (self.servo.height(state) > OUT or seconds > PATIENCE):
            self.goal = self.task.sample(1, self.random, torch.float64)[0]
            self._place_socket(state)
            self._enter("go back", step)
        elif self.phase == "go back" and seconds >= BACK:
            self._enter("insert", step)

    def _enter(self, phase: str, step: int) -> None:
        self.phase, self._since, self._states = phase, step, []

    def _place_socket(self, state: Tensor) -> None:
        """The next socket: upstream, so that it passes when the arm is ready. One at rest stays, unless it is out of range."""
        o, belt = self.task.options, self.belt()
        center = torch.tensor(o.center, dtype=torch.float64)
        if bool((belt != 0).any()) or bool(((state[SOCKET_XY] - center).abs() > 1.5 * o.target_range).any()):
            place = 2 * torch.rand(2, generator=self.random, dtype=torch.float64) - 1
            phase = float(torch.rand(1, generator=self.random))
            state[SOCKET_XY] = center + o.target_range * place - (BACK + phase * o.seconds) * belt

    def _judge(self, state: Tensor) -> None:
        states = torch.stack([*self._states, state])[:, None]
        verdict = judge(self.task, Trajectory(states, torch.zeros(self._steps, 1, 6)))
        self.tried += 1
        self.succeeded += int(verdict.success[0])
        self.seated_error = float(verdict.error[0])

    # --- the read-out ---------------------------------------------------------------------------------------------

    def _after(self, live: Live) -> None:
        if time.monotonic() - self._told_at > TOLD:
            self._told_at = time.monotonic()
            self.error = float(self.task.errors(live.state)[0].norm())
            self.readout.content = self.told()

    def told(self) -> str:
        """What stands on the page, as Markdown."""
        o = self.task.options
        away = self.live.state[SOCKET_XY] - torch.tensor(o.center, dtype=torch.float64)
        far = self.phase == "insert" and bool((away.abs() > o.target_range + o.moving * 0.1).any())
        rows = {
            "error when seated": f"**{1e3 * self.seated_error:.2f} mm**" if self.tried else "",
            "error now": f"{1e3 * self.error:.2f} mm",
            "success": f"**{self.succeeded} of {self.tried}**",
            "time per action": f"{1e6 * float(np.median(self.action_times)):.0f} µs",
            "now": "outside the trained range" if far else self.phase,
        }
        table = "".join(f"| {name} | {value} |\n" for name, value in rows.items())
        return f"| | |\n|---|---|\n{table}\n*Drag the socket or the arm with the mouse.*"
