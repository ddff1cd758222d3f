"""Swing-up: motors too weak to lift the links hold them upright in the end."""

from __future__ import annotations

import pytest
import torch

from costate.tasks.pendulum import Pendulum
from costate.train.solve import Outcome, solve


@pytest.fixture(scope="module")
def single() -> Outcome:
    return solve("pendulum1", range(8), task=Pendulum(links=1, strength=0.5))


def test_motors_cannot_hold_a_level_chain() -> None:
    task = Pendulum(links=3)
    q = torch.tensor([torch.pi / 2, 0, 0], dtype=torch.float64)
    needed = task.robot.gravity_torques(q).abs()
    assert torch.allclose(task.strongest, task.strength * needed)


def test_all_starts_swing_up_and_balance(single: Outcome) -> None:
    assert single.solved.all()
    assert float(single.x.abs().max()) <= float(Pendulum(links=1).strongest) + 1e-9


def test_the_energy_in_the_end_is_that_of_a_rod_standing(single: Outcome) -> None:
    energy = single.task.world.energy(single.states[-1])
    assert torch.allclose(energy, torch.full_like(energy, 9.81 / 2), atol=0.02)


def test_it_has_to_swing_to_and_fro(single: Outcome) -> None:
    # Half of the level torque does at most 0.5 pi / 2 = 0.79 of the work of lifting it in half a turn.
    speeds = single.states[..., 1]
    assert (speeds.max(0).values > 0.5).all()
    assert (speeds.min(0).values < -0.5).all()


@pytest.mark.study
@pytest.mark.parametrize("links", range(2, 8))
def test_longer_chains(links: int) -> None:
    found = solve(f"pendulum{links}", range(20))
    assert int(found.solved.sum()) >= 18
