"""The tasks: grasp, push and turn."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import ClassVar

import torch
from torch import Tensor

from costate.tasks.manipulation.hand import ASIDE, FURTHER, Hand, hand_alone
from costate.tasks.manipulation.objects import Cylinder, Thing
from costate.tasks.manipulation.options import ManipulationOptions, honest_hinge
from costate.tasks.manipulation.task import Manipulation, about_z
from costate.tasks.manipulation.training import PATIENT
from costate.train.episode import Trajectory, Verdict
from costate.train.trainable import Variant


class Grasp(Manipulation):
    """Grasp a cube and lift it."""

    name: ClassVar[str] = "grasp"
    summary: ClassVar[str] = "a Shadow hand on a UR5 grasps a cube and lifts it by 0.1 m"


class Slide(Manipulation):
    """Push a cube over the floor."""

    name: ClassVar[str] = "push"
    summary: ClassVar[str] = "a Shadow hand on a UR5 pushes a cube 0.1 m to its left"
    way: ClassVar[tuple[float, float, float]] = (0.0, 0.1, 0.0)


class Turn(Manipulation):
    """Turn a cylinder that is held by a hinge."""

    name: ClassVar[str] = "turn"
    summary: ClassVar[str] = "a Shadow hand turns a cylinder by half a turn"
    unit: ClassVar[str] = "degrees"
    tolerance: ClassVar[float | None] = 10.0
    way: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.0)
    angle: ClassVar[float] = pi
    hinge: ClassVar[bool] = True
    middle: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.025)
    variants: ClassVar[Mapping[str, Variant]] = {
        **Manipulation.variants,
        "honest": Variant(
            "A cylinder of 100 g on a hinge without friction, friction 0.8, 0.5 s.",
            honest_hinge,
            {**PATIENT, "iterations": 52},
        ),
    }
    options: ManipulationOptions = ManipulationOptions(mass=0.1, place=0.0025)

    def hand(self) -> Hand:
        return hand_alone(ASIDE if self.options.scales[1] <= 1 else FURTHER)

    def thing(self) -> Thing:
        return Cylinder()

    def _put(self, state: Tensor, scale: Tensor, drawn: Tensor) -> None:
        state[:, self.step.nq] = drawn[:, 2] * pi

    def pose(self, state: Tensor) -> Tensor:
        """Return the pose of the cylinder, whose joint has one angle [rad] that counts turns."""
        angle = state[..., self.step.nq]
        return torch.cat([angle.new_tensor(self.middle).expand(*angle.shape, 3), about_z(angle)], -1)

    def judge(self, trajectory: Trajectory) -> Verdict:
        """Judge how far the cylinder has turned, at most half a turn counts [degrees]."""
        angle = trajectory.states[:, :, self.step.nq]
        turned = torch.rad2deg(angle[-1] - angle[0])
        error = (180 - turned).clamp(min=0)
        return Verdict(error <= 10.0, error, columns={"turned [degrees]": turned})
