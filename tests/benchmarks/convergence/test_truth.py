"""The study of convergence: its residual against answers that are known, and the problems that it keeps against the world's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from benchmarks.convergence.problems import Problems, Recorder
from benchmarks.convergence.truth import onto_cone, residual, velocities

D = torch.float64


def point(p: tuple[float, float, float], impulse: tuple[float, float, float], mu: float = 0.5) -> Problems:
    """A mass of 2 kg on the ground, rows along z, x, y. p: momentum without impulses, in the order of the rows."""
    J = np.eye(3)[None]
    arrays = (2.0 * J, J, np.array([p]), np.zeros((1, 3)), np.array([[mu]]), *(np.zeros((1, 3)) for _ in range(3)))
    given = (*arrays, np.array([impulse]), np.zeros(1))
    return Problems(("contact",), ((0, 1, 2),), *given)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("p", "impulse", "missed"),
    [
        ((-2.0, 0.4, 0.3), (2.0, -0.4, -0.3), 0.0),  # it sticks
        ((-2.0, 3.0, 4.0), (2.0, -0.6, -0.8), 0.0),  # it slides, friction against it
        ((1.0, 3.0, 4.0), (0.0, 0.0, 0.0), 0.0),  # it leaves
        ((-2.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0),  # nothing holds it: it sinks in at 1 m/s
        ((1.0, 0.0, 0.0), (0.2, 0.0, 0.0), 0.1),  # it is pushed where it leaves: by as much as a speed of 0.1 m/s
        ((-2.0, 0.4, 0.0), (2.0, 0.0, 0.0), np.hypot(0.2, 0.1)),  # it slides at 0.2 m/s, and nothing rubs
    ],
)
def test_a_point_on_the_ground(
    p: tuple[float, float, float], impulse: tuple[float, float, float], missed: float
) -> None:
    assert residual(point(p, impulse))[0] == pytest.approx(missed, abs=1e-12)


def test_a_convex_relaxation_is_told_apart() -> None:
    """The impulse of least energy within the cone lets what slides fly: it obeys Signorini's law with u_n + mu |u_t| alone."""
    given = point((-2.0, 3.0, 4.0), (0.0, 0.0, 0.0))
    relaxed = onto_cone(-given.p, given.bounds[:, 0])
    v = velocities(given, relaxed)
    assert v[0, 0] == pytest.approx(0.5 * np.hypot(*v[0, 1:]), rel=1e-12)
    assert residual(given, relaxed)[0] > 0.1


def test_kept_problems_are_those_of_the_world() -> None:
    """Two boxes that tumble on the ground: the same step, rates of gaps by differences, forces, and impacts among the problems."""
    names = ("lower", "upper")
    bodies = [cs.Body(n, [cs.shapes.box((0.2, 0.2, 0.2))], m) for n, m in zip(names, (1.0, 50.0), strict=True)]
    ground = cs.Static("ground", cs.shapes.plane())
    world = cs.World(bodies=bodies, scenery=[ground], dt=0.002, contact=cs.Hard(), check=False)
    x = world.initial_state(4, dtype=D)
    x[:, 2], x[:, 9] = 0.1, 0.31
    x[:, 14:] = 0.3 * torch.randn(4, 12, dtype=D, generator=torch.Generator().manual_seed(0))
    states = world.rollout(x, steps=80)[:-1].reshape(-1, world.nx)
    recorder = Recorder(world)
    np.testing.assert_allclose(recorder.call(states)["after"], world.step(states).numpy(), rtol=0, atol=1e-13)
    kept = list(recorder.problems(states))
    assert len(kept) == 2 and len(kept[0]) == len(states) and 3 < len(kept[1]) < len(states)
    found = world.contacts(states)
    still = np.setdiff1d(np.arange(len(states)), np.flatnonzero(recorder.call(states)["hit"]))
    normal = [rows[0] for rows in kept[0].rows]
    np.testing.assert_allclose(
        kept[0].impulses[still][:, normal], 0.002 * found.forces[still].numpy(), rtol=0, atol=1e-12
    )
    # The Jacobian of a state in which nothing strikes, against differences of gaps along a motion.
    h, k = 1e-6, int(still[len(still) // 4])
    moved = states[k].clone()
    rate = kept[0].J[k][normal] @ states[k, 14:].numpy()
    free = cs.World(bodies=bodies, scenery=[ground], dt=h, contact=None, check=False, gravity=(0, 0, 0)).step(moved)
    differences = (world.gaps(free) - world.gaps(moved)).numpy() / h
    np.testing.assert_allclose(rate, differences, rtol=0, atol=1e-4)
    for part in kept:
        assert np.abs(velocities(part) - part.v).max() < 1e-8 and residual(part).max() < 2e-8
