"""Views of an environment: pictures as arrays, or a page in the browser that follows it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from torch import Tensor

from costate.train.trainable import Trainable

SIZE = (480, 360)
"""Width and height of pictures [pixels]."""
MODES = (None, "rgb_array", "human")


class Picture:
    """The view of one episode."""

    def __init__(self, task: Trainable, mode: str | None, size: tuple[int, int] = SIZE):
        if mode not in MODES:
            raise ValueError(f"render_mode is {mode!r}; expected 'rgb_array', 'human' or None")
        self.task, self.mode, self.size = task, mode, size
        self._live: Any = None
        self._due = 0.0

    def begin(self, state: Tensor) -> None:
        """Show the beginning of an episode."""
        if self.mode == "human":
            self.show(state)

    def drawn(self, state: Tensor) -> np.ndarray:
        """Return a picture (height, width, 3), RGB bytes."""
        from costate.draw.camera import framing
        from costate.draw.recording import record
        from costate.draw.render import frames

        recording = record(self.task.shown(), state.detach().double()[None])
        low, high = self.task.box() or recording.motion.bounds
        camera = framing(np.asarray(low), np.asarray(high), self.size[0] / self.size[1])
        return next(iter(frames(recording, [0], self.size, camera)))

    def show(self, state: Tensor) -> None:
        """Show a state on the page, at the time it is due: a step takes as long as it does in the world."""
        if self._live is None:
            from costate.viewer.live import Live
            from costate.viewer.server import start

            server = start()
            print(f"open http://{server.get_host()}:{server.get_port()}", flush=True)
            self._live, self._due = Live(server, self.task.shown(), state=state.double()), time.monotonic()
        self._live.state = state.detach().double()
        self._live.show()
        self._due = max(self._due + self.task.world.dt, time.monotonic() - self.task.world.dt)
        time.sleep(max(0.0, self._due - time.monotonic()))

    def close(self) -> None:
        """Close the page."""
        if self._live is not None:
            self._live.server.stop()
            self._live = None
