"""The plan of a training: its options, and what follows from them for each iteration.

Everything about an iteration depends on (options, iteration) alone, never on the iterations before: that is what makes a training
that was interrupted end with the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from costate.tasks.insertion import Disturbances, InsertionOptions, InsertionWeights
from costate.tasks.insertion.streams import STREAMS, generator

__all__ = ["STREAMS", "HorizonOptions", "Iteration", "TrainOptions", "generator", "iteration"]


@dataclass(frozen=True)
class HorizonOptions:
    """The search for the shortest motion: each horizon is trained from the last one's weights."""

    shrink: int = 1
    """Control steps from one horizon to the next."""
    success: float = 0.9
    """A horizon with less is too short."""
    patience: int = 2
    """The search ends after so many that are too short, one after the other (or at one that joint velocities rule out)."""
    iterations: int = 500
    """Steps of Adam for each."""
    learning_rate: float = 3e-3
    """The highest, for each."""
    episodes: int = 2000
    """Each is judged on."""

    def __post_init__(self) -> None:
        for name in ("shrink", "patience", "iterations", "episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"horizons.{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True)
class TrainOptions:
    """A training."""

    task: InsertionOptions = field(default_factory=InsertionOptions)
    """What is learnt."""
    weights: InsertionWeights = field(default_factory=InsertionWeights)
    """Of the terms of the loss."""
    disturbances: Disturbances = field(default_factory=Disturbances)
    """What the controller is trained against."""
    iterations: int = 3200
    """Steps of Adam."""
    batch: int = 256
    """Episodes per iteration."""
    spread: float = 1.1
    """Training draws from ranges this much wider than those of the task: what lies at their edge is then no edge case."""
    learning_rate: float = 6e-3
    """The highest, after the warm-up; then it falls along a cosine to zero."""
    warm_up: int = 50
    """Iterations over which the learning rate rises from zero."""
    funnel_ramp: float = 0.3
    """Fraction of the iterations over which the loss's funnel term is faded in."""
    rest_start: float = 0.5
    """Part of the weight of rest that counts at the start; it rises to the whole over the iterations."""
    contact_fraction: float = 0.0
    """The last part of the iterations runs in the world with contact."""
    contact_batch: int = 64
    """Episodes per iteration there."""
    clip: float = 1.0
    """Longest gradient; a longer one is shortened to this."""
    hidden: int = 256
    """Units of the controller's hidden layer."""
    seed: int = 0
    """Of initial weights and episodes."""
    threads: int = 1
    """Of torch and the kernels. Sums over a batch may differ in the last bit with another number."""
    interval: int = 25
    """Iterations from one row of metrics, and one checkpoint, to the next."""
    watch_interval: int = 250
    """Iterations from one look at the success rate to the next; 0: never."""
    watch_episodes: int = 256
    """Episodes of such a look."""
    minimum_time: bool = False
    """Then look for the shortest horizon that can be learnt."""
    horizons: HorizonOptions = field(default_factory=HorizonOptions)
    """How."""

    def __post_init__(self) -> None:
        for name in ("iterations", "batch", "contact_batch", "hidden", "threads", "interval", "watch_episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in ("funnel_ramp", "rest_start", "contact_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a fraction, from 0 to 1")


@dataclass(frozen=True)
class Iteration:
    """What is done in one iteration."""

    number: int
    """From 0."""
    learning_rate: float
    funnel: float
    """Factor of the loss's funnel term."""
    rest: float
    """Factor of the loss's rest term."""
    contact: bool
    """Whether it runs in the world with contact."""
    batch: int
    """Episodes."""


def iteration(options: TrainOptions, number: int) -> Iteration:
    """The plan of one iteration."""
    o, progress = options, number / options.iterations
    warm = min((number + 1) / o.warm_up, 1.0) if o.warm_up else 1.0
    rate = o.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * progress))
    funnel = min(progress / o.funnel_ramp, 1.0) if o.funnel_ramp else 1.0
    rest = o.rest_start + (1 - o.rest_start) * progress
    contact = progress >= 1 - o.contact_fraction
    return Iteration(number, rate, funnel, rest, contact, o.contact_batch if contact else o.batch)
