"""A socket with a chamfer: it catches bottles beside the bore, and its contact is differentiable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.insertion_motions import held, press

import costate as cs
from costate.tasks.insertion import Disturbances, Insertion, InsertionOptions, draw, loss
from costate.tasks.insertion.gentle import Gentle
from costate.tasks.insertion.guidance.guide import SLOW
from costate.tasks.insertion.guidance.steering import ABOVE, heights
from costate.tasks.insertion.loss import InsertionWeights
from costate.tasks.insertion.scene import ARM_V, BOTTLE_RADIUS, DEPTH
from costate.train.episode import Trajectory

D = torch.float64
CHAMFER = 1e-3
"""Height of the chamfer [m]."""
OFFSET = 1e-3
"""Offset that the chamfer of 1 mm and the clearance of 0.3 mm catch [m]."""
SOFT = 2e-4
"""By how much MuJoCo lets shapes overlap under load [m]."""


@pytest.fixture(scope="module")
def task() -> Insertion:
    return Insertion(InsertionOptions().chamfered())


@pytest.fixture(scope="module")
def pressed(task: Insertion) -> torch.Tensor:
    """States of bottles that are pressed down over their seat, 1 mm and 2 mm beside it."""
    starts = torch.stack([held(task, offset, height=0.02) for offset in (0.0, OFFSET, 2 * OFFSET)])
    return press(task, task.world, starts, steps=230)


def test_a_chamfer_catches_what_is_within_its_width(task: Insertion, pressed: torch.Tensor) -> None:
    """Beyond chamfer and clearance the bottle stands on the upper face; within, the bore leads it to its seat."""
    position, tilt, _ = task.errors(pressed[-1])
    beside, height = position[:, :2].norm(dim=-1), position[:, 2]
    assert (height[:2].abs() < 1e-4).all() and float(beside[1]) < task.options.clearance + 1e-4
    assert abs(float(height[2] + BOTTLE_RADIUS * tilt[2]) - DEPTH) < 1e-4  # it leans inwards, on its rim


def test_without_a_chamfer_it_does_not_go_in() -> None:
    task = Insertion(replace(InsertionOptions().chamfered(), chamfer=0.0))
    path = press(task, task.world, held(task, OFFSET, height=0.02)[None], steps=80)
    assert float(task.errors(path[-1])[0][0, 2]) > DEPTH - 1e-3


def test_mujoco_has_the_same_chamfer(task: Insertion) -> None:
    pytest.importorskip("mujoco")
    from costate.tasks.insertion.mujoco.scene import MujocoScene

    starts = torch.stack([held(task, offset, height=0.02) for offset in (OFFSET, 2 * OFFSET)])
    path = press(task, MujocoScene(task, 4 * task.options.substeps, facets=64), starts, steps=230)
    position, _, _ = task.errors(path[-1])
    assert abs(float(position[0, 2])) < SOFT and abs(float(position[1, 2]) - DEPTH) < SOFT
    assert float(position[0, :2].norm()) < task.options.clearance + SOFT
    # It slides in, and is not thrown from wall to wall.
    acceleration = path[:, 0, ARM_V].diff(dim=0) / task.options.dt
    assert float(acceleration.abs().max()) < task.options.acceleration_limit


def test_gradients_through_the_chamfer(task: Insertion, pressed: torch.Tensor) -> None:
    """A step of a bottle that slides down the chamfer, in state and command, against finite differences."""
    position, _, _ = task.errors(pressed[:, 1])
    on = int((position[:, 2] < DEPTH - 6e-4).nonzero()[0])
    state, down = pressed[on, 1], torch.tensor([0, 0, -0.05, 0, 0, 0], dtype=D)
    command = torch.linalg.solve(task.arm.jacobian(state[:6], "bottle"), down)
    after, free = (w.step(state[None], command[None]) for w in (task.plain, task.smooth))
    assert float((after - free).abs().max()) > 1e-3  # it touches
    report = cs.gradcheck(
        lambda x, u: task.plain.step(x[None], 1e3 * u[None])[
            0
        ],  # differences of commands are larger than those of states
        (state, 1e-3 * command),
        names=("state", "command"),
        step=1e-6,
        forward_mode=False,
        second_order=False,
        float32=False,
    )
    assert report.ok, str(report)


def test_the_guide_is_slow_past_the_chamfer() -> None:
    """It comes to the mouth and goes past the chamfer at the given speed, and is at its end when the other guide is."""
    slow, steps, arrival, end = SLOW * 0.01, 80, 44, 1e-4
    past = CHAMFER / slow + ABOVE / slow  # control steps from the waypoint above the mouth
    times = arrival + torch.linspace(-2, past, 50, dtype=D).numpy()
    z = heights(times, steps, arrival, end, slow)
    assert z[times <= arrival][-1] >= DEPTH + ABOVE
    assert -np.diff(z) / np.diff(times) == pytest.approx(slow, rel=0.03)
    assert z[-1] <= DEPTH - 0.97 * CHAMFER
    assert heights(np.array([steps - 0.2]), steps, arrival, end, slow) == pytest.approx(end, abs=1e-9)
    assert (np.diff(heights(np.arange(0, steps), steps, arrival, end, slow)) < 0).all()


def test_shortened_gradients_are_told() -> None:
    """Of three gradients one is too long and one is not finite."""
    gentle = Gentle(Plain(), 2.0)
    state = torch.ones(3, 1, dtype=D, requires_grad=True)
    assert gentle.told() is None
    gentle.step(state, state).backward(torch.tensor([[1.0], [30.0], [torch.inf]], dtype=D))
    assert state.grad is not None and state.grad.flatten().tolist() == [1.0, 2.0, 0.0]
    assert "1 of 3 were shortened to 2 (--state-clip), the longest from 30; 1 were not finite" in str(gentle.told())


class Plain:
    """A world in which nothing moves."""

    setup: Any = None

    def step(self, state: torch.Tensor, control: torch.Tensor, params: Any = None) -> torch.Tensor:
        return 1.0 * state


def test_offsets_of_all_lengths(task: Insertion) -> None:
    """In training every length up to the largest one occurs."""
    drawn = draw(task, 500, torch.Generator().manual_seed(0), Disturbances(target_offset=OFFSET, random_offset=True), D)
    assert drawn.noise is not None
    length = 0.05 * drawn.noise[0, :, 12:14].norm(dim=-1)
    assert float(length.max()) <= OFFSET and 0.45 * OFFSET < float(length.mean()) < 0.55 * OFFSET


def test_gentle_contact_counts(task: Insertion, pressed: torch.Tensor) -> None:
    """The bottle that meets the chamfer has more shock than the one that does not."""
    seen = pressed[: task.steps + 1, :2]
    trajectory = Trajectory(seen, torch.zeros(task.steps, 2, 6, dtype=D))
    found = loss(task, trajectory, InsertionWeights(shock=1.0))["shock"]
    assert float(found[1]) > float(found[0])
