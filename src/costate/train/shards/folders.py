"""Run folders as messages: a worker opens a copy of the folder, wherever it is."""

from __future__ import annotations

from typing import Any

from costate.core.files import folder_of
from costate.scale.message import Message, files_in, write_files
from costate.train.run import FILE, Run

DESCRIPTION = ("options.json", "run.json", "checkpoint.safetensors", FILE)
"""Files of a run folder that say what it is about."""


def described(work: str, run: Run, **note: Any) -> Message:
    """Return the message of which workers make their work: its class as "module:class", and a run."""
    return Message({"work": work, "trust": run.trust, **note}, files_in(run.path, DESCRIPTION))


class Copy:
    """A copy of a run folder that exists as long as this does."""

    def __init__(self, given: Message):
        folder = folder_of(self)
        write_files(folder, given.tensors)
        self.run = Run.open(folder, trust=given.note["trust"])
