"""Worlds as files: JSON, an array file next to it for what is large, and a folder with copies of mesh files. Never code.

    world.json           everything
    world.safetensors    large arrays: height fields, hulls
    world.meshes/        mesh files, each by its checksum
    world.networks.json, world.networks.safetensors    networks inside of the step (costate.augment)

What is written is what `World` was given, with names and numbers made explicit: a rule for pairs becomes the pairs, and the time
step of a robot's file a number.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import costate
from costate.collision.mesh.unpacked import check_mesh_file
from costate.core.files import checksum, write_atomically, write_text
from costate.core.readers.text import read_json
from costate.core.tensors import read_tensors, write_tensors
from costate.model import Model, Shape
from costate.robot import Robot
from costate.sim.files.check import check_model
from costate.sim.files.classes import CLASSES, NAMES
from costate.sim.files.codec import Codec, CodecError
from costate.sim.files.layout import laid_out
from costate.sim.scene.scene import Scene, named_pairs

if TYPE_CHECKING:
    from costate.sim.world import World

FORMAT = "costate world"
VERSION = 1
"""Version of the format: files of later ones are refused."""
NAME = "world.json"
"""Name of the file in a folder."""
_SEVERAL_FILES = (".gltf",)
"""Mesh files that may name others."""


def is_saved(source: str | Path) -> bool:
    """Return whether a path is meant as a world that was saved: a JSON file, or a folder with one."""
    path = Path(source)
    return path.suffix.lower() == ".json" or (path.is_dir() and (path / NAME).exists())


def _file(path: Path) -> Path:
    """Return the JSON file of a path that a user gave."""
    return path if path.suffix.lower() == ".json" else path / NAME


# --- writing ----------------------------------------------------------------------------------------------------------


def save_world(world: World, path: Path) -> None:
    """Write a world; an error leaves older files as they are."""
    file = _file(path)
    meshes: dict[str, Path] = {}
    codec = Codec(CLASSES, (Shape,), NAMES, changed=lambda value: _with_copies(value, file, meshes))
    told = {k: codec.encode(v, k) for k, v in _arguments(world).items()}
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "costate": costate.__version__}
    if moved := [m._moved for m in (world, *world._inputs.robots.values()) if m._moved]:
        head["dtype"] = str(reduce(torch.promote_types, moved)).removeprefix("torch.")
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, source in meshes.items():
        _copy(source, file.parent / name)
    if codec.arrays:
        write_tensors(_arrays(file), {k: torch.as_tensor(v) for k, v in codec.arrays.items()})
        head["arrays"] = checksum(_arrays(file).read_bytes())
    if world.networks:
        head["networks"] = True
        world.save_networks(networks_of(file))
    write_text(file, laid_out(head | {"world": told}))


def networks_of(file: Path) -> Path:
    """Return where the networks of a world are kept."""
    return file.with_name(f"{file.stem}.networks.json")


def _arrays(file: Path) -> Path:
    return file.with_suffix(".safetensors")


def _arguments(world: World) -> dict[str, Any]:
    """Return the arguments that make the world again."""
    setup, parts, robots = world.setup, world._parts, world._inputs.robots
    for name, robot in robots.items():
        if learnt := [f"{kind} of {owner}" for entry in robot.learnable() for kind, owner in entry.keys]:
            raise CodecError(
                f"robots['{name}'] learns {', '.join(learnt)}, by a module, which cannot be saved: save its state_dict() apart, or "
                f"build the world with cs.Robot(robot.identified_model()), which has the numbers found so far"
            )
    return {
        "robots": {name: robot.model for name, robot in robots.items()},
        "bodies": tuple(parts.bodies),
        "scenery": tuple(parts.scenery),
        "actuators": parts.actuators,
        "contact": setup.contact if setup.contact.acts else None,
        "integrator": setup.integrator,
        "substeps": setup.substeps,
        "dt": world.dt,
        "gravity": tuple(setup.scene.model.gravity.tolist()),
        "poses": parts.poses,
        "self_collision": parts.self_collision,
        "collide": _pairs(setup.scene) if parts.chosen else None,
        "parameters": tuple(p for p in setup.parameters if p not in {w.parameter for w in setup.networks}),
        "check": world.check,
        "constraints": tuple(parts.constraints),
        "tendons": tuple(parts.tendons),
    }


def _pairs(scene: Scene) -> list[tuple[str, str]]:
    """Return the names of all pairs of shapes that may touch."""
    names = [(scene.colliders[i].name, scene.colliders[j].name) for i, j in scene.pairs]
    if named_pairs(scene.colliders, names) != set(scene.pairs):
        raise CodecError(
            "collide: a shape has the name of a link, robot or body: rename one, so that pairs can be saved by name"
        )
    return names


def _with_copies(value: Any, file: Path, meshes: dict[str, Path]) -> Any:
    """Return a shape with the name of the copy of its mesh file, and a model without the path of its own file."""
    if isinstance(value, Model):
        return replace(value, source=Path(value.source).name if os.path.isabs(value.source) else value.source)
    if not isinstance(value, Shape) or value.mesh is None:
        return value
    source = Path(value.mesh)
    uri = None if value.uri is None else value.uri if "://" in value.uri else Path(value.uri).name
    if not source.is_file():
        return replace(value, mesh=None, uri=uri)
    if source.suffix.lower() in _SEVERAL_FILES:
        raise CodecError(
            f"the mesh {source.name} may be spread over several files and cannot be saved: convert it to .glb"
        )
    digest = checksum(source.read_bytes())[:16]
    name = f"{file.stem}.meshes/{digest}-{source.name.removeprefix(f'{digest}-')}"
    meshes[name] = source
    return replace(value, mesh=name, uri=uri)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    if not target.exists():
        write_atomically(target, lambda temporary: temporary.write_bytes(source.read_bytes()))


# --- reading ----------------------------------------------------------------------------------------------------------


_DTYPES = {None: None, "float32": torch.float32, "float64": torch.float64}


def read_world(path: Path) -> tuple[dict[str, Any], torch.dtype | None, Path | None]:
    """Return the arguments of a world that was saved, the number type that it was moved to, and the file of its networks."""
    file = _file(path)
    try:
        content = read_json(file)
        told = _checked(content, file)
        codec = Codec(
            CLASSES, (Shape,), NAMES, _read_arrays(file, content.get("arrays")), lambda value: _with_mesh(value, file)
        )
        found = {k: codec.decode(v, f"{file}: {k}") for k, v in told.items()}
        for name, model in found["robots"].items():
            if not isinstance(model, Model):
                raise CodecError(f"{file}: robots['{name}'] is no Model")
            check_model(model, f"{file}: robots['{name}']")
    except RecursionError:
        raise CodecError(f"{file} is damaged: it is nested too deeply") from None
    robots = {name: Robot(model) for name, model in found["robots"].items()}
    networks = networks_of(file) if content.get("networks") else None
    return found | {"robots": robots}, _DTYPES[content.get("dtype")], networks


_ARGUMENTS = (
    *("robots", "bodies", "scenery", "actuators", "contact", "integrator", "substeps", "dt", "gravity", "poses"),
    *("self_collision", "collide", "parameters", "check", "constraints", "tendons"),
)


def _checked(content: Any, file: Path) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("world"), dict):
        raise CodecError(f"{file} is no world: world.save(...) writes one")
    if content.get("version") != VERSION:
        raise CodecError(
            f"{file} has version {content.get('version')!r} of the format; Costate {costate.__version__} reads {VERSION}"
        )
    if content.get("dtype") not in tuple(_DTYPES):
        raise CodecError(f"{file} has the number type {content['dtype']!r}; expected float32 or float64")
    told = content["world"]
    if wrong := [k for k in told if k not in _ARGUMENTS]:
        raise CodecError(f"{file}: a world has no '{wrong[0]}'; was this written by another version?")
    if missing := [k for k in _ARGUMENTS if k not in told]:
        raise CodecError(f"{file} is damaged: it has no '{missing[0]}'")
    if not isinstance(told["robots"], dict):
        raise CodecError(f"{file}: robots is {str(told['robots'])[:60]!r}; expected name -> Model")
    return told


def _read_arrays(file: Path, digest: Any) -> dict[str, np.ndarray]:
    if digest is None:
        return {}
    data = _arrays(file)
    if not data.exists() or checksum(data.read_bytes()) != digest:
        raise CodecError(
            f"{file} belongs to an array file {data.name}, which is missing, or not the one it was written with"
        )
    return {name: tensor.numpy() for name, tensor in read_tensors(data)[0].items()}


def _with_mesh(value: Any, file: Path) -> Any:
    """Return a shape with the path of its mesh file, which must be a copy next to the world."""
    if not isinstance(value, Shape) or value.mesh is None:
        return value
    folder, _, name = value.mesh.partition("/")
    if folder != f"{file.stem}.meshes" or Path(name).name != name or name in ("", ".", ".."):
        raise CodecError(f"mesh '{value.mesh[:80]}' is not in the folder of the world's meshes, {file.stem}.meshes")
    path = file.resolve().parent / folder / name
    check_mesh_file(path)
    return replace(value, mesh=str(path))
