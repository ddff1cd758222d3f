"""Residuals of proposals over a whole episode, and a first guess of which contacts to propose."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from costate.robot import Robot
from costate.tasks.manipulation.proposer import Proposer
from costate.tasks.manipulation.step import BRISK, NUMBERS, POINT, Step
from costate.tasks.manipulation.unroll import unroll

WEIGHTS: Mapping[str, float] = {
    "distance": 20.0,
    "cone": 20.0,
    "slip": 3.0,
    "surface": 0.1,
    "forces": 0.01,
    "rates": 0.01,
    "limits": 50.0,
    "overlap": 5.0,
    "near": 0.02,
    "lost": 20.0,
    "drag": 1.0,
    "goal": 2.0,
    "turn": 1.0,
    "rest": 0.1,
    "arm": 0.005,
    "falling": 0.1,
    "weights": 1e-5,
}
"""Weights of the squares of residuals, whose units `Step` gives. Goal [cm], turn [0.1 rad], rest [0.1 m/s, rad/s] at the
end; arm [10 rad/s^2] always, falling [m/s^2, 10 rad/s^2] at the end."""


def residuals(
    step: Step, goal: Tensor, policy: Proposer, start: Tensor, thing: Tensor, rest: bool
) -> dict[str, Tensor]:
    """Return named blocks of residuals of a batch of episodes, as a function of the policy's weights.

    Args:
        goal: Position [m] and quaternion at which each object has to be in the end, (B, 7).
        start: States of the model, (B, nx).
        thing: Scale, mass [kg] and friction of each object, (B, 3).
        rest: True if the object has to come to rest there.
    """
    blocks = blocks_of(step, goal, *unroll(step, policy, start, thing), rest)
    blocks["weights"] = torch.cat([w.flatten() for w in policy.parameters()])
    return blocks


def blocks_of(step: Step, goal: Tensor, rows: Tensor, states: Tensor, rest: bool) -> dict[str, Tensor]:
    """Return the blocks of a roll-out, whose residuals (T, B, nr) and states (T + 1, B, nx) `unroll` gives."""
    each, mean = (len(goal) * step.physics.steps) ** -0.5, len(goal) ** -0.5
    parts = (each * rows).split([part.stop - part.start for part in step.blocks.values()], -1)
    blocks = dict(zip(step.blocks, parts, strict=True))
    end = states[-1, :, step.nq :]
    blocks["goal"] = mean * 100 * (end[:, :3] - goal[:, :3])
    blocks["turn"] = mean * 20 * (end[:, 3:7] - goal[:, 3:])
    if rest:
        blocks["rest"] = mean * torch.cat([10 * end[:, 7:10], end[:, 10:13]], -1)
    if step.physics.calm:
        blocks |= _calm(step, states, each, mean)
    return blocks


def _calm(step: Step, states: Tensor, each: float, mean: float) -> dict[str, Tensor]:
    """Return accelerations of the arm, which begins at rest, and those of the object in the end: a thrown object is at rest for a
    moment, but falls."""
    dt, n = step.physics.dt, step.nq + 7
    rates = states[:, :, : step.hand.arm].diff(dim=0) / dt
    faster = torch.cat([rates[:1], rates.diff(dim=0)]) / dt
    falling = (states[-1, :, n : n + 6] - states[-2, :, n : n + 6]) / dt
    return {"arm": each / BRISK * faster, "falling": mean * falling * falling.new_tensor([1.0] * 3 + [0.1] * 3)}


def weights_of(step: Step, rest: bool) -> dict[str, float]:
    """Return the weights of the blocks that there are."""
    calm = ["arm", "falling"] if step.physics.calm else []
    return {name: WEIGHTS[name] for name in (*step.blocks, "goal", "turn", *["rest"] * rest, *calm, "weights")}


def first_guess(step: Step, place: np.ndarray, weight: float) -> Tensor:
    """Return an action (na,) to begin with: joints at rest, points of fingers and object that face each other, hardly any forces.

    place: where the object usually is [m]; weight: of the object, which the floor carries [N].
    """
    hand, robot = step.hand, Robot(step.hand.model).double()
    first = np.zeros(step.na)
    proposals = first[len(hand.driven) :].reshape(step.effectors, NUMBERS)
    for row, tip in zip(proposals, hand.tips, strict=False):
        pose = robot.forward_kinematics(torch.tensor(hand.home), tip.link)
        R, p = (
            hand.base.rotation @ pose.rotation.numpy(),
            hand.base.translation + hand.base.rotation @ pose.position.numpy(),
        )
        middle = np.array([0.0, 0.0, 0.7 * tip.length])
        away = p + R @ middle - place
        row[:3] = 0.5 * step.thing.size.max() * away / np.linalg.norm(away) / POINT
        row[3:6] = (middle - tip.radius * R.T @ away / np.linalg.norm(away)) / POINT
    if step.physics.floor:
        proposals[-1] = [0, 0, -0.3, *place[:2], 0, 0, 0, weight / step.physics.force]
    return torch.tensor(first)
