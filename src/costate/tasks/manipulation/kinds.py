"""The tasks: grasp, push and turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import pi
from typing import ClassVar

import torch

from costate.tasks.manipulation.hand import ASIDE, FURTHER, Hand, hand_alone
from costate.tasks.manipulation.hinged import Hinged
from costate.tasks.manipulation.options import ManipulationOptions, honest_hinge, honest_lift
from costate.tasks.manipulation.task import Manipulation
from costate.tasks.manipulation.training import CAREFUL, STEADY, SWIFT, THOROUGH, VARIED, GaussNewtonTraining
from costate.train.episode import Trajectory, Verdict
from costate.train.trainable import Variant


class Grasp(Manipulation):
    """Grasp a cube and lift it."""

    name: ClassVar[str] = "grasp"
    summary: ClassVar[str] = "a Shadow hand on a UR5 grasps a cube and lifts it by 0.1 m"
    variants: ClassVar[Mapping[str, Variant]] = {
        **Manipulation.variants,
        "honest": replace(Manipulation.variants["honest"], change=honest_lift, training=CAREFUL),
        "varied": replace(Manipulation.variants["varied"], training=VARIED),
    }


class Slide(Manipulation):
    """Push a cube over the floor."""

    name: ClassVar[str] = "push"
    summary: ClassVar[str] = "a Shadow hand on a UR5 pushes a cube 0.1 m to its left"
    way: ClassVar[tuple[float, float, float]] = (0.0, 0.1, 0.0)
    variants: ClassVar[Mapping[str, Variant]] = {
        **Manipulation.variants,
        "honest": replace(Manipulation.variants["honest"], training=THOROUGH),
    }


class Turn(Hinged):
    """Turn a cylinder that is held by a hinge."""

    name: ClassVar[str] = "turn"
    summary: ClassVar[str] = "a Shadow hand turns a cylinder by half a turn"
    training: ClassVar[GaussNewtonTraining] = GaussNewtonTraining(**SWIFT)
    angle: ClassVar[float] = pi
    middle: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.025)
    spread: ClassVar[tuple[float, float, float]] = (1.0, 1.0, 2.0)
    variants: ClassVar[Mapping[str, Variant]] = {
        **Manipulation.variants,
        "honest": Variant(
            "A cylinder of 100 g on a hinge without friction, friction 0.8, 0.5 s.", honest_hinge, STEADY
        ),
    }
    options: ManipulationOptions = ManipulationOptions(mass=0.1, place=0.0025, smooth=True)

    def hand(self) -> Hand:
        return hand_alone(FURTHER if self.is_wide else ASIDE)

    def judge(self, trajectory: Trajectory) -> Verdict:
        """Judge how far the cylinder has turned, at most half a turn counts [degrees]."""
        angle = trajectory.states[:, :, self.step.nq]
        turned = torch.rad2deg(angle[-1] - angle[0])
        error = (180 - turned).clamp(min=0)
        return Verdict(error <= 10.0, error, columns={"turned [degrees]": turned})
