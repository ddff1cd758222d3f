"""Recordings of cloth: shapes that move, robots, files, and what reports are told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import costate as cs
from costate.continuum import ClothModel, Collider, sheet
from costate.draw.cloth.motion import record_cloth
from costate.draw.recording import load_recording, save_recording
from costate.report.replay import recording_html

MODEL = ClothModel(
    [sheet((3, 4), (0.2, 0.3), name="towel")],
    dt=0.1,
    colliders=[Collider(cs.shapes.sphere(0.05), moves=True, name="ball"), Collider(cs.shapes.plane(), name="floor")],
)
TIMES = np.array([0.0, 0.1])


def motion() -> torch.Tensor:
    return MODEL.start().x + torch.tensor([0.0, 0.3])[:, None, None]


def poses() -> torch.Tensor:
    one = torch.cat([torch.tensor([0.0, 0.0, 0.5]), torch.eye(3).flatten()])
    two = torch.cat([torch.tensor([0.7, 0.0, 0.5]), torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]).flatten()])
    return torch.stack([one, two])[:, None]


def test_shapes_and_robots_move_with_the_cloth() -> None:
    robot = cs.load_robot("ur5")
    world = cs.World(robots=[robot], contact=None, dt=0.1)
    states = torch.zeros(2, world.nx, dtype=torch.float64)
    states[1, 0] = 1.0
    found = record_cloth(MODEL, TIMES, motion(), robot=(world, states), poses=poses()).motion
    ball = found.drawing.links.index("ball")
    assert np.allclose(found.links[1, 0, ball], [[0, -1, 0, 0.7], [1, 0, 0, 0], [0, 0, 1, 0.5]])
    assert found.drawing.ground == 0.0  # the floor
    tool = found.drawing.links.index("ur5/tool0")
    expected = world.link_pose(states[1], "ur5/tool0").position
    assert np.allclose(found.links[1, 0, tool, :, 3], expected)
    assert np.allclose(found.surfaces[0].points[1], motion()[1])
    assert found.bounds[1][0] > 0.7
    with pytest.raises(ValueError, match="3 states"):
        record_cloth(MODEL, TIMES, motion(), robot=(world, states[[0, 0, 1]]))


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    first = record_cloth(MODEL, TIMES, motion(), poses=poses())
    again = load_recording(save_recording(first, tmp_path / "towel"))
    (surface,) = again.motion.surfaces
    assert surface.name == "towel" and surface.color == first.motion.surfaces[0].color
    assert np.allclose(surface.points, motion(), atol=1e-6)
    assert np.array_equal(surface.faces, MODEL.scene.triangles)
    text = recording_html("one", again)
    told = json.loads(text.split('<script type="application/json">')[1].split("</script>")[0])
    assert told["surfaces"][0]["name"] == "towel"
