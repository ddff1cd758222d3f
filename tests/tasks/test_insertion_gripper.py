"""The bottle held by a closed mechanism moves as the bottle fixed to the gripper."""

from __future__ import annotations

import torch

from costate.tasks.insertion.gripper import arm_with_fingers, gripper_world
from costate.tasks.insertion.scene import BOTTLE_MASS, arm_with_bottle
from costate.tasks.insertion.task import Insertion

SAME, FAST = 1e-7, 5e-6
"""Of coordinates [rad, m] and of velocities. Torques of servos know constraints to 1e-6 (REGULARISATION in equality.py), and a
light wrist whose bottle is pressed on the floor shows it."""
HELD = slice(6, 9)


def test_the_gripper_weighs_the_same() -> None:
    one, other = arm_with_bottle(), arm_with_fingers()
    assert abs(one.total_mass - other.total_mass) < 1e-12


def test_constraint_fingers_hold_the_bottle() -> None:
    """Random servo commands and a push into the socket: arm and socket move as in the task, and nothing in the gripper does."""
    task = Insertion()
    fixed, closed = task.world, gripper_world(task)
    generator = torch.Generator().manual_seed(0)
    x = task.sample(4, generator, torch.float64)
    x[:2, :6] = task.seats(x[:2, 6:8], height=0.002)
    rows = [*range(6), *range(9, 12), *range(12, 18), *range(21, 24)]  # of the closed world's state
    y = torch.zeros(4, closed.nx, dtype=torch.float64)
    y[:, rows] = x
    command = torch.rand(20, 4, 6, generator=generator, dtype=torch.float64) - 0.5
    command[:, :2] *= 0.1  # those in the socket do not rattle in it, which is chaotic, but push on its floor
    command[:, :2] += (task.seats(x[:2, 6:8], height=-0.004) - x[:2, :6]) / 0.1
    params = {
        "friction": torch.tensor([task.options.friction], dtype=torch.float64),
        "mass:ur5/bottle": torch.tensor([BOTTLE_MASS], dtype=torch.float64),
    }
    expected = fixed.rollout(x, command, params=params)
    found = closed.rollout(y, command)
    assert (fixed.gaps(expected[-1, :2], params=params).min(-1).values < 1e-5).all()  # pressed on the floor
    assert (expected[-1, 2:] - expected[0, 2:]).abs().max() > 0.05  # and moved through the air
    error = (found[..., rows] - expected).abs()
    assert error[..., :9].max() < SAME and error[..., 9:].max() < FAST
    assert found[..., HELD].abs().max() < SAME
