"""Transfer: a trained policy, unchanged, in gymnasium's own environment, beside the same starts in our world."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from costate.core.files import write_json
from costate.envs import Batch
from costate.tasks.locomotion.v5.definition import VersionFive
from costate.train.evaluate import at_least_one
from costate.train.policy import acting
from costate.train.run import Run

EPISODES = 20
"""Number of episodes, if none is asked for."""


@dataclass(frozen=True)
class Returns:
    """The results of the same episodes in one engine."""

    mean: float
    """Mean of the returns."""
    std: float
    """Standard deviation of the returns."""
    least: float
    """Least return."""
    length: float
    """Mean number of steps."""
    returns: tuple[float, ...]
    """Return of each episode."""

    @staticmethod
    def of(returns: Any, lengths: Any) -> Returns:
        """Return the results of episodes, (B,) each."""
        r = np.asarray(returns, float)
        return Returns(float(r.mean()), float(r.std()), float(r.min()), float(np.mean(lengths)), tuple(r.tolist()))


def transfer_of(task: VersionFive, policy: nn.Module, episodes: int = EPISODES, seed: int = 0) -> dict[str, Returns]:
    """Run a policy in both engines, in float64 and without noise. Episode k begins as gymnasium's `reset(seed=seed + k)` does."""
    starts, found = in_gymnasium(task, policy, episodes, seed)
    return {"costate": in_costate(task, policy, starts), "gymnasium": found}


def in_costate(task: VersionFive, policy: nn.Module, starts: Tensor) -> Returns:
    """Return the results of episodes that start from states (B, nx), in the task's world."""
    batch, controller = Batch(task, len(starts)), acting(copy.deepcopy(policy).double())
    batch.reset()
    batch.states[-1] = starts
    seen = batch.observe()
    going = torch.ones(len(starts), dtype=torch.bool)
    returns, lengths = torch.zeros(2, len(starts), dtype=torch.float64)
    with torch.no_grad():
        while bool(going.any()):
            outcome = batch.step(controller(seen))
            returns += torch.where(going, outcome.reward, 0.0)
            lengths += going
            going, seen = going & ~outcome.over, outcome.observation
    return Returns.of(returns.numpy(), lengths.numpy())


def in_gymnasium(task: VersionFive, policy: nn.Module, episodes: int, seed: int) -> tuple[Tensor, Returns]:
    """Return the states that gymnasium's episodes start from, (B, nx), and their results: its own rewards, all costs included."""
    import gymnasium

    env: Any = gymnasium.make(task.gym, **task.gym_options)
    starts, returns, lengths = [], [], []
    with torch.no_grad():
        for k in range(episodes):
            seen, _ = env.reset(seed=seed + k)
            controller = acting(copy.deepcopy(policy).double())
            starts.append(task.state_of(env.unwrapped.data.qpos, env.unwrapped.data.qvel))
            total, steps, over = 0.0, 0, False
            while not over:
                action = controller(torch.as_tensor(np.asarray(seen, float))[None])
                seen, reward, terminated, truncated, _ = env.step(task.control(action)[0].numpy())
                total, steps, over = total + float(reward), steps + 1, terminated or truncated
            returns.append(total)
            lengths.append(steps)
    env.close()
    return torch.stack(starts), Returns.of(returns, lengths)


def try_in_gymnasium(folder: Run, episodes: int | None, seed: int, files: bool) -> None:
    """Try a run's policy in gymnasium's environment; print what is found and write transfer.json."""
    if files:
        raise ValueError("there is no scene to write: the robot is in gymnasium's own file")
    count = EPISODES if episodes is None else episodes
    at_least_one(count)
    task: Any = folder.task
    found = transfer_of(task, folder.policy, count, seed)
    print("engine".ljust(28), *(name.rjust(12) for name in ("return: mean", "std", "least", "steps")))
    for name, r in found.items():
        engine = f"gymnasium's {task.gym}" if name == "gymnasium" else name
        print(engine.ljust(28), *(f"{x:12.1f}" for x in (r.mean, r.std, r.least, r.length)))
    path = folder.path / "transfer.json"
    told = {name: asdict(r) for name, r in found.items()}
    write_json(path, told | {"environment": task.gym, "episodes": count, "seed": seed})
    print(f"\n{count} episodes\nwrote {path}")
