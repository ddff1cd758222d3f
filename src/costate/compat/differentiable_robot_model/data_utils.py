"""Data sets with the interface of `differentiable_robot_model.data_utils`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch.utils.data._utils.collate import default_collate_fn_map

AMPLITUDE = 0.7
"""Amplitude of sine motions [rad]."""


class _Sample(Sequence):
    """A sample of a batch that is gathered already; its tensors are cut out when asked for."""

    def __init__(self, gathered: list[Tensor], row: int):
        self.gathered, self.row = gathered, row

    def __len__(self) -> int:
        return len(self.gathered)

    def __getitem__(self, k: Any) -> Any:
        return [x[self.row] for x in self.gathered[k]] if isinstance(k, slice) else self.gathered[k][self.row]


class _Samples(Sequence):
    """A list of samples, for collate functions that look at each; the default one takes the gathered tensors."""

    def __init__(self, gathered: list[Tensor]):
        self.gathered = gathered

    def __len__(self) -> int:
        return len(self.gathered[0])

    def __getitem__(self, k: int) -> _Sample:  # type: ignore[override]
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        return _Sample(self.gathered, k)


def _take_gathered(batch: Any, *, collate_fn_map: Any = None) -> list[Tensor]:
    if isinstance(batch, _Samples):
        return batch.gathered
    return [torch.stack(column) for column in zip(*batch, strict=True)]


default_collate_fn_map[_Sample] = _take_gathered


class _DynamicsDataset(Dataset):
    """A set of samples q, qd, qdd_des and tau, (N, n_dofs) each."""

    NAMES = ("q", "qd", "qdd_des", "tau")
    TARGET: str

    def __init__(self, data: Mapping[str, Tensor]):
        self.data = data

    def __getitem__(self, index: int) -> list[Tensor]:
        return [self.data[name][index] for name in self.NAMES]

    def __getitems__(self, index: Sequence[int]) -> _Samples:
        """Return many samples at once, as a DataLoader asks for if it can."""
        first = index[0]
        if index == list(range(first, first + len(index))):  # not shuffled: a copy of a block is quicker than a search
            block = slice(first, first + len(index))
            return _Samples([self.data[name][block].clone() for name in self.NAMES])
        rows = torch.as_tensor(index)
        return _Samples([self.data[name][rows] for name in self.NAMES])

    def __len__(self) -> int:
        return len(self.data["q"])

    def var(self) -> Tensor:
        """Return the variance of what is to be predicted, per degree of freedom."""
        return self.data[self.TARGET].var(dim=0)


class InverseDynamicsDataset(_DynamicsDataset):
    """Samples for the prediction of torques."""

    TARGET = "tau"


class ForwardDynamicsDataset(_DynamicsDataset):
    """Samples for the prediction of accelerations."""

    TARGET = "qdd_des"


def generate_random_forward_kinematics_data(robot_model: Any, n_data: int, ee_name: str) -> dict[str, Tensor]:
    """Return q uniform within limits, and the position ee_pos of a link."""
    low, high, _ = _limits(robot_model)
    q = _uniform(low, high, n_data)
    with torch.no_grad():
        ee_pos, _ = robot_model.compute_forward_kinematics(q=q, link_name=ee_name)
    return {"q": q, "ee_pos": ee_pos}


def generate_random_inverse_dynamics_data(robot_model: Any, n_data: int) -> InverseDynamicsDataset:
    """Return samples with q within limits, qd within a fifth of the speed limits, and qdd_des within twice that."""
    low, high, speed = _limits(robot_model)
    q = _uniform(low, high, n_data)
    qd, qdd = _uniform(-0.2 * speed, 0.2 * speed, n_data), _uniform(-0.4 * speed, 0.4 * speed, n_data)
    return InverseDynamicsDataset(_with_torques(robot_model, q, qd, qdd))


def generate_sine_motion_inverse_dynamics_data(
    robot_model: Any, n_data: int, dt: float, freq: float
) -> InverseDynamicsDataset:
    """Return a motion in which all joints follow one sine of a frequency [Hz], sampled every dt [s]."""
    return InverseDynamicsDataset(_sine(robot_model, n_data, dt, freq))


def generate_sine_motion_forward_dynamics_data(
    robot_model: Any, n_data: int, dt: float, freq: float
) -> ForwardDynamicsDataset:
    """Return the same motion for the prediction of accelerations."""
    return ForwardDynamicsDataset(_sine(robot_model, n_data, dt, freq))


def _sine(robot_model: Any, n: int, dt: float, freq: float) -> dict[str, Tensor]:
    w = 2 * torch.pi * freq
    angle = (w * dt * torch.arange(n, dtype=torch.float64))[:, None].expand(n, robot_model._n_dofs)
    motion = (AMPLITUDE * angle.sin(), AMPLITUDE * w * angle.cos(), -AMPLITUDE * w**2 * angle.sin())
    return _with_torques(robot_model, *(x.to(torch.get_default_dtype()) for x in motion))


def _with_torques(robot_model: Any, q: Tensor, qd: Tensor, qdd: Tensor) -> dict[str, Tensor]:
    with torch.no_grad():
        tau = robot_model.compute_inverse_dynamics(q=q, qd=qd, qdd_des=qdd, include_gravity=True)
    return {"q": q, "qd": qd, "qdd_des": qdd, "tau": tau}


def _limits(robot_model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lower, upper and velocity limits; +-pi and 1 where there is none.

    A <limit> without a range gives 0 and 0, which is none either: a joint that never moves would be "fixed".
    """
    rows = robot_model.get_joint_limits()
    low, high, speed = (np.array([row[name] for row in rows], float) for name in ("lower", "upper", "velocity"))
    empty = (low == 0) & (high == 0)
    low, high = (np.where(np.isfinite(x) & ~empty, x, end) for x, end in ((low, -np.pi), (high, np.pi)))
    return low, high, np.where(np.isfinite(speed), speed, 1.0)


def _uniform(low: np.ndarray, high: np.ndarray, n: int) -> Tensor:
    return torch.tensor(np.random.uniform(low, high, (n, len(low))), dtype=torch.get_default_dtype())
