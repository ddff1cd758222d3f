"""Training by matrix-free Gauss-Newton: all weights at once, on new random episodes every few steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from costate.optimise.gauss_newton import GaussNewtonOptions, gauss_newton
from costate.optimise.solution import Solution
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

    iterations: int = 400
    """Draws of new episodes."""
    batch: int = 16
    """Episodes of a draw."""
    newton: int = 1
    """Gauss-Newton steps on each draw."""
    cg_iterations: int = 3
    """Products with J^T J per step at most."""
    probes: int = 1
    """Random backward passes per draw that the preconditioner of CG is estimated from; 0: there is none."""
    finish: int = 0
    """Last draws of a try that are solved with the preconditioner (two steps of nine products), after others without it."""
    memory: float = 0.9
    """Weight of a draw in the estimate of the preconditioner, relative to that of the next draw; 0: only the last one counts."""
    momentum: float = 0.9
    """Part of the step on the draw before that CG begins with, so that steps are averaged over draws; 0: it begins at zero."""
    damping: float = 0.3
    """Damping of the first step."""
    most_damping: float = 10.0
    """Largest damping that a draw begins with."""
    hidden: int = 80
    """Hidden units of the policy."""
    tries: int = 1
    """Initial weights that share the draws; the policy is the best one."""
    compare: Literal["simulation", "loss"] = "simulation"
    """Measure of which of the tries is best: success in full simulation, or the loss, on starts of the training. A low loss alone
    does not mean that a policy works in full simulation. Metrics have the best one's `score`: successes, or minus the loss."""
    starts: int = 64
    """Starts of the training on which policies are compared."""
    look: int = 0
    """Draws from one comparison to the next within a try: the best policy on the way is kept. 0: only the ends are compared."""
    enough: float = 1.0
    """Score with which the training ends early, after a row of metrics; 1 is never reached."""
    interval: int = 25
    """Draws from one row of metrics, and one checkpoint, to the next."""
    watch_interval: int = 0
    """Draws from one look at the success rate in full simulation to the next; 0: never."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("newton", "cg_iterations", "hidden", "tries", "starts")
        if min(self.probes, self.finish, self.look) < 0:
            given = f"probes is {self.probes}, finish is {self.finish}, look is {self.look}"
            raise ValueError(f"{given}; expected 0 or more")
        for name in ("memory", "momentum"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number from 0 on and below 1")
        if self.iterations % self.tries:
            raise ValueError(
                f"{self.tries} tries cannot share {self.iterations} iterations; expected a multiple of the tries"
            )


ALONE: Mapping[str, Any] = {"memory": 0.0, "momentum": 0.0, "damping": 1e-3, "most_damping": 0.1}
"""Options with which a draw takes nothing but the damping from the one before."""
PATIENT: Mapping[str, Any] = {
    **ALONE,
    "iterations": 95,
    "newton": 5,
    "cg_iterations": 100,
    "probes": 0,
    "interval": 5,
}
"""Options for objects as they are in reality: more steps on each draw, by plain conjugate gradients. They leave alone what hardly
matters to the residuals, and have ended in calmer motions; docs/manipulation.md says more."""
PRECISE: Mapping[str, Any] = {"newton": 2, "cg_iterations": 9, "probes": 3}
"""Options of the draws that finish a try."""
CAREFUL: Mapping[str, Any] = {
    **PATIENT,
    "iterations": 320,
    "finish": 120,
    "tries": 2,
    "compare": "simulation",
    "starts": 192,
    "look": 20,
    "enough": 0.985,
}
"""Options for a cube that is lifted as it is in reality: calm motions first, without the preconditioner, which then makes them
precise; a second try if the first is not good enough."""
VARIED: Mapping[str, Any] = {**PATIENT, "iterations": 310, "finish": 250, "tries": 1}
"""Options for objects that vary: the same in one try, with more draws in the end."""
STEADY: Mapping[str, Any] = {
    **ALONE,
    **PRECISE,
    "iterations": 360,
    "interval": 10,
    "tries": 6,
    "compare": "simulation",
}
"""Options for an object on a hinge as it is in reality."""
THOROUGH: Mapping[str, Any] = {
    "iterations": 2000,
    "interval": 50,
    "tries": 8,
    "starts": 192,
    "look": 50,
    "enough": 0.985,
}
"""Options for a cube that is pushed as it is in reality: tries until one is good enough, judged on the way."""
SWIFT: Mapping[str, Any] = {"iterations": 1000, "tries": 5, "compare": "loss"}
"""Options for an object on a hinge as it was published: which fingers push, and when, depends on the initial weights."""
LEAST = 1e-5
"""Least damping that a draw begins with."""


class GaussNewtonTrainer(Training):
    """Gauss-Newton on draws of episodes."""

    def set_up(self, point: Checkpoint) -> None:
        self.left = {name: x for name, x in point.more.items() if not name.startswith(self.best.prefix)}

    def kept(self) -> dict[str, Any]:
        return {"moments": {}, "more": self.left}

    @property
    def compares(self) -> bool:
        """True if tries are compared by `compare`, which then decides what is best."""
        return self.options.look > 0 or self.options.tries > 1

    def score(self, metrics: Any) -> tuple[float, ...] | None:
        return None if self.compares else super().score(metrics)

    def interval(self) -> dict[str, Any]:
        row = super().interval()
        if self.compares and self.best.score and self.best.score[0] >= self.options.enough:
            self.done = self.options.iterations
        return row

    def _begin(self, number: int) -> None:
        """Begin a try with new weights."""
        made = self.task.policy(self.options, generator("weights", self.options.seed, number))
        self.policy.load_state_dict(made.state_dict())
        self.left = {}

    def iterate(self, plan: Iteration) -> Iterated:
        o, task = self.options, self.task
        draws = o.iterations // o.tries
        if plan.number and plan.number % draws == 0:
            self._begin(plan.number)
        if plan.number % draws >= draws - o.finish:
            o = replace(o, **PRECISE)
        random = generator("episodes", o.seed, plan.number)
        episodes = task.draw(plan.batch, random, torch.float64)
        found, self.left = solve_draw(task, self.policy, episodes, self.left, o, random)
        loss = float(found.loss)
        if not loss < float("inf"):
            raise DivergedError(
                f"the loss is {loss} after iteration {plan.number}; try a larger --damping than {o.damping}"
            )
        self.control_steps += task.steps * plan.batch * found.evaluations
        done = plan.number % draws + 1
        if (o.look and done % o.look == 0) or (done == draws and self.compares):
            self.best.offer(self.policy, plan.number + 1, SCORES[o.compare](task, self.policy, o))
        terms = {"loss": loss} | {name: float(value) for name, value in found.extra["blocks"].items()}
        step = found.history[-1].detail.get("step", 0.0)
        score = {"score": self.best.score[0]} if self.compares and self.best.score else {}
        return Iterated(
            terms, step, lambda: task.measures(Trajectory(torch.zeros(0), torch.zeros(0), episodes)) | score
        )


def success(task: Any, policy: Any, training: GaussNewtonTraining) -> float:
    """Return the part of starts of the training from which a policy succeeds in full simulation, less a little for its errors."""
    starts = starts_of(task, training)
    with torch.no_grad():
        verdict = task.judge(rollout(task, policy.begin(), starts))
    return float(verdict.success.double().mean()) - 1e-3 * float(verdict.error.nan_to_num(1e3).mean())


def fit(task: Any, policy: Any, training: GaussNewtonTraining) -> float:
    """Return the loss of a policy on the same starts, with the opposite sign."""
    with torch.no_grad():
        return -float(task.misfit(policy, starts_of(task, training)))


def starts_of(task: Any, training: GaussNewtonTraining) -> Any:
    """Return the starts on which policies are compared; no draw has them."""
    return task.draw(training.starts, generator("episodes", training.seed, -1), torch.float64)


SCORES = {"simulation": success, "loss": fit}
"""Measure by which tries are compared -> function of task, policy and options: the larger, the better."""


def solve_draw(
    task: Any, policy: Any, episodes: Any, left: Mapping[str, Tensor], training: GaussNewtonTraining,
    random: torch.Generator,
) -> tuple[Solution, dict[str, Tensor]]:  # fmt: skip
    """Take Gauss-Newton steps with all weights of a policy on the same episodes.

    Returns the solution and what is left to the next draw: its damping, the step taken, and the moments of the preconditioner.
    left: What the draw before has left; empty for the first.
    """
    near, before = None, _flat(policy)
    if training.probes:
        earlier = [left[name] for name in sorted(left) if name.startswith("moment.")] if training.memory else []
        near = task.curvature(policy, episodes, training.probes, random, earlier, training.memory)
    wanted = GaussNewtonOptions(
        weights=task.weights, iterations=training.newton, cg_iterations=training.cg_iterations, precondition=near,
        damping=float(left.get("damping", training.damping)), gradient_tolerance=0.0,
        guess=training.momentum * left["step"] if "step" in left else None,
    )  # fmt: skip
    found = gauss_newton(lambda now: task.residuals(now, episodes), policy, wanted)
    damping = min(max(found.history[-1].detail["damping"], LEAST), training.most_damping)
    moments = {f"moment.{k}": m for k, m in enumerate(near.moments)} if near and training.memory else {}
    step = {"step": _flat(policy) - before} if training.momentum else {}
    return found, {"damping": torch.tensor(damping, dtype=torch.float64), **step, **moments}


def _flat(policy: Any) -> Tensor:
    """Return all weights as one row (n,)."""
    return torch.cat([w.detach().flatten() for w in policy.parameters()])
