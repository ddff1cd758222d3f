"""Damaged inputs: files of every kind that we read, with something wrong in them, and what must come of reading them.

A case is a number: it says which file is damaged and how, the same way every time. Reading must end in an answer that keeps its
promises, or in an error a user understands (ValueError or OSError, with the name of the file), and soon. For damage that cannot be
right, only the error will do.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from benchmarks.faults.damage import BYTES, JSON, JUNK, ODD, Damage, cut_out, flip, repeat, truncate
from benchmarks.faults.data_files import DATA, damaged_data
from benchmarks.faults.samples import HAND, MJCF, URDF
from costate.model import Model, load_model
from costate.model.urdf.writer import write_urdf

KINDS: dict[str, str] = {
    "urdf": "URDF files",
    "mjcf": "MJCF files",
    "mesh": "mesh files",
    "run": "run folders",
    **{name: kind.name for name, kind in DATA.items()},
}
"""Kind -> its name in tables."""
ROBOTS = ("ur5", "panda", "laikago", "allegro_hand", "racecar")
LIMITS = ("lower", "upper", "max_velocity", "max_effort", "weakest", "strongest", "max_angle", "efforts")
"""Numbers that may be infinite."""
SLOW = 10.0
"""Seconds of processor time after which reading counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of reading a damaged input."""

    kind: str
    damage: str
    result: str
    """"answer", "error", or what is wrong: "accepted", "broken promise", "unclear error", "hang"."""
    detail: str = ""

    @property
    def sound(self) -> bool:
        return self.result in ("answer", "error")


def try_case(kind: str, number: int, folder: Path) -> Outcome:
    """Damage an input and read it. folder: to write it to."""
    chance = random.Random(f"{kind} {number}")
    if kind in DATA:
        damage, certain, read = damaged_data(DATA[kind], chance, folder)
    else:
        damaged = {"run": _damaged_run, "mesh": _damaged_mesh}.get(kind, _damaged_robot)
        damage, certain, read = damaged(kind, chance, folder)
    begun = time.process_time()
    result, detail = _read(read, folder, certain)
    if (seconds := time.process_time() - begun) > SLOW:
        result, detail = "hang", f"{seconds:.1f} s"
    return Outcome(kind, damage, result, detail)


def _read(read: Callable[[], str], folder: Path, certain: bool) -> tuple[str, str]:
    """Read a damaged input; return the outcome and what there is to say about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            broken = read()
        except (ValueError, OSError) as error:
            clear = 20 < len(str(error)) < 2000 and str(folder) in str(error)
            return "error" if clear else "unclear error", f"{type(error).__name__}: {error}"[:500]
        except Exception as error:
            return "unclear error", f"{type(error).__name__}: {error}"[:500]
    return ("broken promise", broken) if broken else ("accepted" if certain else "answer", "")


# --- robot files --------------------------------------------------------------------------------------------------------


def _damaged_robot(kind: str, chance: random.Random, folder: Path) -> tuple[str, bool, Callable[[], str]]:
    source = chance.choice(_robot_sources(kind))
    path = folder / f"robot.{'urdf' if kind == 'urdf' else 'xml'}"
    tables = {**BLIND, **CERTAIN[kind]}
    damage = chance.choice([name for name in tables for _ in range(1 if name in BLIND else 2)])
    data = tables[damage](source, chance)
    path.write_bytes(data)
    return damage, damage in CERTAIN[kind] and data != source, lambda: broken_model(load_model(path))


@cache
def _robot_sources(kind: str) -> tuple[bytes, ...]:
    """Sound files."""
    if kind == "mjcf":
        return (MJCF.encode(), HAND.encode())
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name in ROBOTS:
            write_urdf(load_model(name), Path(folder) / name)
        return (*tuple((Path(folder) / name).read_bytes() for name in ROBOTS), URDF.encode())


def broken_model(model: Model, moments: bool = True) -> str:
    """Describe the promise of a model that is broken; return nothing if all are kept. moments: principal ones are positive."""
    for where, value in _numbers(model, model.name):
        limits = where.rpartition(".")[2] in LIMITS
        if not (np.all(~np.isnan(value)) if limits else np.all(np.isfinite(value))):
            return f"{where} is {value}"
    for joint in model.joints:
        R = joint.origin.rotation
        if not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0:
            return f"the origin of {joint.name} is not a rotation"
        if joint.kind not in ("fixed", "floating", "spherical") and abs(np.linalg.norm(joint.axis) - 1) > 1e-6:
            return f"the axis of {joint.name} has length {np.linalg.norm(joint.axis)}"
        if np.any(joint.lower > joint.upper):
            return f"the limits of {joint.name} are {joint.lower}, {joint.upper}"
        for name in ("damping", "friction", "armature"):
            if getattr(joint, name) < 0:
                return f"{name} of {joint.name} is {getattr(joint, name)}"
    for link in model.links:
        if link.inertia.mass < 0:
            return f"{link.name} has mass {link.inertia.mass}"
        found = np.linalg.eigvalsh(link.inertia.matrix)
        if moments and found.min() < -1e-9 * max(abs(found).max(), 1e-30):
            return f"{link.name} has principal moments {found}"
        for shape in (*link.visuals, *link.collisions):
            if shape.kind != "mesh" and np.any(shape.size < 0):  # flat ones are drawn
                return f"a {shape.kind} of {link.name} has sizes {shape.size}"
    return ""


def _numbers(value: Any, where: str):
    """All numbers in nested dataclasses, with their place."""
    if is_dataclass(value):
        for f in fields(value):
            yield from _numbers(getattr(value, f.name), f"{where}.{f.name}")
    elif isinstance(value, tuple):
        for k, v in enumerate(value):
            yield from _numbers(v, f"{where}[{k}]")
    elif isinstance(value, (float, np.ndarray)):
        yield where, np.asarray(value, float)


def _tree(change: Callable[[Any, random.Random], None]) -> Damage:
    """A change of the document instead of its bytes."""

    def apply(data: bytes, chance: random.Random) -> bytes:
        root = etree.fromstring(data)
        change(root, chance)
        return etree.tostring(root)

    return apply


def _some(root: Any, chance: random.Random, path: str = ".//*") -> Any:
    return chance.choice(root.xpath(path))


def _delete_element(root: Any, chance: random.Random) -> None:
    element = _some(root, chance)
    element.getparent().remove(element)


def _move_element(root: Any, chance: random.Random) -> None:
    element, target = _some(root, chance), _some(root, chance)
    if target not in list(element.iter()):
        target.append(element)


def _copy_element(root: Any, chance: random.Random) -> None:
    element = _some(root, chance)
    element.addnext(etree.fromstring(etree.tostring(element)))


def _delete_attribute(root: Any, chance: random.Random) -> None:
    element = _some(root, chance, ".//*[@*]")
    del element.attrib[chance.choice(list(element.attrib))]


def _odd_attribute(root: Any, chance: random.Random) -> None:
    element = _some(root, chance, ".//*[@*]")
    element.set(chance.choice(list(element.attrib)), chance.choice(ODD + JUNK))


def _swap_attributes(root: Any, chance: random.Random) -> None:
    (a, b) = (_some(root, chance, ".//*[@*]") for _ in range(2))
    x, y = chance.choice(list(a.attrib)), chance.choice(list(b.attrib))
    va, vb = a.get(x), b.get(y)
    a.set(x, vb)
    b.set(y, va)


def _rename_tag(root: Any, chance: random.Random) -> None:
    _some(root, chance).tag = _some(root, chance).tag


def _nest(root: Any, chance: random.Random) -> None:
    at = _some(root, chance)
    for _ in range(chance.choice((10, 200, 400))):
        at = etree.SubElement(at, at.tag)


BLIND: dict[str, Damage] = {
    "bytes changed": flip,
    "bytes cut out": cut_out,
    "a piece repeated": repeat,
    "an element deleted": _tree(_delete_element),
    "an element moved": _tree(_move_element),
    "an element doubled": _tree(_copy_element),
    "an attribute deleted": _tree(_delete_attribute),
    "an odd value": _tree(_odd_attribute),
    "two values swapped": _tree(_swap_attributes),
    "an element renamed": _tree(_rename_tag),
    "elements nested deeply": _tree(_nest),
}
"""May leave a sound file."""


def _junk_in(*places: tuple[str, tuple[str, ...]], junk: tuple[str, ...] = JUNK) -> Damage:
    """No number, where one is needed."""

    def change(root: Any, chance: random.Random) -> None:
        path, attributes = chance.choice([p for p in places if root.find(p[0]) is not None])
        element = _some(root, chance, path)
        name = chance.choice([a for a in attributes if a in element.attrib])
        words = element.get(name).split()
        words[chance.randrange(len(words))] = chance.choice(junk)
        element.set(name, " ".join(words))

    return _tree(change)


def _set_one(path: str, name: str, value: str) -> Damage:
    return _tree(lambda root, chance: _some(root, chance, path).set(name, value))


def _remove_one(path: str) -> Damage:
    def change(root: Any, chance: random.Random) -> None:
        element = _some(root, chance, path)
        element.getparent().remove(element)

    return _tree(change)


def _double(path: str) -> Damage:
    def change(root: Any, chance: random.Random) -> None:
        element = _some(root, chance, path)
        element.addnext(etree.fromstring(etree.tostring(element)))

    return _tree(change)


def _cycle(root: Any, chance: random.Random) -> None:
    """The root link becomes the child of a leaf: a ring, or a link with two parents."""
    joint = _some(root, chance, "joint")
    joint.find("parent").set("link", joint.find("child").get("link"))


CERTAIN: dict[str, dict[str, Damage]] = {
    "urdf": {
        "file cut short": truncate,
        "no number": _junk_in(
            ("link/inertial/mass", ("value",)),
            ("link/inertial/inertia", ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
            ("joint/origin[@xyz]", ("xyz",)),
        ),
        "negative mass": _set_one("link/inertial/mass", "value", "-1"),
        "unknown parent": _set_one("joint/parent", "link", "nobody"),
        "unknown kind of joint": _set_one("joint", "type", "elastic"),
        "a link twice": _double("link"),
        "a joint twice": _double("joint"),
        "a joint without child": _remove_one("joint/child"),
        "a link its own parent": _tree(_cycle),
    },
    "mjcf": {
        "file cut short": truncate,
        "no number": _junk_in(
            (".//body[@pos]", ("pos",)),
            (".//geom[@size]", ("size",)),
            (".//joint[@axis]", ("axis",)),
            junk=tuple(j for j in JUNK if j != "0x10"),  # which MuJoCo reads as 16
        ),
        "unknown element": _tree(lambda root, chance: setattr(_some(root, chance, ".//body"), "tag", "boddy")),
        "unknown kind of joint": _set_one(".//joint", "type", "elastic"),
        "a joint twice": _double(".//joint[@name]"),
        "a motor on nothing": _set_one(".//motor[@joint]", "joint", "nobody"),
    },
}
"""Cannot be right: must be refused."""

# --- mesh files ---------------------------------------------------------------------------------------------------------


def _damaged_mesh(kind: str, chance: random.Random, folder: Path) -> tuple[str, bool, Callable[[], str]]:
    suffix, source = chance.choice(mesh_sources())
    damages = dict(BYTES)
    if suffix == "obj":
        damages |= {
            "no number": lambda data, chance: data.replace(b"v 0.50000000", f"v {chance.choice(JUNK[:4])}".encode(), 1)
        }
    damage = chance.choice(list(damages))
    path = folder / f"mesh.{suffix}"
    path.write_bytes(damages[damage](source, chance))
    return f"{suffix}: {damage}", damage in ("file empty", "no number"), lambda: broken_mesh(path)


@cache
def mesh_sources() -> tuple[tuple[str, bytes], ...]:
    """Suffix and a sound file."""
    import trimesh

    box = trimesh.creation.box((1.0, 1.0, 2.0))
    made: dict[str, Any] = {
        suffix: box.export(file_type=suffix) for suffix in ("stl", "stl_ascii", "obj", "ply", "glb")
    }
    return tuple((s.removesuffix("_ascii"), d.encode() if isinstance(d, str) else d) for s, d in made.items())


def broken_mesh(path: Path) -> str:
    """Describe the promise of a mesh that is broken."""
    from costate.collision.mesh.files import load_triangles

    vertices, faces = load_triangles.__wrapped__(path)  # not the one remembered
    if not np.isfinite(vertices[faces]).all():
        return "a corner is not finite"
    return "" if vertices.shape[1:] == faces.shape[1:] == (3,) else f"shapes {vertices.shape} and {faces.shape}"


# --- run folders --------------------------------------------------------------------------------------------------------

RUN_FILES = ("options.json", "run.json", "metrics.jsonl", "checkpoint.safetensors", "policy.safetensors", "policy.json")


def make_run(path: Path) -> None:
    """A run folder as a small training leaves it."""
    import torch

    from costate.tasks.insertion import Insertion, InsertionOptions, InsertionTraining
    from costate.train.controller import save_policy
    from costate.train.run import Checkpoint, Run

    task = Insertion(InsertionOptions().unlimited())
    run = Run.create(path, task, InsertionTraining(guide=False, hidden=8, batch=8, iterations=40))
    policy = dict(run.policy.state_dict())
    moments = {n: {"exp_avg": t / 2, "exp_avg_sq": t * t, "step": torch.tensor(7.0)} for n, t in policy.items()}
    rows = [{"iteration": 4 * k, "loss": 1.0 / k, "seconds": 0.1 * k, "contact": False} for k in range(1, 11)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (path / "metrics.jsonl").write_text(text)
    run.save(Checkpoint(40, policy, moments, len(text), 3.5, 1000))
    save_policy(run)
    run.finish(control_steps=1000)


def _damaged_run(kind: str, chance: random.Random, folder: Path) -> tuple[str, bool, Callable[[], str]]:
    """folder holds a sound one, `sound`."""
    sound, path = folder / "sound", folder / "run"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(sound, path)
    name = chance.choice(RUN_FILES)
    data = (sound / name).read_bytes()
    damages: dict[str, Damage] = {**BYTES, "file missing": lambda *_: b""} | (JSON if name.endswith(".json") else {})
    damage = chance.choice(list(damages))
    if damage == "file missing":
        (path / name).unlink()
    else:
        (path / name).write_bytes(damages[damage](data, chance))
    return f"{name}: {damage}", False, lambda: broken_run(path, sound)


def broken_run(path: Path, sound: Path) -> str:
    """Read all there is in a run folder; which promise is broken, in words.

    Weights and moments must be those that were written, bit for bit; JSON files must hold values of the kinds they promise.
    """
    from costate.train.controller import load_policy
    from costate.train.run import Run

    run, good = Run.open(path), Run.open(sound)
    _ = run.policy, run.finished, run.differences(), run.evaluation, run.found("horizon")
    a, b = run.checkpoint(), good.checkpoint()
    if _bits(a) != _bits(b):
        return "the checkpoint is not the one that was written"
    if any(not isinstance(row, dict) for row in run.metrics()):
        return "a row of metrics is not a row"
    controller, right = load_policy(path), load_policy(sound)
    x = np.linspace(-1, 1, 18)
    if not np.array_equal(controller.action(x, 10**9), right.action(x, 10**9)):
        return "the controller is not the one that was written"
    return next((f"{w} is {v!r}" for w, v, hint in _typed(run.options, "options") if not _fits(v, hint)), "")


def _bits(checkpoint: Any) -> list[Any]:
    tensors = {**checkpoint.policy, **{f"{n}/{k}": t for n, m in checkpoint.moments.items() for k, t in m.items()}}
    numbers = (checkpoint.iteration, checkpoint.metrics_bytes, checkpoint.seconds, checkpoint.control_steps)
    return [numbers, [(n, t.numpy().tobytes(), str(t.dtype), tuple(t.shape)) for n, t in sorted(tensors.items())]]


def _typed(value: Any, where: str):
    for f in fields(value):
        inner = getattr(value, f.name)
        if is_dataclass(inner):
            yield from _typed(inner, f"{where}.{f.name}")
        else:
            yield f"{where}.{f.name}", inner, str(f.type)


def _fits(value: Any, hint: str) -> bool:
    if hint == "int":
        return type(value) is int
    if hint == "bool":
        return type(value) is bool
    if hint == "float":
        return type(value) in (int, float) and not math.isnan(value)
    return True
