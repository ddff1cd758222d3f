"""The four learning examples of differentiable-robot-model, as one script for both packages.

Each takes the package (its modules robot_model, rigid_body_params, data_utils) and the data, trains as published, and returns
the final error, which is the mean over the last epoch.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader


@dataclass(frozen=True)
class Package:
    name: str
    robot_model: ModuleType
    params: ModuleType
    data_utils: ModuleType


def packages() -> tuple[Package, Package]:
    """Costate's drop-in and the original."""
    from differentiable_robot_model import data_utils, rigid_body_params, robot_model

    from costate.compat.differentiable_robot_model import data_utils as our_data
    from costate.compat.differentiable_robot_model import rigid_body_params as our_params
    from costate.compat.differentiable_robot_model import robot_model as our_model

    ours = Package("costate", our_model, our_params, our_data)
    return ours, Package("differentiable-robot-model", robot_model, rigid_body_params, data_utils)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The original prints a line per unknown tag and per link."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def _seed() -> None:
    np.random.seed(1)
    torch.manual_seed(0)


def _urdf(rel: str) -> str:
    import diff_robot_data

    return f"{diff_robot_data.__path__[0]}/{rel}"


def inverse_dynamics_data(original: Package, n: int) -> Any:
    """The motion of the original's generator, so that both packages learn from the same numbers."""
    with quiet():
        truth = original.robot_model.DifferentiableKUKAiiwa()
        return original.data_utils.generate_sine_motion_inverse_dynamics_data(truth, n_data=n, dt=1 / 250, freq=0.05)


def forward_dynamics_data(original: Package, n: int) -> Any:
    with quiet():
        truth = original.robot_model.DifferentiableKUKAiiwa()
        return original.data_utils.generate_sine_motion_forward_dynamics_data(truth, n_data=n, dt=1 / 250, freq=0.1)


def kinematics_data(original: Package, n: int, toy: bool) -> dict[str, torch.Tensor]:
    _seed()
    with quiet():
        robots = original.robot_model
        truth = robots.DifferentiableTwoLinkRobot() if toy else robots.DifferentiableKUKAiiwa()
        link = "endEffector" if toy else "iiwa_link_ee"
        return original.data_utils.generate_random_forward_kinematics_data(truth, n_data=n, ee_name=link)


def learn_dynamics(package: Package, data: Any, epochs: int) -> float:
    """Mass, inertia and joint offset of the iiwa's first link, from torques. Published: 1,000 samples, 10 epochs."""
    robot = _iiwa(package)
    tensor = package.params.UnconstrainedTensor
    robot.make_link_param_learnable("iiwa_link_1", "mass", package.params.PositiveScalar())
    robot.make_link_param_learnable("iiwa_link_1", "inertia_mat", tensor(dim1=3, dim2=3))
    robot.make_link_param_learnable("iiwa_link_1", "trans", tensor(dim1=1, dim2=3))

    def predict(q, qd, qdd, tau):
        return robot.compute_inverse_dynamics(q=q, qd=qd, qdd_des=qdd, include_gravity=True), tau

    return _train(robot, package.data_utils.InverseDynamicsDataset(data.data), predict, epochs)


def learn_forward_dynamics(package: Package, data: Any, epochs: int) -> float:
    """Mass, centre of mass and inertia of the iiwa's first link, from accelerations. Published: 10,000 samples, 100 epochs."""
    robot = _iiwa(package)
    tensor = package.params.UnconstrainedTensor
    robot.make_link_param_learnable("iiwa_link_1", "mass", package.params.PositiveScalar())
    robot.make_link_param_learnable("iiwa_link_1", "com", tensor(dim1=1, dim2=3))
    robot.make_link_param_learnable("iiwa_link_1", "inertia_mat", tensor(dim1=3, dim2=3))

    def predict(q, qd, qdd, tau):
        return robot.compute_forward_dynamics(q=q, qd=qd, f=tau, include_gravity=True, use_damping=True), qdd

    return _train(robot, package.data_utils.ForwardDynamicsDataset(data.data), predict, epochs)


def learn_kinematics_iiwa(package: Package, data: dict[str, torch.Tensor], epochs: int) -> float:
    """Offset and rotation of the iiwa's first joint, from positions of its tip. Published: 100 samples, 3,000 epochs."""
    robot = _iiwa(package)
    for name in ("trans", "rot_angles"):
        robot.make_link_param_learnable("iiwa_link_1", name, package.params.UnconstrainedTensor(dim1=1, dim2=3))
    return _track(robot, data, "iiwa_link_ee", epochs, freeze=None)


def learn_kinematics_toy(package: Package, data: dict[str, torch.Tensor], epochs: int) -> float:
    """Offsets of both joints of a planar arm; the first is frozen for a while. Published: 100 samples, 3,000 epochs."""
    _seed()
    with quiet():
        robot = package.robot_model.DifferentiableRobotModel(_urdf("2link_robot.urdf"), "2link")
    for link in ("arm1", "arm2"):
        robot.make_link_param_learnable(link, "trans", package.params.UnconstrainedTensor(dim1=1, dim2=3))
    return _track(robot, data, "endEffector", epochs, freeze=("arm1", "trans"))


def _iiwa(package: Package) -> Any:
    _seed()
    with quiet():
        return package.robot_model.DifferentiableRobotModel(_urdf("kuka_iiwa/urdf/iiwa7.urdf"), "kuka_iiwa")


def _train(robot: Any, data: Any, predict: Any, epochs: int) -> float:
    loader = DataLoader(dataset=data, batch_size=100, shuffle=False)
    optimizer = torch.optim.Adam(robot.parameters(), lr=1e-2)
    variance, losses = data.var(), []
    for _ in range(epochs):
        losses = []
        for batch in loader:
            optimizer.zero_grad()
            predicted, target = predict(*batch)
            loss = ((predicted - target) ** 2 / variance).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return float(np.mean(losses))


def _track(robot: Any, data: dict[str, torch.Tensor], link: str, epochs: int, freeze: tuple[str, str] | None) -> float:
    optimizer = torch.optim.Adam(robot.parameters(), lr=1e-3)
    value = float("nan")
    for epoch in range(epochs):
        optimizer.zero_grad()
        position, _ = robot.compute_forward_kinematics(q=data["q"], link_name=link)
        loss = ((position - data["ee_pos"]) ** 2).mean()
        if freeze and epoch == 10:
            robot.freeze_learnable_link_param(*freeze)
        if freeze and epoch == 100:
            robot.unfreeze_learnable_link_param(*freeze)
        loss.backward()
        optimizer.step()
        value = loss.item()
    return value
