"""The insertion task, as the trainer knows it. The cell itself (worlds, starts, observations, errors) is in cell.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.tasks.insertion.cases import CASES
from costate.tasks.insertion.cell import Cell, InsertionOptions
from costate.tasks.insertion.described import ALLOWED, measurements, rows, story
from costate.tasks.insertion.episode import Disturbances, Episodes, aligned, draw
from costate.tasks.insertion.gentle import Gentle
from costate.tasks.insertion.guidance.guide import Guide
from costate.tasks.insertion.guidance.guided import GuidedPolicy
from costate.tasks.insertion.guidance.observer import Observer
from costate.tasks.insertion.judge import Metrics, Verdict, judge, summarise
from costate.tasks.insertion.loss import loss, total
from costate.tasks.insertion.policy import Policy
from costate.tasks.insertion.reward import RewardOptions, step_cost
from costate.tasks.insertion.scene import ACTION, BOTTLE_MASS, OBSERVATION
from costate.tasks.insertion.training import DISTURBED, FELT, InsertionTraining, plan
from costate.train.episode import Stepper, Trajectory
from costate.train.network import Names, Network, Scaling
from costate.train.plan import Iteration
from costate.train.remembering import Followed, RememberingPolicy
from costate.train.run import Run
from costate.train.trainable import Cases, Variant
from costate.train.trainer import Watching


class Insertion(Cell):
    """The task: what the trainer, the report, the viewer and the exports ask for, about the cell."""

    name: ClassVar[str] = "insertion"
    summary: ClassVar[str] = "a UR5 puts a bottle into a socket"
    unit: ClassVar[str] = "mm"
    trails: ClassVar[tuple[str, ...]] = ("ur5/bottle",)
    training: ClassVar[InsertionTraining] = InsertionTraining()
    disturbances: ClassVar[Disturbances] = Disturbances()
    variants: ClassVar[Mapping[str, Variant]] = {
        "moving": Variant("The socket rides on a conveyor.", lambda options: replace(options, moving=True)),
        "wide": Variant("Twice the ranges of start poses and targets, with more time.", InsertionOptions.wide),
        "anywhere": Variant("The socket anywhere in 0.4 m x 0.4 m; time by distance.", InsertionOptions.anywhere),
        "unlimited": Variant("No limits of acceleration and jerk.", InsertionOptions.unlimited),
        "chamfered": Variant(
            "A narrow socket with a chamfer, 1 mm from where it is seen.", InsertionOptions.chamfered, FELT
        ),
        "robust": Variant("All disturbances of a real cell at once.", InsertionOptions.robust, DISTURBED),
    }
    report: ClassVar[str] = "costate.tasks.insertion.report.page:InsertionReport"
    play: ClassVar[str] = "costate.tasks.insertion.play.play:Play"
    transfer: ClassVar[str] = "costate.tasks.insertion.mujoco.transfer:try_elsewhere"
    tolerance: ClassVar[float] = ALLOWED

    _gentle: Gentle | None = None
    """World with shortened gradients that the last training ran in."""

    # --- what the trainer asks for --------------------------------------------------------------------------------

    def draw(
        self,
        batch: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        disturbances: Disturbances | None = None,
    ) -> Episodes:
        """Draw random episodes. disturbances: None: those of the task."""
        return draw(self, batch, generator, disturbances, dtype)

    def practised_against(self, training: InsertionTraining) -> Disturbances:
        """Return the disturbances of a training."""
        return self.options.disturbances if training.disturbances == Disturbances() else training.disturbances

    def policy(self, training: InsertionTraining, generator: torch.Generator | None = None) -> nn.Module:
        """Return an untrained policy."""
        memory, o = training.memory, self.options
        if memory.kind == "auto":
            against = self.practised_against(training)
            if training.guide and o.actuation == "velocity":
                return self._guided(training, against, generator)
            disturbed = against != Disturbances()
            memory = replace(memory, kind="cell" if disturbed else "command" if o.acceleration_limit else "none")
        if memory.kind == "none":
            return Policy(training.hidden, generator)
        # A command may run ahead of the joint, which follows it with a delay.
        reach = 2 * o.acceleration_limit * o.dt / self.action_scale[1] if o.acceleration_limit else 0.5
        return RememberingPolicy(OBSERVATION, ACTION, training.hidden, generator, memory, reach, self._followed)

    def _guided(
        self, training: InsertionTraining, against: Disturbances, generator: torch.Generator | None
    ) -> GuidedPolicy:
        matrix, offset = self.features
        gain = matrix.sum(0)
        unit = torch.where(gain > 0, 1 / gain, torch.ones_like(gain))
        guide = Guide(self, BOTTLE_MASS * against.payload, training.weights.aim)
        # An offset that stays the same is nothing that could be filtered.
        filtered = replace(against, target_offset=0.0).noisy or against.latency or against.payload
        observer = Observer(guide, self, against) if filtered else None
        return GuidedPolicy(guide, unit, -unit * offset, self.action_scale[1], training.hidden, generator, observer)

    @property
    def _followed(self) -> Followed:
        """Knowledge of a recurrent cell: positions of joints and socket follow from their velocities."""
        gain = self.features[0].sum(0)
        pairs = [*((k, 6 + k) for k in range(6)), (12, 15), (13, 16)]
        rates = {p: (v, float(self.options.dt * gain[p] / gain[v])) for p, v in pairs}
        return Followed(rates, OBSERVATION - 1)

    def plan(self, training: InsertionTraining, number: int) -> Iteration:
        """Return the plan of an iteration."""
        return plan(training, number)

    def practice(self, plan: Iteration, generator: torch.Generator) -> Episodes:
        """Draw the episodes of an iteration, with disturbances, from wider ranges."""
        against, spread = self.practised_against(plan.options), plan.options.spread
        if self.options.chamfer:  # a bottle that is nearer meets the chamfer later
            against = replace(against, target_offset=spread * against.target_offset, random_offset=True)
        return draw(self, plan.batch, generator, against, spread=spread)

    def practised(self, plan: Iteration) -> Stepper:
        """Return the world of an iteration: without contact until the end of the training."""
        if plan.factors["contact"]:
            if self._gentle is None or self._gentle.longest != plan.options.state_clip:
                self._gentle = Gentle(self.world, plan.options.state_clip)
            return self._gentle
        return self.smooth_payload if self.practised_against(plan.options).payload else self.smooth

    def loss(self, trajectory: Trajectory, iteration: Iteration) -> dict[str, Tensor]:
        """Return the terms of the loss, each (B,)."""
        weights = iteration.options.weights
        now = replace(weights, rest=iteration.factors["rest_factor"] * weights.rest)
        return loss(self, trajectory, now, iteration.factors["funnel_factor"])

    def total(self, terms: Mapping[str, Tensor], training: InsertionTraining) -> Tensor:
        """Return the loss of a batch: its mean, and that of its worst twentieth."""
        return total(terms, training.weights)

    @property
    def measured(self) -> Mapping[str, str]:
        """Names of `measures`, and their units."""
        return {"error_mm": "mm", "tilt_deg": "deg"}

    def measures(self, trajectory: Trajectory) -> dict[str, float]:
        """Return means over the batch when the bottle should be seated."""
        position, tilt, _ = self.errors(aligned(trajectory)[self.options.horizon])
        return {"error_mm": 1e3 * float(position.norm(dim=-1).mean()), "tilt_deg": float(torch.rad2deg(tilt).mean())}

    def after_training(self, run: Run, watching: Watching) -> None:
        """Tell what training did not see of the gradients through contact; look for the shortest horizon, if that is wanted."""
        if self._gentle is not None and (told := self._gentle.told()):
            print(told)
            self._gentle = None
        if run.options.minimum_time:
            from costate.tasks.insertion.least_time.minimum_time import search_and_tell

            search_and_tell(run, watching)

    def reward(self, trajectory: Trajectory) -> Tensor:
        """Return the reward (B,) of the last step: minus the terms of the loss that count in it."""
        return -step_cost(self, trajectory.states[-1], len(trajectory.actions), RewardOptions())

    # --- judging, telling, taking it elsewhere --------------------------------------------------------------------

    def judge(self, trajectory: Trajectory) -> Verdict:
        """Judge trajectories of any world by the criteria of the task."""
        return judge(self, trajectory)

    def suits(self, policy: nn.Module) -> None:
        """Refuse a controller whose guide was built for another horizon."""
        if isinstance(policy, GuidedPolicy) and policy.guide.horizon != self.options.horizon:
            raise ValueError(
                f"this controller's guide was built for motions of {policy.guide.horizon} control steps, and cannot be judged with "
                f"{self.options.horizon}: train one for that task (`costate train insertion --help` has its variants)"
            )

    def summarise(self, verdict: Verdict) -> Metrics:
        """Return the metrics of a verdict."""
        return summarise(self, verdict)

    def rows(self, metrics: Mapping[str, Any]) -> dict[str, str]:
        """Return the rows of a table about metrics, as text."""
        return rows(metrics)

    def cases(self) -> Cases:
        """Return the cases of the robustness table."""
        return {case.name: partial(case.episodes, self) for case in CASES}

    @cached_property
    def inputs(self) -> Names:
        """Name of each number of an observation; they are scaled to order one."""
        return tuple((name, "1") for name, _ in measurements(self))

    @cached_property
    def outputs(self) -> Names:
        """Name and unit of each command."""
        what, unit = ("velocity", "rad/s") if self.options.actuation == "velocity" else ("torque", "N m")
        return tuple((f"{what} of {joint}", unit) for joint in self.joints)

    @cached_property
    def joints(self) -> list[str]:
        """Names of the arm's joints."""
        return [j.name for j in self.arm.model.joints if j.nv]

    def exported(self, policy: nn.Module) -> Network:
        """Return the network of a policy with all scaling inside: from measurements in SI units to commands in SI units."""
        matrix, offset = (x.numpy() for x in self.features)
        gain = matrix.sum(0)  # one measurement per observation
        middle = 0.0 - np.divide(offset, gain, out=np.zeros(OBSERVATION), where=gain != 0)
        gain[-1], top = 1 / self.options.horizon, np.full(OBSERVATION, np.inf)
        top[-1] = self.options.horizon
        return self.network(policy).measured(measurements(self), Scaling(middle, gain, top), self._about())

    def _about(self) -> str:
        o = self.options
        belt = f"riding at up to {o.belt_speed:g} m/s" if o.moving else "standing still"
        return f"UR5 puts a bottle into a socket {belt}, in {o.seconds:g} s; one action every {1e3 * o.dt:g} ms"

    def note(self) -> dict[str, Any]:
        """Return facts for the reader of the controller's file."""
        o = self.options
        return {
            "observation": "state observation.matrix + observation.offset + (0, ..., 0, min(step / horizon, 1))",
            "state": "q of 6 arm joints and socket x, y, angle; v of the same [rad, m, rad/s, m/s]",
            "command": "action.offset + action.scale action",
            "command_unit": self.outputs[0][1],
            "joints": self.joints,
            "horizon": o.horizon,
            "period": o.dt,
        }

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest corner of what a camera sees at first [m]."""
        x, y = self.options.center
        return np.array([x - 0.26, y - 0.16, 0.0]), np.array([x + 0.16, y + 0.16, 0.46])

    def story(self) -> str:
        """Return a paragraph for the report."""
        return story(self)
