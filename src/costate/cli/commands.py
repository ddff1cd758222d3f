"""The table of commands. A new command is one row here and one file next to this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    chooser: str = ""
    """module:function that takes the arguments and returns defaults of options made for the task they name; or None."""

    details: str = ""
    """Paragraph that follows the summary in `costate COMMAND --help`."""

    @property
    def description(self) -> str:
        """Return the head of `costate COMMAND --help`."""
        return f"{self.summary}\n\n{self.details}" if self.details else self.summary

    def load(self) -> tuple[Callable[[Any], int | None], Any]:
        """Return the function, and the type of its options."""
        run = _load(self.target)
        return run, get_type_hints(run)["options"]

    def defaults(self, arguments: Sequence[str]) -> Any:
        """Return the defaults of options that depend on the arguments; None if they do not."""
        return _load(self.chooser)(arguments) if self.chooser else None


def _load(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


COMMANDS: dict[str, Command] = {
    "augment": Command(
        "costate.cli.fit.augment:run",
        "put a network into the step of a world, and find from motions which inputs it needs",
    ),
    "bench": Command("costate.cli.bench:run", "measure the functions of a robot and their gradients on this machine"),
    "cache": Command("costate.cli.cache:run", "show or clear the cache of compiled kernels"),
    "evaluate": Command(
        "costate.cli.runs.evaluate:run",
        "judge a trained controller on episodes it has never seen",
        "costate.cli.runs.evaluate:chosen",
    ),
    "export": Command("costate.cli.runs.use:export", "write a trained controller as an ONNX file and a C header"),
    "gradcheck": Command(
        "costate.cli.gradcheck:run",
        "check every gradient of a robot or world",
        details="Exit code: 0 all are right, 1 one is wrong, 2 a mistake in the call, 3 some could not be compared, none is wrong.",
    ),
    "identify": Command("costate.cli.identification.robot:run", "find a robot's parameters from logged motion"),
    "play": Command("costate.cli.runs.use:play", "watch a trained controller at work in the browser, and disturb it"),
    "render": Command("costate.cli.render:run", "draw a robot or a recording into a picture or film"),
    "report": Command("costate.cli.runs.report:run", "write a training or a recording as one HTML file"),
    "robots": Command("costate.cli.robots:run", "list the built-in robots"),
    "robustness": Command(
        "costate.cli.runs.use:robustness", "try a trained controller in worlds that differ from its own"
    ),
    "solve": Command("costate.cli.solve:run", "solve a task with gradients, and report it"),
    "sweep": Command(
        "costate.cli.runs.sweep:run",
        "train a task with several options and seeds, and compare the runs",
        "costate.cli.runs.sweep:chosen",
    ),
    "tosses": Command(
        "costate.cli.identification.tosses:run", "find friction, inertia and shape of a body from recorded tosses"
    ),
    "train": Command(
        "costate.cli.runs.train:run", "train a controller through the simulator", "costate.cli.runs.train:chosen"
    ),
    "transfer": Command("costate.cli.runs.use:transfer", "try a trained controller in another engine"),
    "version": Command("costate.cli.version:run", "versions, processor and vector width"),
    "view": Command("costate.cli.view:run", "look at robots and recordings in the browser"),
}
