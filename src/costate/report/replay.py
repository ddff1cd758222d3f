"""The data of a 3D replay, as the page's script (`replay.js`) reads it.

Numbers are little-endian and in base64: float32, and uint32 for faces. Poses are x y z, qx qy qz qw of each link, in the
order (frame, sample, link); points of surfaces are places in the order (frame, point); arrows are start, vector and colour, nine
numbers each, with the first of each frame in `start`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from costate.collision.mesh.triangles import UNIT
from costate.draw.marks import TRAIL
from costate.draw.poses import Motion
from costate.draw.recording import Recording
from costate.report.heat import strips_html
from costate.report.scene import mesh_data, rounded, scene_html, text_of
from costate.robot import Pose

FRAMES = 600
"""Longer motions are thinned to at most as many frames; the page interpolates between them."""


SPEEDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
FAR = 4.0
"""A link is followed if it goes farther than this many times the size of what is seen at first."""


def recording_html(
    name: str,
    recording: Recording,
    caption: str = "",
    *,
    speed: float = 1.0,
    play: bool = False,
    box: tuple[Any, Any] | None = None,
    follow: bool = False,
) -> str:
    """Return a replay of a recording as HTML.

    box: corners of what the camera sees at first [m]; None: everything. follow: go along with a robot that goes far.
    """
    if speed not in SPEEDS:
        raise ValueError(f"a replay starts with a speed out of {', '.join(map(str, SPEEDS))}; {speed} given")
    motion, trails = recording.motion, recording.trails
    arrows = [np.concatenate([np.zeros((0, 9)), *frames]) for frames in _together(recording)]
    strips = strips_html(recording.heat.values.T, recording.heat.names) if recording.heat else ""
    start = {"speed": speed, "play": play} | ({} if box is None else {"box": [rounded(corner) for corner in box]})
    marks = "" if any(len(a) for a in arrows) else " hidden"
    paths = "" if trails else " hidden"
    controls = f"""<label{paths}><input class="trails" type="checkbox" checked>trails</label>
<label{marks}><input class="arrows" type="checkbox" checked>arrows</label>"""
    data = _data(motion, arrows, trails) | start
    if follow and (link := _followed(motion)) is not None:
        data |= _seen(_beginning(motion)) | {"follow": link}
    return scene_html(name, "recording", data, SPEEDS, caption=caption, controls=controls, below=strips)


def _together(recording: Recording) -> list[list[np.ndarray]]:
    """Return the arrows of all titles, per frame."""
    return [[frames[k] for frames in recording.arrows.values()] for k in range(recording.motion.frames)]


def _data(motion: Motion, arrows: list[np.ndarray], trails: tuple[str, ...]) -> dict[str, Any]:
    drawing = motion.drawing
    # Marks have meshes of their own: arrows start inside of links, and are drawn over them.
    meshes = dict(drawing.meshes) | {f"mark {k}": UNIT[k]() for k in ("tube", "cylinder", "cone")}
    order = list(meshes)
    every = range(0, motion.frames, -(-motion.frames // FRAMES))
    return {
        "meshes": [mesh_data(k, m) for k, m in meshes.items()],
        "instances": [
            {
                "mesh": order.index(i.mesh),
                "link": i.link,
                "pose": rounded(i.pose),
                "scale": rounded(i.scale),
                "color": rounded(i.color),
            }
            for i in drawing.instances
        ],
        "links": list(drawing.links),
        "samples": motion.samples,
        "times": rounded(motion.times[list(every)]),
        "poses": text_of(_poses(motion, every)),
        "arrows": _packed([arrows[k] for k in every]),
        "trails": [{"link": drawing.links.index(link), "color": list(TRAIL)} for link in trails],
        "surfaces": [
            {
                "name": s.name,
                "color": rounded(s.color),
                "faces": text_of(s.faces, np.uint32),
                "points": text_of(s.points[list(every)]),
            }
            for s in motion.surfaces
        ],
    } | _seen(motion)


def _seen(motion: Motion) -> dict[str, Any]:
    """Return what the camera sees at first."""
    low, high = motion.bounds
    ground = motion.drawing.ground if motion.drawing.ground is not None else float(low[2])
    return {
        "ground": ground,
        "low": rounded(np.append(low[:2], min(float(low[2]), ground))),
        "high": rounded(high),
        "outline": rounded(motion.outline),
    }


def _beginning(motion: Motion) -> Motion:
    return replace(motion, links=motion.links[:1], times=motion.times[:1])


def _followed(motion: Motion) -> int | None:
    """Return the number of the first link that goes far, and about as far as any; None if none does."""
    if motion.samples > 1 or motion.surfaces or motion.frames < 2:
        return None
    way = np.linalg.norm(np.ptp(motion.links[:, 0, :, :2, 3], axis=0), axis=-1)
    return int(np.flatnonzero(way > 0.9 * way.max())[0]) if way.max() > FAR * _beginning(motion).extent else None


def _poses(motion: Motion, every: range) -> np.ndarray:
    links = torch.as_tensor(motion.links[list(every)])
    pose = Pose(links[..., 3].contiguous(), links[..., :3].contiguous())
    return np.concatenate([pose.position.numpy(), pose.quaternion.numpy()], -1)


def _packed(arrows: list[np.ndarray]) -> dict[str, Any]:
    start = np.cumsum([0, *(len(a) for a in arrows)]).tolist()
    return {"start": start, "values": text_of(np.concatenate([np.zeros((0, 9)), *arrows]))}
