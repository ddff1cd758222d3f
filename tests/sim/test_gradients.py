"""Gradients of steps and rollouts against finite differences: every contact model, integrator, joint kind, actuator and parameter
kind, at random states away from switches; and what happens at a switch."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from tests.gradients import Tolerances, check_gradients

import costate as cs
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.model.builtin.parts import joint, link, robot
from costate.sim import World

D = torch.float64
GROUND = cs.Static("ground", cs.shapes.plane())
STIFF = Tolerances(finite_difference=1e-6, float32=math.inf)
"""Contact makes steps stiff: a millimetre is a hundred newtons."""


def seeded(seed: int, *shape: int) -> torch.Tensor:
    return 2 * torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=D) - 1


def perturbed(world: World, state: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    """State moved in the tangent space: quaternions stay unit."""
    robot = model_robot(world)
    q = robot.integrate(state[..., : world.nq], delta[..., : world.nv])
    return torch.cat([q, state[..., world.nq :] + delta[..., world.nv :]], -1)


@cache
def model_robot(world: World) -> cs.Robot:
    return cs.Robot(world.setup.scene.model)


# --- contact models and integrators -----------------------------------------------------------------------------------

CONTACTS = {
    "bounces": cs.Hard(restitution=0.3, friction=0.4),
    "hard": cs.Hard(friction=0.4, tolerance=1e-12),
    "sweeps, split": cs.PGS(friction=0.4, correction="split"),
    "sweeps, uncorrected": cs.PGS(friction=0.4, correction="none"),
    "sweeps, soft": cs.PGS(friction=0.4, cfm=0.1),
    "compliant": cs.Compliant(friction=0.4, smoothing=5e-3),
}
CASES = [
    (c, i) for c in CONTACTS for i in ("semi_implicit", "explicit", "implicit", "rk4") if i != "rk4" or c == "compliant"
]
CASES = [(c, i) for c, i in CASES if i in ("semi_implicit", "explicit") or c in ("bounces", "compliant")]


@pytest.mark.parametrize(("contact", "integrator"), CASES)
def test_step_with_contact(contact: str, integrator: str) -> None:
    """A tilted box that lands on one corner and slides, and a ball beside it that is about to land within the step."""
    box = cs.Body("box", [cs.shapes.box((0.2, 0.3, 0.1))], 1.5)
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    pairs = [("box", "ground"), ("ball", "ground")]
    options = {"contact": CONTACTS[contact], "integrator": integrator, "collide": pairs, "dt": 2e-3}
    world = World([], [box, ball], [GROUND], **options)
    state = world.initial_state()
    tilt = torch.tensor([0.3, 0.2, 0.1, 0.9], dtype=D)
    state[3:7] = tilt / tilt.norm()
    state[7:10] = torch.tensor([1, 0, 0.1015])
    state[14:] = torch.tensor([0.7, 0.3, -0.5, 0.4, -0.3, 0.6, 0.5, 0.2, -1.5, 1, 2, -1])
    state[2] += -world.gaps(state)[:8].min() - 2e-3  # 2 mm deep
    wrench = seeded(3, 6)

    def after(delta: torch.Tensor, wrench: torch.Tensor) -> torch.Tensor:
        return world.step(perturbed(world, state.to(delta.dtype), delta), wrenches={"box": wrench})

    touching = world.contacts(state, wrenches={"box": wrench}).forces > 1e-3
    assert touching[:8].any(), "the box should touch"
    assert touching[8], "the ball should land"
    check_gradients(after, (torch.zeros(2 * world.nv, dtype=D), wrench), step=1e-4, tolerances=STIFF, float32=False)


# --- joints, springs, friction, limits --------------------------------------------------------------------------------


def zoo() -> Model:
    """Joints of every kind, each with passive forces, in a chain and a side branch; one follows another."""
    kinds = ["revolute", "prismatic", "spherical", "continuous", "planar", "floating"]
    axes = [(0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 0.6, 0.8), (0, 0, 1), (0, 0, 1)]
    parents = ["base", "l0", "l1", "l2", "base", "base"]
    links, joints = [Link("base")], []
    for k, (kind, axis, parent) in enumerate(zip(kinds, axes, parents, strict=True)):
        com, matrix = 0.1 * seeded(k, 3).numpy(), np.diag([0.02, 0.03, 0.025]) * (1 + k / 5)
        links.append(Link(f"l{k}", Inertia(1.0 + k / 3, com, matrix)))
        passive = {"damping": 0.1 + k / 20, "armature": 0.01, "stiffness": 2.0, "rest": 0.1}
        limits: dict[str, Any] = (
            {"lower": np.array([-0.5]), "upper": np.array([0.4])} if kind in ("revolute", "prismatic") else {}
        )
        origin = Transform(np.eye(3), 0.2 * seeded(10 + k, 3).numpy())
        friction = 0.3 if kind in ("revolute", "continuous") else 0.0
        joints.append(
            Joint(f"j{k}", kind, parent, f"l{k}", origin, np.array(axis, float), friction=friction, **passive, **limits)
        )
    return Model("zoo", tuple(links), tuple(joints))


ZOO_CASES = [
    ("semi_implicit", cs.Hard()),
    ("explicit", cs.Hard()),
    ("implicit", cs.Hard(joint_friction=False)),
    ("rk4", cs.Compliant()),
]
ZOO_DRIVES = {"j0": cs.VelocityServo(gain=3.0), "j1": cs.PositionServo(), "j3": cs.Torque(limit=1.0)}


@pytest.mark.parametrize(
    ("integrator", "contact"), ZOO_CASES, ids=lambda x: x if isinstance(x, str) else type(x).__name__
)
def test_step_of_every_joint_kind_and_actuator(integrator: str, contact) -> None:
    """Revolute joint against its limit, prismatic one reaching it, friction sticking and sliding, one servo at its effort limit."""
    world = World([cs.Robot(zoo())], actuators=ZOO_DRIVES, contact=contact, integrator=integrator, dt=5e-3)
    state = perturbed(world, world.initial_state(), 0.5 * seeded(5, 2 * world.nv))
    state[0], state[1] = 0.405, 0.398
    state[world.nq : world.nq + 2] = torch.tensor([0.3, 0.6])
    control = torch.tensor([0.5, 0.2, 0.7], dtype=D)

    def after(delta: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return world.step(perturbed(world, state.to(delta.dtype), delta), u)

    check_gradients(after, (torch.zeros(2 * world.nv, dtype=D), control), step=1e-4, tolerances=STIFF, float32=False)


@pytest.mark.parametrize("actuator", [cs.Torque(limit=2.0), cs.VelocityServo(limit=2.0), cs.PositionServo(limit=20.0)])
def test_actuators_below_and_at_their_limit(actuator) -> None:
    """At the effort limit the control has no say: its gradient is exactly zero."""
    world = World([cs.load_robot("two_link")], actuators=actuator, contact=None, dt=5e-3)
    state = torch.tensor([0.3, -0.4, 0.2, 0.1], dtype=D)
    free = torch.tensor([0.3, -0.4] if isinstance(actuator, cs.PositionServo) else [0.3, 0.1], dtype=D)
    check_gradients(world.step, (state, free), step=1e-4, tolerances=STIFF, float32=False)
    _, B = world.linearize(state, free)
    assert B.abs().max() > 1e-4
    _, B = world.linearize(state, torch.tensor([500.0, -500.0], dtype=D))
    assert B.abs().max() == 0


# --- parameters -------------------------------------------------------------------------------------------------------


def arm() -> Model:
    """A pendulum with a ball at its end, hanging onto the ground."""
    rod = Link(
        "rod",
        Inertia(1.2, np.array([0.02, 0.01, -0.3]), np.diag([0.03, 0.02, 0.01])),
        (),
        (cs.shapes.sphere(0.1, (0, 0, -0.6)),),
    )
    joint = Joint(
        "hinge", "revolute", "base", "rod", Transform(np.eye(3), np.array([0, 0, 0.69])), np.array([0, 1.0, 0])
    )
    joint = replace(joint, damping=0.2, friction=0.1, armature=0.01, stiffness=3.0, rest=0.2)
    return Model("arm", (Link("base"), rod), (joint,))


def lifted(z: float) -> Transform:
    return Transform(np.eye(3), np.array([0, 0, z]))


SHAPE_KINDS = [
    "size:block",
    "position:block",
    "orientation:block",
    "friction:block",
    "position:ground",
    "orientation:ground",
]
LINK_KINDS = ["mass:swing/rod", "com:swing/rod", "inertia:swing/rod", "size:arm/rod/0", "translation:arm/hinge"]
JOINT_KINDS = [f"{k}:swing/hinge" for k in ("rotation", "axis", "damping", "friction", "armature", "stiffness", "rest")]
HARD_KINDS = ["friction", "restitution", "gravity", "mass:block/body", *SHAPE_KINDS, *LINK_KINDS, *JOINT_KINDS]
SOFT_KINDS = ["friction", "stiffness", "damping", "size:block", "position:ground", "size:arm/rod/0", "mass:swing/rod"]


@pytest.mark.parametrize(
    ("contact", "kinds"),
    [(cs.Hard(restitution=0.2, friction=0.05), HARD_KINDS), (cs.Compliant(), SOFT_KINDS)],
    ids=["hard", "soft"],
)
def test_parameters(contact, kinds: list[str]) -> None:
    """Every kind of parameter, all at once and each by itself."""
    block = cs.Body("block", [cs.shapes.box((0.2, 0.3, 0.1), friction=0.3)], 1.5)
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 0.7, joint="planar", axis=(0, 1, 0), pose=lifted(0.099))
    pairs = [("block", "ground"), ("arm", "ground"), ("ball", "ground")]
    robots = {"arm": cs.Robot(arm()), "swing": cs.Robot(arm())}  # contact alone says where an arm that touches goes
    world = World(robots, [block, ball], [GROUND], contact=contact, parameters=kinds, collide=pairs, dt=2e-3)
    state = world.initial_state()
    state[:9] = perturbed(world, state, 0.3 * seeded(8, 2 * world.nv))[:9]
    state[world.nq :] = 0.3 * seeded(9, world.nv)
    state[0] = 0.1
    state[world.nq : world.nq + 2] = torch.tensor([-1.3, 1.3])  # the one towards the ground
    state[-3:] = torch.tensor([0.6, 1.0, 0.2])  # the ball comes down
    state[4] -= float(world.gaps(state)[1:9].min()) + 3e-3  # q: two hinges, then the block's x, y, z
    values = [torch.as_tensor(world.setup.default(p)) for p in kinds]
    values = [v + 1e-3 * seeded(20 + k, v.numel()) for k, v in enumerate(values)]

    def after(*values: torch.Tensor) -> torch.Tensor:
        return world.step(state.to(values[0].dtype), params=dict(zip(kinds, values, strict=True)))

    touch = world.contacts(state, params=dict(zip(kinds, values, strict=True)))
    assert touch.pairs[0][0] == "arm/rod"
    assert touch.forces[0] > 1
    assert (touch.forces[1:9] > 1).any()
    assert touch.forces[9] > 1
    report = check_gradients(after, values, names=kinds, step=1e-4, directions=1, tolerances=STIFF, float32=False)
    assert len(report.checks) > 2 * len(kinds)
    leaves = [v.clone().requires_grad_() for v in values]
    found = torch.autograd.grad(after(*leaves).square().sum(), leaves)
    assert not [k for k, g in zip(kinds, found, strict=True) if not g.abs().max() > 0], (
        "every parameter should matter here"
    )


def test_stiffness_and_damping_of_joint_limits_are_parameters() -> None:
    """A turntable of inertia 2 that turns beyond its limit: I dv/dt = -k d (1 + c v), d the depth, which fades in."""
    parts = [link("base"), link("table", 3.0, inertia=2.0)]
    hinge = joint("hinge", "revolute", "base", "table", limits=(-0.5, 0.5, 10.0, 10.0))
    names = ["limit_stiffness", "limit_damping"]
    contact = cs.Compliant(smoothing=1e-2)
    world = World([cs.Robot(robot("turntable", parts, [hinge], ""))], contact=contact, parameters=names, dt=1e-3)
    q, v = 0.503, 0.7
    values = [torch.tensor([300.0], dtype=D), torch.tensor([0.4], dtype=D)]

    def after(*values: torch.Tensor) -> torch.Tensor:
        state = torch.tensor([q, v], dtype=values[0].dtype)
        return world.step(state, params=dict(zip(names, values, strict=True)))

    depth = 1e-2 * np.log1p(np.exp((q - 0.5) / 1e-2))
    assert float(after(*values)[1]) == pytest.approx(v - 1e-3 * 300 * depth * (1 + 0.4 * v) / 2, abs=1e-12)
    check_gradients(after, values, names=names, tolerances=STIFF, float32=False)


def test_learnable_parameters_of_robots_are_inputs() -> None:
    """Gradients reach a robot's modules through a rollout, equal to those of naming the parameter; new values count at once."""
    robot = cs.Robot(arm())
    module = robot.learn("rod", "mass", cs.params.Positive())
    named = World([cs.Robot(arm())], parameters=["mass:arm/rod"], dt=2e-3)
    world = World([robot], dt=2e-3)
    state, u = torch.tensor([0.4, 0.1], dtype=D), torch.zeros(20, 1, dtype=D)
    mass = torch.tensor(1.2, dtype=D, requires_grad=True)
    (expected,) = torch.autograd.grad(named.rollout(state, u, params={"mass:arm/rod": mass})[-1].sum(), mass)
    loss = world.rollout(state, u)[-1].sum()
    value = module()
    (raw,) = module.parameters()
    (by_value,) = torch.autograd.grad(value.sum(), raw)
    (by_raw,) = torch.autograd.grad(loss, raw)
    assert torch.allclose(by_raw, expected * by_value, rtol=1e-10)
    with torch.no_grad():
        raw += 1.0
    assert not torch.equal(world.rollout(state, u)[-1].sum(), loss)
    assert torch.allclose(world.step(state), named.step(state, params={"mass:arm/rod": module().detach()}), atol=1e-12)


def test_parameters_that_depend_on_the_state() -> None:
    """A damping network is run in every step; its gradient is that of a loop of steps."""
    robot = cs.Robot(arm())
    network = torch.nn.Linear(2, 1).double()
    robot.learn("hinge", "damping", cs.params.OfState(network))
    world = World([robot], contact=None, dt=5e-3)
    state, u = torch.tensor([0.4, 0.1], dtype=D), torch.zeros(10, 1, dtype=D)

    def final(weight: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            network.weight.copy_(weight)
        return world.rollout(state, u)[-1]

    start = network.weight.detach().clone()
    world.rollout(state, u)[-1].sum().backward()
    grad = network.weight.grad
    assert grad is not None
    step = torch.zeros_like(start)
    step[0, 0] = 1e-5
    slope = (final(start + step) - final(start - step)).sum() / 2e-5
    slope = slope.detach()
    assert abs(float(grad[0, 0] - slope)) < 1e-7 * (1 + abs(float(slope)))


# --- rollouts ---------------------------------------------------------------------------------------------------------


def pusher(contact) -> World:
    """An arm whose ball pushes another one along the ground, in which it lies half a millimetre deep."""
    ball = cs.Body("block", [cs.shapes.sphere(0.1)], 0.5, pose=Transform(np.eye(3), np.array([-0.21, 0, 0.0995])))
    pairs = [("block", "ground"), ("arm", "block")]
    options = {"contact": contact, "collide": pairs, "parameters": ["friction"], "dt": 5e-3, "substeps": 2}
    return World([cs.Robot(arm())], [ball], [GROUND], **options)


@pytest.mark.parametrize(
    "contact", [cs.Hard(tolerance=1e-12), cs.Compliant(stiffness=2e3, smoothing=5e-3)], ids=["hard", "soft"]
)
def test_rollout(contact) -> None:
    """Thirty steps with contact made on the way, in initial state, controls, friction and wrenches."""
    world = pusher(contact)
    start = world.initial_state()
    controls = torch.full((30, 1), 4.0, dtype=D) + 0.1 * seeded(2, 30, 1)
    friction, push = torch.tensor([0.3], dtype=D), 0.2 * seeded(4, 30, 6)

    def final(delta: torch.Tensor, u: torch.Tensor, mu: torch.Tensor, wrench: torch.Tensor) -> torch.Tensor:
        state = perturbed(world, start.to(delta.dtype), delta)
        return world.rollout(state, u, params={"friction": mu}, wrenches={"block": wrench})[-1]

    moved = final(torch.zeros(14, dtype=D), controls, friction, push)
    assert abs(float(moved[1] - start[1])) > 0.01, "the block should be pushed"
    tolerances = Tolerances(finite_difference=1e-5, noise=1e-8, float32=math.inf)
    inputs = (torch.zeros(2 * world.nv, dtype=D), controls, friction, push)
    # Values of hard contact scatter by 1e-10, which differences of differences take for a kink: only their error counts here.
    report = cs.gradcheck(final, inputs, step=1e-5, tolerances=tolerances, float32=False, second_order=False)
    assert report.ok, str(report)


def test_checkpoints_change_nothing_but_memory() -> None:
    """Every fifth state, and the same gradients."""
    world = pusher(cs.Hard())
    start = world.initial_state(3)
    controls = torch.full((30, 3, 1), 4.0, dtype=D)
    grads = []
    for every in (1, 5):
        u = controls.clone().requires_grad_()
        mu = torch.tensor([0.3], dtype=D, requires_grad=True)
        states = world.rollout(start, u, params={"friction": mu}, checkpoint=every)
        grads.append((states[:: 5 // every], *torch.autograd.grad(states[:: 5 // every].square().sum(), (u, mu))))
    for a, b in zip(*grads, strict=True):
        assert torch.allclose(a, b, rtol=1e-11, atol=1e-13)


def test_policy_in_the_loop() -> None:
    """A policy's weights get the gradient of the unrolled steps: against finite differences."""
    world = World([cs.load_robot("two_link")], contact=None, dt=0.01)
    state = 0.3 * seeded(6, 5, 4)
    W = seeded(7, 4, 2)

    def final(W: torch.Tensor) -> torch.Tensor:
        return world.rollout(state.to(W.dtype), lambda x, t: torch.tanh(x @ W), steps=10)[-1]

    check_gradients(final, (W,), step=1e-3, float32=False)


# --- at a switch ------------------------------------------------------------------------------------------------------


def ball_on_ground(contact) -> World:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0, joint="prismatic", pose=lifted(0.1))
    return World([], [ball], [GROUND], actuators={"ball": cs.Torque()}, contact=contact, dt=0.01)


def test_at_a_switch() -> None:
    """Lift-off: a resting ball of 1 kg is pulled up by u. Hard contact: v' = max(0, u - g) dt, so the gradient is 0 below the
    weight and dt above, and at the switch itself something between the two, never NaN. A gradient of zero is
    the truth: no small pull changes anything. Soft contact answers on both sides."""
    hard, soft = ball_on_ground(cs.Hard()), ball_on_ground(cs.Compliant())
    state = torch.zeros(2, dtype=D)

    def slope(world: World, state: torch.Tensor, pull: float) -> float:
        u = torch.tensor([pull], dtype=D, requires_grad=True)
        return float(torch.autograd.grad(world.step(state, u)[1], u)[0])

    assert abs(slope(hard, state, 9.81 - 1e-3)) < 1e-9
    assert abs(slope(hard, state, 9.81 + 1e-3) - 0.01) < 1e-9
    assert -1e-9 < slope(hard, state, 9.81) < 0.01 + 1e-9
    rest = soft.rollout(state, torch.zeros(1000, 1, dtype=D))[-1].detach()
    assert abs(slope(soft, rest, 9.81 - 1e-3) - 0.01) < 1e-6
    assert abs(slope(soft, rest, 9.81 + 1e-3) - 0.01) < 1e-6


def test_stick_and_slip_are_two_branches() -> None:
    """A block pulled with less than mu m g does not move: gradient 0; with more it accelerates: gradient dt / m. The step itself is
    continuous across the switch."""
    block = cs.Body("block", [cs.shapes.sphere(0.1)], 1.0, joint="planar", axis=(0, 0, 1))
    ground = cs.Static("wall", cs.shapes.plane((0, -0.1, 0), (-math.pi / 2, 0, 0)))
    stuck = replace(block, inertia=1e6 * np.eye(3))  # it cannot roll
    world = World([], [stuck], [ground], contact=cs.Hard(friction=0.5), gravity=(0, -9.81, 0), dt=0.01)
    state = torch.zeros(6, dtype=D)

    def speed(pull: torch.Tensor) -> torch.Tensor:
        push = torch.cat([pull, torch.zeros(5, dtype=D)])
        return world.step(state, wrenches={"block": push})[3]

    limit = 0.5 * 9.81
    for pull, expected in ((limit - 1e-3, 0.0), (limit + 1e-3, 0.01)):
        u = torch.tensor([pull], dtype=D, requires_grad=True)
        assert abs(torch.autograd.grad(speed(u), u)[0].item() - expected) < 1e-6
    jump = speed(torch.tensor([limit + 1e-9], dtype=D)) - speed(torch.tensor([limit - 1e-9], dtype=D))
    assert abs(float(jump)) < 1e-9
