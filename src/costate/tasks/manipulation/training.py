"""Training by matrix-free Gauss-Newton: all weights at once, on new random episodes every few steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from costate.optimise.gauss_newton import GaussNewtonOptions, gauss_newton
from costate.tasks.manipulation.proposals import weights_of
from costate.train.episode import Trajectory
from costate.train.plan import Iteration, Schedule
from costate.train.streams import generator
from costate.train.trainer import DivergedError, Iterated, Training

if TYPE_CHECKING:
    from costate.train.run import Checkpoint


@dataclass(frozen=True)
class GaussNewtonTraining(Schedule):
    """Options of a training by Gauss-Newton."""

    algorithm: ClassVar[str] = "gauss_newton"
    trainer: ClassVar[Any] = "costate.tasks.manipulation.training:GaussNewtonTrainer"

    iterations: int = 40
    """Draws of new episodes."""
    batch: int = 16
    """Episodes of a draw."""
    newton: int = 5
    """Gauss-Newton steps on each draw."""
    cg_iterations: int = 100
    """Products with J^T J per step at most."""
    damping: float = 1e-3
    """Damping of the first step."""
    hidden: int = 80
    """Hidden units of the policy."""
    interval: int = 4
    """Draws from one row of metrics, and one checkpoint, to the next."""
    watch_interval: int = 0
    """Draws from one look at the success rate in full simulation to the next; 0: never."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("newton", "cg_iterations", "hidden")


LEAST, MOST = 1e-5, 0.1
"""Range of the damping that the next draw begins with."""


class GaussNewtonTrainer(Training):
    """Gauss-Newton on draws of episodes; the damping goes on from one to the next."""

    def set_up(self, point: Checkpoint) -> None:
        given = torch.tensor(self.options.damping, dtype=torch.float64)
        self.damping = float(point.more.get("damping", given))

    def kept(self) -> dict[str, Any]:
        return {"moments": {}, "more": {"damping": torch.tensor(self.damping, dtype=torch.float64)}}

    def iterate(self, plan: Iteration) -> Iterated:
        o, task = self.options, self.task
        episodes = task.draw(plan.batch, generator("episodes", o.seed, plan.number), torch.float64)
        found = solve_draw(task, self.policy, episodes, self.damping, o.newton, o.cg_iterations)
        loss = float(found.loss)
        if not loss < float("inf"):
            raise DivergedError(
                f"the loss is {loss} after iteration {plan.number}; try a larger --damping than {o.damping}"
            )
        self.damping = min(max(found.history[-1].detail["damping"], LEAST), MOST)
        self.control_steps += task.steps * plan.batch * found.evaluations
        terms = {"loss": loss} | {name: float(value) for name, value in found.extra["blocks"].items()}
        step = found.history[-1].detail.get("step", 0.0)
        return Iterated(terms, step, lambda: task.measures(Trajectory(torch.zeros(0), torch.zeros(0), episodes)))


def solve_draw(
    task: Any, policy: Any, episodes: Any, damping: float, steps: int, cg_iterations: int, **more: Any
) -> Any:
    """Take Gauss-Newton steps with all weights of a policy on the same episodes; return the solution."""
    wanted = GaussNewtonOptions(
        weights=weights_of(task.residuals(policy, episodes)), iterations=steps, cg_iterations=cg_iterations,
        damping=damping, **more,
    )  # fmt: skip
    return gauss_newton(lambda now: task.residuals(now, episodes), policy, wanted)
