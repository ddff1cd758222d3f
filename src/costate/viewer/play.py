"""A trained policy at work on a page, episode after episode, while the user drags and pushes what moves.

A task whose page has more to offer extends `Play` and names its class (`Trainable.play`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.core.display import number
from costate.train.controller import load_policy
from costate.train.episode import Trajectory
from costate.viewer.live import Live
from costate.viewer.server import PORT, start
from costate.viewer.view import Page

if TYPE_CHECKING:
    import viser

    from costate.train.run import Run
    from costate.train.trainable import Trainable


STAY = 0.5
"""Time between the end of an episode and the next start [s]."""
TOLD = 0.2
"""Time between two changes of the read-out [s]."""
PACE = "pace"
PACES = {"real time": 1.0, "half": 0.5, "quarter": 0.25, "tenth": 0.1}
MARK, MARK_COLOR = 0.02, (50, 180, 75)
"""Radius [m] and colour of a marked point."""


def open_play(kind: Any, run: Run, port: int = PORT, dark: bool = False, seed: int = 0) -> tuple[Page, Any]:
    """Open a page on which a run's policy is at work; `page.wait()` runs it until interrupted. kind: the class of the page."""
    return start_play(kind, run.task, kind.controller_of(run), port, dark, seed)


def start_play(
    kind: Any, task: Trainable, controller: Callable[..., Any], port: int = PORT, dark: bool = False, seed: int = 0
) -> tuple[Page, Any]:
    """Open a page on which a controller is at work."""
    server = start(port, label=f"costate play {task.name}", dark=dark)
    try:
        play = kind(server, task, controller, seed, dark)
    except BaseException:
        server.stop()
        raise
    return Page(server, play.live), play


class Play:
    """Episodes one after the other, with a count of those that succeeded."""

    OPTIONS: ClassVar[dict[str, Any]] = {PACE: tuple(PACES)}
    """Options of the page: name -> start value, see `Live`."""
    NOTE = "Drag anything that moves with the mouse."
    """Line under the read-out."""

    def __init__(self, server: viser.ViserServer, task: Any, controller: Any, seed: int = 0, dark: bool = False):
        self.server, self.task, self.controller = server, task, controller
        self.random = torch.Generator().manual_seed(seed)
        self.tried, self.succeeded, self.last_error = 0, 0, float("nan")
        self.action_times: deque[float] = deque(maxlen=100)
        """Durations of the policy's latest actions [s]."""
        self._since, self._told_at = 0, 0.0
        self._states: list[Tensor] = []
        self._acted: list[Tensor] = []
        with server.gui.add_folder(task.name):
            self.readout = server.gui.add_markdown("")
        self.episodes = self._drawn()
        self.live = Live(server, task.shown(), self._command, self.episodes.state[0], self.options(), self._after, dark)
        self._warm_up()

    @classmethod
    def controller_of(cls, run: Run) -> Any:
        """Return what acts on the page of a run."""
        return load_policy(run.path)

    def options(self) -> dict[str, Any]:
        """Return the options of the page."""
        return self.OPTIONS

    def option(self, name: str) -> Any:
        """Return what the user has chosen."""
        return self.live.options[name].value

    def _drawn(self) -> Any:
        """Draw the next episode, and mark its points."""
        drawn = self.task.draw(1, self.random, torch.float64)
        for k, point in enumerate(self.task.marks(drawn)[0].tolist()):
            self.server.scene.add_icosphere(f"/mark{k}", MARK, color=MARK_COLOR, position=tuple(point))
        return drawn

    def _warm_up(self) -> None:
        """Compile before anybody looks."""
        self.live.step()
        self._verdict(self.live.state.expand(self.task.steps + 1, 1, -1))
        self.live.reset()

    # --- the cycle ------------------------------------------------------------------------------------------------

    def _command(self, state: Tensor, step: int) -> Tensor:
        """Return the control of a step; called before every step: what is changed of the state counts."""
        self.live.speed = PACES[self.option(PACE)]
        if step == 0:
            self._since, self._states = 0, []
        steps = self.task.steps
        if step - self._since == steps:
            self._judge([*self._states, state])
        elif step - self._since >= steps + STAY / self.task.world.dt:
            self.episodes = self._drawn()
            state.copy_(self.episodes.state[0])
            self._since, self._states = step, []
        if step - self._since < steps:
            self._states.append(state.clone())
        return self._act(state, min(step - self._since, steps - 1))

    def _act(self, state: Tensor, step: int) -> Tensor:
        """Return the policy's command."""
        acted = self._acted if step else []
        observation = self.task.see(state[None], step, self.episodes, acted)[0]
        control = torch.from_numpy(self.timed(self.controller, observation.numpy()))
        offset, scale = self.task.action_scale
        self._acted = [((control - offset) / scale)[None]] if len(control) == len(scale) else []
        return control

    def timed(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of an action, and remember how long it took."""
        begun = time.perf_counter()
        result = act(*arguments)
        self.action_times.append(time.perf_counter() - begun)
        return result

    def _judge(self, states: list[Tensor]) -> None:
        verdict = self._verdict(torch.stack(states)[:, None])
        self.tried += 1
        self.succeeded += int(verdict.success[0])
        self.last_error = float(verdict.error[0])

    def _verdict(self, states: Tensor) -> Any:
        """Judge the states (T + 1, 1, nx) of an episode."""
        actions = states.new_zeros(len(states) - 1, 1, len(self.task.outputs))
        return self.task.judge(Trajectory(states, actions, self.episodes))

    # --- the read-out ---------------------------------------------------------------------------------------------

    def _after(self, live: Live) -> None:
        if time.monotonic() - self._told_at > TOLD:
            self._told_at = time.monotonic()
            self.readout.content = self.told()

    def rows(self) -> dict[str, str]:
        """Return the rows of the read-out."""
        return {
            "last error": f"**{number(self.last_error)} {self.task.unit}**" if self.tried else "",
            "success": f"**{self.succeeded} of {self.tried}**",
            "time per action": f"{1e6 * float(np.median(self.action_times)):.0f} µs" if self.action_times else "",
        }

    def told(self) -> str:
        """Return what stands on the page, as Markdown."""
        table = "".join(f"| {name} | {value} |\n" for name, value in self.rows().items())
        return f"| | |\n|---|---|\n{table}\n*{self.NOTE}*"
