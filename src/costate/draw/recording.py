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
from costate.core.arrays import Array, Color
from costate.core.readers.text import read_json
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
    except (KeyError, TypeError, AttributeError, OverflowError, SafetensorError, OSError, ValueError) as error:
        if isinstance(error, ValueError) and str(folder) in str(error):
            raise
        raise ValueError(f"{folder} is damaged: {type(error).__name__}: {str(error)[:300]}") from error


def _recording(note: dict[str, Any], data: dict[str, Any]) -> Recording:
    """Return what the two files hold. Shapes, and numbers of corners and links, are checked: compiled code draws them."""
    links, chosen = tuple(map(str, note["links"])), tuple(map(int, note["chosen"]))
    poses = _numbers(data, "links", None, len(chosen), len(links), 3, 4)
    frames = len(poses)
    meshes = {}
    for k, name in enumerate(note["meshes"]):
        corners = _numbers(data, f"mesh {k} vertices", None, 3)
        faces = _places(data, f"mesh {k} faces", len(corners))
        meshes[name] = Mesh(corners, _numbers(data, f"mesh {k} normals", len(corners), 3), faces)
    surfaces = []
    for k, s in enumerate(note.get("surfaces", [])):
        points = _numbers(data, f"surface {k} points", frames, None, 3)
        faces = _places(data, f"surface {k} faces", points.shape[1])
        surfaces.append(Surface(str(s["name"]), faces, points, _color(s["color"])))
    instances = tuple(_instance(i, meshes, len(links)) for i in note["instances"])
    if not isinstance(ground := note["ground"], int | float | None):
        raise ValueError(f"the ground is {ground!r}")
    motion = Motion(
        Drawing(links, meshes, instances, ground),
        poses,
        _numbers(data, "times", frames),
        _numbers(data, "offsets", len(chosen), 3),
        chosen,
        surfaces=tuple(surfaces),
    )
    curves = {
        t: Curves(tuple(names), _numbers(data, f"curves {t}", None, len(names))) for t, names in note["curves"].items()
    }
    arrows = {}
    for title in note["arrows"]:
        rows = _numbers(data, f"arrows {title}", None, 9)
        starts = _places(data, f"start {title}", len(rows) + 1, 1)
        if len(starts) != frames + 1 or (np.diff(starts) < 0).any():
            raise ValueError(f"start {title} has {len(starts)} numbers, or falls; expected {frames + 1}")
        arrows[title] = np.split(rows, starts[1:-1])
    if strange := [t for t in note["trails"] if t not in links]:
        raise ValueError(f"a trail of {strange[0]!r}, which is no link")
    return Recording(motion, curves, arrows, curves.pop("gradient", None), tuple(note["trails"]))


def _instance(note: dict[str, Any], meshes: dict[str, Mesh], links: int) -> Instance:
    found = Instance(**note)
    pose, scale = np.array(found.pose, float), np.array(found.scale, float)
    known = found.mesh in meshes and type(found.link) is int and 0 <= found.link < links
    if not known or pose.shape != (3, 4) or scale.shape != (3,) or not np.isfinite([*pose.flat, *scale]).all():
        raise ValueError(
            f"an instance of {found.mesh!r} on link {found.link!r}, with a pose of shape {pose.shape}, a scale of {scale.shape}"
        )
    return replace(found, name=str(found.name), pose=pose, scale=scale, color=_color(found.color))


def _color(given: Any) -> Color:
    color = np.array(given, float)
    if color.shape != (4,) or not np.isfinite(color).all():
        raise ValueError(f"a colour is {given!r}; expected four numbers")
    return tuple(color.tolist())


def _numbers(data: dict[str, Any], name: str, *sizes: int | None) -> Array:
    """Return an array of numbers with these sizes; None: any."""
    value = data[name]
    if (
        value.dtype.kind not in "fiu"
        or value.ndim != len(sizes)
        or any(wanted not in (None, n) for n, wanted in zip(value.shape, sizes, strict=True))
    ):
        expected = ", ".join("any" if n is None else str(n) for n in sizes)
        raise ValueError(f"{name} are {value.dtype} of shape {value.shape}; expected numbers ({expected})")
    return value


def _places(data: dict[str, Any], name: str, count: int, axes: int = 2) -> Array:
    """Return an array of whole numbers from 0 to below a count: triangles (m, 3), or a row of them."""
    value = _numbers(data, name, *([None, 3] if axes == 2 else [None]))
    if value.dtype.kind not in "iu" or (value.size and not 0 <= value.min() <= value.max() < count):
        raise ValueError(f"{name} are not all whole numbers from 0 to {count - 1}")
    return value
