"""What tests of the insertion's controllers share: gradients through an episode, and episodes under an exported network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tests.gradients import check_gradients
from torch import nn

from costate.sim import World
from costate.tasks.insertion import Insertion, InsertionWeights, loss, run
from costate.tasks.insertion.episode import Episodes
from costate.train.policy import acting


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def check_loss_gradients(
    task: Insertion, world: World, policy: nn.Module, names: Sequence[str], episodes: Episodes
) -> None:
    """Check gradients of all terms of the loss by the named weights, through whole episodes."""
    count = len(episodes.state)

    def terms(*weights: torch.Tensor) -> torch.Tensor:
        memory = policy.get_buffer("start").expand(count, -1)

        def controller(observation: torch.Tensor) -> torch.Tensor:
            nonlocal memory
            given = dict(zip(names, weights, strict=True))
            action, memory = torch.func.functional_call(policy, given, (observation, memory))
            return action

        return torch.stack(list(loss(task, run(task, world, controller, episodes), InsertionWeights()).values()))

    weights = tuple(policy.get_parameter(name) for name in names)
    check_gradients(terms, weights, names=tuple(names), step=1e-2, directions=1, float32=False)


def check_exported(task: Insertion, policy: nn.Module, episodes: Episodes) -> None:
    """Check that the network in NumPy gives the commands of the policy, in all steps of episodes."""
    with torch.no_grad():
        trajectory = run(task, task.smooth, acting(policy), episodes)
    network = task.network(policy)
    memory = network.memory
    for step in range(task.steps):
        seen = task.observe(trajectory.states[step], step, trajectory.episodes).numpy()
        command, memory = network.step(seen, memory)
        wanted = task.control(trajectory.actions[step])
        torch.testing.assert_close(torch.from_numpy(command), wanted, rtol=0, atol=1e-6)
