"""Problems whose answer is known in closed form, or published: impacts and their gradients, friction, tops and pendulums.

docs/simulation.md lists which contact model passes what, and why.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import costate as cs
from costate.model import Transform
from costate.model.rotation import from_rpy
from costate.sim import World

D = torch.float64
ELASTIC = cs.Hard(friction=0.0, restitution=1.0)
UP_IS_Y = (-math.pi / 2, 0.0, 0.0)
"""Turns a plane's normal to y: these problems are two-dimensional, in x and y."""
GROUND = cs.Static("ground", cs.shapes.plane(rpy=UP_IS_Y))


def soft(stiffness: float) -> cs.Compliant:
    """Elastic, without friction."""
    return cs.Compliant(stiffness=stiffness, damping=0.0, friction=0.0)


def disk(name: str, radius: float) -> cs.Body:
    """A ball of 1 kg in the plane: x, y, angle."""
    return cs.Body(name, [cs.shapes.sphere(radius)], 1.0, joint="planar")


def slider(name: str, radius: float) -> cs.Body:
    """A ball of 1 kg on a rail along x."""
    return cs.Body(name, [cs.shapes.sphere(radius)], 1.0, joint="prismatic", axis=(1, 0, 0))


def no_control(steps: int) -> torch.Tensor:
    return torch.zeros(steps, 0, dtype=D)


# --- elastic impacts --------------------------------------------------------------------------------------------------


def bounce_once(contact, substeps: int = 1) -> tuple[float, float, float, float]:
    """Final height h, and dh/dy0, dh/dvy0, dh/du0 of a ball that bounces once (T = 1 s, 480 steps, no gravity)."""
    world = World([], [disk("ball", 0.1)], [GROUND], contact=contact, gravity=(0, 0, 0), dt=1 / 480, substeps=substeps)
    state = torch.tensor([-1, 1, 0, 2, -2, 0], dtype=D, requires_grad=True)
    force = torch.zeros(480, 6, dtype=D, requires_grad=True)
    states = world.rollout(state, no_control(480), wrenches={"ball": force})
    by_state, by_force = torch.autograd.grad(states[-1, 1], (state, force))
    return states[-1, 1].item(), float(by_state[1]), float(by_state[4]), float(by_force[0, 1])


def test_bounce_once() -> None:
    """A naive time stepper gives dh/dy0 = +1 however short its steps are."""
    h, by_y, by_v, by_u = bounce_once(ELASTIC)
    assert abs(h - 1.2) < 1e-6
    assert abs(by_y - -1) < 1e-6
    assert abs(by_v - -1) < 1e-6
    assert abs(by_u - -1 / 480) < 1e-6 / 480


def test_bounce_once_is_right_on_a_soft_ground() -> None:
    """A linear spring holds the ball for pi sqrt(m / k) = 31.4 ms, in which it does not travel: dh/dvy0 = -(T - 31.4 ms)."""
    held = math.pi * math.sqrt(1 / 1e4)
    h, by_y, by_v, by_u = bounce_once(soft(1e4), substeps=10)
    assert abs(h - (1.2 - 2 * held)) < 1e-4
    assert abs(by_y - -1) < 1e-9
    assert abs(by_v - -(1 - held)) < 1e-4
    assert abs(480 * by_u - -(1 - held)) < 2e-3  # the force acts during the whole first step: dt / 2 late on average


def test_a_bounce_may_fall_anywhere_in_a_step() -> None:
    """Heights over 2 steps' travel: h = 0.2 + |vy| T - y0 for all of them."""
    world = World([], [disk("ball", 0.1)], [GROUND], contact=ELASTIC, gravity=(0, 0, 0), dt=1 / 480)
    state = torch.zeros(50, 6, dtype=D)
    state[:, 1] = torch.linspace(1, 1 + 4 / 480, 50, dtype=D)
    state[:, 4] = -2
    final = world.rollout(state, no_control(480).unsqueeze(1))[-1]
    assert (final[:, 1] - (0.2 + 2 - state[:, 1])).abs().max() < 1e-6


@pytest.mark.parametrize(("contact", "substeps", "tolerance"), [(ELASTIC, 1, 1e-6), (soft(1e6), 20, 5e-3)])
def test_two_equal_balls(contact, substeps: int, tolerance: float) -> None:
    """They swap velocities: the second ends where the first would have, d x2/d(x1, x2, v1, v2) = (1, 0, 1, 0)."""
    bodies = [slider("a", 0.1), slider("b", 0.1)]
    world = World([], bodies, contact=contact, gravity=(0, 0, 0), dt=0.01, substeps=substeps)
    state = torch.tensor([0, 0.52, 1, 0], dtype=D, requires_grad=True)
    (gradient,) = torch.autograd.grad(world.rollout(state, no_control(100))[-1, 1], state)
    assert (gradient - torch.tensor([1, 0, 1, 0])).abs().max() < tolerance


def ground_and_wall(contact, substeps: int = 1, iterations: int = 400) -> tuple[float, torch.Tensor]:
    """Adam on the initial velocity, so that a ball reaches (-2, 1.5) over ground and wall: least loss, and its velocity."""
    wall = cs.Static("wall", cs.shapes.plane((1.75, 0, 0), (0, -math.pi / 2, 0)))
    options = {"contact": contact, "gravity": (0, 0, 0), "dt": 0.6 / 288, "substeps": substeps}
    world = World([], [disk("ball", 0.1)], [GROUND, wall], **options)
    v = torch.tensor([5.0, -5.0], dtype=D, requires_grad=True)
    optimizer = torch.optim.Adam([v], lr=0.3, betas=(0.8, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations)
    best = math.inf, v.detach()
    for _ in range(iterations):
        state = torch.cat([torch.tensor([-0.5, 1, 0], dtype=D), v, torch.zeros(1, dtype=D)])
        loss = (world.rollout(state, no_control(288))[-1, :2] - torch.tensor([-2, 1.5])).square().sum()
        best = min(best, (loss.item(), v.detach().clone()), key=lambda pair: pair[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return best


def test_ground_and_wall_reaches_the_target() -> None:
    """Closed form without friction, e = 0.92: -0.5 -> 1.65 -> -2 in x and 1 -> 0.1 -> 1.5 in y give v = (10.196, -4.036)."""
    loss, v = ground_and_wall(cs.Hard(friction=0.0, restitution=0.92))
    expected = torch.tensor([(1.65 + 0.92 * 2.15 + 2) / (0.92 * 0.6), -(1.4 + 0.92 * 0.9) / (0.92 * 0.6)])
    assert loss < 1e-8
    assert (v - expected).abs().max() < 1e-3


def fly_and_bounce(v: np.ndarray, e: float = 0.92, mu: float = 0.1, r: float = 0.1, seconds: float = 0.6) -> np.ndarray:
    """Where the ball ends, event by event, with Coulomb friction and spin: an independent computation."""
    x, v, spin, left = np.array([-0.5, 1.0]), np.array(v, float), 0.0, seconds
    surfaces = [(np.array([0.0, 1.0]), 0.0), (np.array([-1.0, 0.0]), -1.75)]  # normal, offset
    while True:
        hits = []
        for n, offset in surfaces:
            closing = -n @ v
            if closing > 1e-12:
                hits.append(((n @ x - offset - r) / closing, n))
        time, n = min(hits, key=lambda hit: hit[0], default=(math.inf, None))
        if n is None or time > left:
            return x + v * left
        x, left = x + v * time, left - time
        t = np.array([n[1], -n[0]])
        slip = t @ v + spin * r  # a turn to the left moves the contact point, which is at -r n, along t
        impulse = -(1 + e) * (n @ v)
        rub = -np.sign(slip) * min(mu * impulse, abs(slip) / (1 + 1 / 0.4))
        v, spin = v + impulse * n + rub * t, spin + rub / (0.4 * r)


def test_ground_and_wall_with_friction_end_where_events_say() -> None:
    random = np.random.default_rng(0)
    v = np.stack([random.uniform(6, 12, 40), random.uniform(-6, -3, 40)], -1)
    wall = cs.Static("wall", cs.shapes.plane((1.75, 0, 0), (0, -math.pi / 2, 0)))
    contact = cs.Hard(friction=0.1, restitution=0.92)
    world = World([], [disk("ball", 0.1)], [GROUND, wall], contact=contact, gravity=(0, 0, 0), dt=0.6 / 288)
    state = torch.zeros(40, 6, dtype=D)
    state[:, :2] = torch.tensor([-0.5, 1])
    state[:, 3:5] = torch.as_tensor(v)
    final = world.rollout(state, no_control(288).unsqueeze(1))[-1, :, :2]
    expected = torch.as_tensor(np.stack([fly_and_bounce(x) for x in v]))
    off = (final - expected).norm(dim=-1)
    assert off.median() < 1e-6
    # Two impacts within one step are solved together, which is off by as much as the ball travels meanwhile.
    apart = np.abs(2.15 / v[:, 0] - 0.9 / -v[:, 1]) > 2 * 0.6 / 288
    assert off[torch.as_tensor(apart)].max() < 1e-6


@pytest.mark.parametrize(
    ("contact", "substeps", "largest"),
    [
        (cs.Hard(friction=0.1, restitution=0.92), 1, 0.01),
        (cs.Compliant(stiffness=1e5, damping=0.02, friction=0.1), 10, 0.1),
    ],
)
def test_ground_and_wall_with_friction(contact, substeps: int, largest: float) -> None:
    """Loss starts near 11; the wrong branch, which never meets the wall, ends above 1 at a negative vx."""
    loss, v = ground_and_wall(contact, substeps)
    assert loss < largest
    assert 10 < v[0] < 12  # a soft wall returns somewhat less
    assert -4.7 < v[1] < -4


def two_ball_optimum() -> float:
    """Ball a is driven along the diagonal (least effort to be at distance d with speed v at time t), hits b, which flies on."""
    d = math.sqrt(2) - 0.4

    def loss(p: np.ndarray) -> float:
        v, t = p
        return (math.sqrt(2) - v * (1 - t)) ** 2 + 0.1 * (12 * d**2 / t**3 - 12 * d * v / t**2 + 4 * v**2 / t)

    return float(minimize(loss, [1.5, 0.7], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}).fun)


@pytest.mark.parametrize(("contact", "substeps"), [(ELASTIC, 1), (soft(1e5), 20)])
def test_two_balls_optimal_control(contact, substeps: int) -> None:
    """Push one ball so that it knocks the other to the origin, with little effort: analytic optimum 1.3965."""
    optimum = two_ball_optimum()
    assert abs(optimum - 1.396542) < 1e-6
    bodies = [disk("a", 0.2), disk("b", 0.2)]
    world = World([], bodies, contact=contact, gravity=(0, 0, 0), dt=1 / 480, substeps=substeps)
    state = torch.tensor([-2, -2, 0, -1, -1, 0] + [0] * 6, dtype=D)
    u = torch.full((480, 2), 2.5, dtype=D, requires_grad=True)
    optimizer = torch.optim.LBFGS([u], max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        push = torch.cat([u, torch.zeros(480, 4, dtype=D)], -1)
        final = world.rollout(state, no_control(480), wrenches={"a": push})[-1]
        total = final[3:5].square().sum() + 0.1 / 480 * u.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    assert abs(loss().item() / optimum - 1) < 0.01


# --- chains of impacts ------------------------------------------------------------------------------------------------


def cradle(contact, gap: float, substeps: int, balls: int = 5) -> World:
    """Pendulums of 0.5 m side by side, joints about y."""
    bodies = []
    for k in range(balls):
        pose = Transform(np.eye(3), np.array([k * (0.1 + gap), 0, 0.5]))
        sphere = cs.shapes.sphere(0.05, position=(0, 0, -0.5))
        inertia = 0.4 * 0.05**2 * np.eye(3)
        bodies.append(cs.Body(f"ball{k}", [sphere], 1.0, inertia, (0, 0, -0.5), "revolute", (0, 1, 0), pose))
    pairs = [(f"ball{k}", f"ball{k + 1}") for k in range(balls - 1)]
    return World([], bodies, contact=contact, dt=2e-3, substeps=substeps, collide=pairs)


@pytest.mark.parametrize(
    ("contact", "gap", "substeps"), [(ELASTIC, 1e-3, 5), (soft(1e6), 5e-3, 20)], ids=["hard", "soft"]
)
def test_newtons_cradle(contact, gap: float, substeps: int) -> None:
    """The first ball falls, the last one rises to the same height; those between hang still. Soft balls feel each other over a few
    times the smoothing length, so they need wider gaps."""
    world = cradle(contact, gap, substeps)
    state = world.initial_state()
    state[0] = 0.4  # about y: towards -x
    states = world.rollout(state, no_control(600))
    out = states[:, 4].argmin()  # when the last ball is furthest out
    assert abs(float(states[out, 4]) + 0.4) < 0.01
    assert states[out, :4].abs().max() < 0.02
    if contact is ELASTIC:  # springs store energy while balls touch
        energy = world.energy(states)
        assert (energy - energy[0]).abs().max() < 0.01 * (energy[0] - world.energy(world.initial_state()))


# --- friction ---------------------------------------------------------------------------------------------------------

MU = 0.5


def block_on_incline(contact, angle: float, speed: float, steps: int, substeps: int = 1) -> torch.Tensor:
    """Distance downhill over time of a block, 0.4 x 0.4 x 0.1 m, that starts with a speed downhill."""
    tilt = Transform(from_rpy(np.array([0, angle, 0])), np.zeros(3))
    slope = cs.Static("slope", cs.shapes.plane(), tilt)
    pose = tilt @ Transform(np.eye(3), np.array([0, 0, 0.05 + resting_gap(contact, 2.0 * 9.81 * math.cos(angle) / 4)]))
    block = cs.Body("block", [cs.shapes.box((0.4, 0.4, 0.1))], 2.0, pose=pose)
    world = World([], [block], [slope], contact=contact, dt=2e-3, substeps=substeps)
    state = world.initial_state()
    state[world.nq] = speed  # x of the block, which is the slope's
    downhill = torch.as_tensor(tilt.rotation[:, 0])
    return (world.rollout(state, no_control(steps))[:, :3] - state[:3]) @ downhill


def resting_gap(contact, force: float) -> float:
    """Where soft ground carries a force [N]: k s softplus(-gap / s) = force."""
    if contact.hard:
        return 0.0
    return -contact.smoothing * math.log(math.expm1(force / (contact.stiffness * contact.smoothing)))


MODELS = [
    (cs.Hard(friction=MU), 1),
    (cs.PGS(friction=MU), 1),
    (cs.Compliant(friction=MU, stiffness=1e5), 4),
]


@pytest.mark.parametrize(("contact", "substeps"), MODELS)
def test_block_slips_beyond_the_angle_of_friction(contact, substeps: int) -> None:
    """It stays at 0.02 rad below atan(mu), and slides with g (sin - mu cos) at 0.02 rad above. Smoothed friction,
    mu v / sqrt(v^2 + friction_speed^2), creeps below and is late above, as this equation says."""
    limit = math.atan(MU)
    for angle in (limit - 0.02, limit + 0.02):
        slid = float(block_on_incline(contact, angle, 0.0, 500, substeps)[-1])
        if contact.hard:
            expected = max(9.81 * (math.sin(angle) - MU * math.cos(angle)) / 2, 0.0)
        else:
            expected = smoothed_slide(angle, contact.friction_speed)
        assert abs(slid - expected) < 1e-6 + 0.01 * expected


def smoothed_slide(angle: float, friction_speed: float, seconds: float = 1.0, steps: int = 20_000) -> float:
    """Way down a slope from rest [m]."""
    x, v, dt = 0.0, 0.0, seconds / steps
    for _ in range(steps):
        v += dt * 9.81 * (math.sin(angle) - MU * math.cos(angle) * v / math.hypot(v, friction_speed))
        x += dt * v
    return x


@pytest.mark.parametrize(("contact", "substeps"), MODELS)
def test_block_stops_where_friction_says(contact, substeps: int) -> None:
    """v^2 / (2 mu g) on level ground, from 2 m/s."""
    distance = float(block_on_incline(contact, 0.0, 2.0, 400, substeps)[-1])
    assert abs(distance - 4 / (2 * MU * 9.81)) < 0.01 * distance


# --- smooth motion ----------------------------------------------------------------------------------------------------


def test_spinning_top_precesses() -> None:
    """A symmetric top started in steady precession stays in it: I3 w3 W - (I1 - I3) W^2 cos(tilt) = m g l, I1 about the tip."""
    mass, lever, tilt, spin, dt = 0.5, 0.1, 0.4, 150.0, 2.5e-4
    about_com = np.diag([8e-4, 8e-4, 1e-3])
    i1, i3 = about_com[0, 0] + mass * lever**2, about_com[2, 2]
    # Lagrange's top: (i1 cos) W^2 - i3 w3 W + m g l = 0 with w3 the total spin about the axis; the slow root.
    a, b, c = i1 * math.cos(tilt), -i3 * spin, mass * 9.81 * lever
    rate = (-b - math.sqrt(b * b - 4 * a * c)) / (2 * a)
    top = cs.Body("top", [cs.shapes.sphere(0.01)], mass, about_com, (0, 0, lever), "spherical")
    world = World([], [top], contact=None, integrator="rk4", dt=dt)
    half = tilt / 2
    quaternion = [0, math.sin(half), 0, math.cos(half)]  # about y: the axis leans to +x
    omega = [-rate * math.sin(tilt), 0, spin]  # precession about the vertical, seen from the top, and spin
    state = torch.tensor(quaternion + omega, dtype=D)
    steps = round(2 * math.pi / rate / dt)
    states = world.rollout(state, no_control(steps))
    x, y, z, w = states[:, :4].unbind(-1)
    axis = torch.stack([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], -1)
    assert (axis[:, 2] - math.cos(tilt)).abs().max() < 1e-6
    turned = torch.atan2(axis[:, 1], axis[:, 0])
    expected = rate * dt * torch.arange(steps + 1, dtype=D)
    off = torch.remainder(turned - expected + math.pi, 2 * math.pi) - math.pi
    assert off.abs().max() < 1e-5


def double_pendulum(integrator: str, steps: int, dt: float = 1e-3) -> tuple[World, torch.Tensor]:
    """States of a double pendulum without damping, which starts high up and tumbles."""
    model = cs.load_robot("two_link").model
    free = replace(model, joints=tuple(replace(j, damping=0.0, friction=0.0) for j in model.joints))
    world = World([cs.Robot(free)], contact=None, integrator=integrator, dt=dt, gravity=(0, -9.81, 0))
    state = torch.tensor([1.0, 0.5, 0, 0], dtype=D)
    return world, world.rollout(state, torch.zeros(steps, 2, dtype=D))


@pytest.mark.parametrize(("integrator", "bound"), [("semi_implicit", 0.1), ("rk4", 1e-5)])
def test_energy_of_a_double_pendulum(integrator: str, bound: float) -> None:
    """10,000 steps of 1 ms, chaotic; error relative to the height it starts from. Semi-implicit Euler is not symplectic here,
    for the mass matrix changes with the configuration."""
    world, states = double_pendulum(integrator, 10_000)
    energy = world.energy(states)
    hanging = world.energy(torch.tensor([-math.pi / 2, 0, 0, 0], dtype=D))
    assert ((energy - energy[0]) / (energy[0] - hanging)).abs().max() < bound


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit", 1), ("explicit", 1), ("implicit", 1), ("rk4", 4)])
def test_integrators_have_their_order(integrator: str, order: int) -> None:
    """Half the step, an error 2^order times smaller, after 0.2 s."""
    exact = double_pendulum("rk4", 800, 0.25e-3)[1][-1]
    coarse, fine = (double_pendulum(integrator, n, 0.2 / n)[1][-1] - exact for n in (50, 100))
    ratio = float(coarse.norm() / fine.norm())
    assert abs(math.log2(ratio) - order) < 0.15


@pytest.mark.parametrize("integrator", ["semi_implicit", "explicit", "implicit", "rk4"])
def test_a_spinning_body_flies_along_a_parabola(integrator: str) -> None:
    """Velocities are in the axes of the body, which spins 10 rad/s; its centre does not care."""
    body = cs.Body("block", [cs.shapes.box((0.1, 0.2, 0.3))], 1.0)
    world = World([], [body], contact=None, integrator=integrator, dt=1e-3)
    state = world.initial_state()
    state[7:] = torch.tensor([1, 2, 5, 8, 1, -6])
    final = world.rollout(state, no_control(1000))[-1]
    order = {"explicit": 1, "rk4": 0}.get(integrator, -1)
    expected = torch.tensor([1, 2, 5 - 9.81 / 2 + order * 9.81e-3 / 2], dtype=D)
    assert (final[:3] - expected).abs().max() < (1e-8 if integrator == "rk4" else 1e-12)
