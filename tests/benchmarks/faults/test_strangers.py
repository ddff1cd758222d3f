"""Robots of other people, made at random: a sample of `make study-faults`."""

from __future__ import annotations

import pytest

from benchmarks.faults.strangers import CASES, case, many_joints


@pytest.mark.parametrize("kind", CASES)
def test_robots_made_at_random(kind: str) -> None:
    assert [why for k in range(10) if (why := case(CASES[kind][1], f"test {kind} {k}"))] == []


def test_a_tree_of_joints_has_the_torques_of_mujoco() -> None:
    assert case(lambda chance, folder: many_joints(chance, folder, 25), "test joints") == ""
