"""What a notebook shows, without a notebook: well-formed HTML with a picture or a frame, in which names are data."""

from __future__ import annotations

import base64
import html
import io
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from lxml import html as parser
from PIL import Image

import costate as cs
from costate.draw.poses import motion_of
from costate.draw.recording import record
from costate.model import Link, Model, Shape
from costate.report import Report

EVIL = '"><script>alert(1)</script>&amp;'


def picture(page: str) -> np.ndarray:
    data = re.search(r'src="data:image/png;base64,([^"]+)"', page)
    assert data, page
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data[1]))).convert("RGB"))


def test_a_robot_is_a_picture_and_a_table_of_its_joints() -> None:
    robot = cs.load_robot("ur5")
    page = robot._repr_html_()
    assert picture(page).shape == (300, 420, 3) and picture(page).std() > 10
    cells = [td.text for td in parser.fromstring(page).iter("td")]
    assert cells[:6] == ["shoulder_pan_joint", "revolute", "rad", "-6.283", "6.283", "3.15"]
    assert "9 links, 6 degrees of freedom, 21 kg" in page


def test_a_world_is_a_picture_and_what_it_holds() -> None:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
    page = cs.World(bodies=[ball], contact=None)._repr_html_()
    assert picture(page).shape == (300, 420, 3)
    cells = [td.text for td in parser.fromstring(page).iter("td")]
    assert cells[cells.index("bodies") + 1] == "ball"


def framed(page: str) -> str:
    (frame,) = parser.fragments_fromstring(page)
    assert frame.tag == "iframe" and frame.get("sandbox") == "allow-scripts"
    return frame.get("srcdoc")


def test_reports_and_motions_stand_in_a_frame() -> None:
    report = Report("Numbers", "a < b")
    report.facts({"loss": 130.0})
    assert framed(report._repr_html_()) == report.html()
    robot = cs.load_robot("pendulum1")
    states = torch.linspace(0, 1, 5).double()[:, None]
    for shown in (record(robot, states, dt=0.1), motion_of(robot, states, dt=0.1)):
        page = framed(shown._repr_html_())
        assert 'class="replay"' in page and "5 states, 0.4 s" in page


def test_names_are_data() -> None:
    model = replace(cs.load_robot("two_link").model, name=EVIL)
    joints = tuple(replace(j, name=f"{EVIL}{k}") for k, j in enumerate(model.joints))
    robot = cs.Robot(replace(model, joints=joints))
    assert "<script" not in robot._repr_html_() and html.escape(EVIL) in robot._repr_html_()
    assert "<script" not in Report(EVIL)._repr_html_()


def test_what_cannot_be_drawn_is_said() -> None:
    lost = Shape("heightfield", np.ones(2), name=EVIL)
    robot = cs.Robot(Model("hill", (Link("ground", visuals=(lost,)),), ()))
    with pytest.warns(UserWarning, match="drawn as a box"):
        assert picture(robot._repr_html_()).any()
