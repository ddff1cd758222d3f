"""What scripts look up in `_bodies`: a link's parameters as they are now, its limits, and its pose after an update."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
from torch import nn

from costate.compat.differentiable_robot_model.pose import rpy_rotation
from costate.model.rotation import to_rpy
from costate.robot import Robot

Tensor = torch.Tensor


@dataclass(frozen=True)
class LinkRows:
    """The links of a URDF in the order of the file."""

    links: list[str]
    without_inertia: list[str]

    @staticmethod
    def read(path: str | Path) -> LinkRows:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        nodes = etree.parse(str(path), parser).getroot().findall("link")
        bare = [node.get("name") for node in nodes if node.find("inertial") is None]
        return LinkRows([node.get("name") for node in nodes], bare)


class RotationOfAngles(nn.Module):
    """Rotation matrix of a module that gives roll, pitch and yaw."""

    def __init__(self, angles: nn.Module):
        super().__init__()
        self.angles = angles

    def forward(self) -> Tensor:
        return rpy_rotation(self.angles().reshape(3))


class Body:
    """A link. `trans()`, `rot_angles()`, `joint_damping()`, `inertia.mass()`, ... give present values."""

    pose: tuple[Tensor, Tensor] | None = None
    """Position and quaternion after `update_kinematic_state`."""
    vel: Tensor | None = None
    """Linear and angular velocity, world axes, after `update_kinematic_state`."""

    def __init__(self, robot: Robot, link: str, joint_id: int, joint_idx: int | None):
        self._robot, self.name, self.joint_id, self.joint_idx = robot, link, joint_id, joint_idx
        self.inertia = self

    def _joint(self):
        return next((j for j in self._robot.identified_model().joints if j.child == self.name), None)

    def trans(self) -> Tensor:
        joint = self._joint()
        return _row(np.zeros(3) if joint is None else joint.origin.translation)

    def rot_angles(self) -> Tensor:
        joint = self._joint()
        return _row(np.zeros(3) if joint is None else to_rpy(joint.origin.rotation))

    def joint_damping(self) -> Tensor:
        joint = self._joint()
        return torch.tensor([0.0 if joint is None else joint.damping], dtype=torch.float64)

    get_joint_damping_const = joint_damping

    def mass(self) -> Tensor:
        return torch.tensor([self._link().inertia.mass], dtype=torch.float64)

    def com(self) -> Tensor:
        return _row(self._link().inertia.com)

    def inertia_mat(self) -> Tensor:
        return torch.as_tensor(self._link().inertia.matrix)[None]

    def _link(self):
        return self._robot.identified_model().link(self.name)

    def get_joint_limits(self) -> dict[str, float]:
        joint = next(j for j in self._robot.model.joints if j.child == self.name)
        limits = {
            "effort": joint.max_effort,
            "lower": joint.lower,
            "upper": joint.upper,
            "velocity": joint.max_velocity,
        }
        return {name: float(x[0]) for name, x in limits.items()}


def _row(x: np.ndarray) -> Tensor:
    return torch.as_tensor(x).reshape(1, 3)
