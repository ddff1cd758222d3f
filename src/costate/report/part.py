"""The data of a growing part, as the page's script (`part.js`) reads it.

Numbers are little-endian, deflated and in base64: nodes as float32, in lengths of the drawing; elements as int32, each row as its
difference from the one before; values as levels from 0 to LEVELS between the least and the greatest one, each frame as its
difference from the one before, for which numbers from 0 on stand (0, -1, 1, -2, ...), first all low bytes, then all high ones.
Elements are in the order of their births: `alive` says how many there are in each frame, and the script finds the faces.
"""

from __future__ import annotations

import base64
import zlib
from html import escape
from typing import Any

import numpy as np

from costate.collision.mesh.triangles import UNIT
from costate.core.arrays import Array
from costate.core.display import number, ticks
from costate.draw.part.colors import table
from costate.draw.part.growth import Growth
from costate.draw.particles.cloud import Cloud
from costate.report.scene import mesh_data, rounded, scene_html, text_of

FRAMES = 200
"""Longer histories are thinned to at most as many frames, of those computed; the page does not interpolate between them."""
LEVELS = 4095
"""Number of steps between the least and the greatest value."""
LARGE = 2_000_000
"""Count of numbers from which on text is made quickly, and not as short as possible."""
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
SECONDS = 15.0
"""Time that playing takes at most at the speed chosen first, if there is one that is fast enough [s]."""
SHADES = 16
"""Number of colours from which the scale beside the part is mixed."""


def part_html(
    name: str, growth: Growth, title: str, caption: str = "", *, speed: float | None = None, play: bool = False
) -> str:
    """Return a growing part as HTML. title: what its numbers are. speed: one of SPEEDS; None: one that suits the duration."""
    growth = growth.thinned(FRAMES)
    duration = float(growth.times[-1] - growth.times[0])
    if speed is None:
        speed = next((s for s in SPEEDS if duration / s <= SECONDS), SPEEDS[-1])
    elif speed not in SPEEDS:
        raise ValueError(f"a part starts with a speed out of {', '.join(f'{s:g}' for s in SPEEDS)}; {speed} given")
    controls = """<label>cut <select class="axis"><option value="-1">none</option>
<option value="0">x</option><option value="1">y</option><option value="2">z</option></select></label>
<input class="depth" type="range" min="0" max="1" step="any" value="0.5" aria-label="depth of the cut" hidden>
<label><input class="edges" type="checkbox">mesh</label>"""
    data = part_data(growth) | {"speed": speed, "play": play}
    overlay = scale_html(title, growth)
    return scene_html(name, "part", data, SPEEDS, caption=caption, overlay=overlay, controls=controls)


def part_data(growth: Growth) -> dict[str, Any]:
    """Return what the script reads."""
    mesh, metre = growth.mesh, growth.metre
    levels, least, most = quantised(growth.values)
    spots, on = growth.spots
    low, high = (metre * corner for corner in growth.box)
    return {
        "times": rounded(growth.times),
        "alive": growth.alive,
        "nodes": deflated(metre * mesh.nodes, "<f4"),
        "elements": deflated(np.diff(mesh.elements, axis=0, prepend=0), "<i4"),
        "values": packed_levels(levels),
        "steps": LEVELS,
        "least": least,
        "most": most,
        "limits": list(growth.limits),
        "unit": growth.unit,
        "colors": text_of(table(), np.uint8),
        "spots": rounded(metre * spots),
        "on": [int(x) for x in on],
        "metre": metre,
        "meshes": [mesh_data(k, UNIT[k]()) for k in ("cone", "sphere")],
        "ground": float(low[2]),
        "low": rounded(low),
        "high": rounded(high),
        "outline": rounded(metre * growth.outline),
        "beam": metre * growth.laser_length,
    }


def quantised(values: Array, levels: int = LEVELS) -> tuple[Array, float, float]:
    """Return values (K, N) as levels from 0 on, with the values of the first and the last level."""
    least, most = float(values.min()), float(values.max())
    return np.round((values - least) / ((most - least) or 1.0) * levels).astype(np.uint16), least, most


def packed_levels(levels: Array) -> str:
    """Return levels (K, N) as text: neighbouring frames differ by small numbers, which deflate well."""
    difference = np.diff(levels.astype(np.int16), axis=0, prepend=np.zeros((1, levels.shape[1]), np.int16))
    small = ((difference << 1) ^ (difference >> 15)).astype("<u2")
    return deflated(small.view(np.uint8).reshape(-1, 2).T, np.uint8)


def deflated(values: Array, kind: Any) -> str:
    """Return numbers as text."""
    return base64.b64encode(
        zlib.compress(np.ascontiguousarray(values, kind).tobytes(), 9 if np.size(values) < LARGE else 4)
    ).decode()


def scale_html(title: str, growth: Growth | Cloud) -> str:
    """Return the scale of colours, with numbers beside it."""
    low, high = growth.limits
    chosen = table()[np.linspace(0, len(table()) - 1, SHADES).round().astype(int)]
    colors = ", ".join(f"rgb({r} {g} {b})" for r, g, b in chosen)
    marks = "".join(
        f'<span style="bottom:{100 * (t - low) / (high - low):.2f}%">{number(t, 6)}</span>' for t in ticks(low, high, 5)
    )
    label = escape(f"{title} [{growth.unit}]" if growth.unit else title)
    return f'<div class="scale"><b>{label}</b><div style="background:linear-gradient(to top, {colors})">{marks}</div></div>'
