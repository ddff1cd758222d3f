"""Reaching: distances against geometry written out, and paths that reach without touching."""

from __future__ import annotations

import pytest
import torch

from costate.model import Shape
from costate.tasks.reach import HAND, OBSTACLES, Reach
from costate.train.solve import solve

SOLVED = 0.9


@pytest.fixture(scope="module")
def task() -> Reach:
    return Reach()


def test_distances_are_those_of_capsules_and_spheres(task: Reach) -> None:
    scenes = task.scenes(range(4))
    gaps = task.gaps(scenes.start, scenes.params)
    names = [t.shapes for t in task.world._contacts]
    for k, (a, b) in enumerate(names):
        moving, still = (a, b) if b in OBSTACLES else (b, a)
        collider = task.world.setup.collider(moving)
        assert collider is not None and isinstance(collider.shape, Shape)
        shape = collider.shape
        if shape.kind != "capsule" or OBSTACLES[still].kind != "sphere":
            continue
        link = task.robot.forward_kinematics(scenes.start, moving.split("/")[1])
        ends = torch.tensor([[0, 0, -shape.size[1] / 2], [0, 0, shape.size[1] / 2]])
        local = ends @ torch.as_tensor(shape.pose.rotation).T + torch.as_tensor(shape.pose.translation)
        p, q = (link.rotation @ local.T).mT.add(link.position[:, None]).unbind(1)
        centre = scenes.params[f"position:{still}"]
        along = ((centre - p) * (q - p)).sum(-1) / (q - p).square().sum(-1)
        nearest = p + along.clamp(0, 1)[:, None] * (q - p)
        expected = (centre - nearest).norm(dim=-1) - shape.size[0] - OBSTACLES[still].size[0]
        assert torch.allclose(gaps[:, k], expected, atol=1e-9), moving


def test_scenes_do_not_depend_on_their_company(task: Reach) -> None:
    one, three = task.scenes([2]), task.scenes([0, 1, 2])
    assert torch.equal(one.start[0], three.start[2])
    assert torch.equal(one.goal.position[0], three.goal.position[2])


def test_paths_reach_without_touching(task: Reach) -> None:
    numbers = range(24)
    found = solve("reach", numbers, task=task)
    assert float(found.solved.double().mean()) >= SOLVED
    scenes = task.scenes(numbers)
    ok = found.solved
    q = found.states[..., : task.robot.nq]
    hand = task.robot.forward_kinematics(q[-1], HAND)
    assert (hand.position - scenes.goal.position)[ok].norm(dim=-1).max() <= task.tolerance
    clear = task.gaps(q.movedim(0, 1), scenes.params).amin((-1, -2))
    assert (clear[ok] > 0).all()
    assert torch.equal(q[0], scenes.start)
