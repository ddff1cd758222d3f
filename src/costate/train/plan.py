"""The plan of a training: its options, and what follows from them for each iteration.

Everything about an iteration depends on (options, iteration) alone, never on the iterations before: that is why a training that
was interrupted ends with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

MOST = {
    "iterations": 100_000_000,
    "batch": 1_000_000,
    "warm_up": 100_000_000,
    "hidden": 100_000,
    "threads": 10_000,
    "shard": 1_000_000,
    "interval": 100_000_000,
    "watch_interval": 100_000_000,
    "watch_episodes": 1_000_000,
    "learning_rate": 100,
}
"""Field -> largest value that somebody can have meant: more would take years, or all memory."""


@dataclass(frozen=True)
class Schedule:
    """Options of every training, whatever its algorithm."""

    algorithm: ClassVar[str] = "bptt"
    """Name of the algorithm that these are options of."""
    trainer: ClassVar[Any] = "costate.train.trainer:Trainer"
    """Class that trains with these options, or its module:name."""

    iterations: int = 1000
    """Steps of Adam."""
    batch: int = 256
    """Episodes per iteration."""
    learning_rate: float = 3e-3
    """Highest learning rate."""
    clip: float = 1.0
    """Longest gradient; a longer one is shortened to this."""
    seed: int = 0
    """Seed of initial weights and episodes."""
    threads: int = 1
    """Threads of torch and the kernels. Sums over a batch may differ in the last bit with another number."""
    interval: int = 25
    """Iterations from one row of metrics, and one checkpoint, to the next."""
    watch_interval: int = 250
    """Iterations from one look at the success rate to the next; 0: never."""
    watch_episodes: int = 256
    """Episodes of such a look. The best policy of all looks is what a training ends with."""
    patience: int = 0
    """Looks without a better policy after which a training ends early; 0: it never does."""
    keep_every: int = 0
    """Iterations from one kept copy of the weights to the next, in checkpoints/; 0: none is kept."""

    def __post_init__(self) -> None:
        self.at_least("iterations", "batch", "threads", "interval", "watch_episodes")
        self.at_least("watch_interval", "patience", "keep_every", least=0)
        if self.patience and not self.watch_interval:
            raise ValueError(f"patience is {self.patience} looks, but there are none: watch_interval is 0")
        for name, most in MOST.items():
            if hasattr(self, name):
                self.at_most(name, most=most)
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")

    @classmethod
    def like(cls, other: Schedule) -> Self:
        """Return options of this class in which all is as usual, but for what other options say otherwise than usual."""
        known = {f.name for f in fields(cls)}
        said = {f.name: getattr(other, f.name) for f in fields(other) if f.name in known}
        return cls(**{f.name: said[f.name] for f in fields(other) if f.name in said and said[f.name] != f.default})

    def rate(self, number: int) -> float:
        """Return the learning rate of an iteration: by default it falls along a line to nearly zero."""
        return self.learning_rate * max(1 - number / self.iterations, 5e-3)

    def at_least(self, *names: str, least: int = 1) -> None:
        """Refuse fields below a least value."""
        for name in names:
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least {least}")

    def at_most(self, *names: str, most: int) -> None:
        """Refuse fields above a largest value."""
        for name in names:
            if getattr(self, name) > most:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at most {most}")


@dataclass(frozen=True)
class TrainOptions(Schedule):
    """Options of a training by back-propagation through whole episodes; a task with more of its own extends this class."""

    warm_up: int = 20
    """Iterations over which the learning rate rises from zero; then it falls along a cosine to zero again."""
    hidden: int = 64
    """Units of each hidden layer of the controller."""
    shard: int = 512
    """Episodes that are computed together, by one worker if there are several. Gradients of shards are summed in their order, so
    weights depend on this number, and not on that of workers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("hidden", "shard")
        self.at_least("warm_up", least=0)

    def rate(self, number: int) -> float:
        warm = min((number + 1) / self.warm_up, 1.0) if self.warm_up else 1.0
        return self.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * number / self.iterations))


@dataclass(frozen=True)
class Iteration:
    """The plan of one iteration."""

    number: int
    """Number of the iteration, from 0."""
    options: Any
    """Options of the training: `TrainOptions`, or the task's own."""
    learning_rate: float
    """Learning rate of Adam."""
    batch: int
    """Number of episodes."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """Quantities that the task changes over the iterations (its curriculum); they are written into the metrics."""

    @property
    def progress(self) -> float:
        """Part of the training that is done, from 0 to 1."""
        return self.number / self.options.iterations


def iteration(options: Schedule, number: int) -> Iteration:
    """Return the plan of one iteration; a task may change it, see `Trainable.plan`."""
    return Iteration(number, options, options.rate(number), options.batch)
