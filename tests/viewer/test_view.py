"""`cs.view`: what it opens, and what it refuses."""

from __future__ import annotations

import urllib.request
from typing import Any

import numpy as np
import pytest
import torch

import costate as cs
from costate.draw.camera import Camera
from costate.draw.poses import motion_of
from costate.viewer.live import Live
from costate.viewer.robots import Robots
from costate.viewer.view import Page, view

pytest.importorskip("viser")


@pytest.fixture(scope="module")
def room() -> cs.World:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
    return cs.World(bodies=[ball], contact=None, gravity=(0, 0, 0), dt=0.01)


def moved(room: cs.World) -> torch.Tensor:
    state = room.initial_state().clone()
    state[..., 2] += 1.5
    return state.reshape(-1)


def test_a_running_world_starts_from_the_state_it_is_given(room: cs.World) -> None:
    page = view(room, moved(room), live=True, port=8340, block=False)
    try:
        assert isinstance(page.content, Live)
        assert torch.equal(page.content.state, moved(room))
        page.content.run(seconds=0.05)
        assert page.content.step_number > 0
    finally:
        page.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": 3, "live": True}, r"one state \(13,\); \(3, 13\) given"),
        ({"live": True, "trails": ["ball"], "energy": True}, "energy, trails: belongs to a motion"),
        ({"options": {"height": True}}, "belong to a world that runs"),
    ],
)
def test_what_cannot_be_shown_is_refused(room: cs.World, options: dict[str, Any], message: str) -> None:
    options = {k: moved(room).expand(v, -1) if k == "states" else v for k, v in options.items()}
    with pytest.raises(ValueError, match=message):
        view(room, port=8341, block=False, **options)


def test_only_worlds_run() -> None:
    with pytest.raises(ValueError, match="run a world; Robot given"):
        view(cs.load_robot("pendulum1"), live=True, port=8342, block=False)


@pytest.fixture(scope="module")
def row() -> Any:
    page = view([cs.load_robot("two_link"), cs.load_robot("racecar")], port=8343, block=False)
    yield page
    page.close()


def test_robots_stand_side_by_side_and_a_new_tab_sees_them_all(row: Page) -> None:
    assert isinstance(row.content, Robots)
    points = []
    for shown in row.content.shown:
        points.append(motion_of(shown.model, shown.q).outline + shown.at)
    assert points[0][:, 1].max() < points[1][:, 1].min()
    first = row.server.initial_camera
    camera = Camera(np.array(first.position), np.array(first.look_at), float(first.fov))
    at = camera.project(np.concatenate(points), 1200, 813)
    assert (
        (at[:, :2] > 0).all() and (at[:, 0] < 1200 - 330).all() and (at[:, 1] < 813).all()
    )  # the panel has 320 pixels


def test_the_page_has_a_title_of_ours(row: Page) -> None:
    for packed in ("gzip", "identity"):
        request = urllib.request.Request(row.url, headers={"Accept-Encoding": packed})
        with urllib.request.urlopen(request, timeout=60) as answer:
            page = answer.read()
            if answer.headers["Content-Encoding"] == "gzip":
                import gzip

                page = gzip.decompress(page)
        assert b"<title>costate: two_link, racecar</title>" in page
