"""Worlds against MuJoCo, which gets the same bodies, joints, inertias, shapes and motors (`benchmarks/sim/mujoco_scene.py`).

Without contact both integrate by semi-implicit Euler, so states agree to rounding. With contact MuJoCo's constraints are soft,
here as hard as its step allows: shapes sink in by a fraction of a millimetre and friction creeps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import costate as cs
from costate.model import Model, Shape, Transform, load_model
from costate.sim import Body, Hard, Static, World

pytest.importorskip("mujoco")
from benchmarks.sim.mujoco_scene import MujocoWorld, Options

ROUNDING = 1e-10
"""Of a state after 100 steps; measured: 2e-13."""
SOFT = 1e-3
"""How far MuJoCo's soft contact may move a body at rest [m]."""
DT = 0.002
HARD = 2 * DT
"""Time constant of MuJoCo's contacts [s]: its shortest."""
PLANE = Shape("plane", np.zeros(0))
GROUND = Static("ground", PLANE)
GRAVITY = 9.81
EDGES = np.array([0.3, 0.2, 0.1])


def box(name: str = "box") -> Body:
    return Body(name, [Shape("box", EDGES)], 2.0)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


# --- without contact --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["laikago", "ant", "iiwa7", "ur5", "pendulum5", "two_link"])
def test_random_torques(name: str) -> None:
    model = load_model(name)
    model = replace(model, joints=tuple(replace(j, friction=0.0) for j in model.joints))
    world = World(robots=[cs.Robot(model)], actuators=cs.Torque(), contact=None, integrator="euler", dt=DT)
    x = world.initial_state()
    x[world.nq :] = random(world.nv) / 2
    u = 0.02 * world.setup.scene.model.max_effort.clip(max=100)[-world.nu :] * random(100, world.nu).numpy()
    ours = world.rollout(x, torch.as_tensor(u)).numpy()
    theirs = MujocoWorld(world, Options(limits=False)).run(x.numpy(), u)
    assert np.abs(theirs[-1] - theirs[0]).max() > 0.01
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING)


def test_implicit_damping() -> None:
    """What MuJoCo's Euler method does with damping, or is told not to; a stiff damper tells the two apart. Without contact the
    integrator "implicit" does the same with it, but takes forces of inertia from the middle of a step."""
    model = load_model("ant")
    model = replace(model, joints=tuple(replace(j, damping=100.0 * (j.nv == 1)) for j in model.joints))
    soft = {k: cs.Newton(joint_limits=False, joint_friction=False, implicit_damping=k) for k in (True, False)}
    cases = [("euler", soft[True], True), ("euler", soft[False], False), ("implicit", None, True)]
    worlds = [World([cs.Robot(model)], actuators=cs.Torque(), contact=c, dt=0.01, integrator=i) for i, c, _ in cases]
    x, u = worlds[0].initial_state(), 20 * random(100, worlds[0].nu)
    x[worlds[0].nq :] = random(worlds[0].nv) / 2
    theirs = {
        k: MujocoWorld(worlds[-1], Options(limits=False, implicit_damping=k)).run(x.numpy(), u.numpy())
        for k in (True, False)
    }
    for world, (integrator, _, implicit) in zip(worlds, cases, strict=True):
        ours = world.rollout(x, u).numpy()
        right, wrong = (np.abs(ours - theirs[k]).max() for k in (implicit, not implicit))
        assert wrong > 1e-3
        assert right < (ROUNDING if integrator == "euler" else 0.1 * wrong)


def test_free_fall_of_a_spinning_box() -> None:
    world = World(bodies=[box()], dt=DT, contact=None, integrator="euler")
    x = world.initial_state()
    x[7:] = torch.tensor([1.0, -0.5, 2.0, 3.0, -2.0, 5.0], dtype=torch.float64)
    ours = world.rollout(x, torch.zeros(500, 0, dtype=torch.float64)).numpy()
    theirs = MujocoWorld(world).run(x.numpy(), np.zeros((500, 0)))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING)
    t = 1.0
    fall = 2.0 * t - GRAVITY * t * (t + world.dt) / 2  # semi-implicit Euler falls half a step's worth too far
    np.testing.assert_allclose(ours[-1, 2], fall, rtol=0, atol=1e-12)


# --- joint limits -----------------------------------------------------------------------------------------------------


def test_hinge_limits() -> None:
    """A pendulum falls against the limits of both joints and comes to rest there, held by the limits alone."""
    model = load_model("pendulum2")
    low, high = np.array([-0.7]), np.array([0.4])
    joints = tuple(replace(j, lower=low, upper=high, damping=2.0) if j.nv else j for j in model.joints)
    world = World(
        robots=[cs.Robot(replace(model, joints=joints))], dt=DT, integrator="implicit", gravity=(GRAVITY, 0, 0)
    )
    x = world.initial_state()
    steps = 5000
    ours = world.rollout(x, torch.zeros(steps, 2, dtype=torch.float64)).numpy()
    theirs = MujocoWorld(world, Options(implicit_damping=True)).run(x.numpy(), np.zeros((steps, 2)))
    for path in (ours, theirs):
        assert np.abs(path[-1, 2:]).max() < 1e-6  # at rest
        assert path[:, :2].min() > low[0] - 0.05 and path[:, :2].max() < high[0] + 0.05
    np.testing.assert_allclose(ours[-1, :2], [low[0], low[0]], rtol=0, atol=2e-4)  # the slop of PGS is 1e-4
    np.testing.assert_allclose(ours[-1], theirs[-1], rtol=0, atol=0.02)


# --- boxes ------------------------------------------------------------------------------------------------------------


def on_slope(degrees: float, friction: float) -> tuple[World, torch.Tensor]:
    """A box lying on a slope that descends along x."""
    turn = Rotation.from_euler("y", degrees, degrees=True)
    slope = Static("slope", PLANE, Transform(turn.as_matrix(), np.zeros(3)))
    world = World(bodies=[box()], scenery=[slope], contact=Hard(friction=friction), dt=DT)
    x = world.initial_state()
    x[:3] = torch.as_tensor(turn.apply([0.0, 0.0, EDGES[2] / 2]))
    x[3:7] = torch.as_tensor(turn.as_quat())
    return world, x


def test_a_box_rests_on_a_plane_for_ten_seconds() -> None:
    world, x = on_slope(0.0, 0.8)
    steps = 5000
    ours = world.rollout(x, torch.zeros(steps, 0, dtype=torch.float64))
    assert float((ours[:, :7] - x[:7]).abs().max()) < 1e-7
    assert float(world.contacts(ours[-1]).forces.sum()) == pytest.approx(2.0 * GRAVITY, rel=1e-6)
    mujoco = MujocoWorld(world, Options(solref=HARD))
    theirs = mujoco.run(x.numpy(), np.zeros((steps, 0)))
    np.testing.assert_allclose(ours[-1, :7], theirs[-1, :7], rtol=0, atol=SOFT)
    assert mujoco.ground_force() == pytest.approx(2.0 * GRAVITY, rel=1e-3)


@pytest.mark.parametrize("degrees", [10.0, 25.0])
def test_a_box_sticks_on_a_slope_for_ten_seconds(degrees: float) -> None:
    """tan 25 deg = 0.466 < 0.5. Ours does not move at all; MuJoCo's box creeps, by less than SOFT per second."""
    world, x = on_slope(degrees, 0.5)
    ours = world.rollout(x, torch.zeros(5000, 0, dtype=torch.float64)).numpy()
    assert np.abs(ours[:, :7] - x[:7].numpy()).max() < 1e-6
    theirs = MujocoWorld(world, Options(friction=0.5, solref=HARD)).run(x.numpy(), np.zeros((5000, 0)))
    np.testing.assert_allclose(ours[-1, :3], theirs[-1, :3], rtol=0, atol=10 * SOFT)


@pytest.mark.parametrize("degrees", [30.0, 40.0])
def test_a_box_slides_down_a_steeper_slope(degrees: float) -> None:
    """Down by g (sin - mu cos) t^2 / 2. MuJoCo's soft contact is 1 to 2.5 % off."""
    world, x = on_slope(degrees, 0.5)
    steps, slope = 500, np.radians(degrees)
    acceleration = GRAVITY * (np.sin(slope) - 0.5 * np.cos(slope))
    expected = acceleration * world.dt**2 * steps * (steps + 1) / 2
    ours = world.rollout(x, torch.zeros(steps, 0, dtype=torch.float64)).numpy()
    assert np.linalg.norm(ours[-1, :3] - x[:3].numpy()) == pytest.approx(expected, rel=1e-4)
    theirs = MujocoWorld(world, Options(friction=0.5, solref=HARD)).run(x.numpy(), np.zeros((steps, 0)))
    assert np.linalg.norm(theirs[-1, :3] - x[:3].numpy()) == pytest.approx(expected, rel=0.03)


# --- walking robots ---------------------------------------------------------------------------------------------------


def sprung(name: str) -> Model:
    """The robot with a spring and a damper in every joint, at rest in its home position: it stands without a controller."""
    model = load_model(name)
    assert model.home is not None
    stiffness, damping = {"laikago": (300.0, 8.0), "ant": (20.0, 8.0)}[name]
    joints = []
    for j, at in zip(model.joints, model.q_index, strict=True):
        spring = {"stiffness": stiffness, "damping": damping, "rest": float(model.home[at])} if j.nv == 1 else {}
        joints.append(replace(j, **spring))
    return replace(model, joints=tuple(joints))


@pytest.mark.parametrize(("name", "touching"), [("laikago", "toe"), ("ant", "foot")])
@pytest.mark.parametrize(("friction", "tolerance"), [(0.0, SOFT), (0.8, 3 * SOFT)])
def test_dropped_and_settled(name: str, touching: str, friction: float, tolerance: float) -> None:
    """From 5 cm above the ground; after 4 s it stands, on forces that sum to its weight.

    With friction the feet stay where they landed, under tension that MuJoCo's friction lets go of slowly.
    """
    model = sprung(name)
    world = World(
        robots=[cs.Robot(model)],
        scenery=[GROUND],
        actuators=cs.Torque(),
        contact=Hard(friction=friction),
        dt=DT,
        integrator="implicit",
        collide=lambda a, b: touching in a or touching in b,
    )
    x = world.initial_state()
    x[2] += 0.05
    steps = 2000
    ours = world.rollout(x, torch.zeros(steps, world.nu, dtype=torch.float64))
    mujoco = MujocoWorld(world, Options(implicit_damping=True, friction=friction, solref=HARD))
    theirs = mujoco.run(x.numpy(), np.zeros((steps, world.nu)))
    weight = model.total_mass * GRAVITY
    for path in (ours.numpy(), theirs):
        assert path[:, 2].min() < x[2] - 0.04  # it fell
        assert np.abs(path[-1, world.nq :]).max() < (1e-4 if path is not theirs else 1e-2)  # at rest; theirs creeps
    # On the mean over 0.2 s: what lies within 1e-7 m counts as touching, so that feet press and let go a little from step to step.
    assert float(world.contacts(ours[-100:]).forces.sum(-1).mean()) == pytest.approx(weight, rel=1e-4)
    assert mujoco.ground_force() == pytest.approx(weight, rel=1e-3)
    assert float(ours[-1, 2]) == pytest.approx(theirs[-1, 2], abs=tolerance)
