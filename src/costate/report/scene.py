"""The frame of interactive 3D views: a figure with controls, and the way numbers stand in it (`scene.js`)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from costate.collision.mesh.triangles import Mesh
from costate.core.arrays import Array
from costate.report.inline import inline_json


def scene_html(
    name: str,
    kind: str,
    data: Mapping[str, Any],
    speeds: Sequence[float],
    *,
    caption: str = "",
    overlay: str = "",
    controls: str = "",
    below: str = "",
) -> str:
    """Return an interactive view as HTML.

    Args:
        name: Name of the view, for plots that follow it.
        kind: Kind of view, as its script names it.
        data: What its script reads, `times` [s], `speed` and `play` among it.
        speeds: Speeds to choose from.
        caption: Text below.
        overlay: HTML over the scene.
        controls: HTML of further controls.
        below: HTML below the controls.
    """
    options = "".join(f'<option value="{s:g}"{" selected" * (s == data["speed"])}>{s:g}</option>' for s in speeds)
    begin, end = data["times"][0], data["times"][-1]
    return f"""<figure><div class="replay" data-kind="{kind}" id="{escape(name, quote=True)}">
<div class="view"><canvas class="scene" tabindex="0" role="img" aria-label="3D replay; space plays and pauses"></canvas>
<div class="name" hidden></div>{overlay}
<div class="lost">This replay needs WebGL 2, which this browser does not offer.</div></div>
<div class="bar"><button class="play" title="play or pause (space)" aria-label="play or pause">&#9654;</button>
<input class="scrub" type="range" min="{begin}" max="{end}" step="any" value="{begin}" aria-label="time"><span class="clock"></span>
<label>speed <select class="speed">{options}</select></label>
{controls}</div>{below}
<script type="application/json">{inline_json(data)}</script></div><figcaption>{escape(caption)}</figcaption></figure>"""


def mesh_data(name: str, mesh: Mesh) -> dict[str, Any]:
    """Return a mesh as scripts read it."""
    return {
        "name": name,
        "vertices": text_of(mesh.vertices),
        "normals": text_of(mesh.normals),
        "faces": text_of(mesh.faces, np.uint32),
    }


def text_of(values: Array, kind: Any = np.float32) -> str:
    """Return numbers as base64, little-endian."""
    data = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(data.tobytes()).decode()


def rounded(values: Any) -> list[float]:
    """Return numbers with seven digits."""
    return [float(f"{v:.7g}") for v in np.asarray(values, float).ravel()]
