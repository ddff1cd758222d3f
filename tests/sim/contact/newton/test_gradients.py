"""Gradients of the Newton contact model: finite differences, float32, and their independence of the iterations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from torch import Tensor

import costate as cs
from costate.model import Inertia, Joint, Link, Model


def box_world(cone: str, iterations: int = 50) -> cs.World:
    box = cs.Body("box", [cs.shapes.box((0.2, 0.3, 0.1))], 1.0)
    return cs.World(
        bodies=[box],
        scenery=[cs.Static("ground", cs.shapes.plane())],
        contact=cs.Newton(cone=cone, condim=4, iterations=iterations),
        parameters=["friction", "mass:box/body"],
        dt=0.005,
        check=False,
    )


def on_the_ground(world: cs.World, speed: float) -> Tensor:
    """Boxes that lie a little crooked, at rest or sliding."""
    x = world.initial_state(2)
    x[:, 2] = 0.05 - 0.0015
    x[:, 3:6] = torch.tensor([0.01, -0.006, 0.3])
    x[:, 7], x[:, 8], x[1, 10], x[:, 12] = speed, 0.3 * speed, 0.1, 0.05
    return x


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_stick_and_slip(cone: str) -> None:
    world = box_world(cone)
    still = torch.zeros(3, 2, 0, dtype=torch.float64)

    def after(x: Tensor, friction: Tensor, mass: Tensor) -> Tensor:
        return world.rollout(x, still.to(x.dtype), params={"friction": friction, "mass:box/body": mass})[-1]

    bounds = []
    for speed in (0.001, 0.7):
        inputs = [on_the_ground(world, speed), *(torch.tensor([v], dtype=torch.float64) for v in (0.5, 1.0))]
        check_gradients(after, inputs, names=["state", "friction", "mass"], step=1e-5)
        found = world.contacts(inputs[0], params={"friction": inputs[1]})
        bounds.append(found.friction.norm(dim=-1).sum(-1) / (0.5 * found.forces.sum(-1)))
    assert bounds[0].max() < 0.6 < bounds[1].min()  # well inside of the cone; at its bound, or at a face of the pyramid


def test_iterations_do_not_matter() -> None:
    """Solved with just as many iterations as it takes, or with a limit far beyond: the same bits."""
    grads = []
    for iterations in (15, 50):
        world = box_world("elliptic", iterations)
        x = on_the_ground(world, 0.7).requires_grad_()
        given = {
            "friction": torch.tensor([0.5], dtype=torch.float64),
            "mass:box/body": torch.ones(1, dtype=torch.float64),
        }
        grads.append(torch.autograd.grad(world.step(x, params=given).square().sum(), x)[0])
    assert torch.equal(*grads)


def test_active_limit_and_joint_friction() -> None:
    """An arm pressed against its limit, another held by joint friction, a third that slips against it."""
    links, joints = [Link("base")], []
    inertia = Inertia(1.0, np.array([0.3, 0.0, 0.0]), 0.01 * np.eye(3))
    for k, (low, friction) in enumerate(((0.02, 0.0), (-1.0, 2.0), (-1.0, 0.1))):
        links.append(Link(f"arm{k}", inertia))
        axis, lower, upper = np.array([0.0, 1.0, 0.0]), np.array([low]), np.array([1.0])
        joints.append(
            Joint(f"joint{k}", "revolute", "base", f"arm{k}", axis=axis, friction=friction, lower=lower, upper=upper)
        )
    robot = cs.Robot(Model("arms", tuple(links), tuple(joints)))
    world = cs.World(
        robots={"arms": robot}, contact=cs.Newton(), dt=0.005, parameters=["friction:arms/joint2"], check=False
    )
    x = world.initial_state()
    x[:3], x[3:] = torch.tensor([0.01, 0.2, 0.1]), torch.tensor([-0.05, 0.0, 0.3])
    u = torch.tensor([-4.0, -2.0, -1.0], dtype=torch.float64)

    def after(x: Tensor, u: Tensor, friction: Tensor) -> Tensor:
        return world.step(x, u, params={"friction:arms/joint2": friction})

    check_gradients(after, [x, u, torch.tensor([0.1], dtype=torch.float64)], step=1e-4)
