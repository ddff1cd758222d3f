"""`cs.view`: open a page for a robot, a motion or a running world."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from costate.draw.drawing import model_of
from costate.draw.recording import Recording, load_recording, record
from costate.viewer.live import Live
from costate.viewer.playback import Playback
from costate.viewer.player import Player
from costate.viewer.robots import Robots
from costate.viewer.server import PORT, start

if TYPE_CHECKING:
    import viser


class Page:
    """An open page. It stays open until `close`, or until the process ends."""

    def __init__(self, server: viser.ViserServer, content: Robots | Playback | Live):
        self.server, self.content = server, content

    @property
    def url(self) -> str:
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def _greet(self, block: bool | None) -> Page:
        """Say where the page is, and wait if that is asked for; None: unless Python is interactive."""
        greeting = f"open {self.url}"
        if block or (block is None and not hasattr(sys, "ps1") and "IPython" not in sys.modules):
            self.wait(greeting)
        else:
            print(greeting, flush=True)
        return self

    def wait(self, greeting: str = "") -> None:
        """Wait until the user interrupts; a world that runs is run here."""
        try:
            if greeting:  # within reach of an interruption that answers it
                print(f"{greeting}\nCtrl-C stops the page", flush=True)
            if isinstance(self.content, Live):
                self.content.run()
            while True:
                time.sleep(1.0)
        except KeyboardInterrupt:
            print()
        finally:
            self.close()

    def close(self) -> None:
        if isinstance(self.content, Live):
            self.content.stop()
        if isinstance(self.content, Playback):
            self.content.close()
        with redirect_stdout(io.StringIO()):  # the server says it has stopped
            self.server.stop()


def view(
    source: Any,
    states: Any = None,
    *,
    policy: Any = None,
    controls: Any = None,
    gradient: Any = None,
    gradient_names: Sequence[str] = (),
    contacts: bool = False,
    energy: bool = False,
    trails: Sequence[str] = (),
    dt: float | None = None,
    samples: Sequence[int] | int | None = None,
    spacing: float | None = None,
    live: bool = False,
    options: Mapping[str, Any] | None = None,
    on_step: Any = None,
    port: int = PORT,
    dark: bool = False,
    block: bool | None = None,
) -> Page:
    """Look at something in the browser, on this machine.

        cs.view(cs.load_robot("ur5"))                            # sliders
        cs.view(world, states, contacts=True, trails=["ur5/tool0"], gradient=dloss_dstates)
        cs.view(world, policy=policy)                            # runs in real time; bodies can be dragged

    Args:
        source: A world, a robot, a model, several of them, a recording, or the folder of one.
        states: (T, nx), (T, B, nx): what is played; configurations (nq) alone will do. (nx,): where a world starts that runs.
        policy: (state, step) -> control: the world runs under it, in real time. live=True: without one.
        controls: (T, nu) or (T, B, nu): plotted beside the scene.
        gradient: dLoss/dstates (T, [B,] nx), dLoss/dq (T, [B,] nq) or dLoss/dcontrols (T - 1, [B,] nu): arrows that show where the
            loss falls, and a strip of colour over time for each coordinate.
        contacts: Contact forces as arrows. energy: Plot the energy. trails: Links whose path is drawn.
        dt: Time between states [s]; None: the world's.
        samples: Which samples of the batch, or how many, stand side by side; spacing: how far apart [m].
        options: Of a running world: name -> bool, choices, or (value, low, high); read as `page.content.options[name].value`.
        on_step: Of a running world: called with it after every step.
        port: The next free one is taken, and said, if it is not free.
        block: Wait until interrupted; None: unless Python is interactive.
    """
    runs = live or policy is not None
    more = {"controls": controls, "gradient": gradient, "contacts": contacts, "energy": energy, "trails": tuple(trails)}
    if runs:
        states = _start(source, states, more)
    elif options is not None or on_step is not None:
        raise ValueError("options= and on_step= belong to a world that runs: give policy=, or live=True")
    recording = _recording(source)
    content: Robots | Player | Live
    if recording is None and states is not None and not runs:
        placed = {"dt": dt, "samples": samples, "spacing": spacing}
        recording = record(source, states, gradient_names=gradient_names, **more, **placed)
    server = start(port, _label(source, recording, runs), dark)
    try:
        if recording is not None:
            content = Player(server, recording, dark)
        elif runs:
            content = Live(server, source, policy, state=states, options=options, on_step=on_step, dark=dark)
        else:
            content = Robots(server, source if isinstance(source, list | tuple) else [source], dark)
    except BaseException:
        server.stop()
        raise
    return Page(server, content)._greet(block)


def _label(source: Any, recording: Recording | None, runs: bool) -> str:
    """Return the title of the page: what it shows."""
    if runs or recording is not None:
        return "costate live" if runs else "costate replay"
    names = [model_of(each).name for each in (source if isinstance(source, list | tuple) else [source])]
    return f"costate: {', '.join(names[:3])}{', ...' * (len(names) > 3)}"


def _start(world: Any, state: Any, more: Mapping[str, Any]) -> torch.Tensor | None:
    """Return the state from which a world starts to run; what a running world cannot show is refused."""
    if not hasattr(world, "step"):
        raise ValueError(
            f"policy= and live=True run a world; {type(world).__name__} given: make one, cs.World(robots=[...])"
        )
    of_a_motion = [name for name, value in more.items() if _is_given(value)]
    if of_a_motion:
        raise ValueError(
            f"{', '.join(of_a_motion)}: belongs to a motion that is played, not to a world that runs (live, policy)"
        )
    if state is None:
        return None
    x = torch.as_tensor(state)
    if x.shape != (world.nx,):
        raise ValueError(
            f"a world runs from one state ({world.nx},); {tuple(x.shape)} given: leave out live and policy to play a motion"
        )
    return x


def _is_given(value: Any) -> bool:
    return not (value is None or value is False or (isinstance(value, tuple) and not value))


def _recording(source: Any) -> Recording | None:
    if isinstance(source, Recording):
        return source
    if isinstance(source, str) and not Path(source).exists():
        raise ValueError(f"{source!r} is no folder of a recording; to view a robot, load it: cs.load_robot({source!r})")
    return load_recording(source) if isinstance(source, str | Path) else None
