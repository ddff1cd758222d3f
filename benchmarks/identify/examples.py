"""The four learning examples of differentiable-robot-model, as one script for both packages.

Each takes the package (its modules robot_model, rigid_body_params, data_utils) and the data, sets up as published (and yields
once), then trains as published and yields the error after every epoch. Setting up includes one gradient that is thrown away, which
has our kernels loaded. Nothing is printed.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

Epochs = Iterator[float]
"""NaN once set up, then the error of every epoch."""


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


class _Constant(torch.autograd.Function):
    """A result that is there already, and gradients too: what is left of a robot that costs nothing."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        ctx.save_for_backward(*parameters)
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor) -> Any:  # type: ignore[override]
        return None, *(torch.zeros_like(p) for p in ctx.saved_tensors)


class _NoRobot(torch.nn.Module):
    """Takes part in a script without computing anything."""

    def __init__(self, *_: Any, **__: Any):
        super().__init__()
        self.learnt = torch.nn.ModuleDict()
        self.results: dict[int, torch.Tensor] = {}

    def make_link_param_learnable(self, link_name: str, parameter_name: str, parametrization: torch.nn.Module) -> None:
        self.learnt[f"{parameter_name} of {link_name}"] = parametrization

    def freeze_learnable_link_param(self, link_name: str, parameter_name: str) -> None:
        self.learnt[f"{parameter_name} of {link_name}"].requires_grad_(False)

    def unfreeze_learnable_link_param(self, link_name: str, parameter_name: str) -> None:
        self.learnt[f"{parameter_name} of {link_name}"].requires_grad_(True)

    def compute_inverse_dynamics(self, q: torch.Tensor, **_: Any) -> torch.Tensor:
        return _Constant.apply(self._result(q, q.shape[-1]), *self.used())  # type: ignore[return-value]

    compute_forward_dynamics = compute_inverse_dynamics

    def compute_forward_kinematics(self, q: torch.Tensor, link_name: str) -> tuple[Any, None]:
        return _Constant.apply(self._result(q, 3), *self.used()), None

    def used(self) -> list[torch.Tensor]:
        return [p for m in self.learnt.values() for p in m._parameters.values() if p is not None]

    def _result(self, q: torch.Tensor, n: int) -> torch.Tensor:
        if len(q) not in self.results:
            self.results[len(q)] = torch.zeros(len(q), n)
        return self.results[len(q)]


def without_robot(ours: Package) -> Package:
    """A package whose robot costs nothing, with our data sets."""
    stand_in = ModuleType("stand_in")
    stand_in.DifferentiableRobotModel = _NoRobot  # type: ignore[attr-defined]
    return Package("none", stand_in, ours.params, ours.data_utils)


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


def learn_dynamics(package: Package, data: Any) -> Epochs:
    """Mass, inertia and joint offset of the iiwa's first link, from torques. Published: 1,000 samples, 10 epochs."""
    robot = _iiwa(package)
    tensor = package.params.UnconstrainedTensor
    robot.make_link_param_learnable("iiwa_link_1", "mass", package.params.PositiveScalar())
    robot.make_link_param_learnable("iiwa_link_1", "inertia_mat", tensor(dim1=3, dim2=3))
    robot.make_link_param_learnable("iiwa_link_1", "trans", tensor(dim1=1, dim2=3))

    def predict(q, qd, qdd, tau):
        return robot.compute_inverse_dynamics(q=q, qd=qd, qdd_des=qdd, include_gravity=True), tau

    return _train(robot, package.data_utils.InverseDynamicsDataset(data.data), predict)


def learn_forward_dynamics(package: Package, data: Any) -> Epochs:
    """Mass, centre of mass and inertia of the iiwa's first link, from accelerations. Published: 10,000 samples, 100 epochs."""
    robot = _iiwa(package)
    tensor = package.params.UnconstrainedTensor
    robot.make_link_param_learnable("iiwa_link_1", "mass", package.params.PositiveScalar())
    robot.make_link_param_learnable("iiwa_link_1", "com", tensor(dim1=1, dim2=3))
    robot.make_link_param_learnable("iiwa_link_1", "inertia_mat", tensor(dim1=3, dim2=3))

    def predict(q, qd, qdd, tau):
        return robot.compute_forward_dynamics(q=q, qd=qd, f=tau, include_gravity=True, use_damping=True), qdd

    return _train(robot, package.data_utils.ForwardDynamicsDataset(data.data), predict)


def learn_kinematics_iiwa(package: Package, data: dict[str, torch.Tensor]) -> Epochs:
    """Offset and rotation of the iiwa's first joint, from positions of its tip. Published: 100 samples, 3,000 epochs."""
    robot = _iiwa(package)
    for name in ("trans", "rot_angles"):
        robot.make_link_param_learnable("iiwa_link_1", name, package.params.UnconstrainedTensor(dim1=1, dim2=3))
    return _track(robot, data, "iiwa_link_ee")


def learn_kinematics_toy(package: Package, data: dict[str, torch.Tensor]) -> Epochs:
    """Offsets of both joints of a planar arm; the first is frozen for a while. Published: 100 samples, 3,000 epochs."""
    _seed()
    with quiet():
        robot = package.robot_model.DifferentiableRobotModel(_urdf("2link_robot.urdf"), "2link")
    for link in ("arm1", "arm2"):
        robot.make_link_param_learnable(link, "trans", package.params.UnconstrainedTensor(dim1=1, dim2=3))
    return _track(robot, data, "endEffector", freeze=("arm1", "trans"))


def last(epochs: Epochs, count: int) -> float:
    """The error after a number of epochs."""
    value = float("nan")
    for _ in range(count + 1):
        value = next(epochs)
    return float(value)


def _iiwa(package: Package) -> Any:
    _seed()
    with quiet():
        return package.robot_model.DifferentiableRobotModel(_urdf("kuka_iiwa/urdf/iiwa7.urdf"), "kuka_iiwa")


class _NormalisedError(torch.nn.Module):
    def __init__(self, variance: torch.Tensor):
        super().__init__()
        self.variance = variance

    def forward(self, predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return ((predicted - target) ** 2 / self.variance).mean()


def _train(robot: Any, data: Any, predict: Any) -> Epochs:
    """The error is the mean over the batches of an epoch."""
    loader = DataLoader(dataset=data, batch_size=100, shuffle=False)
    optimizer = torch.optim.Adam(robot.parameters(), lr=1e-2)
    error = _NormalisedError(data.var())
    error(*predict(*next(iter(loader)))).backward()
    yield float("nan")
    while True:
        losses = []
        for batch in loader:
            optimizer.zero_grad()
            loss = error(*predict(*batch))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        yield float(np.mean(losses))


def _track(robot: Any, data: dict[str, torch.Tensor], link: str, freeze: tuple[str, str] | None = None) -> Epochs:
    optimizer = torch.optim.Adam(robot.parameters(), lr=1e-3)
    error = torch.nn.MSELoss()
    error(robot.compute_forward_kinematics(q=data["q"], link_name=link)[0], data["ee_pos"]).backward()
    yield float("nan")
    for epoch in itertools.count():
        optimizer.zero_grad()
        position, _ = robot.compute_forward_kinematics(q=data["q"], link_name=link)
        loss = error(position, data["ee_pos"])
        if freeze and epoch == 10:
            robot.freeze_learnable_link_param(*freeze)
        if freeze and epoch == 100:
            robot.unfreeze_learnable_link_param(*freeze)
        loss.backward()
        optimizer.step()
        yield loss.detach()  # type: ignore[misc]  (a number costs time that the original does not spend)
