"""Run folders, as the command line names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costate.train.run import Run


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Option of a command that opens run folders."""

    trust: bool = False
    """Run the program task.py in the folder, which the training of a task of one's own has left there. Only for folders of people
    whose programs you would run."""


def open_run(path: Path, trust: bool) -> Run:
    """Open a run folder. One that is missing is said before anything heavy is loaded, as `Run.open` says it."""
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; expected the folder of a run, which `costate train TASK` writes")
    if not (path / "run.json").is_file():
        raise ValueError(f"{path} is not a run folder: it has no run.json; a run folder is what `costate train` writes")
    from costate.train.run import Run

    return Run.open(path, trust=trust)
