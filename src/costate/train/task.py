"""What a task is: something a robot is to do in a world.

A task offers what it can: a `Solvable` task (costate.train.solve.problems) has numbered problems for optimisers, a `Trainable` one
(trainable.py) has random episodes for a policy. Tasks know neither the optimisers nor the trainer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from costate.core.fork import cached_property
from costate.sim import World


class Task(ABC):
    """Something to do."""

    name: ClassVar[str]
    """Name by which the command line knows it."""
    summary: ClassVar[str]
    """Line that says what is to be done."""
    unit: ClassVar[str] = "m"
    """Unit of the error that the task is judged by."""
    trails: ClassVar[tuple[str, ...]] = ()
    """Links whose path a replay draws."""

    @cached_property
    @abstractmethod
    def world(self) -> World:
        """World in which it is done; its `dt` is the control period."""
        raise NotImplementedError(f"task '{self.name}' has no world: give the class a cached property `world`")

    def shown(self, number: int = 0) -> World:
        """Return the world that pictures and replays draw; number: of the problem, where problems differ in their surroundings."""
        return self.world
