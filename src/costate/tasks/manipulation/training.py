"""Training by matrix-free Gauss-Newton: all weights at once, on new random episodes every few steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from costate.optimise.gauss_newton import GaussNewtonOptions, gauss_newton
from costate.train.episode import Trajectory, rollout
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

    iterations: int = 150
    """Draws of new episodes."""
    batch: int = 16
    """Episodes of a draw."""
    newton: int = 1
    """Gauss-Newton steps on each draw."""
    cg_iterations: int = 8
    """Products with J^T J per step at most."""
    probes: int = 2
    """Random backward passes per draw that the preconditioner of CG is estimated from; 0: there is none."""
    damping: float = 1e-3
    """Damping of the first step."""
    most_damping: float = 0.1
    """Largest damping that a draw begins with."""
    hidden: int = 80
    """Hidden units of the policy."""
    tries: int = 1
    """Initial weights that share the draws; the policy is the one that does best in full simulation, on starts of the training. A
    low loss alone does not tell which one that is."""
    interval: int = 25
    """Draws from one row of metrics, and one checkpoint, to the next."""
    watch_interval: int = 0
    """Draws from one look at the success rate in full simulation to the next; 0: never."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("newton", "cg_iterations", "hidden", "tries")
        if self.probes < 0:
            raise ValueError(f"probes is {self.probes}; expected 0 or more")
        if self.iterations % self.tries:
            raise ValueError(
                f"{self.tries} tries cannot share {self.iterations} iterations; expected a multiple of the tries"
            )


PATIENT: Mapping[str, Any] = {
    "iterations": 95,
    "newton": 5,
    "cg_iterations": 100,
    "probes": 0,
    "interval": 5,
}
"""Options for objects as they are in reality: more steps on each draw, by plain conjugate gradients. They leave alone what hardly
matters to the residuals, and have ended in calmer motions; docs/manipulation.md says more."""
STEADY: Mapping[str, Any] = {
    "iterations": 360,
    "newton": 2,
    "cg_iterations": 9,
    "probes": 3,
    "interval": 10,
    "tries": 6,
}
"""Options for an object on a hinge as it is in reality."""
THOROUGH: Mapping[str, Any] = {**STEADY, "iterations": 960}
"""Options for a cube that is pushed as it is in reality: the same, with more draws for each try."""
STARTS = 64
"""Starts on which tries are compared."""
LEAST = 1e-5
"""Least damping that a draw begins with."""


class GaussNewtonTrainer(Training):
    """Gauss-Newton on draws of episodes; the damping goes on from one to the next."""

    def set_up(self, point: Checkpoint) -> None:
        given = torch.tensor(self.options.damping, dtype=torch.float64)
        self.damping = float(point.more.get("damping", given))
        self.best = {name: point.more[name] for name in point.more if name != "damping"}

    def kept(self) -> dict[str, Any]:
        return {"moments": {}, "more": {"damping": torch.tensor(self.damping, dtype=torch.float64), **self.best}}

    def _begin(self, number: int) -> None:
        """Begin a try with new weights."""
        made = self.task.policy(self.options, generator("weights", self.options.seed, number))
        self.policy.load_state_dict(made.state_dict())
        self.damping = self.options.damping

    def _end(self, last: bool) -> None:
        """Keep the weights of a try if they are the best so far; go on with the best after the last."""
        score = success(self.task, self.policy, self.options.seed)
        if not self.best or score > float(self.best["score"]):
            weights = {f"best.{name}": w.detach().clone() for name, w in self.policy.state_dict().items()}
            self.best = {"score": torch.tensor(score, dtype=torch.float64), **weights}
        if last:
            self.policy.load_state_dict({n.removeprefix("best."): w for n, w in self.best.items() if n != "score"})

    def iterate(self, plan: Iteration) -> Iterated:
        o, task = self.options, self.task
        draws = o.iterations // o.tries
        if plan.number and plan.number % draws == 0:
            self._begin(plan.number)
        random = generator("episodes", o.seed, plan.number)
        episodes = task.draw(plan.batch, random, torch.float64)
        found = solve_draw(task, self.policy, episodes, self.damping, o, random)
        loss = float(found.loss)
        if not loss < float("inf"):
            raise DivergedError(
                f"the loss is {loss} after iteration {plan.number}; try a larger --damping than {o.damping}"
            )
        self.damping = next_damping(found, o)
        self.control_steps += task.steps * plan.batch * found.evaluations
        if o.tries > 1 and (plan.number + 1) % draws == 0:
            self._end(plan.number + 1 == o.iterations)
        terms = {"loss": loss} | {name: float(value) for name, value in found.extra["blocks"].items()}
        step = found.history[-1].detail.get("step", 0.0)
        return Iterated(terms, step, lambda: task.measures(Trajectory(torch.zeros(0), torch.zeros(0), episodes)))


def success(task: Any, policy: Any, seed: int) -> float:
    """Return the part of starts of the training from which a policy succeeds in full simulation, less a little for its errors."""
    starts = task.draw(STARTS, generator("episodes", seed, -1), torch.float64)
    with torch.no_grad():
        verdict = task.judge(rollout(task, policy.begin(), starts))
    return float(verdict.success.double().mean()) - 1e-3 * float(verdict.error.nan_to_num(1e3).mean())


def next_damping(found: Any, training: GaussNewtonTraining) -> float:
    """Return the damping that the draw after a solution begins with."""
    return min(max(found.history[-1].detail["damping"], LEAST), training.most_damping)


def solve_draw(
    task: Any, policy: Any, episodes: Any, damping: float, training: GaussNewtonTraining, random: torch.Generator
) -> Any:
    """Take Gauss-Newton steps with all weights of a policy on the same episodes; return the solution."""
    wanted = GaussNewtonOptions(
        weights=task.weights, iterations=training.newton, cg_iterations=training.cg_iterations, damping=damping,
        precondition=task.curvature(policy, episodes, training.probes, random) if training.probes else None,
    )  # fmt: skip
    return gauss_newton(lambda now: task.residuals(now, episodes), policy, wanted)
