"""The interface of worlds: shapes, batches, number types, inputs, names, errors, and what a rollout keeps in memory."""

from __future__ import annotations

import math
import os
import pickle
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.warm import run_warm

import costate as cs
from costate.core.fork import COMPILING
from costate.model import Transform
from costate.sim import SimulationError, World

D = torch.float64
GROUND = cs.Static("ground", cs.shapes.plane())
TWO_LINK = cs.load_robot("two_link")


def at(x: float, y: float, z: float) -> Transform:
    return Transform(np.eye(3), np.array([x, y, z]))


def ball(name: str = "ball", z: float = 0.1, radius: float = 0.1, **options) -> cs.Body:
    return cs.Body(name, [cs.shapes.sphere(radius)], 1.0, pose=at(0, 0, z), **options)


@pytest.fixture(scope="module")
def scene() -> World:
    """A robot, a body and the ground."""
    inputs = ["friction", "mass:ball/body", "position:ground"]
    return World([TWO_LINK], [ball()], [GROUND], dt=0.01, substeps=2, parameters=inputs, collide=[("ball", "ground")])


# --- structure --------------------------------------------------------------------------------------------------------


def test_structure(scene: World) -> None:
    assert (scene.nq, scene.nv, scene.nx, scene.nu) == (9, 8, 17, 2)
    assert scene.coordinates("two_link") == (slice(0, 2), slice(9, 11))
    assert scene.coordinates("ball") == (slice(2, 9), slice(11, 17))
    assert scene.actuated == [f"two_link/{j}" for j in TWO_LINK.joint_names]
    assert "ball/body" in scene.link_names
    assert {"ball/body/0", "ground"} <= set(scene.shape_names)
    assert scene.initial_state((2, 3), torch.float32).shape == (2, 3, 17)
    assert scene.initial_state(dtype=torch.float32).dtype == torch.float32


def test_batches_give_what_single_samples_give(scene: World) -> None:
    """Any leading dimensions, shared or not, bit for bit."""
    random = torch.Generator().manual_seed(0)
    state = scene.initial_state((2, 3))
    state[..., scene.nq :] = torch.rand(2, 3, scene.nv, generator=random, dtype=D)
    control = torch.rand(3, 2, generator=random, dtype=D)
    friction = torch.rand(2, 1, 1, generator=random, dtype=D)
    push = torch.rand(6, generator=random, dtype=D)
    after = scene.step(state, control, {"friction": friction}, {"ball": push})
    assert after.shape == (2, 3, scene.nx)
    for i in range(2):
        for k in range(3):
            single = scene.step(state[i, k], control[k], {"friction": friction[i, 0]}, {"ball": push})
            assert torch.equal(single, after[i, k])
    controls = control.expand(4, 3, 2)
    states = scene.rollout(state, controls)
    assert states.shape == (5, 2, 3, scene.nx)
    by_steps = [state]
    for _ in range(4):
        by_steps.append(scene.step(by_steps[-1], control))
    assert torch.equal(states, torch.stack(by_steps))


def test_rollout_without_controls() -> None:
    world = World([cs.load_robot("two_link")], contact=None)
    for batch in ((), (3,), (2, 3)):
        state = world.initial_state(batch)
        state[..., 0] = 0.3
        zero = torch.zeros(8, *batch, 2)
        expected = world.rollout(state, zero)
        assert torch.equal(world.rollout(state, steps=8), expected)
        assert torch.equal(world.rollout(state, zero, steps=8), expected)
        assert torch.equal(world.rollout(state, steps=8, checkpoint=4), expected[::4])
        assert torch.equal(world.rollout(state, steps=8, checkpoint=3), expected[[0, 3, 6, 8]])  # and the last one
        assert torch.equal(world.rollout(state, steps=8, checkpoint=20), expected[[0, 8]])
        assert torch.equal(
            world.rollout(state, lambda x, t: x.new_zeros(2), steps=8, checkpoint=3), expected[[0, 3, 6, 8]]
        )
        assert torch.equal(world.rollout(state, steps=0), state[None])


def test_stretches_of_any_length_have_the_same_gradient() -> None:
    """With controls and wrenches that differ from step to step; the last stretch is shorter."""
    world = World([cs.load_robot("two_link")], contact=None)
    state, chance = world.initial_state().double(), torch.Generator().manual_seed(0)
    controls = torch.randn(7, 2, generator=chance, dtype=D).requires_grad_()
    pushes = torch.randn(7, 6, generator=chance, dtype=D).requires_grad_()
    found = []
    for every in (1, 3):
        end = world.rollout(state, controls, wrenches={"arm2": pushes}, checkpoint=every)[-1]
        found.append((end, *torch.autograd.grad(end.sum(), (controls, pushes))))
    for whole, cut in zip(*found, strict=True):
        torch.testing.assert_close(cut, whole, rtol=1e-12, atol=1e-14)
    assert all(bool((g != 0).all()) for g in found[0][1][:-1])


def test_substeps_are_steps() -> None:
    coarse = World([], [ball(z=0.15)], [GROUND], dt=0.04, substeps=4)
    fine = World([], [ball(z=0.15)], [GROUND], dt=0.01)
    none = torch.zeros(12, 0, dtype=D)
    a, b = coarse.rollout(coarse.initial_state(), none[:3]), fine.rollout(fine.initial_state(), none)
    assert torch.allclose(a, b[::4], atol=1e-14)


def test_float32_is_float32(scene: World) -> None:
    state = scene.initial_state(4)
    state[:, scene.nq :] = 0.1
    single = scene.step(state.float(), torch.ones(2).float())
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), scene.step(state, torch.ones(2, dtype=D)), atol=1e-5)
    x = state.float().requires_grad_()
    (gradient,) = torch.autograd.grad(scene.rollout(x, torch.ones(5, 4, 2))[-1].sum(), x)
    assert gradient.dtype == torch.float32


def test_pickling_and_copies(scene: World) -> None:
    scene.step(scene.initial_state())
    twin = pickle.loads(pickle.dumps(scene))
    state = scene.initial_state(2)
    assert torch.equal(twin.step(state, torch.ones(2, dtype=D)), scene.step(state, torch.ones(2, dtype=D)))


def test_quaternions_stay_unit() -> None:
    world = World([], [ball(z=1.0)], contact=None, dt=0.05)
    state = world.initial_state()
    state[-3:] = torch.tensor([5, -7, 9])
    states = world.rollout(state, torch.zeros(1000, 0, dtype=D))
    assert (states[:, 3:7].norm(dim=-1) - 1).abs().max() < 1e-12


# --- linearisation and transforms -------------------------------------------------------------------------------------


def test_linearize_against_finite_differences(scene: World) -> None:
    """In the tangent space, batched, with the ball deep enough in the ground that its contact stays."""
    state = scene.initial_state(2)
    state[:, 4] = -1e-3
    state[:, scene.nq :] = torch.linspace(-0.3, 0.4, 2 * scene.nv, dtype=D).reshape(2, -1)
    control = torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=D)
    A, B = scene.linearize(state, control)
    assert A.shape == (2, 16, 16)
    assert B.shape == (2, 16, 2)
    one = scene.linearize(state[0], control[0])  # by other code: that of single samples
    assert torch.equal(one[0], A[0]) and torch.equal(one[1], B[0])
    robot = cs.Robot(scene.setup.scene.model)
    nominal = scene.step(state, control)

    def change(dx: torch.Tensor, du: torch.Tensor) -> torch.Tensor:
        moved = robot.integrate(state[:, : scene.nq], dx[: scene.nv])
        start = torch.cat([moved, state[:, scene.nq :] + dx[scene.nv :]], -1)
        after = scene.step(start, control + du)
        dq = robot.difference(nominal[:, : scene.nq], after[:, : scene.nq])
        return torch.cat([dq, after[:, scene.nq :] - nominal[:, scene.nq :]], -1)

    h = 1e-6
    for k in range(18):
        e = torch.zeros(18, dtype=D)
        e[k] = h
        column = (change(e[:16], e[16:]) - change(-e[:16], -e[16:])) / (2 * h)
        exact = A[..., k] if k < 16 else B[..., k - 16]
        assert (column - exact).abs().max() < 1e-6 * (1 + exact.abs().max())


def test_transforms(scene: World) -> None:
    """jacrev through a step equals its VJPs; vmap equals the batch."""
    state = scene.initial_state()
    state[scene.nq :] = 0.1
    J = torch.func.jacrev(scene.step)(state)
    x = state.clone().requires_grad_()
    rows = [torch.autograd.grad(scene.step(x)[k], x)[0] for k in range(scene.nx)]
    assert torch.allclose(J, torch.stack(rows), atol=1e-12)
    batch = torch.stack([state, 2 * state])
    assert torch.equal(torch.func.vmap(scene.step)(batch), scene.step(batch))


# --- actuators --------------------------------------------------------------------------------------------------------


def test_velocity_servos_are_stable_at_ten_milliseconds() -> None:
    """UR5, gain M_ii / 20 ms, gravity compensated: the commanded velocity is reached, and held without sagging."""
    robot = cs.load_robot("ur5")
    world = World([robot], actuators=cs.VelocityServo(), contact=None, dt=0.01)
    target = torch.tensor([0.2, -0.1, 0.15, 0.3, -0.2, 0.1], dtype=D)
    states = world.rollout(world.initial_state(), target.expand(100, 6))
    assert (states[-1, 6:] - target).abs().max() < 0.02
    still = world.rollout(world.initial_state(), torch.zeros(100, 6, dtype=D))
    assert (still[-1] - still[0]).abs().max() < 1e-9


def test_position_servos_reach_their_target() -> None:
    robot = cs.load_robot("ur5")
    world = World([robot], actuators=cs.PositionServo(), contact=None, dt=0.01)
    start = world.initial_state()
    target = start[:6] + 0.1
    states = world.rollout(start, target.expand(200, 6))
    assert (states[-1, :6] - target).abs().max() < 1e-3
    assert (states[:, :6] - target).max() < 0.02, "critically damped: hardly any overshoot"


def test_efforts_are_limited() -> None:
    """On a slider of 1 kg a force of 100 N limited to 2 N gives 2 m/s^2."""
    body = cs.Body("slider", [cs.shapes.sphere(0.1)], 1.0, joint="prismatic", axis=(1, 0, 0))
    for actuator in (cs.Torque(limit=2.0), cs.VelocityServo(limit=2.0), cs.PositionServo(limit=2.0)):
        world = World([], [body], actuators={"slider": actuator}, contact=None, dt=0.01)
        after = world.step(world.initial_state(), torch.tensor([100.0], dtype=D))
        assert torch.allclose(after, torch.tensor([2e-4, 0.02], dtype=D), atol=1e-12)


def test_implicit_integration_is_stable_where_explicit_is_not() -> None:
    """A slider with damping 500 N s/m and a spring of 1e5 N/m at 10 ms steps."""
    model = ball(joint="prismatic").model()
    stiff = replace(model, joints=(replace(model.joints[0], damping=500.0, stiffness=1e5),))
    peaks = {}
    for integrator in ("implicit", "semi_implicit"):
        world = World([cs.Robot(stiff)], contact=None, integrator=integrator, gravity=(0, 0, 0), check=False)
        states = world.rollout(torch.tensor([0.01, 0.0], dtype=D), torch.zeros(50, 1, dtype=D))
        peaks[integrator] = float(states[-1].abs().max())
    assert peaks["implicit"] < 1e-4
    assert not peaks["semi_implicit"] < 1


# --- contact ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contact", [cs.Hard(), cs.Compliant()], ids=["hard", "soft"])
def test_contacts_of_a_resting_box(contact) -> None:
    """Forces sum to the weight; friction holds it on a slope; points and normals are where the box meets the ground."""
    tilt = 0.2
    slope = cs.Static("slope", cs.shapes.plane(rpy=(0, tilt, 0)))
    R = slope.placed.rotation
    box = cs.Body("box", [cs.shapes.box((0.4, 0.3, 0.1))], 2.0, pose=Transform(R, R @ np.array([0, 0, 0.05])))
    world = World([], [box], [slope], contact=contact, dt=2e-3, substeps=1 if isinstance(contact, cs.Hard) else 8)
    state = world.rollout(world.initial_state(), torch.zeros(500, 0, dtype=D))[-1]
    touch = world.contacts(state)
    assert touch.pairs[0] == ("box/body", "world")
    assert touch.shapes[0] == ("box/body/0", "slope")
    total = (touch.forces.unsqueeze(-1) * touch.normals + touch.friction).sum(0)
    assert (total - torch.tensor([0, 0, 2 * 9.81])).abs().max() < 0.02 * 2 * 9.81
    assert torch.allclose(touch.normals[0], torch.as_tensor(R[:, 2]), atol=1e-9)
    low = touch.gaps < 0.05
    assert low.sum() == 4
    assert (touch.points[low] @ torch.as_tensor(R[:, 2])).abs().max() < 1e-3
    assert torch.equal(touch.gaps, world.gaps(state))


def test_split_correction_adds_no_energy() -> None:
    """A ball that starts 2 cm deep: pushed out as velocity it jumps; as position only, it does not."""
    heights = {}
    for correction in ("baumgarte", "split"):
        world = World([], [ball(z=0.08)], [GROUND], contact=cs.PGS(correction=correction), dt=2e-3)
        states = world.rollout(world.initial_state(), torch.zeros(300, 0, dtype=D))
        heights[correction] = float(states[:, 2].max())
        assert abs(float(states[-1, 2]) - 0.1) < 1e-3, "it ends on the surface"
    assert heights["split"] < 0.1001
    assert heights["baumgarte"] > 0.102


def test_joint_limits_hold() -> None:
    """Driven against a limit with full torque, for both contact models."""
    for contact, depth in ((cs.Hard(), 1e-4), (cs.Compliant(limit_stiffness=1e4), 0.05)):
        model = TWO_LINK.model
        limited = tuple(replace(j, lower=np.array([-0.3]), upper=np.array([0.4])) if j.nv else j for j in model.joints)
        world = World([cs.Robot(replace(model, joints=limited))], contact=contact, dt=2e-3)
        low = world.rollout(torch.zeros(4, dtype=D), torch.full((800, 2), -2.0, dtype=D))[:, :2]
        high = world.rollout(torch.zeros(4, dtype=D), torch.full((800, 2), 2.0, dtype=D))[:, :2]
        assert low.min() > -0.3 - depth
        assert high.max() < 0.4 + depth
        assert low[:, 0].min() < -0.29
        if isinstance(contact, cs.Hard):
            assert (low[-1] + 0.3).abs().max() < 2e-4
            assert (high[-1] - 0.4).abs().max() < 2e-4


def test_joint_friction_sticks() -> None:
    """Coulomb friction as a bound holds exactly below it and lets go above."""
    model = ball(joint="prismatic").model()
    rough = cs.Robot(replace(model, joints=(replace(model.joints[0], friction=3.0),)))
    world = World([rough], actuators=cs.Torque(), gravity=(0, 0, 0), dt=0.01)
    assert "friction" in world.report()
    held = world.step(torch.zeros(2, dtype=D), torch.tensor([2.9], dtype=D))
    slips = world.step(torch.zeros(2, dtype=D), torch.tensor([3.5], dtype=D))
    assert held.abs().max() < 1e-8
    assert abs(float(slips[1]) - 0.005) < 1e-8


def test_a_stack_of_boxes_stands() -> None:
    """Three equal boxes for a second."""
    boxes = [cs.Body(f"box{k}", [cs.shapes.box((0.2, 0.2, 0.2))], 1.0, pose=at(0, 0, 0.1 + 0.2 * k)) for k in range(3)]
    pairs = [("box0", "ground"), ("box0", "box1"), ("box1", "box2")]
    world = World([], boxes, [GROUND], contact=cs.Hard(), dt=5e-3, collide=pairs)
    states = world.rollout(world.initial_state(), torch.zeros(200, 0, dtype=D))
    assert (states[-1] - states[0])[: world.nq].abs().max() < 2e-3


# --- which shapes meet ------------------------------------------------------------------------------------------------


def test_pairs_by_rule_and_by_name() -> None:
    robot = cs.load_robot("laikago")
    every = World([robot], [ball()], [GROUND])
    links = {pair for c in every.setup.scene.pairs for pair in [tuple(every.setup.scene.colliders[k].link for k in c)]}
    assert ("laikago/toeFL", "world") in links
    assert not any(a.startswith("laikago") and b.startswith("laikago") for a, b in links)
    feet = World([robot], [ball()], [GROUND], collide=lambda a, b: {a, b} >= {"ground"} and "toe" in a + b)
    assert len(feet.setup.scene.pairs) == 4
    named = World([robot], [ball()], [GROUND], collide=[("laikago/toeFL", "ground"), ("ball", "ground")])
    assert len(named.setup.scene.pairs) == 2
    itself = World([robot], [], [GROUND], self_collision=True)
    own = [c for c in itself.setup.scene.pairs if all(itself.setup.scene.colliders[k].owner == "laikago" for k in c)]
    assert own
    neighbours = {frozenset((f"laikago/{j.parent}", f"laikago/{j.child}")) for j in robot.model.joints}
    assert not any(frozenset(itself.setup.scene.colliders[k].link for k in c) in neighbours for c in own)
    assert len(World([robot], [], [GROUND], self_collision=["laikago"]).setup.scene.pairs) == len(
        itself.setup.scene.pairs
    )


def test_scenery_of_composed_shapes() -> None:
    """A ball falls into a hollow cylinder and stays on its floor; one beside it falls to the ground."""
    cup = cs.shapes.difference(cs.shapes.cylinder(0.2, 0.3), cs.shapes.cylinder(0.15, 0.3, position=(0, 0, 0.05)))
    balls = [ball("in", 0.3, 0.05), replace(ball("out", 0.3, 0.05), pose=at(0.5, 0, 0.3))]
    world = World([], balls, [cs.Static("cup", cup, at(0, 0, 0.15)), GROUND], dt=2e-3)
    final = world.rollout(world.initial_state(), torch.zeros(500, 0, dtype=D))[-1]
    assert abs(float(final[2]) - 0.1) < 1e-3  # 5 cm of floor below
    assert abs(float(final[9]) - 0.05) < 1e-3


def test_a_composed_body_moves() -> None:
    """Half a box, upside down, lands on its corners."""
    half = cs.shapes.difference(cs.shapes.box((0.2, 0.2, 0.2)), cs.shapes.box((0.4, 0.4, 0.4), position=(0, 0, 0.2)))
    body = cs.Body("half", [half], 1.0, inertia=5e-3 * np.eye(3), pose=at(0, 0, 0.15))
    world = World([], [body], [GROUND], dt=2e-3)
    final = world.rollout(world.initial_state(), torch.zeros(300, 0, dtype=D))[-1]
    assert abs(float(final[2]) - 0.1) < 1e-3


def test_report(scene: World) -> None:
    text = scene.report()
    for words in (
        "3 joints, 9 coordinates, 8 velocities, 2 controls",
        "pairs of shapes may touch",
        "normal",
        "operations",
    ):
        assert words in text


# --- errors -----------------------------------------------------------------------------------------------------------


def test_divergence_names_sample_step_and_body() -> None:
    """A servo far too stiff for explicit integration of its damping, in one sample of two."""
    model = ball("slider", joint="prismatic").model()
    robot = cs.Robot(replace(model, joints=(replace(model.joints[0], damping=1000.0),)))
    world = World([robot], contact=None, gravity=(0, 0, 0))
    state = torch.zeros(2, 2, dtype=D)
    state[1, 1] = 1.0
    controls = torch.zeros(400, 2, 1, dtype=D)
    with pytest.raises(SimulationError, match=r"diverges .* after step 9, sample \(1,\), body 'slider/body'"):
        world.rollout(state, controls)
    with pytest.raises(SimulationError, match=r"after step 9, sample \(1,\)"):
        world.rollout(state, lambda x, t: controls[t], steps=20)
    state[0, 0] = math.nan
    with pytest.raises(
        SimulationError, match=r"not finite after step 1, sample \(0,\), body 'slider/body', position 0"
    ):
        world.step(state)
    unchecked = World([robot], contact=None, gravity=(0, 0, 0), check=False)
    assert not torch.isfinite(unchecked.rollout(state, controls)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "heun"}, "unknown integrator 'heun': use one of semi_implicit"),
        ({"integrator": "rk4"}, "rk4 needs smooth forces"),
        ({"dt": 0.0}, "dt must be positive"),
        ({"substeps": 0}, "substeps at least 1"),
        ({"contact": "hard"}, "contact must be Hard"),
        ({"actuators": {"elbow": cs.Torque()}}, "no joint 'elbow' to actuate"),
        ({"parameters": ["colour"]}, "unknown parameter 'colour'"),
        ({"parameters": ["size:moon"]}, "shapes: "),
        ({"parameters": ["mass:moon"]}, "no parameter"),
        ({"parameters": ["stiffness"]}, "unknown parameter 'stiffness'"),
        ({"collide": [("ball", "moon")]}, "names 'moon', which has no shapes"),
        ({"self_collision": ["moon"]}, "self_collision names moon"),
        ({"scenery": [cs.Static("ball", cs.shapes.plane())]}, "names in a world must differ, but ball"),
    ],
)
def test_wrong_options_are_named(options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        World(**({"robots": [TWO_LINK], "bodies": [ball()], "scenery": [GROUND]} | options))


def test_wrong_inputs_are_named(scene: World) -> None:
    state = scene.initial_state()
    with pytest.raises(ValueError, match="restitution is not an input of this world"):
        scene.step(state, params={"restitution": torch.ones(1)})
    with pytest.raises(ValueError, match=r"'position:ground' has shape \(4, 2\); expected \(..., 3\)"):
        scene.step(state, params={"position:ground": torch.ones(4, 2)})
    with pytest.raises(ValueError, match="no link 'moon'"):
        scene.step(state, wrenches={"moon": torch.zeros(6)})
    with pytest.raises(ValueError, match=r"controls have shape \(5, 3\); expected \(T, ..., 2\)"):
        scene.rollout(state, torch.zeros(5, 3, dtype=D))
    with pytest.raises(ValueError, match=r"wrenches of 'ball/body' have shape \(6,\); expected \(5, ..., 6\)"):
        scene.rollout(state, torch.zeros(5, 2, dtype=D), wrenches={"ball": torch.zeros(6)})
    with pytest.raises(ValueError, match="checkpoint is 0; expected the number of steps between states"):
        scene.rollout(state, torch.zeros(5, 2, dtype=D), checkpoint=0)
    with pytest.raises(ValueError, match="needs steps="):
        scene.rollout(state, lambda x, t: torch.zeros(2))
    with pytest.raises(ValueError, match="no robot or body 'moon'"):
        scene.coordinates("moon")
    with pytest.raises(ValueError, match="no shapes of this world can touch"):
        World([TWO_LINK]).contacts(torch.zeros(4, dtype=D))


def test_shapes_that_cannot_touch_say_so() -> None:
    ring = cs.shapes.difference(cs.shapes.sphere(0.2), cs.shapes.sphere(0.3, position=(0.3, 0, 0)))
    body = cs.Body("ring", [ring], 1.0, inertia=np.eye(3))
    with pytest.raises(ValueError, match="'ring/body/0' and 'ground' have no points to touch each other by"):
        World([], [body], [GROUND]).step(torch.zeros(13, dtype=D))
    with pytest.raises(ValueError, match="the inertia of a Difference must be given"):
        World([], [replace(body, inertia=None)])
    with pytest.raises(ValueError, match="sizes of a box must be positive"):
        cs.shapes.box((1, 0, 1))


# --- memory -----------------------------------------------------------------------------------------------------------

MEASURE = """
import gc, sys, torch, costate as cs
def status(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))
ground = cs.Static("ground", cs.shapes.plane())
world = cs.World([cs.load_robot("laikago")], [], [ground], contact=cs.Hard(joint_limits=False), dt=2e-3,
                 collide=lambda a, b: "toe" in a + b)
batch, steps, every = 16, 5000, int(sys.argv[1])
start = world.initial_state(batch).requires_grad_()
def run(steps):
    controls = torch.zeros(steps, batch, 12, dtype=torch.float64, requires_grad=True)
    states = world.rollout(start, controls, checkpoint=every)
    seed = torch.ones_like(states)
    return [controls, states, seed, *torch.autograd.grad(states, (start, controls), seed)]
run(4 * every)
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
own = sum(t.numel() * 8 for t in run(steps))
print((status("VmHWM") - before - own) / (steps * batch * 37 * 8), (status("VmHWM") - before) / (steps * batch * 37 * 8))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peak memory is read from /proc")
@pytest.mark.parametrize(("every", "beyond", "total"), [(1, 0.1, 3.5), (50, 0.4, 1.2)])
def test_memory_of_a_long_rollout(every: int, beyond: float, total: float, tmp_path: Path) -> None:
    """Sixteen Laikagos, 5,000 steps, forward and backward, in a process of its own. Measured: the growth of the peak resident
    memory, less controls, states and their gradients, relative to the states (24 MB). With sparser checkpoints the states
    that are kept shrink; the controls are rearranged once, a third of the states' size."""
    (tmp_path / "measure.py").write_text(MEASURE)
    done = run_warm([str(tmp_path / "measure.py"), str(every)], tmp_path)  # with one thread
    assert done.returncode == 0, done.stderr
    found = [float(number) for number in done.stdout.split()]
    assert found[0] < beyond
    assert found[1] < total


def test_threads_trace_one_after_the_other() -> None:
    """Symbols of CasADi are not for two threads at once: whoever has to trace waits for the lock."""
    worlds = [World([TWO_LINK], [ball()], [GROUND], dt=0.01 * k, collide=[("ball", "ground")]) for k in (1, 2)]
    states: list[torch.Tensor] = []
    threads = [threading.Thread(target=lambda w=w: states.append(w.step(w.initial_state()))) for w in worlds]
    with COMPILING:
        for thread in threads:
            thread.start()
        threads[0].join(0.3)
        assert not any(w._kernels for w in worlds)
    for thread in threads:
        thread.join()
    assert len(states) == 2 and all(w._kernels for w in worlds)
