"""The tasks by name."""

from __future__ import annotations

from costate.tasks.cloth.flag import FlagTask
from costate.tasks.cloth.hat import HatTask
from costate.tasks.cloth.problem import ClothTask
from costate.tasks.cloth.robots.fold import FoldTask
from costate.tasks.cloth.robots.hang import HangTask
from costate.tasks.cloth.robots.stretch import StretchTask
from costate.tasks.cloth.rope import ThreadTask
from costate.tasks.cloth.towel import TowelTask

CLOTH_TASKS: dict[str, ClothTask] = {
    "cloth_towel": TowelTask(),
    "cloth_hat": HatTask(),
    "cloth_flag": FlagTask(),
    "cloth_thread": ThreadTask(),
    "cloth_fold": FoldTask(),
    "cloth_hang": HangTask(),
    "cloth_stretch": StretchTask(),
}
"""Name -> task with its defaults."""
