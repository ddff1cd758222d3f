"""Files of animated meshes: a glTF file with one target per frame, or a folder of OBJ files."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from costate.continuum.cloth.model import ClothModel
from costate.core.arrays import Array
from costate.draw.cloth.surface import COLORS, frames_of, surface

FLOAT, INDEX = 5126, 5125
"""Numbers of glTF for float32 and uint32."""


def write_obj(model: ClothModel, x: Any, folder: str | Path) -> list[Path]:
    """Write the surfaces of every frame of positions x (frames, points, 3) as `frame_0000.obj`, ...; return the files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for k, frame in enumerate(frames_of(x)):
        lines, first = [], 1
        for body, (points, triangles) in zip(model.bodies, surface(model, frame), strict=True):
            lines.append(f"o {body.name}")
            lines += [f"v {p[0]:.7g} {p[1]:.7g} {p[2]:.7g}" for p in points]
            lines += [f"f {a} {b} {c}" for a, b, c in (triangles + first).tolist()]
            first += len(points)
        files.append(folder / f"frame_{k:04d}.obj")
        files[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


def write_gltf(model: ClothModel, times: Any, x: Any, file: str | Path) -> Path:
    """Write the motion as one binary glTF file (.glb): the first frame, and for every other one how far points have moved from it,
    which an animation mixes. glTF has y upwards: z becomes y."""
    frames, t = frames_of(x), np.asarray(times, np.float32)
    if len(t) != len(frames):
        raise ValueError(f"there are {len(t)} times for {len(frames)} frames; give one for each")
    scene = _Scene()
    for k, body in enumerate(model.bodies):
        motion = [_upright(surface(model, f)[k][0]) for f in frames]
        scene.add(body.name, motion, surface(model, frames[0])[k][1], t, COLORS[k % len(COLORS)])
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(scene.packed())
    return file


def _upright(points: Array) -> Array:
    return np.ascontiguousarray(np.stack([points[:, 0], points[:, 2], -points[:, 1]], 1), np.float32)


class _Scene:
    """A glTF scene that is being written."""

    def __init__(self) -> None:
        self.data = b""
        self.json: dict[str, Any] = {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": []}],
            **{k: [] for k in ("nodes", "meshes", "materials", "accessors", "bufferViews")},
            "animations": [{"samplers": [], "channels": []}],
        }

    def add(self, name: str, motion: list[Array], triangles: Array, times: Array, color: tuple[float, ...]) -> None:
        """Add a body with its motion."""
        doc = self.json
        n = len(doc["nodes"])
        targets = [{"POSITION": self._accessor(p - motion[0], "VEC3")} for p in motion[1:]]
        doc["materials"].append(
            {"pbrMetallicRoughness": {"baseColorFactor": list(color), "metallicFactor": 0}, "doubleSided": True}
        )
        primitive = {
            "attributes": {"POSITION": self._accessor(motion[0], "VEC3")},
            "indices": self._accessor(np.ascontiguousarray(triangles.reshape(-1), np.uint32), "SCALAR"),
            "material": n,
            **({"targets": targets} if targets else {}),
        }
        doc["meshes"].append({"name": name, "primitives": [primitive]})
        doc["nodes"].append({"name": name, "mesh": n})
        doc["scenes"][0]["nodes"].append(n)
        if targets:
            weights = np.eye(len(motion), dtype=np.float32)[:, 1:]
            animation = doc["animations"][0]
            sampler = {
                "input": self._accessor(times, "SCALAR"),
                "output": self._accessor(weights.reshape(-1).copy(), "SCALAR"),
            }
            animation["channels"].append(
                {"sampler": len(animation["samplers"]), "target": {"node": n, "path": "weights"}}
            )
            animation["samplers"].append(sampler)

    def _accessor(self, values: Array, kind: str) -> int:
        """Add numbers; return the number of what names them."""
        doc, rows = self.json, values.reshape(len(values), -1)
        doc["bufferViews"].append({"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes})
        self.data += values.tobytes()
        doc["accessors"].append(
            {
                "bufferView": len(doc["bufferViews"]) - 1,
                "componentType": INDEX if values.dtype == np.uint32 else FLOAT,
                "count": len(values),
                "type": kind,
                "min": rows.min(0).tolist(),
                "max": rows.max(0).tolist(),
            }
        )
        return len(doc["accessors"]) - 1

    def packed(self) -> bytes:
        """Return the file."""
        doc = self.json | {"buffers": [{"byteLength": len(self.data)}]}
        if not doc["animations"][0]["channels"]:
            del doc["animations"]
        text = json.dumps(doc).encode()
        text += b" " * (-len(text) % 4)
        data = self.data + b"\0" * (-len(self.data) % 4)
        head = struct.pack("<III", 0x46546C67, 2, 12 + 8 + len(text) + 8 + len(data))
        return (
            head + struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(data), 0x004E4942) + data
        )
