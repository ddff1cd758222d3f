"""Robots that handle cloth: what they push and hold pushes and pulls back, with gradients both ways."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.gradients import Tolerances, check_gradients

import costate as cs
from costate.continuum.cloth.body import sheet
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.robots import ClothWorld, Grip
from costate.continuum.cloth.step import Solver

DT = 5e-3
MOVED = 1e-7
"""Momentum [kg m/s] that may be lost, of 0.02: what solves leave, 1e-9 of the weight in 30 steps, and more."""


def thrown(gravity: float = 0.0) -> tuple[ClothWorld, torch.Tensor]:
    """A ball of 20 g below a sheet, on its way up."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.03)], mass=0.02)
    world = cs.World(bodies=[ball], contact=None, dt=DT, gravity=(0.0, 0.0, gravity))
    touch = Collider(cs.shapes.sphere(0.03), 0.5, link="ball/body")
    model = ClothModel(
        [sheet((5, 5), (0.2, 0.2))], dt=DT, gravity=(0.0, 0.0, gravity), colliders=[touch], solver=Solver(1e-9)
    )
    robot = world.initial_state(dtype=torch.float64).clone()
    robot[:3] = torch.tensor([0.007, 0.004, -0.036])
    robot[world.nq : world.nq + 3] = torch.tensor([0.1, 0.0, 1.0])
    return ClothWorld(model, world), robot


def test_momentum_goes_from_the_ball_to_the_cloth() -> None:
    scene, robot = thrown()
    nq, steps = scene.world.nq, 30
    motion = scene.run(robot, torch.zeros(steps, scene.world.nu, dtype=torch.float64))
    mass = scene.model.fixed(torch.float64, None, None, None, 0.0)["own"][:, :1]
    cloth = (mass * motion.final.v).sum(0)
    _, R = scene.world.link_pose(motion.robot[-1], "ball/body")
    ball = (
        0.02 * (R @ motion.robot[-1, nq : nq + 3]) + DT * motion.wrenches[-1, 0, :3]
    )  # the last push is still to come
    before = 0.02 * torch.tensor([0.1, 0.0, 1.0], dtype=torch.float64)
    assert cloth[2] > 0.003
    assert torch.allclose(cloth + ball, before, atol=MOVED)


def test_gradients_go_through_contact_with_a_link() -> None:
    scene, robot = thrown(-9.81)
    weight = torch.randn(25, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    unit = 1e-3

    def outcome(v, density):
        state = robot.clone()
        state[scene.world.nq : scene.world.nq + 3] += unit * v
        u = torch.zeros(8, scene.world.nu, dtype=torch.float64)
        motion = scene.run(state, u, parameters={"density": 0.3 * (1 + unit * density)})
        return ((weight * motion.final.x).sum() + motion.robot[-1].sum()) / unit

    given = [torch.zeros(3, dtype=torch.float64), torch.zeros((), dtype=torch.float64)]
    check_gradients(
        outcome,
        given,
        names=("v", "density"),
        float32=False,
        directions=1,
        tolerances=Tolerances(finite_difference=1e-5),
    )


def test_a_grip_carries_what_it_holds() -> None:
    """A heavy body holds a corner: at rest its spring bears the weight of the cloth, and opening it lets go."""
    hand = cs.Body("hand", [cs.shapes.sphere(0.03)], mass=50.0)
    world = cs.World(bodies=[hand], contact=None, dt=0.05, gravity=(0.0, 0.0, 0.0))
    model = ClothModel([sheet((5, 5), (0.2, 0.2))], dt=0.05, ties=[0])  # long steps damp
    scene = ClothWorld(model, world, [Grip("hand/body", [0])])
    robot = world.initial_state(dtype=torch.float64)
    u = torch.zeros(150, world.nu, dtype=torch.float64)
    motion = scene.run(robot, u)
    weight = 0.3 * 0.04 * 9.81
    assert float(motion.wrenches[-20:, 0, 2].mean()) == pytest.approx(-weight, rel=0.03)
    free = scene.run(motion.robot[-1], u[:4], motion.final, grip=torch.zeros(4, 1, dtype=torch.float64))
    mass = model.fixed(torch.float64, None, None, None, 0.0)["own"][:, 0]
    fallen = (mass * (free.final.v - motion.final.v)[:, 2]).sum() / mass.sum()
    assert float(fallen) == pytest.approx(-9.81 * 0.2, rel=1e-3)


def test_mistakes_are_named() -> None:
    world = cs.World(bodies=[cs.Body("hand", [cs.shapes.sphere(0.03)], mass=1.0)], contact=None, dt=0.01)
    model = ClothModel([sheet((3, 3), (0.2, 0.2))], dt=0.02, ties=[0])
    with pytest.raises(ValueError, match="give both one dt"):
        ClothWorld(model, world, [Grip("hand/body", [0])])
    model = ClothModel([sheet((3, 3), (0.2, 0.2))], dt=0.01, ties=[0])
    with pytest.raises(ValueError, match="name the same"):
        ClothWorld(model, world, [Grip("hand/body", [1])])
    layered = ClothModel([sheet((3, 3), (0.2, 0.2))], dt=0.01, ties=[0], self_contact=True)
    with pytest.raises(ValueError, match="leave it out"):
        ClothWorld(layered, world, [Grip("hand/body", [0])])
    assert np.isclose(world.dt, model.dt)
