"""Arms that handle cloth: gradients through arm and cloth, and what counts as done."""

from __future__ import annotations

import torch
from tests.tasks.cloth_problems import check_derivative, judged

from costate.tasks.cloth.robots.arm import CLAMP
from costate.tasks.cloth.robots.fold import FoldTask, corners, wanted
from costate.tasks.cloth.robots.hang import BAR, LONG, RADIUS, HangTask
from costate.tasks.cloth.robots.stretch import HIGH, StretchTask
from costate.tasks.soft.robots.arm import TOOL

EXACT = 1e-10
"""Tolerance of steps with which differences have some digits."""


def test_derivatives_of_a_towel_that_is_folded() -> None:
    check_derivative(FoldTask(points=4, steps=15, held=2, still=2, tolerance=EXACT), 0, 0.02, reverse=True)


def test_corners_of_a_folded_towel() -> None:
    """Where the gripped corner ends counts, and that the others stay."""
    task = FoldTask(points=4)
    problem = task.problem(1)
    x = problem.model.start().x
    want = wanted(x, 4)
    folded = x.clone()
    folded[0] = x[-1]
    assert torch.equal(corners(folded, 4), want)
    assert task.error(folded[None], want) == 0
    folded[3, 0] += 0.004
    assert abs(task.error(folded[None], want) - 0.004) < 1e-12
    there = problem.extra["want"][0] + 0 * x
    for k, corner in enumerate((0, 3, 12, 15)):
        there[corner] = problem.extra["want"][k]
    for off, good in ((0.99, True), (1.01, False)):
        there[0] = problem.extra["want"][0] + torch.tensor([0.0, 0.0, off * task.aim])
        assert judged(problem, there)[1] is good


def test_a_towel_is_folded_and_its_layers_touch() -> None:
    task = FoldTask(points=5)
    found = task.solve(1, lambda text: None)
    assert found.solved
    assert found.facts["corner error, layers touch [mm]"] < 1e3 * task.limit
    assert found.robot is not None and len(found.robot[1]) == len(found.x)
    top, below = found.x[-1][0, 2], found.x[-1][-1, 2]
    assert top > below + 5e-4  # one layer lies on the other


def test_the_first_guess_of_a_fold_draws_the_towel_back() -> None:
    """One that pushes it ahead leaves slack, with which layers that touch end elsewhere."""
    task = FoldTask(points=5)
    for seed in (1, 417):
        problem = task.problem(seed)
        x = problem.play(torch.as_tensor(problem.first)).x
        lying = corners(x[task.steps // 2], 5)[1:] - corners(x[0], 5)[1:]
        along = problem.extra["want"][3] - corners(x[0], 5)[0]
        assert bool((lying @ along < 0).all())


def test_every_problem_of_hanging_begins_in_reach_of_the_arm() -> None:
    """Out of reach is a ValueError, as problem 4 was with a higher start. The clamp begins above the edge that it holds."""
    task = HangTask(shape=(9, 3))
    problems = [task.problem(seed) for seed in range(50)]
    motion, world = problems[4].play(torch.as_tensor(problems[4].first)), problems[4].world
    assert world is not None
    place = world.link_pose(motion.robot[0], f"arm/{TOOL}")[0]
    held = motion.x[0, :3].mean(0) + torch.tensor([0.0, 0.0, CLAMP])
    assert torch.allclose(place, held, rtol=0, atol=1e-6)


def test_a_towel_hangs_evenly_within_its_limit() -> None:
    task = HangTask(shape=(9, 3))
    problem = task.problem(0)
    along = LONG * (torch.linspace(-0.5, 0.5, 9, dtype=torch.float64))
    towel = torch.zeros(9, 3, 3, dtype=torch.float64) + torch.as_tensor(BAR)
    towel[..., 1] += 0.05 * torch.tensor([-1.0, 0.0, 1.0])
    towel[..., 2] += RADIUS - along.abs()[:, None]
    assert judged(problem, towel.flatten(0, 1), towel.flatten(0, 1))[1]
    for off, good in ((0.99, True), (1.01, False)):
        uneven = towel.clone()
        uneven[0, :, 2] += off * task.limit
        assert judged(problem, uneven.flatten(0, 1), uneven.flatten(0, 1))[1] is good
    assert not judged(problem, towel.flatten(0, 1) + 0.01, towel.flatten(0, 1))[1]  # it still moves


def test_two_arms_stretch_a_towel_and_not_too_far() -> None:
    task = StretchTask(shape=(5, 4))
    problem = task.problem(0)
    flat = torch.as_tensor(problem.model.scene.rest) + torch.tensor([0.5, 0.0, HIGH])
    for off, good in ((0.99, True), (1.01, False)):
        longer = flat.clone()
        longer[:, 0] *= 1 + off * task.strain
        assert judged(problem, longer)[1] is good
    assert not judged(problem, torch.as_tensor(problem.model.scene.points))[1]  # it sags at first
    found = task.solve(0, lambda text: None)
    assert found.solved and found.facts["roll-outs"] < 15
