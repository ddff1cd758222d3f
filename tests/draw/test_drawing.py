"""Drawings: what is drawn of links whose mesh is missing, and of their inertia."""

from __future__ import annotations

import numpy as np
import pytest

from costate.draw.drawing import draw_model, inertia_box, inertia_ellipsoid
from costate.model import Inertia, Link, Model, Shape, load_model


def brick() -> Link:
    m, size = 3.0, np.array([0.2, 0.4, 0.6])
    matrix = np.diag(m / 12 * (np.sum(size**2) - size**2))
    missing = Shape("mesh", np.ones(3), uri="package://gone/brick.stl")
    return Link("brick", Inertia(m, np.array([0.0, 0.1, 0.0]), matrix), (missing,), (missing,))


def test_missing_mesh_is_a_box_with_the_links_inertia_and_said() -> None:
    with pytest.warns(UserWarning, match=r"'brick' is drawn as a box: .*brick.stl.* was not found"):
        drawing = draw_model(Model("wall", (brick(),), ()))
    (part,) = drawing.instances
    assert part.mesh == "box"
    assert sorted(part.scale) == pytest.approx([0.2, 0.4, 0.6])
    assert part.pose[:, 3] == pytest.approx([0.0, 0.1, 0.0])


def test_inertia_shapes_have_the_inertia_they_show() -> None:
    link = brick()
    pose, semi = inertia_ellipsoid(link) or pytest.fail("a link with a mass has an ellipsoid")
    moments = link.inertia.mass / 5 * (np.sum(semi**2) - semi**2)
    assert pose.rotation @ np.diag(moments) @ pose.rotation.T == pytest.approx(link.inertia.matrix)
    assert inertia_ellipsoid(Link("empty")) is None
    assert inertia_box(Link("empty"))[1] == pytest.approx([0.05] * 3)


def test_built_in_robots_are_drawn_round_and_touch_as_before() -> None:
    model = load_model("laikago")
    meshes = {part.mesh.rsplit(" ", 4)[0].split(" 0")[0] for part in draw_model(model).instances}
    assert {"rounded box", "rounded bar", "tapered", "sphere"} <= meshes
    exact = {part.mesh for part in draw_model(model, collisions=True).instances}
    assert exact == {"box", "cylinder", "tube", "cap", "sphere"}
    assert all(s.rounding == 0 and s.end_radius is None for link in model.links for s in link.collisions)
