"""Recordings: a motion with its curves and arrows, as a folder that a viewer opens without the world it came from.

A folder holds `recording.json` (names, meshes, colours) and `recording.safetensors` (numbers).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costate import __version__
from costate.collision.mesh.triangles import Mesh
from costate.core.arrays import Array
from costate.core.text import read_json
from costate.draw.drawing import Drawing, Instance
from costate.draw.marks import CONTACT
from costate.draw.poses import Motion, motion_of
from costate.draw.signals import by_state, contact_vectors, gradient_vectors
from costate.draw.surfaces import Surface

FORMAT = 1
"""Counted up when older readers would misread a newer folder."""

NOTE, NUMBERS = "recording.json", "recording.safetensors"


@dataclass(frozen=True, eq=False)
class Curves:
    """Named quantities over time."""

    names: tuple[str, ...]
    values: Array
    """Values of the first sample, shape (steps, names)."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A motion with everything a viewer shows of it."""

    motion: Motion
    curves: dict[str, Curves] = field(default_factory=dict)
    """Title -> curves."""
    arrows: dict[str, list[Array]] = field(default_factory=dict)
    """Title -> per frame, start, vector and colour, shape (arrows, 9)."""
    heat: Curves | None = None
    """A gradient along the motion, as a strip of colour for each of its coordinates."""
    trails: tuple[str, ...] = ()
    """Links whose path is drawn."""

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return import_module("costate.report.notebook").recording_html(self)


def record(
    source: Any,
    states: Any,
    *,
    controls: Any = None,
    gradient: Any = None,
    gradient_names: Sequence[str] = (),
    contacts: bool = False,
    energy: bool = False,
    trails: Sequence[str] = (),
    dt: float | None = None,
    samples: Sequence[int] | int | None = None,
    spacing: float | None = None,
) -> Recording:
    """Record what can be seen of a motion; arguments as in `costate.view`."""
    motion = motion_of(source, states, dt, samples, spacing)
    for link in trails:
        if link not in motion.drawing.links:
            raise ValueError(f"no link {link!r} to trail; links are {', '.join(motion.drawing.links)}")
    first = motion.chosen[0]
    curves = {"positions": Curves(tuple(coordinate_names(motion)), motion.configurations[:, 0].numpy())}
    if controls is not None:
        u = _of_sample(controls, first)
        names = getattr(source, "actuated", None) or [f"control {k}" for k in range(u.shape[1])]
        curves["controls"] = Curves(tuple(names), u)
    if energy:
        x = torch.as_tensor(_of_sample(states, first))
        curves["energy"] = Curves(("energy [J]",), source.energy(x).detach().reshape(-1, 1).numpy())
    arrows = {}
    if contacts:
        paint = np.array(CONTACT[:3])
        found = contact_vectors(source, states, motion)
        arrows["contact forces"] = [np.concatenate([v, np.broadcast_to(paint, (len(v), 3))], 1) for v in found]
    heat = None
    if gradient is not None:
        heat = gradient_curves(source, motion, gradient, gradient_names)
        arrows["descent"] = gradient_vectors(motion, gradient, tuple(getattr(source, "actuated", ())))
    return Recording(motion, curves, arrows, heat, tuple(trails))


def gradient_curves(source: Any, motion: Motion, gradient: Any, names: Sequence[str] = ()) -> Curves:
    """Return a gradient (T, n) or (T, B, n) along a motion as curves: the mean over its samples."""
    g = np.asarray(torch.as_tensor(gradient).detach(), float)
    g = g.mean(1) if g.ndim == 3 else g
    if g.ndim != 2:
        raise ValueError(f"a gradient along a motion has shape (T, n) or (T, B, n); {g.shape} given")
    if not names and by_state(motion, *g.shape):
        names = [*coordinate_names(motion), *velocity_names(motion)][: g.shape[1]]
    elif not names and g.shape[1] == getattr(source, "nu", -1):
        names = source.actuated
    return Curves(tuple(names or map(str, range(g.shape[1]))), g)


def coordinate_names(motion: Motion) -> list[str]:
    joints = [j for j in motion.model.joints if j.nq]
    return [j.name if j.nq == 1 else f"{j.name} {k}" for j in joints for k in range(j.nq)]


def velocity_names(motion: Motion) -> list[str]:
    joints = [j for j in motion.model.joints if j.nv]
    return [f"d {j.name}" if j.nv == 1 else f"d {j.name} {k}" for j in joints for k in range(j.nv)]


def _of_sample(values: Any, sample: int) -> Array:
    x = torch.as_tensor(values).detach().to(torch.float64)
    return (x[:, sample] if x.dim() == 3 else x.reshape(-1, x.shape[-1])).numpy()


# Files.


def save_recording(recording: Recording, folder: str | Path) -> Path:
    """Write a recording; returns its folder."""
    from safetensors.numpy import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    motion, drawing = recording.motion, recording.motion.drawing
    tensors: dict[str, Any] = {"links": motion.links, "times": motion.times, "offsets": motion.offsets}
    for k, mesh in enumerate(drawing.meshes.values()):
        tensors |= {f"mesh {k} {name}": value for name, value in asdict(mesh).items()}
    for k, s in enumerate(motion.surfaces):
        tensors |= {f"surface {k} faces": s.faces, f"surface {k} points": s.points.astype(np.float32)}
    all_curves = recording.curves | ({"gradient": recording.heat} if recording.heat else {})
    tensors |= {f"curves {title}": c.values for title, c in all_curves.items()}
    for title, frames in recording.arrows.items():
        tensors[f"arrows {title}"] = np.concatenate([np.zeros((0, 9)), *frames])
        tensors[f"start {title}"] = np.cumsum([0, *(len(f) for f in frames)])
    note = {
        "format": FORMAT,
        "costate": __version__,
        "links": drawing.links,
        "ground": drawing.ground,
        "meshes": list(drawing.meshes),
        "instances": [_plain(i) for i in drawing.instances],
        "chosen": motion.chosen,
        "curves": {title: c.names for title, c in all_curves.items()},
        "arrows": list(recording.arrows),
        "trails": recording.trails,
        "surfaces": [{"name": s.name, "color": s.color} for s in motion.surfaces],
    }
    (folder / NOTE).write_text(json.dumps(note, indent=1))
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, str(folder / NUMBERS))
    return folder


def _plain(instance: Instance) -> dict[str, Any]:
    return asdict(instance) | {"pose": instance.pose.tolist(), "scale": instance.scale.tolist()}


def load_recording(folder: str | Path) -> Recording:
    """Read what `save_recording` wrote; a folder that it did not write, or a newer version did, is refused by name."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(folder)
    if not (folder / NOTE).is_file():
        raise ValueError(
            f"{folder} is no recording: " + (f"it has no {NOTE}" if folder.is_dir() else "there is no such folder")
        )
    try:
        note = read_json(folder / NOTE)
        told = note.get("format") if isinstance(note, dict) else None
        if told != FORMAT:
            raise ValueError(
                f"{folder} was written by costate {note.get('costate') if told else '(unknown)'} in format {told}; this is costate "
                f"{__version__}, which reads format {FORMAT}: open it with that version, or record it again"
            )
        return _recording(note, load_file(str(folder / NUMBERS)))
    except (KeyError, TypeError, SafetensorError, OSError) as error:
        raise ValueError(f"{folder} is damaged: {type(error).__name__}: {error}") from error


def _recording(note: dict[str, Any], data: dict[str, Any]) -> Recording:
    keys = ("vertices", "normals", "faces")
    meshes = {m: Mesh(*(data[f"mesh {k} {key}"] for key in keys)) for k, m in enumerate(note["meshes"])}
    instances = tuple(
        replace(Instance(**i), pose=np.array(i["pose"]), scale=np.array(i["scale"]), color=tuple(i["color"]))
        for i in note["instances"]
    )
    drawing = Drawing(tuple(note["links"]), meshes, instances, note["ground"])
    surfaces = tuple(
        Surface(s["name"], data[f"surface {k} faces"], data[f"surface {k} points"], tuple(s["color"]))
        for k, s in enumerate(note.get("surfaces", []))
    )
    where = data["links"], data["times"], data["offsets"]
    motion = Motion(drawing, *where, tuple(note["chosen"]), surfaces=surfaces)
    curves = {title: Curves(tuple(names), data[f"curves {title}"]) for title, names in note["curves"].items()}
    arrows = {title: np.split(data[f"arrows {title}"], data[f"start {title}"][1:-1]) for title in note["arrows"]}
    return Recording(motion, curves, arrows, curves.pop("gradient", None), tuple(note["trails"]))
