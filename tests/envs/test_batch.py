"""Episodes side by side: gradients through them, and disturbances that are drawn for each."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("gymnasium")

from tests.envs.balance import Balance

from costate.envs.batch import Batch, chosen, merged
from costate.tasks.insertion import Insertion
from costate.tasks.insertion.episode import Disturbances


def test_gradients_flow_through_steps_and_rewards() -> None:
    """The gradient of a sum of rewards, against differences; one episode is begun anew half-way, and has no part in it before."""

    def total(actions: torch.Tensor) -> torch.Tensor:
        batch = Batch(Balance(), 2, seed=1)
        batch.reset()
        batch.states = [s.double() for s in batch.states]
        rewards = []
        for t, action in enumerate(actions):
            rewards.append(batch.step(action).reward)
            if t == 1:
                batch.reset(torch.tensor([True, False]))
        return torch.stack(rewards[2:]).sum()

    actions = 0.2 * torch.randn(4, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(total, actions.requires_grad_())
    (gradient,) = torch.autograd.grad(total(actions), actions)
    assert bool((gradient[:2, 0] == 0).all()) and bool((gradient[:2, 1] != 0).any())


def test_detached_states_end_gradients() -> None:
    batch = Batch(Balance(), 3)
    batch.reset()
    action = torch.zeros(3, 2, requires_grad=True)
    batch.step(action)
    batch.detach()
    assert not batch.step(torch.zeros(3, 2)).reward.requires_grad


def test_episodes_are_chosen_and_merged_along_their_batch() -> None:
    task, seeds = Insertion(), torch.Generator().manual_seed(0)
    noisy = Disturbances(joint_noise=0.01, payload=0.1, friction=0.2)
    old, new = task.draw(5, seeds, torch.float32, noisy), task.draw(2, seeds, torch.float32, noisy)
    mask = torch.tensor([False, True, False, False, True])
    assert new.noise is not None and old.noise is not None and new.friction is not None
    both = merged(old, new, mask)
    assert torch.equal(both.noise[:, mask], new.noise) and torch.equal(both.noise[:, ~mask], old.noise[:, ~mask])
    assert torch.equal(both.friction[mask], new.friction) and torch.equal(both.state[~mask], old.state[~mask])
    some = chosen(both, torch.tensor([4, 0]))
    assert torch.equal(some.noise, both.noise[:, [4, 0]]) and torch.equal(some.payload, both.payload[[4, 0]])
