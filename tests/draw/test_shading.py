"""Pictures of a few triangles."""

from __future__ import annotations

import numpy as np

from costate.collision.mesh.triangles import unit_box, unit_sphere
from costate.draw.backdrop import THEMES
from costate.draw.camera import Camera
from costate.draw.color import linear
from costate.draw.shading import painter
from costate.draw.triangles import Triangles, joined, triangles_of

SIZE = (160, 120)
VIEW = Camera(np.array([0.0, -4.0, 1.0]), np.array([0.0, 0.0, 1.0]))
"""Looks along y."""


def at(y: float, soup: Triangles) -> Triangles:
    return soup.moved(np.array([[[1.0, 0, 0, 0], [0, 1, 0, y], [0, 0, 1, 1]]]))


def test_half_of_what_is_seen_through_glass_is_behind_it() -> None:
    ball = at(1.0, triangles_of(unit_sphere(), 0.4, (0.9, 0.05, 0.05, 1.0)))
    pane = at(-1.0, triangles_of(unit_box(), (2.0, 0.1, 2.0), (0.2, 0.3, 0.9, 0.5)))
    solid = at(-1.0, triangles_of(unit_box(), (2.0, 0.1, 2.0), (0.2, 0.3, 0.9, 1.0)))
    paint = painter(VIEW, SIZE, None, THEMES["light"])
    middle = SIZE[1] // 2, SIZE[0] // 2
    glass, front, back = (linear(paint.picture(joined(p))[middle] / 255) for p in ([pane, ball], [solid], [ball]))
    assert np.abs(glass - (front + back) / 2).max() < 0.01
    assert front[2] > 3 * front[0] and back[0] > 3 * back[2]
