"""Colours for numbers: from dark blue over red to light yellow, in steps that look equally large."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.draw.color import encoded

LIGHTNESS = (0.28, 0.96)
"""Lightness of the ends; it never falls in between."""
HUE = (277.0, 463.0)
"""Hue of the ends [degrees]: blue, and, past red, yellow."""
CHROMA = (0.105, 0.10, 0.038)
"""Chroma of the ends, and how much larger it is in the middle: as much as a screen can show."""
COLORS = 256
"""Number of colours of the table."""


@cache
def table() -> np.ndarray:
    """Return the colours as sRGB bytes (COLORS, 3)."""
    t = np.linspace(0, 1, 4 * COLORS)
    path = _oklab(t)
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    even = np.interp(np.linspace(0, length[-1], COLORS), length, t)
    colors = encoded(_linear_rgb(_oklab(even)))
    colors.setflags(write=False)
    return colors


def colored(values: Any, low: float, high: float) -> np.ndarray:
    """Return the colours of numbers (...) as sRGB bytes (..., 3); those beyond low and high have the colours of the ends."""
    share = (np.asarray(values, float) - low) / (high - low)
    return table()[np.round(np.clip(share, 0, 1) * (COLORS - 1)).astype(int)]


def _oklab(t: Array) -> Array:
    """Return lightness and the two opponent colours (..., 3) along the path, in the space Oklab (Ottosson, 2020)."""
    first, last, more = CHROMA
    chroma = first + (last - first) * t + more * np.sin(np.pi * t)
    hue = np.radians(HUE[0] + (HUE[1] - HUE[0]) * t)
    return np.stack([LIGHTNESS[0] + (LIGHTNESS[1] - LIGHTNESS[0]) * t, chroma * np.cos(hue), chroma * np.sin(hue)], -1)


def _linear_rgb(lab: Array) -> Array:
    """Return linear light (..., 3) of colours in Oklab."""
    cones = (
        lab
        @ np.array(
            [
                [1.0, 0.3963377774, 0.2158037573],
                [1.0, -0.1055613458, -0.0638541728],
                [1.0, -0.0894841775, -1.2914855480],
            ]
        ).T
    )
    return (
        cones**3
        @ np.array(
            [
                [4.0767416621, -3.3077115913, 0.2309699292],
                [-1.2684380046, 2.6097574011, -0.3413193965],
                [-0.0041960863, -0.7034186147, 1.7076147010],
            ]
        ).T
    )
