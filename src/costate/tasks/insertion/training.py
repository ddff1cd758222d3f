"""Options of the insertion's training, and its curriculum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from tyro.conf import arg

from costate.tasks.insertion.episode import Disturbances
from costate.tasks.insertion.loss import InsertionWeights
from costate.train.plan import MOST, Iteration, TrainOptions, iteration
from costate.train.remembering import MemoryOptions


@dataclass(frozen=True)
class HorizonOptions:
    """Options of the search for the shortest motion: each horizon is trained from the last one's weights."""

    shrink: int = 1
    """Control steps from one horizon to the next."""
    success: float = 0.99
    """Least success rate; a horizon with less is too short."""
    patience: int = 2
    """Number of horizons in a row that are too short, after which the search ends (or at one that joint velocities rule out)."""
    iterations: int = 20
    """Steps of Adam for each."""
    learning_rate: float = 2e-4
    """Highest learning rate of each."""
    episodes: int = 2000
    """Episodes each is judged on."""
    bound_episodes: Annotated[int, arg(aliases=["--bound-episodes"])] = 20
    """Episodes whose least possible time is found in the end, the hardest of a thousand, to compare with; 0: none."""

    def __post_init__(self) -> None:
        for name in ("shrink", "patience", "iterations", "episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"horizons.{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True)
class InsertionTraining(TrainOptions):
    """Options of a training of the insertion."""

    weights: InsertionWeights = field(default_factory=InsertionWeights)
    """Weights of the terms of the loss."""
    disturbances: Disturbances = field(default_factory=Disturbances)
    """Disturbances that the controller is trained against; none: those of the task."""
    guide: bool = True
    """True: the network corrects a guide that follows from kinematics, and an observer filters noise (velocity actuation only)."""
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """Memory of the controller; by itself a recurrent cell against disturbances, its last action under a limit of acceleration, and
    none otherwise."""
    iterations: int = 20
    """Steps of Adam."""
    spread: float = 1.1
    """Factor of the task's ranges in training: what lies at their edge is then no edge case."""
    learning_rate: float = 1e-3
    """Highest learning rate, after the warm-up; then it falls along a cosine to zero."""
    warm_up: int = 50
    """Iterations over which the learning rate rises from zero."""
    funnel_ramp: float = 0.0
    """Fraction of the iterations over which the loss's funnel term is faded in."""
    rest_start: float = 1.0
    """Part of the weight of rest that counts at the start; it rises to the whole over the iterations."""
    contact_fraction: float = 0.0
    """Last part of the iterations, which runs in the world with contact."""
    contact_batch: int = 64
    """Episodes per iteration there."""
    state_clip: float = 100.0
    """Longest gradient of an episode's state there; a longer one is shortened: a few hard impacts would decide for all. How many
    were, and what was not finite, is told after the training."""
    hidden: int = 256
    """Units of the controller's hidden layer."""
    minimum_time: bool = False
    """True: then look for the shortest horizon that can be learnt."""
    horizons: HorizonOptions = field(default_factory=HorizonOptions)
    """Options of that search."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("contact_batch")
        self.at_most("contact_batch", most=MOST["batch"])
        for name in ("funnel_ramp", "rest_start", "contact_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a fraction, from 0 to 1")


ALONE = InsertionTraining(
    guide=False,
    iterations=3200,
    learning_rate=6e-3,
    funnel_ramp=0.3,
    rest_start=0.5,
    weights=InsertionWeights(funnel=4.0, tail=0.5, slope=1.0),
)
"""Options of a training without a guide: the network has to learn all of it."""

DISTURBED = {"weights.aim": 2e-4, "iterations": 3, "learning_rate": 1e-5}
"""Options of a training with all disturbances: whoever knows the height less well keeps off the floor. Observer and guide do the
work; a network that was trained for a short time only disturbs them."""
FELT = {"contact_fraction": 1.0, "iterations": 40, "learning_rate": 4e-4, "warm_up": 10, "state_clip": 10.0}
FELT |= {"weights.funnel": 4.0, "weights.tail": 0.0, "weights.dynamics": 0.1, "weights.shock": 1.0}
"""Options of a training through contact with a chamfer. What exceeds a limit is a noisy measure of contact, and so is the worst
episode; squared jerks are smooth."""


def plan(options: InsertionTraining, number: int) -> Iteration:
    """Return the plan of an iteration: funnel and rest are faded in, and contact comes last."""
    usual, o = iteration(options, number), options
    funnel = min(usual.progress / o.funnel_ramp, 1.0) if o.funnel_ramp else 1.0
    rest = o.rest_start + (1 - o.rest_start) * usual.progress
    contact = usual.progress >= 1 - o.contact_fraction
    factors = {"funnel_factor": funnel, "rest_factor": rest, "contact": contact}
    return replace(usual, batch=o.contact_batch if contact else o.batch, factors=factors)
