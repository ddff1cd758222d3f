"""The trainer and everything around a trained policy: tasks, run folders, evaluation, progress, robustness.

    from costate.train import Episodes, Run, Trainable, TrainOptions, Verdict, train
    from costate.train.evaluate import evaluate

Each name is loaded on first use: a finished controller needs neither the trainer nor the simulator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costate.train.episode import Episodes as Episodes
    from costate.train.episode import Metrics as Metrics
    from costate.train.episode import Trajectory as Trajectory
    from costate.train.episode import Verdict as Verdict
    from costate.train.episode import rollout as rollout
    from costate.train.network import Network as Network
    from costate.train.plan import Iteration as Iteration
    from costate.train.plan import TrainOptions as TrainOptions
    from costate.train.policy import Policy as Policy
    from costate.train.run import Run as Run
    from costate.train.trainable import Trainable as Trainable
    from costate.train.trainable import Variant as Variant
    from costate.train.trainer import train as train

_LAZY = {
    **dict.fromkeys(("Episodes", "Metrics", "Trajectory", "Verdict", "rollout"), "episode"),
    **dict.fromkeys(("Iteration", "TrainOptions"), "plan"),
    **dict.fromkeys(("Trainable", "Variant"), "trainable"),
    "Network": "network",
    "Policy": "policy",
    "Run": "run",
    "train": "trainer",
}

__all__ = [*_LAZY]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'costate.train' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"costate.train.{_LAZY[name]}"), name)
