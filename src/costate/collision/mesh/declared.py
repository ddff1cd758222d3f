"""Bounds what mesh files declare, before it is made: counts of glTF, copies in glTF and COLLADA, and parts."""

from __future__ import annotations

import json
import mmap
import re
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from costate.core.limits import excess

_MB = 2**20
_BYTES = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
"""Bytes of a number of glTF, by componentType."""
_COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_OBJ_PARTS = re.compile(rb"^[ \t]*usemtl[ \t]", re.MULTILINE)
_STL_PARTS = re.compile(rb"^[ \t]*endsolid", re.MULTILINE | re.IGNORECASE)


def check_declared(path: Path) -> None:
    """Raise a ValueError if reading a mesh file would make far more than the file holds."""
    if path.stat().st_size and (check := _CHECKS.get(path.suffix.lower())):
        check(path)


def _bound(path: Path, name: str, asked: float) -> None:
    if problem := excess(name, asked):
        raise ValueError(f"{path}: {problem}")


def _parts(pattern: re.Pattern[bytes]) -> Callable[[Path], None]:
    """Return a check of the number of parts, of which each costs a reader as much as thousands of triangles."""

    def check(path: Path) -> None:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            _bound(path, "mesh_parts", sum(1 for _ in pattern.finditer(text)))

    return check


# --- glTF ---------------------------------------------------------------------------------------------------------------


def _gltf(path: Path) -> None:
    try:
        header = json.loads(_glb_header(path) if path.suffix.lower() == ".glb" else path.read_bytes())
        accessors, views = header.get("accessors", []), header.get("bufferViews", [])
        sizes = [int(a["count"]) * _BYTES[a["componentType"]] * _COLUMNS[a["type"]] for a in accessors]
        made = sum(sizes) + sum(int(v["byteLength"]) for v in views)
        copies = _copies(header)
        drawn = [[_primitive(p, accessors) for p in m["primitives"]] for m in header.get("meshes", [])]
        parts = sum(len(p) for p in drawn) + sum(n * len(drawn[m]) for m, n in copies.items())
        corners = sum(sum(p) for p in drawn) + sum(n * sum(drawn[m]) for m, n in copies.items())
        negative = any(s < 0 for s in sizes)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, or no glTF file: {error!r}") from error
    if negative:
        raise ValueError(f"{path} is damaged: it declares a negative number of values")
    _bound(path, "mesh_parts", parts)
    _bound(path, "mesh_unpacked_mb", (made + 24 * corners) / _MB)


def _glb_header(path: Path) -> bytes:
    """Return the JSON of a binary file, of which no more is declared than the file has."""
    with path.open("rb") as file:
        start = file.read(20)
        if len(start) < 20:
            raise ValueError("the file is too short")
        length = struct.unpack("<5I", start)[3]
        if length > path.stat().st_size - 20:
            raise ValueError(f"it declares {length:,} bytes of JSON, and is shorter")
        return file.read(length)


def _copies(header: dict[str, Any]) -> Counter[int]:
    """Count how often each mesh is drawn: once for every mention of a node."""
    nodes = header.get("nodes", [])
    mentioned = Counter(n for scene in header.get("scenes", []) for n in scene.get("nodes", []))
    for node in nodes:
        mentioned.update(set(node.get("children", [])))
    found: Counter[int] = Counter()
    for node, count in mentioned.items():
        if "mesh" in nodes[node]:
            found[nodes[node]["mesh"]] += count
    return found


def _primitive(primitive: dict[str, Any], accessors: list[dict[str, Any]]) -> int:
    """Return the number of corners and indices of a primitive."""
    used = [primitive["attributes"].get("POSITION"), primitive.get("indices")]
    return sum(accessors[i]["count"] for i in used if i is not None)


# --- COLLADA ------------------------------------------------------------------------------------------------------------


def _collada(path: Path) -> None:
    """Count the nodes of a scene with all that they copy, which may double with every level."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    data = path.read_bytes()
    if b"<!DOCTYPE" in data.replace(b"\0", b""):
        raise ValueError(f"{path}: document types are refused (their entities can exhaust memory); remove it")
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
        named = {f"#{e.get('id')}": e for e in root.iter("{*}node", "{*}geometry") if e.get("id")}
        known: dict[Any, tuple[float, float]] = {}
        scenes = [_copied(scene, named, known, ()) for scene in root.iter("{*}visual_scene")]
    except (etree.XMLSyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, or no COLLADA file: {error!r}") from error
    _bound(path, "mesh_parts", sum(parts for parts, _ in scenes))
    _bound(path, "mesh_unpacked_mb", sum(size for _, size in scenes) / _MB)


def _copied(element: Any, named: dict[str, Any], known: dict[Any, tuple[float, float]], around: tuple[Any, ...]) -> Any:
    """Return the parts and the length of their text that a node of COLLADA stands for, with what it copies."""
    if element in around:
        raise ValueError("a node copies itself")
    if element not in known:
        parts = size = 0.0
        for child in element.iterchildren("{*}node", "{*}instance_node", "{*}instance_geometry"):
            name = child.tag.rpartition("}")[2]
            target = child if name == "node" else named.get(child.get("url", ""))
            if target is None:
                continue
            if name == "instance_geometry":
                parts, size = parts + 1, size + sum(len(text) for text in target.itertext())
            else:
                more = _copied(target, named, known, (*around, element))
                parts, size = parts + more[0], size + more[1]
        known[element] = parts, size
    return known[element]


_CHECKS = {
    ".obj": _parts(_OBJ_PARTS),
    ".stl": _parts(_STL_PARTS),
    ".glb": _gltf,
    ".gltf": _gltf,
    ".dae": _collada,
}
"""Checks by the ending of a file's name. PLY, OFF and binary STL declare counts that their readers compare with the file."""
