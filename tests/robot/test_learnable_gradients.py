"""Gradients of learnable parameters against finite differences: every parameter, every kind of joint, every parametrisation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.physics.strategies import random_inertia, random_rotation
from torch import nn

import costate as cs
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.robot import Robot

JOINT_KINDS = ("revolute", "continuous", "prismatic", "planar", "spherical", "floating", "fixed")


def arm(kind: str, seed: int = 3) -> Model:
    """base - `kind` joint, oblique - link1 - revolute - link2, with everything that can resist a motion."""
    rng = np.random.default_rng(seed)
    links = [Link("base", Inertia()), *(Link(f"link{k}", random_inertia(rng)) for k in (1, 2))]
    joints = []
    for k, joint_kind in enumerate((kind, "revolute")):
        axis = rng.normal(size=3)
        origin = Transform(random_rotation(rng), rng.normal(size=3) * 0.3)
        numbers: dict[str, Any] = {
            n: float(rng.uniform(0.1, 1.0)) for n in ("damping", "friction", "armature", "stiffness", "rest")
        }
        parent = links[k].name
        joints.append(
            Joint(f"joint{k + 1}", joint_kind, parent, f"link{k + 1}", origin, axis / np.linalg.norm(axis), **numbers)
        )
    return Model(f"arm_{kind}", tuple(links), tuple(joints))


def learn_everything(robot: Robot) -> None:
    """One module for every parameter of the first joint and of both links."""
    robot.learn("link1", "mass", cs.params.Positive())
    robot.learn("link1", "com")
    robot.learn("link1", "inertia", cs.params.PositiveDefinite())
    robot.learn("link2", "inertial", cs.params.PhysicalInertia())
    robot.learn("joint1", "rotation", cs.params.Rotation())
    robot.learn("joint1", "translation")
    robot.learn("joint1", "axis")
    for name in ("damping", "friction", "armature", "stiffness"):
        robot.learn("joint1", name, cs.params.Positive())
    robot.learn("joint1", "rest")
    robot.learn(None, "gravity")


class Call(nn.Module):
    """A robot function as a module, so that `torch.func.functional_call` can put tensors in place of parameters."""

    def __init__(self, robot: Robot, function: Callable[..., torch.Tensor]):
        super().__init__()
        self.robot, self.function = robot, function

    def forward(self, dtype: torch.dtype) -> torch.Tensor:
        return self.function(self.robot, dtype)


def check_parameters(robot: Robot, function: Callable[..., torch.Tensor]) -> None:
    call = Call(robot, function)
    names = [name for name, _ in call.named_parameters()]

    def fn(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(call, dict(zip(names, values, strict=True)), (values[0].dtype,))

    check_gradients(fn, [p.detach() for p in call.parameters()], names=names)


def state(robot: Robot, *batch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    q = robot.random_configuration(*batch, generator=random)
    v, x = (torch.randn(*batch, robot.nv, dtype=torch.float64, generator=random) for _ in range(2))
    return q, v, x


@pytest.mark.parametrize("kind", JOINT_KINDS)
def test_dynamics_in_every_parameter(kind: str) -> None:
    robot = Robot(arm(kind))
    learn_everything(robot)
    q, v, x = state(robot, 3)
    check_parameters(robot, lambda r, t: r.inverse_dynamics(q.to(t), v.to(t), x.to(t)))
    check_parameters(robot, lambda r, t: r.forward_dynamics(q.to(t), v.to(t), x.to(t)))


@pytest.mark.parametrize("kind", JOINT_KINDS)
def test_kinematics_in_every_parameter(kind: str) -> None:
    robot = Robot(arm(kind))
    robot.learn("joint1", "rotation", cs.params.RollPitchYaw())
    robot.learn("joint1", "translation")
    robot.learn("joint1", "axis")
    robot.learn("link2", "origin", Origin())
    q, _, _ = state(robot, 3)
    check_parameters(robot, lambda r, t: r.forward_kinematics(q.to(t), "link2").position)
    check_parameters(robot, lambda r, t: r.jacobian(q.to(t), "link2"))


class Origin(nn.Module):
    """Translation and rotation from one module."""

    def __init__(self) -> None:
        super().__init__()
        self.translation = nn.Parameter(torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64))
        self.turn = cs.params.Rotation(torch.eye(3, dtype=torch.float64))

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.translation, self.turn()


class PerSample(nn.Module):
    """Another value for every sample."""

    def __init__(self, *shape: int):
        super().__init__()
        self.value = nn.Parameter(torch.linspace(0.3, 1.1, int(np.prod(shape)), dtype=torch.float64).reshape(shape))

    def forward(self) -> torch.Tensor:
        return self.value


def network(n_in: int, n_out: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(n_in, 4), nn.Tanh(), nn.Linear(4, n_out)).double()


PARAMETRISATIONS: dict[str, tuple[str, str, Callable[[], nn.Module]]] = {
    "unconstrained": ("link_2", "mass", cs.params.Unconstrained),
    "positive": ("link_2", "mass", lambda: cs.params.Positive(minimum=0.1)),
    "bounded scalar": ("link_2", "mass", lambda: cs.params.Bounded(0.0, 3.0)),
    "bounded vector": ("link_2", "com", lambda: cs.params.Bounded([-1, -1, -2], [1, 1, 0.5])),
    "positive definite": ("link_2", "inertia", lambda: cs.params.PositiveDefinite(torch.eye(3).double() + 0.1)),
    "physical inertia": ("link_2", "inertial", cs.params.PhysicalInertia),
    "rotation": ("joint_2", "rotation", cs.params.Rotation),
    "roll pitch yaw": ("joint_2", "rotation", cs.params.RollPitchYaw),
    "per sample": ("link_2", "mass", lambda: PerSample(3, 1)),
    "per sample vector": ("link_2", "com", lambda: PerSample(3, 3)),
    "of the state": ("joint_2", "friction", lambda: cs.params.OfState(network(4, 1))),
    "vector of the state": ("link_2", "com", lambda: cs.params.OfState(network(2, 3), inputs=["q"], shape=(3,))),
}


@pytest.mark.parametrize("name", PARAMETRISATIONS)
def test_every_parametrisation(name: str) -> None:
    owner, parameter, module = PARAMETRISATIONS[name]
    robot = cs.load_robot("pendulum2")
    robot.learn(owner, parameter, module())
    q, v, x = state(robot, 3)
    check_parameters(robot, lambda r, t: r.inverse_dynamics(q.to(t), v.to(t), x.to(t)))


def test_gradient_in_the_state_goes_through_the_module() -> None:
    robot = cs.load_robot("pendulum2")
    robot.learn("joint_2", "friction", cs.params.OfState(network(4, 1)))
    of_type = {torch.float64: robot, torch.float32: copy.deepcopy(robot).float()}
    q, v, x = state(robot, 3)

    def torque(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return of_type[q.dtype].inverse_dynamics(q, v, x.to(q))

    check_gradients(torque, (q, v), names=("q", "v"), step=1e-3)
