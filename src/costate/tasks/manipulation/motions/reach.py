"""The arm's joints for poses of the palm around an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.model import load_model
from costate.robot import Pose, Robot
from costate.tasks.manipulation.hand import COUPLED, FINGERS, Hand


@dataclass(frozen=True, eq=False)
class Reach:
    """An arm that brings the palm of its hand to poses around an object; the hand's wrist stays as it is at home."""

    hand: Hand

    def __deepcopy__(self, memo: Any) -> Reach:
        return self

    @cached_property
    def _arm(self) -> Robot:
        arm, n = load_model("ur5"), self.hand.arm
        lower, upper = iter(self.hand.model.lower[:n]), iter(self.hand.model.upper[:n])
        joints = tuple(
            replace(j, lower=np.array([next(lower)]), upper=np.array([next(upper)])) if j.nv else j for j in arm.joints
        )
        return Robot(replace(arm, joints=joints)).double()

    @cached_property
    def _robot(self) -> Robot:
        return Robot(self.hand.model).double()

    @cached_property
    def _mount(self) -> tuple[Tensor, Tensor]:
        """Rotation and position of the palm on the arm."""
        home = torch.tensor(self.hand.home)
        tool, palm = (self._robot.forward_kinematics(home, link) for link in ("tool0", "palm"))
        return tool.rotation.mT @ palm.rotation, tool.rotation.mT @ (palm.position - tool.position)

    def arm(self, place: Tensor, yaw: Tensor, offset: Tensor, tilt: Tensor, near: Tensor) -> Tensor:
        """Return the joints of the arm (B, 6) next to `near` that bring the palm to an offset (B, 3) from a place (B, 3) [m].

        The offset is in axes turned by yaw (B,); the fingers point along their x axis, below the horizontal by tilt (B,) [rad].
        """
        turn, down = about_z(yaw), palm_down(tilt)
        R, p = turn @ down, place + (turn @ offset[..., None])[..., 0]
        rotation, position = self._mount
        tool = R @ rotation.mT
        base = self.hand.base
        B, b = (torch.as_tensor(x, dtype=p.dtype) for x in (base.rotation, base.translation))
        at = p - b - (tool @ position[..., None])[..., 0]
        return self._arm.inverse_kinematics(Pose(at @ B, B.mT @ tool), "tool0", near)

    def tips(self, posture: Tensor) -> Tensor:
        """Return the middle of the ends of the four fingers in the palm's frame (B, 3) [m], for joints of the hand."""
        home = torch.tensor(self.hand.home[: self.hand.arm]).expand(*posture.shape[:-1], -1)
        q = torch.cat([home, posture], -1)
        palm, ends = self._robot.forward_kinematics(q, "palm"), []
        for tip in self.hand.tips[:4]:
            pose = self._robot.forward_kinematics(q, tip.link)
            ends.append(pose.position + tip.length * pose.rotation[..., 2])
        return (palm.rotation.mT @ (torch.stack(ends).mean(0) - palm.position)[..., None])[..., 0]

    def posture(self, numbers: Mapping[str, Tensor]) -> Tensor:
        """Return the joints of the hand (B, joints - arm): those at home, but for the numbers.

        numbers: of a joint, or of a joint of all four fingers ("J2") [rad].
        """
        shape = torch.broadcast_shapes(*(v.shape for v in numbers.values()))
        joints = self.hand.joints[self.hand.arm :]
        home = torch.tensor(self.hand.home[self.hand.arm :])
        low, high = (torch.tensor(x[self.hand.arm :]) for x in (self.hand.model.lower, self.hand.model.upper))
        columns = []
        for name, usual in zip(joints, home, strict=True):
            driver = COUPLED.get(name, name)
            value = numbers.get(driver, numbers.get(driver[2:]) if driver[:2] in FINGERS else None)
            columns.append((usual if value is None else value).expand(shape))
        return torch.clamp(torch.stack(columns, -1), low, high)


def about_z(angle: Tensor) -> Tensor:
    """Return rotations (..., 3, 3) about the vertical."""
    c, s, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([c, -s, zero, s, c, zero, zero, zero, one], -1).unflatten(-1, (3, 3))


def palm_down(tilt: Tensor) -> Tensor:
    """Return the rotations (..., 3, 3) of a palm that looks down, its fingers along x, below the horizontal by an angle [rad]."""
    c, s, zero, one = tilt.cos(), tilt.sin(), torch.zeros_like(tilt), torch.ones_like(tilt)
    return torch.stack([zero, s, c, one, zero, zero, zero, c, -s], -1).unflatten(-1, (3, 3))
