"""A robot's link among particles: what it pushes pushes back, with gradients both ways."""

from __future__ import annotations

import pytest
import torch

import costate as cs
from costate.continuum.mpm import fill, measures
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.robots import Pusher, SoftWorld

DT = 2e-3
MOVED = 1e-14
"""Momentum [kg m/s] that may be lost, of 0.1: rounding."""


def scene(gravity: float = 0.0, contact: str | float = 0.5, **options) -> SoftWorld:
    """A free ball of 0.1 kg in front of a block of jelly."""
    dx = 0.02
    points = fill.box((0.16, 0.12, 0.12), (0.24, 0.24, 0.24), dx / 2)
    jelly = SoftBody(points, dx / 2, "neo_hookean", {"E": 5e3})
    model = MpmModel(MpmGrid((20, 18, 18), dx), [jelly], DT, gravity=(0.0, 0.0, gravity), sides="open", **options)
    ball = cs.Body("ball", [cs.shapes.sphere(0.03)], mass=0.1)
    world = cs.World(bodies=[ball], contact=None, dt=DT, gravity=(0.0, 0.0, gravity))
    return SoftWorld(model, world, [Pusher("ball/body", cs.shapes.sphere(0.03), contact)])


def thrown(scene: SoftWorld, speed: float = 1.0, height: float = 0.18) -> torch.Tensor:
    """The ball, on its way to the block."""
    x = scene.world.initial_state(dtype=torch.float64).clone()
    x[:3] = torch.tensor([0.1013, 0.1771, height + 0.0037])  # no node lies on an edge of a case
    x[scene.world.nq : scene.world.nq + 3] = torch.tensor([speed, 0.0, 0.0])
    return x


def velocity(scene: SoftWorld, state: torch.Tensor) -> torch.Tensor:
    """Return the velocity of the ball in the world; that in its state is in its own axes."""
    _, R = scene.world.link_pose(state, "ball/body")
    nq = scene.world.nq
    return R @ state[nq : nq + 3]


def test_momentum_goes_from_the_ball_to_the_jelly() -> None:
    s = scene()
    x0 = thrown(s)
    motion = s.run(x0, torch.zeros(40, s.world.nu, dtype=torch.float64))
    change = velocity(s, motion.robot[-1]) - velocity(s, x0)
    assert change[0] < -0.05  # it was braked
    assert torch.allclose(measures.momentum(s.model, motion.final), -0.1 * change, atol=MOVED)
    assert torch.allclose(motion.wrenches[:, 0, :3].sum(0) * DT, 0.1 * change, atol=MOVED)


def test_friction_turns_a_ball_that_grazes() -> None:
    """Without friction the ball gets no torque; with it, it turns as the surface that it slides along pulls."""
    spins = []
    for contact in ("slip", 0.8):
        s = scene(contact=contact)
        motion = s.run(thrown(s, 1.0, 0.25), torch.zeros(40, s.world.nu, dtype=torch.float64))
        spins.append(motion.robot[-1, s.world.nq + 3 : s.world.nq + 6].abs().max().item())
    assert spins[1] > 0.1
    assert spins[0] < 0.05 * spins[1]


@pytest.mark.parametrize(
    "contact", [0.5, pytest.param("slip", marks=pytest.mark.study), pytest.param("sticky", marks=pytest.mark.study)]
)
def test_gradients_go_both_ways(contact: str | float) -> None:
    """Of both bodies' ends, by both bodies' beginnings and by the stiffness, against differences."""
    s = scene(contact=contact, segment=10)
    x0 = thrown(s, 1.5)
    start = s.model.start()
    g = torch.Generator().manual_seed(2)
    dq, dv = torch.randn(x0.shape, generator=g).double(), torch.randn(start.v.shape, generator=g).double()
    dq[3:7] = 0.0  # a unit quaternion stays one
    w = torch.randn(start.x.shape, generator=g).double()

    def loss(e: torch.Tensor) -> torch.Tensor:
        motion = s.run(
            x0 + 0.01 * e * dq,
            torch.zeros(30, s.world.nu, dtype=torch.float64),
            s.model.start(start.x, start.v + 0.1 * e * dv),
            parameters={"E": 5e3 * (1 + e)},
        )
        return (w * motion.final.x).sum() + motion.robot[-1].square().sum()

    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(loss(e), e)
    eps = 1e-6
    with torch.no_grad():
        differences = (loss(torch.tensor(eps).double()) - loss(torch.tensor(-eps).double())) / (2 * eps)
    assert abs(exact - differences) < 1e-5 * abs(exact)


def test_a_flat_grid_is_refused() -> None:
    s = scene()
    flat = MpmModel(MpmGrid((20, 20), 0.02), [SoftBody(s.model.bodies[0].points[:, :2], 0.01)], DT)
    with pytest.raises(ValueError, match="robots move in 3D"):
        SoftWorld(flat, s.world, s.pushers)
    with pytest.raises(ValueError, match="give both one dt"):
        SoftWorld(MpmModel(s.model.grid, s.model.bodies, 1e-3), s.world, s.pushers)
