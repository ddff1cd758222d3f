"""Bodies on which no force acts: what they keep, how they turn, and that every contact model lets them fly alike."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.special import ellipj, ellipk
from tests.gradients import check_gradients

import costate as cs

D = torch.float64
SIDES = (0.1, 0.2, 0.3)
INERTIA = np.diag([0.2**2 + 0.3**2, 0.1**2 + 0.3**2, 0.1**2 + 0.2**2]) / 12
FLOOR = cs.Static("floor", cs.shapes.plane((0, 0, -1e3)))
MODELS = {
    "no contact": None,
    "Hard": cs.Hard(),
    "PGS": cs.PGS(sweeps=2),
    "Compliant": cs.Compliant(),
    "Newton": cs.Newton(),
}
CASES = [(name, "semi_implicit") for name in MODELS]
CASES += [("Hard", "explicit"), ("PGS", "explicit"), ("Hard", "implicit"), ("Newton", "implicit")]


def world_of(contact: cs.ContactModel | None, integrator: str, dt: float = 0.01, com=(0.0, 0.0, 0.0)) -> cs.World:
    """A body with the inertia of a box, without weight and far above the floor, which it would touch at one point."""
    box = cs.Body("box", [cs.shapes.sphere(0.1)], 1.0, INERTIA, com)
    scenery = [] if contact is None else [FLOOR]
    return cs.World([], [box], scenery, contact=contact, integrator=integrator, gravity=(0, 0, 0), dt=dt, check=False)


def rotations(states: torch.Tensor) -> np.ndarray:
    x, y, z, w = states[..., 3:7].numpy().reshape(-1, 4).T
    rows = [
        1 - 2 * (y * y + z * z),
        2 * (x * y - z * w),
        2 * (x * z + y * w),
        2 * (x * y + z * w),
        1 - 2 * (x * x + z * z),
    ]
    rows += [2 * (y * z - x * w), 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]
    return np.stack(rows, -1).reshape(*states.shape[:-1], 3, 3)


def angular_momentum(states: torch.Tensor) -> np.ndarray:
    """About the centre of mass, world axes."""
    return np.einsum("...ij,...j", rotations(states), states[..., 10:13].numpy() @ INERTIA)


# --- what a body keeps ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "integrator"), CASES)
def test_energy_and_momentum_of_a_tumbling_box(name: str, integrator: str) -> None:
    """A minute at 10 ms about the middle axis, which tumbles: the goal is 1 % of the energy. The centre of mass is off the origin,
    and goes straight on."""
    com = np.array([0.05, -0.1, 0.2])
    world = world_of(MODELS[name], integrator, com=tuple(com))
    spins = torch.tensor([1.0, 10.0, 30.0, 60.0], dtype=D)
    state = world.initial_state(4)
    state[:, 10:13] = torch.stack([torch.full_like(spins, 0.02), spins, torch.full_like(spins, 0.02)], -1)
    state[:, 7:10] = torch.tensor([1.0, 2.0, 3.0]) - torch.linalg.cross(state[:, 10:13], torch.tensor(com).expand(4, 3))
    states = world.rollout(state, steps=6000, checkpoint=100)
    assert (states[:, :, 11].amin(0) < -0.9 * spins).all(), "it does not tumble"
    energy = world.energy(states)
    assert ((energy - energy[0]) / energy[0]).abs().max() < 1e-4
    momentum = angular_momentum(states)
    assert (np.abs(momentum - momentum[0]).max((0, 2)) < 1e-11 * np.linalg.norm(momentum[0], axis=-1)).all()
    centre = states[..., :3].numpy() + np.einsum("...ij,j", rotations(states), com)
    flown = np.arange(len(states))[:, None, None] * np.array([1.0, 2.0, 3.0])
    assert np.abs(centre - centre[0] - flown).max() < 1e-8


def test_no_body_gains_energy() -> None:
    """Sticks, plates and blocks, up to 3 rad in a step, where the equation of the middle is not solved."""
    random = np.random.default_rng(0)
    names = ["inertia:box/body"]
    box = cs.Body("box", [cs.shapes.box(SIDES)], 1.0, INERTIA)
    world = cs.World([], [box], contact=None, gravity=(0, 0, 0), parameters=names, check=False)
    second = random.dirichlet([0.3] * 3, 256) + 1e-3
    inertia = torch.tensor(np.stack([np.diag(x.sum() - x) for x in second]).reshape(-1, 9))
    state = world.initial_state(256)
    axes = random.normal(size=(256, 3))
    speeds = random.uniform(0, 300, (256, 1))
    state[:, 10:13] = torch.tensor(speeds * axes / np.linalg.norm(axes, axis=1, keepdims=True))
    after = world.rollout(state, steps=200, params={names[0]: inertia})[-1]
    energies = [world.energy(x, params={names[0]: inertia}) for x in (state, after)]
    assert (energies[1] / energies[0]).max() < 1 + 300e-6
    slow = torch.tensor(speeds[:, 0] < 60)
    assert (energies[1] / energies[0])[slow].min() > 0.99


# --- how it turns -----------------------------------------------------------------------------------------------------


def euler_solution(spin: float, t: np.ndarray) -> np.ndarray:
    """Angular velocity (3,) of a box that turns freely (Landau and Lifshitz, section 37), I3 > I2 > I1, from w2 = 0 on."""
    i1, i2, i3 = np.sort(np.diag(INERTIA))
    w1, w3 = 0.3 * spin, spin
    energy, square = (i1 * w1**2 + i3 * w3**2) / 2, (i1 * w1) ** 2 + (i3 * w3) ** 2
    assert square > 2 * energy * i2
    rate = math.sqrt((i3 - i2) * (square - 2 * energy * i1) / (i1 * i2 * i3))
    m = (i2 - i1) * (2 * energy * i3 - square) / ((i3 - i2) * (square - 2 * energy * i1))
    sn, cn, dn, _ = ellipj(rate * t, m)
    a = math.sqrt((2 * energy * i3 - square) / (i1 * (i3 - i1)))
    b = math.sqrt((2 * energy * i3 - square) / (i2 * (i3 - i2)))
    c = math.sqrt((square - 2 * energy * i1) / (i3 * (i3 - i1)))
    assert rate * t.max() > ellipk(m)
    return np.stack([a * cn, b * sn, c * dn], -1)


def turned(
    integrator: str, contact: cs.ContactModel | None, dt: float, spin: float = 20.0, time: float = 0.96
) -> np.ndarray:
    """The body's axes 1, 2, 3 of growing inertia are z, -y, x: right-handed."""
    world = world_of(contact, integrator, dt)
    state = world.initial_state()
    state[10:13] = torch.tensor([spin, 0.0, 0.3 * spin])
    states = world.rollout(state, steps=round(time / dt))
    return states[:, [12, 11, 10]].numpy() * np.array([1, -1, 1])


@pytest.mark.parametrize(
    ("integrator", "order"), [("semi_implicit", 2), ("explicit", 2), ("implicit", 2), ("euler", 1), ("rk4", 4)]
)
def test_order_of_a_free_turn(integrator: str, order: int) -> None:
    """Against Euler's solution in elliptic functions, at three step lengths."""
    errors = []
    for dt in (0.004, 0.002, 0.001):
        w = turned(integrator, None, dt)
        errors.append(np.abs(w - euler_solution(20.0, dt * np.arange(len(w)))).max())
    for coarse, fine in pairwise(errors):
        assert abs(math.log2(coarse / fine) - order) < 0.25, errors


@pytest.mark.parametrize("contact", [cs.Hard(), cs.PGS(sweeps=2), cs.Newton(), cs.Compliant()])
def test_contact_models_fly_alike(contact: cs.ContactModel) -> None:
    """Far from everything they are the world without contact, to rounding."""
    for integrator in ("semi_implicit", "implicit"):
        free, ours = (turned(integrator, c, 0.01, time=0.5) for c in (None, contact))
        assert np.abs(free - ours).max() < 1e-11


def test_symmetric_top() -> None:
    """A free symmetric top: its spin stays, and the rest of w circles at (I3 - I1) / I1 w3."""
    inertia, dt, steps = np.diag([2e-3, 2e-3, 3e-3]), 0.01, 300
    top = cs.Body("top", [cs.shapes.sphere(0.05)], 1.0, inertia)
    world = cs.World([], [top], contact=None, gravity=(0, 0, 0), dt=dt)
    state = world.initial_state()
    state[10:13] = torch.tensor([2.0, 0.0, 20.0])
    w = world.rollout(state, steps=steps)[:, 10:13].numpy()
    assert np.abs(w[:, 2] - 20).max() < 1e-9
    assert np.abs(np.hypot(w[:, 0], w[:, 1]) - 2).max() < 1e-9
    angle = np.unwrap(np.arctan2(w[:, 1], w[:, 0]))
    assert abs(angle[-1] / (steps * dt) - 0.5 * 20) < 0.01 * 10  # second order: (h w)^2 / 12 = 0.3 %


# --- gradients, robots, notes -----------------------------------------------------------------------------------------


def test_gradients() -> None:
    """Through the equation of the middle: state, mass properties, and second order."""
    box = cs.Body("box", [cs.shapes.box(SIDES)], 1.0, INERTIA, (0.05, -0.1, 0.2))
    names = ["inertia:box/body", "com:box/body"]
    world = cs.World([], [box], contact=None, parameters=names, dt=0.01)
    state = world.initial_state()
    state[7:] = torch.tensor([1.0, -2.0, 0.5, 20.0, -15.0, 10.0])
    inertia, com = torch.tensor(INERTIA).reshape(-1), torch.tensor([0.05, -0.1, 0.2], dtype=D)

    def after(x: torch.Tensor, inertia: torch.Tensor, com: torch.Tensor) -> torch.Tensor:
        return world.rollout(x, steps=3, params=dict(zip(names, (inertia, com), strict=True)))[-1]

    check_gradients(after, (state, inertia, com), names=("state", "inertia", "com"), second_order=True)


def test_at_rest_gradients_are_those_of_rest() -> None:
    world = world_of(None, "semi_implicit")
    A, _ = world.linearize(world.initial_state())
    eye = torch.eye(6, dtype=D)
    expected = torch.cat([torch.cat([eye, 0.01 * eye], 1), torch.cat([0 * eye, eye], 1)])
    torch.testing.assert_close(A, expected, rtol=0, atol=1e-12)


def test_a_swinging_arm_hardly_drifts() -> None:
    """20 s of a pendulum of three links at 10 ms, chaotic: mean energy of the last second less that of the start, by the energy
    above hanging. Euler's method, which takes Coriolis forces from the start of a step, loses nearly all of it."""
    drifts = {}
    for integrator in ("semi_implicit", "euler"):
        world = cs.World([cs.load_robot("pendulum3")], contact=None, integrator=integrator, dt=0.01, check=False)
        state = world.initial_state()
        state[: world.nq] = 1.0
        energy = world.energy(world.rollout(state, steps=2000))
        above = energy[0] - world.energy(torch.zeros(world.nx, dtype=D))
        drifts[integrator] = float((energy[-100:].mean() - energy[0]).abs() / above)
    assert drifts["semi_implicit"] < 0.05 and drifts["euler"] > 0.5, drifts


def test_worlds_say_when_bodies_turn_too_fast() -> None:
    box = cs.Body("box", [cs.shapes.box(SIDES)], 1.0)
    for integrator, spin, bound in (("semi_implicit", 60.0, "0.5"), ("euler", 15.0, "0.1")):
        world = cs.World([], [box], contact=None, integrator=integrator)
        state = world.initial_state()
        state[0] = 1e3  # far away is not fast
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            world.step(state)
        state[11] = spin
        with pytest.warns(cs.model.ModelWarning, match=rf"'box/body' turns by .* below {bound} rad") as found:
            world.rollout(state, steps=2)
            world.step(state)
        assert len(found) == 1 and found[0].filename == __file__
