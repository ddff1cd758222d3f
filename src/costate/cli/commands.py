"""The table of commands. A new command is one row here and one file next to this one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, get_type_hints


@dataclass(frozen=True)
class Command:
    """A subcommand whose code is imported only when it is called."""

    target: str
    """module:function. The function takes one argument, `options`: a frozen dataclass, or a union of them, each
    of which is then a subcommand of its own. It may return an exit code."""
    summary: str
    """One line for `costate --help`."""

    def load(self) -> tuple[Callable[[Any], int | None], Any]:
        """The function, and the type of its options."""
        module, _, name = self.target.partition(":")
        run = getattr(import_module(module), name)
        return run, get_type_hints(run)["options"]


COMMANDS: dict[str, Command] = {
    "bench": Command("costate.cli.bench:run", "measure the functions of a robot and their gradients on this machine"),
    "cache": Command("costate.cli.cache:run", "show or clear the cache of compiled kernels"),
    "evaluate": Command("costate.cli.runs.evaluate:run", "judge a trained controller on episodes it has never seen"),
    "export": Command("costate.cli.runs.export:run", "write a trained controller as an ONNX file and a C header"),
    "gradcheck": Command("costate.cli.gradcheck:run", "check every gradient of a robot or world"),
    "identify": Command("costate.cli.identify:run", "find a robot's parameters from logged motion"),
    "play": Command("costate.cli.runs.play:run", "watch a trained controller at work in the browser, and disturb it"),
    "render": Command("costate.cli.render:run", "draw a robot or a recording into a picture or film"),
    "report": Command("costate.cli.runs.report:run", "write a training or a recording as one HTML file"),
    "robots": Command("costate.cli.robots:run", "list the built-in robots"),
    "robustness": Command(
        "costate.cli.runs.robustness:run", "try a trained controller in worlds that differ from its own"
    ),
    "solve": Command("costate.cli.solve:run", "solve a task with gradients, and report it"),
    "train": Command("costate.cli.runs.train:run", "train a controller through the simulator"),
    "transfer": Command("costate.cli.runs.transfer:run", "try a trained controller in MuJoCo, an independent engine"),
    "version": Command("costate.cli.version:run", "versions, processor and vector width"),
    "view": Command("costate.cli.view:run", "look at robots and recordings in the browser"),
}
