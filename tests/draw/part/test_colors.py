"""The scale of colours: what a screen can show, ever lighter, in steps that look about equally large."""

from __future__ import annotations

import numpy as np

from costate.draw.color import linear
from costate.draw.part.colors import _linear_rgb, _oklab, colored, table


def lab(srgb: np.ndarray) -> np.ndarray:
    """Return CIE 1976 L*a*b* of sRGB bytes (n, 3) under D65: another space than that in which the scale is made."""
    xyz = (
        linear(srgb / 255.0)
        @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    )
    t = xyz / np.array([0.9505, 1.0, 1.089])
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


def test_a_screen_can_show_all_colours() -> None:
    rgb = _linear_rgb(_oklab(np.linspace(0, 1, 500)))
    assert rgb.min() > 0 and rgb.max() < 1


def test_colours_get_lighter_in_even_steps() -> None:
    found = lab(table()[::17])
    assert len(found) == 16
    lighter = np.diff(found[:, 0])
    assert lighter.min() > 0.8 * lighter.max()
    steps = np.linalg.norm(np.diff(found, axis=0), axis=1)
    assert steps.max() / steps.min() < 2  # by this measure, matplotlib's plasma has 2.9 and jet 3.0


def test_numbers_beyond_the_ends_have_their_colours() -> None:
    found = colored([[-1.0, 2.0], [3.0, 9.0]], 2.0, 3.0)
    assert found.shape == (2, 2, 3)
    assert (found[0] == table()[0]).all() and (found[1] == table()[-1]).all()
