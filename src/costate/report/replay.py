"""The data of a 3D replay, as the page's script (`replay.js`) reads it.

Numbers are little-endian and in base64: float32, and uint32 for faces. Poses are x y z, qx qy qz qw of each link, in the
order (frame, sample, link); arrows are start, vector and colour, nine numbers each, with the first of each frame in `start`.
"""

from __future__ import annotations

import base64
from html import escape
from typing import Any

import numpy as np
import torch

from costate.collision.mesh.triangles import UNIT
from costate.draw.marks import TRAIL
from costate.draw.poses import Motion
from costate.draw.recording import Recording
from costate.report.heat import strips_html
from costate.report.inline import inline_json
from costate.robot import Pose

FRAMES = 600
"""Longer motions are thinned to at most as many frames; the page interpolates between them."""


SPEEDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


def recording_html(
    name: str,
    recording: Recording,
    caption: str = "",
    *,
    speed: float = 1.0,
    play: bool = False,
    box: tuple[Any, Any] | None = None,
) -> str:
    """Return a replay of a recording as HTML. box: corners of what the camera sees at first [m]; None: everything."""
    if speed not in SPEEDS:
        raise ValueError(f"a replay starts with a speed out of {', '.join(map(str, SPEEDS))}; {speed} given")
    motion, trails = recording.motion, recording.trails
    arrows = [np.concatenate([np.zeros((0, 9)), *frames]) for frames in _together(recording)]
    strips = strips_html(recording.heat.values.T, recording.heat.names) if recording.heat else ""
    start = {"speed": speed, "play": play} | ({} if box is None else {"box": [_rounded(corner) for corner in box]})
    data = inline_json(_data(motion, arrows, trails) | start)
    speeds = "".join(f'<option value="{s:g}"{" selected" * (s == speed)}>{s:g}</option>' for s in SPEEDS)
    end = float(motion.times[-1])
    marks = "" if any(len(a) for a in arrows) else " hidden"
    paths = "" if trails else " hidden"
    return f"""<figure><div class="replay" id="{escape(name, quote=True)}">
<div class="view"><canvas class="scene" tabindex="0"></canvas><div class="name" hidden></div>
<div class="lost">This replay needs WebGL 2, which this browser does not offer.</div></div>
<div class="bar"><button class="play" title="play or pause (space)">&#9654;</button>
<input class="scrub" type="range" min="0" max="{end}" step="any" value="0" aria-label="time"><span class="clock"></span>
<label>speed <select class="speed">{speeds}</select></label>
<label{paths}><input class="trails" type="checkbox" checked>trails</label>
<label{marks}><input class="arrows" type="checkbox" checked>arrows</label></div>{strips}
<script type="application/json">{data}</script></div><figcaption>{escape(caption)}</figcaption></figure>"""


def _together(recording: Recording) -> list[list[np.ndarray]]:
    """Return the arrows of all titles, per frame."""
    return [[frames[k] for frames in recording.arrows.values()] for k in range(recording.motion.frames)]


def _data(motion: Motion, arrows: list[np.ndarray], trails: tuple[str, ...]) -> dict[str, Any]:
    drawing = motion.drawing
    # Marks have meshes of their own: arrows start inside of links, and are drawn over them.
    meshes = dict(drawing.meshes) | {f"mark {k}": UNIT[k]() for k in ("tube", "cylinder", "cone")}
    order = list(meshes)
    every = range(0, motion.frames, -(-motion.frames // FRAMES))
    low, high = motion.bounds
    ground = drawing.ground if drawing.ground is not None else float(low[2])
    return {
        "meshes": [
            {"name": k, "vertices": _text(m.vertices), "normals": _text(m.normals), "faces": _text(m.faces, np.uint32)}
            for k, m in meshes.items()
        ],
        "instances": [
            {
                "mesh": order.index(i.mesh),
                "link": i.link,
                "pose": _rounded(i.pose),
                "scale": _rounded(i.scale),
                "color": _rounded(i.color),
            }
            for i in drawing.instances
        ],
        "links": list(drawing.links),
        "samples": motion.samples,
        "times": _rounded(motion.times[list(every)]),
        "poses": _text(_poses(motion, every)),
        "arrows": _packed([arrows[k] for k in every]),
        "trails": [{"link": drawing.links.index(link), "color": list(TRAIL)} for link in trails],
        "ground": ground,
        "low": _rounded(np.append(low[:2], min(float(low[2]), ground))),
        "high": _rounded(high),
        "outline": _rounded(motion.outline),
    }


def _poses(motion: Motion, every: range) -> np.ndarray:
    links = torch.as_tensor(motion.links[list(every)])
    pose = Pose(links[..., 3].contiguous(), links[..., :3].contiguous())
    return np.concatenate([pose.position.numpy(), pose.quaternion.numpy()], -1)


def _packed(arrows: list[np.ndarray]) -> dict[str, Any]:
    start = np.cumsum([0, *(len(a) for a in arrows)]).tolist()
    return {"start": start, "values": _text(np.concatenate([np.zeros((0, 9)), *arrows]))}


def _text(values: np.ndarray, kind: Any = np.float32) -> str:
    data = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(data.tobytes()).decode()


def _rounded(values: Any) -> list[float]:
    return [float(f"{v:.7g}") for v in np.asarray(values, float).ravel()]
