"""The data of particles and of cells of a grid, as the page's script (`particles.js`) reads it.

Positions are levels from 0 to PLACES of the longest edge of the box around them, numbers levels from 0 to LEVELS; both are packed
as the values of a part are (`part.py`): each frame as its difference from the one before. What does not change is there once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.draw.part.colors import table
from costate.draw.particles.cloud import Cloud
from costate.report.part import LEVELS, SECONDS, SPEEDS, packed_levels, quantised, scale_html
from costate.report.scene import rounded, scene_html, text_of

FRAMES = 300
"""Longer histories are thinned to at most as many frames, of those computed; the page does not interpolate between them."""
PLACED = 6_000_000
"""Largest number of particles of all frames together: 36 MB in the browser."""
PLACES = 16383
"""Number of steps along the longest edge of the box around particles."""


def particles_html(
    name: str, cloud: Cloud, title: str, caption: str = "", *, speed: float | None = None, play: bool = False
) -> str:
    """Return particles as HTML. title: what their numbers are. speed: one of SPEEDS; None: one that suits the duration."""
    cloud = cloud.thinned(min(FRAMES, PLACED // cloud.count))
    duration = float(cloud.times[-1] - cloud.times[0])
    if speed is None:
        speed = next((s for s in SPEEDS if s >= 1 and duration / s <= SECONDS), SPEEDS[-1])
    elif speed not in SPEEDS:
        raise ValueError(f"particles start with a speed out of {', '.join(f'{s:g}' for s in SPEEDS)}; {speed} given")
    data = particles_data(cloud) | {"speed": speed, "play": play}
    overlay = "" if cloud.plain else scale_html(title, cloud)
    return scene_html(name, "particles", data, SPEEDS, caption=caption, overlay=overlay)


def particles_data(cloud: Cloud) -> dict[str, Any]:
    """Return what the script reads."""
    metre = cloud.metre
    low, high = (metre * corner for corner in cloud.box)
    edge = float((high - low).max())
    places = np.round((metre * cloud.positions - low) / edge * PLACES).astype(np.uint16)
    levels, least, most = quantised(cloud.values)
    return {
        "times": rounded(cloud.times),
        "count": cloud.count,
        "positions": packed_levels(places.reshape(len(places), -1)),
        "values": packed_levels(levels),
        "step": edge / PLACES,
        "steps": LEVELS,
        "least": least,
        "most": most,
        "limits": list(cloud.limits),
        "unit": cloud.unit,
        "plain": cloud.plain,
        "flat": cloud.flat,
        "cells": cloud.cells,
        "radius": metre * cloud.radius,
        "colors": text_of(table(), np.uint8),
        "metre": metre,
        "meshes": [],
        "ground": float(low[2]),
        "low": rounded(low),
        "high": rounded(high),
        "outline": rounded(metre * cloud.corners),
    }
