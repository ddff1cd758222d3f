"""Frames that are played: a clock, and the controls of time on a page."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.core.arrays import Array

if TYPE_CHECKING:
    import viser

FPS = 60.0
"""Frames sent per second while playing, at most."""
CLOCK = 0.1
"""Time between two moves of the time slider and of the cursor of the strips while playing [s]."""
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


class Playback:
    """Shows one frame after the other, as time passes or as the user asks; what a frame looks like is up to who extends it."""

    def __init__(self, server: viser.ViserServer, times: Array):
        self.server, self.times = server, times
        self.time, self.speed, self.playing, self.loop = float(times[0]), 1.0, False, True
        self._frame = -1
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="costate-player", daemon=True)

    def draw(self, frame: int) -> None:
        """Draw a frame."""
        raise NotImplementedError

    def tell(self) -> None:
        """Say what time it is, now and then while playing."""
        self._time.value = self.time

    def start(self) -> None:
        """Show the first frame; from now on frames can be played."""
        self.show(self.time)
        self._thread.start()

    def controls(self, speeds: tuple[float, ...] = SPEEDS) -> None:
        """Add the controls of time to the folder that is open on the page."""
        gui, begin, end = self.server.gui, float(self.times[0]), float(self.times[-1])
        last = end if end > begin else begin + 1.0
        self._play = gui.add_button("play", icon=None)
        self._time = gui.add_slider("time [s]", begin, last, (last - begin) / max(1, len(self.times) - 1), begin)
        self._speed = gui.add_dropdown("speed", [f"{s:g}" for s in speeds], initial_value=f"{self.speed:g}")
        self._loop = gui.add_checkbox("loop", True)
        self._play.on_click(lambda _: self.toggle())
        self._time.on_update(self._scrubbed)
        self._speed.on_update(lambda _: setattr(self, "speed", float(self._speed.value)))
        self._loop.on_update(lambda _: setattr(self, "loop", self._loop.value))

    def _scrubbed(self, event: Any) -> None:
        if event.client is None:  # our own update while playing
            return
        self.pause()
        self.show(float(self._time.value))

    def toggle(self) -> None:
        if self.playing:
            self.pause()
        else:
            self.play()

    def play(self) -> None:
        if self.time >= self.times[-1]:
            self.time = float(self.times[0])
        self.playing = True
        self._play.label = "pause"

    def pause(self) -> None:
        self.playing = False
        self._play.label = "play"

    def show(self, at: float) -> None:
        """Go to a time [s]."""
        self.time = float(np.clip(at, self.times[0], self.times[-1]))
        frame = int(np.abs(self.times - self.time).argmin())
        if frame != self._frame:
            self._frame = frame
            with self.server.atomic():
                self.draw(frame)

    def _run(self) -> None:
        """Send the frame of the moment, never the ones in between: a slow page skips, it does not lag."""
        last, told = time.monotonic(), 0.0
        while not self._ended.wait(1 / FPS):
            now = time.monotonic()
            passed, last = now - last, now
            if not self.playing:
                continue
            at = self.time + passed * self.speed
            if at > self.times[-1]:
                at = float(self.times[0] if self.loop else self.times[-1])
                if not self.loop:
                    self.pause()
            self.show(at)
            if now - told > CLOCK or not self.playing:
                told = now
                self.tell()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(5)
