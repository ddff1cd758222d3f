"""Arrows: the contact forces that a policy proposes, and those that the full world finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import torch
from casadi import SX
from torch import Tensor

from costate.core.arrays import Array
from costate.core.fork import cached_property
from costate.kernel import Kernel
from costate.tasks.manipulation.execute import OBJECT
from costate.tasks.manipulation.step import Step

PROPOSED, FOUND = "proposed forces", "contact forces"
"""Titles of the arrows."""
COLORS = {PROPOSED: (0.16, 0.38, 0.78), FOUND: (0.78, 0.10, 0.28)}
LONGEST = 0.07
"""Length of the longest arrow of a kind in an episode [m]."""
BODY = f"{OBJECT}/body"
SHORTEST = 0.02
"""Arrows shorter than this part of the longest are left out."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """The contact forces of actions."""

    step: Step

    @cached_property
    def _kernel(self) -> Kernel:
        """Function of an action, the object's scale and its pose that returns points and forces in the world."""
        a, scale, pose = SX.sym("action", self.step.na), SX.sym("scale", 1), SX.sym("pose", 7)
        R = self.step.frame(pose[3:])
        found = [self.step.proposal(a, k, scale) for k in range(self.step.effectors)]
        points = ca.vertcat(*(pose[:3] + R @ on for on, *_ in found))
        forces = ca.vertcat(*(R @ force for _, _, force, _ in found))
        return Kernel("proposals", {"action": a, "scale": scale, "pose": pose}, {"points": points, "forces": forces})

    def __call__(self, action: Tensor, scale: Tensor, pose: Tensor) -> tuple[Array, Array]:
        """Return points [m] and forces [N] (..., E, 3) of actions (..., na) on objects of a scale (..., 1) and pose (..., 7)."""
        found = self._kernel(action=action.detach(), scale=scale, pose=pose)
        return found.points.unflatten(-1, (-1, 3)).numpy(), found.forces.unflatten(-1, (-1, 3)).numpy()


def proposed(task: Any, policy: Any, states: Tensor, episodes: Any) -> tuple[Array, Array]:
    """Return points and forces (T, E, 3) that a policy proposed in an episode, where the object really was.

    states: of the full world, (T + 1, nx); episodes: the one alone.
    """
    controller, actions = policy.begin(), []
    with torch.no_grad():
        for t, state in enumerate(states[:-1]):
            controller(task.see(state[None], t, episodes, []))
            actions.append(controller.action[0])
    pose, scale = task.placed(states[:-1], episodes), episodes.thing[:, :1].expand(len(states) - 1, 1)
    return Proposals(task.step)(torch.stack(actions), scale, pose)


def found(world: Any, states: Tensor, controls: Tensor, params: Mapping[str, Tensor]) -> tuple[Array, Array]:
    """Return points and forces (T, contacts, 3) on the object in the full world."""
    given = {name: value.expand(len(controls), *value.shape[1:]) for name, value in params.items()}
    with torch.no_grad():
        touch = world.contacts(states[:-1], controls, given)
    sides = [(first == BODY) * 1.0 - (second == BODY) * 1.0 for first, second in touch.pairs]
    force = touch.normals * touch.forces.unsqueeze(-1) + touch.friction
    return touch.points.numpy(), (force * force.new_tensor(sides)[:, None]).numpy()


def arrows(vectors: Mapping[str, tuple[Array, Array]]) -> dict[str, list[Array]]:
    """Return points and forces, by title, as arrows of a recording, each title to its own scale.

    The last frame repeats the one before: there are as many forces as steps.
    """
    drawn = {}
    for title, (points, forces) in vectors.items():
        largest = np.linalg.norm(forces, axis=-1).max(initial=0.0) or 1.0
        frames = [painted(p, f, LONGEST / largest, COLORS[title]) for p, f in zip(points, forces, strict=True)]
        drawn[title] = [*frames, frames[-1]]
    return drawn


def painted(points: Array, forces: Array, scale: float, color: tuple[float, ...]) -> Array:
    """Return arrows (n, 9) that end at points: start, vector and colour. scale: metres per newton."""
    vectors = scale * forces
    keep = np.linalg.norm(vectors, axis=-1) > SHORTEST * LONGEST
    return np.concatenate([(points - vectors)[keep], vectors[keep], np.broadcast_to(color, (int(keep.sum()), 3))], -1)
