"""Impacts whose motion is known: values and derivatives of whole roll-outs approach those of the motion as steps get shorter.

Every scene is compared with an independent computation, event by event, at steps of 10, 1 and 0.1 ms. Agreement with the program's
own small differences would not be enough: a time stepper that lets impacts begin with its steps is wrong at any step length, and
its differences with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize

import costate as cs
from costate.model import Transform
from costate.model.rotation import from_rpy

D = torch.float64
STEPS = (1e-2, 1e-3, 1e-4)
G = 9.81
GROUND = cs.Static("ground", cs.shapes.plane())


def no_control(steps: int) -> torch.Tensor:
    return torch.zeros(steps, 0, dtype=D)


def jacobian(world: cs.World, state: list[float], steps: int, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Final values of some coordinates, and their derivatives by the initial state."""
    x = torch.tensor(state, dtype=D, requires_grad=True)
    final = world.rollout(x, no_control(steps))[-1]
    found = [torch.autograd.grad(final[k], x, retain_graph=True)[0] for k in rows]
    return final[rows].detach().numpy(), torch.stack(found).numpy()


def slopes(motion: Callable[[np.ndarray], np.ndarray], at: list[float], step: float = 1e-5) -> np.ndarray:
    """Derivatives of a computation, by central differences of fourth order."""
    x = np.array(at, float)
    columns = []
    for k in range(len(x)):
        e = np.zeros_like(x)
        e[k] = step
        columns.append((8 * (motion(x + e) - motion(x - e)) - (motion(x + 2 * e) - motion(x - 2 * e))) / (12 * step))
    return np.stack(columns, -1)


def falls(errors: list[float], floor: float = 1e-9) -> bool:
    """Whether errors fall in proportion to the steps, each ten times shorter (within a factor of four), or are rounding."""
    return all(b < max(0.4 * a, floor) for a, b in pairwise(errors)) and errors[-1] < max(0.025 * errors[0], floor)


# --- one ball -----------------------------------------------------------------------------------------------------------


def bouncing(p: np.ndarray, seconds: float) -> np.ndarray:
    """Height above the ground and velocity of a ball under gravity, from (height, velocity, restitution)."""
    h, v, e = p
    left = seconds
    while True:
        time = (v + math.sqrt(v * v + 2 * G * h)) / G
        if time > left:
            return np.array([h + v * left - G * left**2 / 2, v - G * left])
        h, v, left = 0.0, -e * (v - G * time), left - time


def ball_world(dt: float, restitution: float) -> cs.World:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    contact = cs.Hard(friction=0.0, restitution=restitution)
    return cs.World(bodies=[ball], scenery=[GROUND], contact=contact, dt=dt, parameters=["restitution"])


def test_a_dropped_ball() -> None:
    """dz/dz0 = 2 g t / v - 1 = 0.544 and dv/dv0 = 1 after 0.8 s; without the time of impact both would be -1."""
    exact = slopes(lambda p: bouncing(np.append(p, 1.0), 0.8), [1.0, 0.0])
    assert abs(exact[0, 0] - 0.544) < 1e-3 and abs(exact[1, 1] - 1) < 1e-6
    value = bouncing(np.array([1.0, 0.0, 1.0]), 0.8)
    errors, off = [], []
    for dt in STEPS:
        world = ball_world(dt, 1.0)
        state = [0, 0, 1.1, 0, 0, 0, 1] + [0.0] * 6
        found, by = jacobian(world, state, round(0.8 / dt), [2, 9])
        errors.append(np.abs(by[:, [2, 9]] - exact).max())
        off.append(np.abs(found - [value[0] + 0.1, value[1]]).max())
    assert falls(off) and errors[1] < 0.02 and errors[2] < 0.002


def test_three_bounces_by_the_restitution() -> None:
    """The derivative of a height after three bounces by e, of which each bounce has a part."""
    seconds, e = 2.2, 0.9
    exact = slopes(lambda p: bouncing(np.array([1.0, 0.0, p[0]]), seconds), [e])[0, 0]
    errors = []
    for dt in STEPS:
        world = ball_world(dt, 0.5)
        state = world.initial_state()
        state[2] = 1.1
        restitution = torch.tensor([e], dtype=D, requires_grad=True)
        final = world.rollout(state, no_control(round(seconds / dt)), params={"restitution": restitution})[-1]
        errors.append(abs(float(torch.autograd.grad(final[2], restitution)[0]) - exact))
    assert falls(errors) and errors[-1] < 0.05 * abs(exact)


def test_spin_after_a_bounce_is_in_the_axes_of_the_body() -> None:
    """Spin of a ball that bounces in the middle of a step, with friction at its bound: mu (1 + e) v / (0.4 r) less of the spin that
    rubs, in world axes."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    contact = cs.Hard(friction=0.1, restitution=0.5)
    world = cs.World(bodies=[ball], scenery=[GROUND], contact=contact, dt=0.01, gravity=(0, 0, 0))
    state = world.initial_state()
    state[2], state[9], state[10:] = 0.11, -2.0, torch.tensor([12.0, -9.0, 15.0])
    after = world.step(state)
    x, y, z, w = after[3:7].tolist()
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    # Friction 0.1 * 1.5 * 2 = 0.3 N s acts against the sliding (-0.9, -1.2) / 1.5 of the lowest point.
    slowed = 0.3 * 0.1 / (0.4 * 0.1**2)
    np.testing.assert_allclose(R @ after[10:].numpy(), [12 - 0.8 * slowed, -9 + 0.6 * slowed, 15], atol=1e-5)
    np.testing.assert_allclose(R @ after[7:10].numpy(), [-0.3 * 0.6, -0.3 * 0.8, 1.0], atol=1e-5)


# --- two discs ----------------------------------------------------------------------------------------------------------


def two_discs(p: np.ndarray, e: float, seconds: float = 1.0, radius: float = 0.1) -> np.ndarray:
    """Positions of two discs after an oblique impact, from (x1, y1, x2, y2, velocities alike)."""
    a, b, va, vb = p[:2], p[2:4], p[4:6], p[6:8]
    d, w = b - a, vb - va
    q, r, s = w @ w, 2 * d @ w, d @ d - 4 * radius**2
    time = (-r - math.sqrt(r * r - 4 * q * s)) / (2 * q)
    a, b = a + va * time, b + vb * time
    n = (b - a) / (2 * radius)
    jump = (1 + e) / 2 * (n @ w) * n
    left = seconds - time
    return np.concatenate([a + (va + jump) * left, b + (vb - jump) * left])


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("turn", [0.0, 1.3])
def test_two_discs_meet_obliquely(e: float, turn: float) -> None:
    """All derivatives of both places, whatever the direction and at any step."""
    c, s = math.cos(turn), math.sin(turn)
    R = np.array([[c, -s], [s, c]])
    p = np.concatenate([R @ x for x in ([-0.5, 0.0], [0.1, 0.09], [1.0, 0.05], [0.0, 0.0])])
    exact = slopes(lambda x: two_discs(x, e), list(p))
    if turn == 0.0 and e in (0.0, 1.0):
        assert abs(exact[2, 0] - {0.0: 0.393, 1.0: 0.785}[e]) < 1e-3
    state = [p[0], p[1], 0, p[2], p[3], 0, p[4], p[5], 0, p[6], p[7], 0]
    places, columns = [0, 1, 3, 4], [0, 1, 3, 4, 6, 7, 9, 10]
    for dt in STEPS[:2]:
        bodies = [cs.Body(n, [cs.shapes.sphere(0.1)], 1.0, joint="planar") for n in "ab"]
        contact = cs.Hard(friction=0.0, restitution=e)
        world = cs.World(bodies=bodies, contact=contact, gravity=(0, 0, 0), dt=dt)
        found, by = jacobian(world, state, round(1 / dt), places)
        np.testing.assert_allclose(found, two_discs(p, e), atol=1e-7)
        np.testing.assert_allclose(by[:, columns], exact, atol=1e-6)


# --- a box that strikes with a corner -----------------------------------------------------------------------------------


def tumbling_box(p: np.ndarray, seconds: float = 0.6, edge: float = 0.2, mass: float = 1.0) -> np.ndarray:
    """Height, angle and their rates of a box in the plane after one frictionless elastic impact of a corner with the ground."""
    y, angle, vy, spin = p
    half, inertia = edge / 2, mass * edge**2 / 6
    corners = [np.array([sx, sy]) for sx in (-half, half) for sy in (-half, half)]

    def height(corner: np.ndarray, t: float) -> float:
        a = angle + spin * t
        return y + vy * t + math.sin(a) * corner[0] + math.cos(a) * corner[1]

    times = np.linspace(0, seconds, 2001)
    hits = []
    for corner in corners:
        signs = np.array([height(corner, t) for t in times])
        k = int(np.argmax(signs < 0))
        if k:
            hits.append((brentq(lambda t, c=corner: height(c, t), times[k - 1], times[k], xtol=1e-15), corner))
    time, corner = min(hits, key=lambda hit: hit[0])
    a = angle + spin * time
    lever = math.cos(a) * corner[0] - math.sin(a) * corner[1]
    closing = vy + spin * lever
    impulse = -2 * closing / (1 / mass + lever**2 / inertia)
    vy_after, spin_after = vy + impulse / mass, spin + lever * impulse / inertia
    left = seconds - time
    return np.array([y + vy * time + vy_after * left, a + spin_after * left, vy_after, spin_after])


@pytest.mark.parametrize("integrator", ["semi_implicit", "explicit"])
def test_a_spinning_box_strikes_with_a_corner(integrator: str) -> None:
    """Its lever depends on the time of impact: d spin / dy0 is large, and 0 for impacts that begin with a step."""
    p = [0.4, 0.3, -1.0, 2.0]
    exact = slopes(tumbling_box, p)
    assert abs(exact[3, 0]) > 10
    up_is_y = cs.Static("ground", cs.shapes.plane(rpy=(-math.pi / 2, 0.0, 0.0)))
    box = cs.Body("box", [cs.shapes.box((0.2, 0.2, 0.2))], 1.0, joint="planar")
    contact = cs.Hard(friction=0.0, restitution=1.0)
    c, s = math.cos(p[1]), math.sin(p[1])
    state = [0, p[0], p[1], s * p[2], c * p[2], p[3]]  # linear velocities are in the axes of the box
    for dt in STEPS[:2]:
        world = cs.World(
            bodies=[box], scenery=[up_is_y], contact=contact, gravity=(0, 0, 0), dt=dt, integrator=integrator
        )
        found, by = jacobian(world, state, round(0.6 / dt), [1, 2, 5])
        np.testing.assert_allclose(found, tumbling_box(np.array(p))[[0, 1, 3]], atol=1e-6)
        # By height and spin alone: a turn at the start also turns the velocity.
        np.testing.assert_allclose(by[:, [1, 5]], exact[[0, 1, 3]][:, [0, 3]], rtol=1e-5, atol=1e-5)


# --- energy -------------------------------------------------------------------------------------------------------------


def rail(name: str) -> cs.Body:
    return cs.Body(name, [cs.shapes.sphere(0.1)], 1.0, joint="prismatic", axis=(1, 0, 0))


def walls(half: float, both: bool = False) -> list[cs.Static]:
    turns = {"left": (-half, 0, (0, math.pi / 2, 0)), "right": (half, 0, (0, -math.pi / 2, 0))}
    if both:
        turns |= {"down": (0, -half, (-math.pi / 2, 0, 0)), "up": (0, half, (math.pi / 2, 0, 0))}
    return [cs.Static(name, cs.shapes.plane((x, y, 0), rpy)) for name, (x, y, rpy) in turns.items()]


@pytest.mark.parametrize("e", [1.0, 0.7])
def test_no_step_gains_energy(e: float) -> None:
    """Three balls between two walls, from many starts."""
    contact = cs.Hard(friction=0.0, restitution=e)
    world = cs.World(
        bodies=[rail(n) for n in "abc"], scenery=walls(0.5), contact=contact, gravity=(0, 0, 0), dt=0.01, check=False
    )
    random = np.random.default_rng(0)
    q = np.sort(random.uniform(-0.39, 0.39, (2000, 3)), 1)
    q = q[(np.diff(q, axis=1) > 0.201).all(1)]
    state = torch.tensor(np.concatenate([q, 1.5 * random.normal(size=q.shape)], 1))
    energy = world.energy(world.rollout(state, no_control(100).unsqueeze(1)))
    assert len(q) > 100 and (energy[1:] / energy[:-1]).max() < 1 + 1e-9
    if e == 1.0:
        assert (energy[-1] / energy[0]).min() > 0.99


def test_a_gas_keeps_its_energy() -> None:
    """Nine discs in a box, 2 s of elastic impacts at steps of 10 ms."""
    bodies = [cs.Body(f"b{k}", [cs.shapes.sphere(0.06)], 1.0, joint="planar") for k in range(9)]
    contact = cs.Hard(friction=0.0, restitution=1.0)
    world = cs.World(
        bodies=bodies, scenery=walls(0.35, both=True), contact=contact, gravity=(0, 0, 0), dt=0.01, check=False
    )
    grid = np.stack(np.meshgrid([-0.2, 0, 0.2], [-0.2, 0, 0.2]), -1).reshape(-1, 2)
    random = np.random.default_rng(1)
    still = np.zeros((9, 1))
    numbers = [np.concatenate([x, still], 1).ravel() for x in (grid, random.normal(size=(9, 2)))]
    states = world.rollout(torch.tensor(np.concatenate(numbers)), no_control(200))
    energy = world.energy(states)
    assert (energy / energy[0] - 1).abs().max() < 1e-3
    assert world.gaps(states).min() > -1e-6


def test_balls_that_touch_pass_the_blow_on() -> None:
    """The first of five balls in a row stops, the last one leaves, in one step, whichever side the blow comes from."""
    contact = cs.Hard(friction=0.0, restitution=1.0)
    world = cs.World(bodies=[rail(n) for n in "abcde"], contact=contact, gravity=(0, 0, 0), dt=0.01)
    states = torch.tensor([[-0.5, 0, 0.2, 0.4, 0.6, 1, 0, 0, 0, 0], [0, 0.2, 0.4, 0.6, 1.1, 0, 0, 0, 0, -1]], dtype=D)
    final = world.rollout(states, no_control(60).unsqueeze(1))[-1]
    expected = torch.tensor([[0, 0, 0, 0, 1], [-1, 0, 0, 0, 0]], dtype=D)
    assert (final[:, 5:] - expected).abs().max() < 1e-6


def test_a_box_that_lands_flat_stays_flat() -> None:
    """All four corners strike together: it bounces without a turn, with and without restitution."""
    box = cs.Body("box", [cs.shapes.box((0.4, 0.2, 0.1))], 1.0)
    for e, speed in ((0.0, 0.0), (0.5, 1.0)):
        contact = cs.Hard(restitution=e)
        world = cs.World(bodies=[box], scenery=[GROUND], contact=contact, gravity=(0, 0, 0), dt=0.01)
        state = world.initial_state()
        state[2], state[9] = 0.055, -2.0
        after = world.step(state)
        assert abs(float(after[9]) - speed) < 1e-5 and after[10:].abs().max() < 1e-5


# --- rows that cannot move, and friction --------------------------------------------------------------------------------


def test_rows_that_cannot_move_anything_stay_out() -> None:
    """A block on a rail along a slope, overlapping it or not, slides as if there was no slope under it."""
    angle = math.radians(17)
    tilt = Transform(from_rpy(np.array([0, angle, 0])), np.zeros(3))
    for overlap in (0.0, 1e-3):
        pose = tilt @ Transform(np.eye(3), np.array([0, 0, 0.05 - overlap]))
        block = cs.Body("block", [cs.shapes.box((0.2, 0.2, 0.1))], 1.0, joint="prismatic", axis=(1, 0, 0), pose=pose)
        slope = cs.Static("slope", cs.shapes.plane(), tilt)
        world = cs.World(bodies=[block], scenery=[slope], contact=cs.Hard(), dt=0.01, check=False)
        after = world.step(torch.tensor([0.0, 0.5], dtype=D))
        assert abs(float(after[1]) - (0.5 + 0.01 * G * math.sin(angle))) < 1e-9


@pytest.mark.parametrize("q", [0.0, 1e-9, 1e-6, 1e-3, 1e-2, 0.1])
def test_corrections_do_not_add_much_energy(q: float) -> None:
    """A hanging pendulum whose tip overlaps the floor by 1 cm."""
    at = Transform(np.eye(3), np.array([0, 0, 0.54]))
    shape = cs.shapes.sphere(0.05, (0, 0, -0.5))
    tip = cs.Body("tip", [shape], 1.0, com=(0, 0, -0.5), joint="revolute", axis=(0, 1, 0), pose=at)
    world = cs.World(bodies=[tip], scenery=[GROUND], contact=cs.Hard(), dt=0.01, check=False)
    states = world.rollout(torch.tensor([q, 0.0], dtype=D), no_control(100))
    energy = world.energy(states)
    # Enough to lift the tip out of the floor three times; an impulse along the rod, which cannot move it, would add megajoules.
    assert energy.max() - energy[0] < 3 * G * 0.01


@pytest.mark.parametrize(("mu", "speed"), [(0.4, -1.0), (1.0, -1.0), (0.4, 1.0), (1.0, 1.0), (2.0, 1.0)])
def test_a_leaning_foot(mu: float, speed: float) -> None:
    """Normal and friction are coupled by the lever, up to A_nt mu > A_nn: the force is that of the closed form, with any
    solver, and its derivative is finite. (Slid the other way with friction 2, the foot would jam: there is no solution.)"""
    lean, dt, inertia = 0.7, 1e-3, 1 / 12
    foot = cs.Body("foot", [cs.shapes.sphere(0.02, (0, 0, -0.5))], 1.0, inertia=np.diag([inertia, inertia, 1e-3]))
    forces = []
    for contact in (cs.Hard(friction=mu), cs.PGS(friction=mu)):
        world = cs.World(bodies=[foot], scenery=[GROUND], contact=contact, dt=dt)
        state = world.initial_state()
        state[4], state[6] = math.sin(lean / 2), math.cos(lean / 2)
        state[2] = 0.5 * math.cos(lean) + 0.02 - 1e-9
        state[7], state[9] = math.cos(lean) * speed, math.sin(lean) * speed  # world (speed, 0, 0) in its axes
        found = world.contacts(state)
        assert float(found.residual) < 1e-9
        forces.append(float(found.forces[0]))
        state.requires_grad_()
        assert torch.autograd.grad(world.step(state)[7], state)[0].abs().max() < 1e3
    # Sliding along x with friction against it: A_nn p + A_nt (-mu p sign) = g dt, from the lever of the foot's lowest point.
    x, z = -0.5 * math.sin(lean), -0.5 * math.cos(lean) - 0.02
    ann, ant = 1 + x * x / inertia, -x * z / inertia
    expected = G * dt / (ann - mu * math.copysign(1, speed) * ant) / dt
    assert abs(forces[0] - forces[1]) < 1e-6 * abs(forces[0])
    assert abs(forces[0] - expected) < 1e-4 * abs(expected)


@pytest.mark.parametrize("angle", [0.0, 0.4, math.pi / 4, 2.0])
def test_friction_is_the_same_in_all_directions(angle: float) -> None:
    """A block stops after v^2 / (2 mu g)."""
    block = cs.Body("block", [cs.shapes.box((0.4, 0.4, 0.1))], 2.0)
    world = cs.World(bodies=[block], scenery=[GROUND], contact=cs.Hard(friction=0.5), dt=2e-3)
    state = world.initial_state()
    state[2], state[7], state[8] = 0.05, 2 * math.cos(angle), 2 * math.sin(angle)
    final = world.rollout(state, no_control(400))[-1]
    assert abs(math.hypot(float(final[0]), float(final[1])) / (4 / (2 * 0.5 * G)) - 1) < 0.01


def test_no_restitution_is_one_law_as_a_constant_and_as_a_parameter() -> None:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    finals = []
    for parameters, params in (([], None), (["restitution"], {"restitution": torch.zeros(1, dtype=D)})):
        world = cs.World(bodies=[ball], scenery=[GROUND], contact=cs.Hard(), dt=0.01, parameters=parameters)
        state = world.initial_state()
        state[2], state[7], state[9] = 0.15, 1.0, -3.0
        finals.append(world.rollout(state, no_control(30), params=params)[-1])
    assert torch.equal(*finals)


# --- control through an impact ------------------------------------------------------------------------------------------


def oblique_optimum(target: np.ndarray, radius: float = 0.2) -> float:
    """Least cost of driving a disc from rest so that it knocks another one to a target, by search over the place, time and velocity
    of the impact: of all forces that reach these, the cheapest are linear in time."""
    a0, b0 = np.array([-2.0, -2.0]), np.array([-1.0, -1.0])

    def cost(p: np.ndarray) -> float:
        angle, time, vx, vy = p
        n, v = np.array([math.cos(angle), math.sin(angle)]), np.array([vx, vy])
        d = b0 - 2 * radius * n - a0
        if not 0.05 < time < 0.95:
            return 1e3
        effort = 12 * d @ d / time**3 - 12 * d @ v / time**2 + 4 * v @ v / time
        end = b0 + (n @ v) * n * (1 - time)
        return float((end - target) @ (end - target) + 0.1 * effort)

    starts = [[math.pi / 4 + k, 0.7, 1.5, 1.5] for k in (-0.3, 0.0, 0.3)]
    found = [
        minimize(cost, s, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5000})
        for s in starts
    ]
    return min(float(f.fun) for f in found)


def test_two_balls_optimal_control_off_the_line() -> None:
    """Push one ball so that it knocks the other to a target off their line: within 2 % of the optimum."""
    target = torch.tensor([0.1, -0.4], dtype=D)
    optimum = oblique_optimum(target.numpy())
    bodies = [cs.Body(n, [cs.shapes.sphere(0.2)], 1.0, joint="planar") for n in "ab"]
    contact = cs.Hard(friction=0.0, restitution=1.0)
    world = cs.World(bodies=bodies, contact=contact, gravity=(0, 0, 0), dt=1 / 100)
    state = torch.tensor([-2, -2, 0, -1, -1, 0] + [0] * 6, dtype=D)
    u = torch.full((100, 2), 2.5, dtype=D, requires_grad=True)
    optimizer = torch.optim.LBFGS([u], max_iter=80, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        push = torch.cat([u, torch.zeros(100, 4, dtype=D)], -1)
        final = world.rollout(state, no_control(100), wrenches={"a": push})[-1]
        total = (final[3:5] - target).square().sum() + 0.1 / 100 * u.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    assert loss().item() < 1.02 * optimum
