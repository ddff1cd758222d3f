"""Rewards of the insertion: the terms of its loss, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from costate.tasks.insertion.loss import BELOW_FROM, InsertionWeights, below, goal_terms, outside, too_fast
from costate.tasks.insertion.scene import ARM_V

if TYPE_CHECKING:
    from costate.tasks.insertion.task import Insertion


@dataclass(frozen=True)
class RewardOptions:
    """Options of how the loss becomes a reward per step."""

    weights: InsertionWeights = InsertionWeights()  # noqa: RUF009  (frozen)
    """Weights of the terms."""
    dense: bool = True
    """True: position, tilt and what is far off count in every step, not only when the bottle must be seated, which is easier to
    learn from. False: rewards sum to minus the loss."""


def step_cost(task: Insertion, state: Tensor, t: int, options: RewardOptions, funnel: float = 1.0) -> Tensor:
    """Return what the state after step t adds to the loss, (B,). The start itself, which no action changes, adds nothing."""
    w, o = options.weights, task.options
    position, tilt, velocity = task.errors(state)
    position = position - position.new_tensor([0.0, 0.0, w.aim])
    goal = goal_terms(position, tilt, velocity, w)
    last = o.horizon - w.early
    first = 1 if options.dense else last
    cost = state.new_zeros(len(state))
    if t >= first:
        cost += (goal["position"] + goal["tilt"]) / (task.steps - first + 1)
    if t > last:
        cost += goal["rest"] / (task.steps - last)
    if options.dense:
        cost += goal["far"] / task.steps
    elif t > last:
        cost += goal["far"] / (task.steps - last)
    if t <= o.horizon:
        cost += funnel * outside(position, tilt, w, task.room) / (o.horizon + 1)
    if t >= o.horizon - BELOW_FROM:
        cost += funnel * below(position, tilt, w) / (o.hold + BELOW_FROM + 1)
    joints = state[..., ARM_V]
    speeds = joints.square().sum(-1)
    always = w.smoothness * speeds + w.limits * too_fast(task, joints)
    return cost + always / (task.steps + 1) + (w.start * speeds if t == 1 else 0.0)
