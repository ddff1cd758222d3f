"""A network in the loop: it sees some particles, their velocities, the tools and the time, and acts in every control step.

Its weights are found by the same gradients as a sequence of actions, in episodes that begin at random places."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm.state import MpmHistory, MpmState
from costate.tasks.soft.found import SoftFound, Tell
from costate.tasks.soft.plasticine.scenes import STEPS

if TYPE_CHECKING:
    from costate.tasks.soft.plasticine.task import Episode, PlasticineTask

SEEN = 32
"""Particles that the network sees."""
WIDE = 64
SHIFT = 0.01
"""Standard deviation of the place at which the plasticine begins, along each axis [m]."""
TESTS = 5
"""Unseen beginnings with which the network is judged in the end."""


class Policy(torch.nn.Module):
    """A network from what is seen to an action."""

    def __init__(self, episode: Episode, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        hand, dtype = episode.scene.hand, episode.dtype
        self.chosen = torch.linspace(0, episode.model.particles - 1, SEEN).long()
        self.middle = episode.target.end.mean(0)
        self.tools = hand.rows(torch.zeros(1, hand.count, dtype=dtype), 1, 1.0)[1].numel()
        layers = (6 * SEEN + self.tools + 1, WIDE, WIDE, hand.count)
        parts: list[torch.nn.Module] = []
        for a, b in pairwise(layers):
            parts += [torch.nn.Linear(a, b, dtype=dtype), torch.nn.Tanh()]
        self.net = torch.nn.Sequential(*parts)
        with torch.no_grad():
            parts[-2].weight *= 0.1  # type: ignore[operator]

    def forward(self, state: MpmState, hand: Tensor, time: float) -> Tensor:
        """Return an action (count,) from -1 to 1."""
        x, v = state.x[self.chosen] - self.middle, state.v[self.chosen]
        time_now = torch.tensor([time], dtype=x.dtype)
        return self.net(torch.cat([10 * x.flatten(), 0.2 * v.flatten(), hand.flatten(), time_now]))


def act(episode: Episode, policy: Policy, shift: Tensor) -> tuple[MpmHistory, Tensor]:
    """Return the motion under a policy from plasticine that is moved by a shift (3,) [m], and the rows of the tools."""
    from costate.tasks.soft.plasticine.task import CONTROL, FRAME, SUBSTEPS

    scene, model = episode.scene, episode.model
    state = model.start(model.start(dtype=episode.dtype).x + shift)
    hand = scene.hand.rows(torch.zeros(1, scene.hand.count, dtype=episode.dtype), 1, 1.0)[1].detach()
    frames, every = [state], []
    for k in range(STEPS):
        action = policy(state, hand, k / STEPS)
        rows, hand = scene.hand.rows(action[None], SUBSTEPS, CONTROL / SUBSTEPS, hand)
        state = episode.tools.run(rows, state).final
        every.append(rows)
        if (k + 1) % FRAME == 0:
            frames.append(state)
    times = CONTROL * FRAME * torch.arange(len(frames), dtype=episode.dtype)
    x, v = torch.stack([f.x for f in frames]), torch.stack([f.v for f in frames])
    return MpmHistory(times, x, v, state), torch.cat(every)


def train(task: PlasticineTask, episode: Episode, seed: int, tell: Tell) -> SoftFound:
    """Train a policy on episodes that begin at random places, and judge it with others."""
    policy = Policy(episode, seed)
    g = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(policy.parameters(), lr=0.03 * task.rate)
    losses, scores = [], []
    for k in range(task.iterations):
        optimiser.zero_grad()
        shift = SHIFT * torch.randn(3, generator=g, dtype=torch.float64).to(episode.dtype)
        value, score = episode.judge(*act(episode, policy, shift))
        losses.append(float(value.detach()))
        scores.append(float(score))
        tell(f"episode {k + 1} of {task.iterations}, score {scores[-1]:.3f}")
        if np.mean(scores[-5:]) >= task.enough and len(scores) >= 5:
            break
        value.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
    tests = []
    with torch.no_grad():
        for _ in range(TESTS):
            shift = SHIFT * torch.randn(3, generator=g, dtype=torch.float64).to(episode.dtype)
            history, rows = act(episode, policy, shift)
            tests.append(float(episode.judge(history, rows)[1]))
        found = task.found(episode, history, rows, losses, scores)
    facts = {"score": round(float(np.mean(tests)), 3), "least score": round(min(tests), 3), "tests": TESTS}
    facts["weights"] = sum(p.numel() for p in policy.parameters())
    found.facts = found.facts | facts
    found.solved = min(tests) >= task.goal
    return found
