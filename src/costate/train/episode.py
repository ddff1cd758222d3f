"""Episodes: all that is random about them, drawn beforehand; what happens in them under a policy; and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from costate.sim.setup import Setup
    from costate.train.trainable import Trainable

Controller = Callable[[Tensor], Tensor]
"""Function of an observation (..., n) that returns an action (..., m), usually in [-1, 1]."""


class Stepper(Protocol):
    """Something that episodes run in: a `World` of the task, or the same scene in another engine."""

    setup: Setup

    def step(self, state: Tensor, control: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor: ...


@dataclass(frozen=True)
class Episodes:
    """B episodes before they happen. A task that draws more than a start (a goal, noise) extends this class."""

    state: Tensor
    """States at the start, (B, nx)."""

    @property
    def params(self) -> Mapping[str, Tensor]:
        """Parameters of the world, name -> (B, n); those that a world does not declare are left out when it is stepped."""
        return {}


@dataclass(frozen=True)
class Trajectory:
    """The course of B episodes."""

    states: Tensor
    """States, (T + 1, B, nx)."""
    actions: Tensor
    """Actions as the controller gave them, (T, B, m)."""
    episodes: Any = None
    """Episodes as they were drawn."""
    measured: Mapping[str, Tensor] = field(default_factory=dict)
    """Quantities that another engine measured itself, name -> (B,)."""


@dataclass(frozen=True)
class Verdict:
    """The judgement of each episode."""

    success: Tensor
    """True for episodes that succeeded, bool (B,)."""
    error: Tensor
    """Error that success is mostly about, in the task's unit, (B,)."""
    columns: Mapping[str, Tensor] = field(default_factory=dict, kw_only=True)
    """More numbers about each episode, name with unit -> (B,)."""


@dataclass(frozen=True)
class Metrics:
    """The results of many episodes."""

    episodes: int
    """Number of episodes."""
    success: float
    """Fraction that succeeded."""
    error_mean: float
    """Mean error, in the task's unit."""
    error_95: float
    """Error that 95 % are below."""
    error_worst: float
    """Largest error."""
    columns: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    """Means of the verdict's columns."""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, as JSON has them; columns last."""
        return {k: v for k, v in asdict(self).items() if k != "columns"} | dict(self.columns)

    def brief(self, unit: str) -> dict[str, str]:
        """Return the few numbers of a table with a row per case, as text."""
        error = {"mean error": self.error_mean, "95 %": self.error_95}
        return {"success": f"{100 * self.success:.1f} %"} | {k: f"{v:.3f} {unit}" for k, v in error.items()}


def summarise(verdict: Verdict) -> Metrics:
    """Return the metrics of a verdict."""
    error = verdict.error.double()
    means = {name: float(column.double().mean()) for name, column in verdict.columns.items()}
    share = float(verdict.success.double().mean())
    worst, upper = float(error.max()), float(error.quantile(0.95))
    return Metrics(len(error), share, float(error.mean()), upper, worst, columns=means)


V = TypeVar("V", bound=Verdict)


def joined(verdicts: Sequence[V]) -> V:
    """Return one verdict of the episodes of several."""
    parts = {
        f.name: torch.cat([getattr(v, f.name) for v in verdicts]) for f in fields(verdicts[0]) if f.name != "columns"
    }
    columns = {name: torch.cat([v.columns[name] for v in verdicts]) for name in verdicts[0].columns}
    return type(verdicts[0])(**parts, columns=columns)


def rollout(task: Trainable, controller: Controller, episodes: Episodes, world: Stepper | None = None) -> Trajectory:
    """Run the controller in these episodes, in one of the task's worlds. Differentiable.

    A step reads: disturb, observe, act, advance. See `Trainable` for each.
    """
    within = task.world if world is None else world
    params = {k: v for k, v in episodes.params.items() if k in within.setup.parameters}
    state = episodes.state
    states, actions = [state], []
    for t in range(task.steps):
        state = task.disturb(state, t, episodes)
        actions.append(controller(task.see(state, t, episodes, actions)))
        state = within.step(state, task.control(task.applied(actions, episodes)), params)
        states.append(state)
    return Trajectory(torch.stack(states), torch.stack(actions), episodes)
