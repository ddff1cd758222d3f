"""The data of a 3D replay, as the page's script (`replay.js`) reads it.

Numbers are little-endian and in base64: float32, and uint32 for faces. Poses are x y z, qx qy qz qw of each link, in the
order (frame, sample, link); arrows are start, vector and colour, nine numbers each, with the first of each frame in `start`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import torch

from costate.draw.marks import CONTACT, TRAIL
from costate.draw.mesh import UNIT
from costate.draw.poses import Motion, motion_of
from costate.draw.signals import by_state, contact_vectors, gradient_vectors
from costate.report.heat import strips_html
from costate.report.inline import inline_json
from costate.robot import Pose

FRAMES = 600
"""Longer motions are thinned to at most as many frames; the page interpolates between them."""


def replay_html(
    name: str,
    source: Any,
    states: Any,
    caption: str = "",
    *,
    dt: float | None = None,
    samples: Sequence[int] | int | None = None,
    spacing: float | None = None,
    trails: Sequence[str] = (),
    contacts: bool = False,
    gradient: Any = None,
    gradient_names: Sequence[str] = (),
) -> str:
    """A replay as HTML.

    Args:
        states: (T, nx), (T, B, nx) or (nx,); configurations (nq) alone will do.
        dt: Time between states [s]; None: the world's.
        samples, spacing: Which samples of a batch stand side by side, and how far apart.
        trails: Links whose path is drawn.
        contacts: Contact forces as arrows (worlds only).
        gradient: dLoss/dstate or dLoss/dcontrol along the motion, (T, n) or (T, B, n): a strip of colour per coordinate, and, where
            it is a gradient by states, arrows on the links that show where the loss falls.
        gradient_names: Names of its coordinates; None are needed for states and controls of a world.
    """
    motion = motion_of(source, states, dt, samples, spacing)
    arrows = _no_arrows(motion)
    if contacts:
        arrows = _merged(arrows, _colored(contact_vectors(source, states, motion), CONTACT))
    strips = ""
    if gradient is not None:
        values, names = gradient_rows(source, motion, gradient, gradient_names)
        strips = strips_html(values, names)
        arrows = _merged(arrows, gradient_vectors(motion, gradient, tuple(getattr(source, "actuated", ()))))
    data = inline_json(_data(motion, arrows, trails))
    end = float(motion.times[-1])
    marks = "" if any(len(a) for a in arrows) else " hidden"
    paths = "" if trails else " hidden"
    return f"""<figure><div class="replay" id="{escape(name, quote=True)}">
<div class="view"><canvas class="scene" tabindex="0"></canvas><div class="name" hidden></div>
<div class="lost">This replay needs WebGL 2, which this browser does not offer.</div></div>
<div class="bar"><button class="play" title="play or pause (space)">&#9654;</button>
<input class="scrub" type="range" min="0" max="{end}" step="any" value="0" aria-label="time"><span class="clock"></span>
<label>speed <select class="speed"><option value="0.1">0.1</option><option value="0.25">0.25</option>
<option value="0.5">0.5</option>
<option value="1" selected>1</option><option value="2">2</option><option value="4">4</option></select></label>
<label{paths}><input class="trails" type="checkbox" checked>trails</label>
<label{marks}><input class="arrows" type="checkbox" checked>arrows</label></div>{strips}
<script type="application/json">{data}</script></div><figcaption>{escape(caption)}</figcaption></figure>"""


def gradient_rows(source: Any, motion: Motion, gradient: Any, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Rows (coordinates, T) of a gradient, the mean over its samples, and their names."""
    g = np.asarray(torch.as_tensor(gradient).detach(), float)
    if g.ndim == 3:
        g = g.mean(1)
    if g.ndim != 2:
        raise ValueError(f"a gradient along a motion has shape (T, n) or (T, B, n); {g.shape} given")
    if not names:
        names = _coordinate_names(source, motion, *g.shape)
    return g.T, list(names)


def _coordinate_names(source: Any, motion: Motion, steps: int, count: int) -> list[str]:
    model = motion.model
    if count == getattr(source, "nu", -1) and not by_state(motion, steps, count):
        return list(source.actuated)
    q = [j.name if j.nq == 1 else f"{j.name} {k}" for j in model.joints for k in range(j.nq)]
    v = [f"d {j.name}" if j.nv == 1 else f"d {j.name} {k}" for j in model.joints for k in range(j.nv)]
    for known in (q, q + v):
        if len(known) == count:
            return known
    return [str(k) for k in range(count)]


def _data(motion: Motion, arrows: list[np.ndarray], trails: Sequence[str]) -> dict[str, Any]:
    drawing = motion.drawing
    for link in trails:
        if link not in drawing.links:
            raise ValueError(f"no link {link!r} to trail; links are {', '.join(drawing.links)}")
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
    }


def _poses(motion: Motion, every: range) -> np.ndarray:
    links = torch.as_tensor(motion.links[list(every)])
    pose = Pose(links[..., 3].contiguous(), links[..., :3].contiguous())
    return np.concatenate([pose.position.numpy(), pose.quaternion.numpy()], -1)


def _no_arrows(motion: Motion) -> list[np.ndarray]:
    return [np.zeros((0, 9))] * motion.frames


def _colored(vectors: list[np.ndarray], color: Sequence[float]) -> list[np.ndarray]:
    return [np.concatenate([v, np.broadcast_to(color[:3], (len(v), 3))], 1) for v in vectors]


def _merged(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    return [np.concatenate(pair) for pair in zip(a, b, strict=True)]


def _packed(arrows: list[np.ndarray]) -> dict[str, Any]:
    start = np.cumsum([0, *(len(a) for a in arrows)]).tolist()
    return {"start": start, "values": _text(np.concatenate([np.zeros((0, 9)), *arrows]))}


def _text(values: np.ndarray, kind: Any = np.float32) -> str:
    data = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(data.tobytes()).decode()


def _rounded(values: Any) -> list[float]:
    return [float(f"{v:.7g}") for v in np.asarray(values, float).ravel()]
