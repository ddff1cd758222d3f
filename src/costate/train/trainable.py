"""The protocol of a task: what it says so that a policy can be trained, judged, shown and exported for it.

A task of your own gives a `world`, and four methods: `draw` random episodes, `observe` a state, the terms of the `loss` of what
happened, and `judge` it. Everything else has a default. docs/own_task.md builds one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from costate.core.display import number
from costate.core.fork import cached_property
from costate.train.episode import Episodes, Metrics, Stepper, Trajectory, Verdict, summarise
from costate.train.network import Names, Network
from costate.train.plan import Iteration, Schedule, TrainOptions, iteration
from costate.train.policy import Policy
from costate.train.task import Task

if TYPE_CHECKING:
    from costate.train.run import Run
    from costate.train.trainer import Watching

Cases = Mapping[str, Callable[[int, torch.Generator], Episodes]]
"""Named ways in which a world may differ: number of episodes, random numbers -> held-out episodes."""


@dataclass(frozen=True)
class NoOptions:
    """Options of a task that has none."""


@dataclass(frozen=True)
class Variant:
    """A named change of a task's options: a flag of `costate train` and of `costate evaluate`."""

    about: str
    """Sentence for the help of the flag."""
    change: Callable[[Any], Any]
    """Function from options to changed options."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the training that have other defaults with it, by name, such as "iterations" or "weights.tail"."""


class Trainable(Task):
    """A task with random episodes, which a policy learns by gradients through the simulator."""

    # --- what a task of your own says -----------------------------------------------------------------------------

    options: Any = NoOptions()
    """Options of the task: a frozen dataclass, which the command line is made from (`--task.NAME`)."""
    training: ClassVar[Schedule] = TrainOptions()
    """Options of the training with the task's own defaults; their class may have more fields."""
    algorithms: ClassVar[Mapping[str, Schedule]] = {}
    """Options of other algorithms than that of `training`, by name, where their defaults do not do."""

    def __init__(self, options: Any = None):
        if options is not None:
            self.options = options

    @abstractmethod
    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        """Return random episodes: all that is random about them is drawn here. A task with disturbances takes them fourth."""

    @abstractmethod
    def observe(self, state: Tensor, step: int, episodes: Any) -> Tensor:
        """Return what the policy sees of states (B, nx) before a step, (B, n); best scaled to order one."""

    def see(self, state: Tensor, step: int, episodes: Any, actions: Sequence[Tensor]) -> Tensor:
        """Return what the policy sees where that depends on its actions so far (B, m), too; by default `observe`."""
        return self.observe(state, step, episodes)

    @abstractmethod
    def loss(self, trajectory: Trajectory, iteration: Iteration) -> dict[str, Tensor]:
        """Return the terms of the loss, each (B,); their sum is what training minimises."""

    @abstractmethod
    def judge(self, trajectory: Trajectory) -> Verdict:
        """Return which episodes succeeded, and their errors."""

    # --- episodes -------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Control steps of an episode; by default the field `steps` of the options."""
        return self.options.steps

    @cached_property
    def action_scale(self) -> tuple[Tensor, Tensor]:
        """Offset and scale (m,) of the control of an action in [-1, 1]; by default 0 and the drives' effort limits, or 1."""
        limits = [d.limit if d.limit and d.limit < float("inf") else 1.0 for d in self.world.setup.drives]
        return torch.zeros(len(limits), dtype=torch.float64), torch.tensor(limits, dtype=torch.float64)

    def control(self, action: Tensor) -> Tensor:
        """Return the control (..., nu) of an action (..., m)."""
        offset, scale = (x.to(action.dtype) for x in self.action_scale)
        return torch.addcmul(offset, scale, action)

    def disturb(self, state: Tensor, step: int, episodes: Any) -> Tensor:
        """Return the state after what happens to the world before a step by itself."""
        return state

    def applied(self, actions: Sequence[Tensor], episodes: Any) -> Tensor:
        """Return the action that acts now, of all that the policy has given so far: not the last one if there is latency."""
        return actions[-1]

    # --- training -------------------------------------------------------------------------------------------------

    def policy(self, training: Any, generator: torch.Generator | None = None) -> nn.Module:
        """Return an untrained policy: any module of usual layers; see `costate.train.policy.acting` for memory."""
        return Policy(len(self.inputs), len(self.outputs), training.hidden, generator)

    @classmethod
    def ways(cls) -> tuple[str, ...]:
        """Return the names of the algorithms that train the task; the first is the default."""
        return (cls.training.algorithm, *cls.algorithms)

    @classmethod
    def training_by(cls, algorithm: str | None = None) -> Any:
        """Return the default options of an algorithm; None: that of `training`."""
        if algorithm in (None, cls.training.algorithm):
            return cls.training
        if algorithm in cls.algorithms:
            return cls.algorithms[algorithm]
        raise ValueError(f"no algorithm {algorithm!r} trains {cls.name!r}; choose of {', '.join(cls.ways())}")

    def plan(self, training: Any, number: int) -> Iteration:
        """Return the plan of an iteration. A curriculum changes its batch or its factors."""
        return iteration(training, number)

    def practice(self, plan: Iteration, generator: torch.Generator) -> Episodes:
        """Return the episodes of an iteration."""
        return self.draw(plan.batch, generator)

    def practised(self, plan: Iteration) -> Stepper:
        """Return the world of an iteration: an easier one than `world` may do."""
        return self.world

    def total(self, terms: Mapping[str, Tensor], training: Any) -> Tensor:
        """Return the loss of a batch: by default the mean over the episodes."""
        return torch.stack(list(terms.values())).sum(0).mean()

    @property
    def measured(self) -> Mapping[str, str]:
        """Names of `measures`, and their units."""
        return {"error": self.unit}

    def measures(self, trajectory: Trajectory) -> dict[str, float]:
        """Return means over a batch of training, for its metrics."""
        return {"error": float(self.judge(trajectory).error.double().mean())}

    def after_training(self, run: Run, watching: Watching) -> None:
        """Do what follows a training, if anything."""

    # --- reinforcement learning -----------------------------------------------------------------------------------

    def reward(self, trajectory: Trajectory) -> Tensor:
        """Return the reward (B,) of the last step of what happened so far: by default nothing, and minus the loss in the end."""
        if len(trajectory.actions) < self.steps:
            return trajectory.states.new_zeros(trajectory.states.shape[1])
        terms = self.loss(trajectory, self.plan(self.training, self.training.iterations))
        return -torch.stack(list(terms.values())).sum(0)

    def over(self, state: Tensor, step: int, episodes: Any) -> Tensor | None:
        """Return which episodes are over before their last step, bool (B,), of states after `step` steps; None: none ever is."""
        return None

    stationary: ClassVar[bool] = False
    """True: `observe`, `disturb` and `over` take the number of the step as a tensor (B,) or ignore it, and `reward` needs the last
    step alone: environments then keep no more than that, compute episodes of any age together, and end them by truncation."""

    # --- judging --------------------------------------------------------------------------------------------------

    variants: ClassVar[Mapping[str, Variant]] = {}
    """Variants of the task, by name."""
    disturbances: ClassVar[Any] = None
    """Disturbances that an evaluation may add: a frozen dataclass whose defaults are none; None: the task has no such."""

    tolerance: ClassVar[float | None] = None
    """Largest error of a success, in the task's unit, for pictures; None: success is about something else."""

    def suits(self, policy: nn.Module) -> None:
        """Refuse a policy that was built for another variant of the task, with the reason."""

    def summarise(self, verdict: Any) -> Metrics:
        """Return the metrics of a verdict."""
        return summarise(verdict)

    def rows(self, metrics: Mapping[str, Any]) -> dict[str, str]:
        """Return the rows of a table about metrics (`Metrics.as_dict`), as text."""
        known = {"error_mean": "error: mean", "error_95": "error: 95 % below", "error_worst": "error: worst"}
        rows = {"success": percent(metrics["success"])}
        rows |= {label: f"{number(metrics[name])} {self.unit}" for name, label in known.items()}
        return rows | {name: number(metrics[name], 4) for name in metrics if name.endswith("]")}

    def cases(self) -> Cases:
        """Return the cases of `costate robustness`."""
        return {}

    def worlds(self) -> Mapping[str, Callable[[], Stepper]]:
        """Return other worlds that `costate robustness` tries a policy in: name -> function that makes one."""
        return {}

    # --- taking it elsewhere --------------------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> Names:
        """Name and unit of each number of an observation."""
        seen = self.draw(1, torch.Generator().manual_seed(0))
        return tuple((f"observation {k}", "1") for k in range(self.observe(seen.state, 0, seen).shape[-1]))

    @cached_property
    def outputs(self) -> Names:
        """Name and unit of each number of a control."""
        return tuple((name, "1") for name in self.world.actuated)

    features: tuple[Tensor, Tensor] | None = None
    """Matrix (nx, n) and offset (n,) of an observation that is linear in the state; None: it is not."""

    def network(self, policy: nn.Module) -> Network:
        """Return the network of a policy, from observations to controls."""
        return Network.of(policy, self.inputs, self.outputs, *self.action_scale, about=self.summary)

    def exported(self, policy: nn.Module) -> Network:
        """Return the network that is exported; a task may put the scaling of measurements before it."""
        return self.network(policy)

    def note(self) -> dict[str, Any]:
        """Return facts for the reader of the controller's file, as JSON has them."""
        return {"period": self.world.dt}

    # --- showing --------------------------------------------------------------------------------------------------

    judged: ClassVar[int] = 10_000
    """Episodes of an evaluation, if no number is asked for; a report simulates a fifth of them, a look at robustness a tenth."""
    report: ClassVar[Any] = "costate.report.run_report:RunReport"
    """Class of the report, or its module:name."""
    play: ClassVar[Any] = "costate.viewer.play:Play"
    """Class of the live page, or its module:name."""
    transfer: ClassVar[Any] = None
    """Function (run, episodes or None, seed, files) that tries a policy in another engine, or its module:name; None: no such."""

    def marks(self, episodes: Any) -> Tensor:
        """Return points to be marked in a picture of each episode, such as goals [m], (B, K, 3)."""
        return episodes.state.new_zeros(len(episodes.state), 0, 3)

    def box(self) -> tuple[Any, Any] | None:
        """Return the lowest and highest corner [m] of what a camera sees at first; None: everything."""
        return None

    def story(self) -> str:
        """Return a paragraph for the report: what is to be done, and when it has succeeded."""
        return f"{self.summary[:1].upper()}{self.summary[1:]}."


def percent(share: float) -> str:
    """Return a share with as many digits as 10,000 episodes give; never rounded up to all of them."""
    return "100 %" if share == 1 else f"{int(1e4 * share) / 100:.4g} %"
