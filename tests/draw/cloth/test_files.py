"""Files of animated cloth, read by another program, and pictures of it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trimesh

import costate as cs
from costate.continuum import ClothModel, Collider, sheet, straight_rope
from costate.draw.cloth.files import write_gltf, write_obj
from costate.draw.cloth.film import render_cloth

MODEL = ClothModel(
    [sheet((4, 5), (0.3, 0.4)), straight_rope((0, 0, 0.2), (0.2, 0, 0.2), 6)],
    dt=0.01,
    colliders=[Collider(cs.shapes.sphere(0.1))],
)
TIMES = torch.arange(3) * 0.5


def motion() -> torch.Tensor:
    x = MODEL.start().x + torch.tensor([0.0, 0.0, 0.2])
    return x + torch.arange(3)[:, None, None] * torch.tensor([0.1, 0.0, 0.05])


def test_obj_files_hold_the_surfaces(tmp_path: Path) -> None:
    files = write_obj(MODEL, motion(), tmp_path)
    assert len(files) == 3
    mesh: Any = trimesh.load(files[2], process=False, force="mesh")
    points = np.asarray(mesh.vertices)[:20]
    assert np.allclose(points, motion()[2, :20], atol=1e-6)
    assert len(mesh.faces) == 24 + 2 * 6 * 6  # triangles of the sheet; six segments with six sides


def test_a_gltf_file_holds_the_motion(tmp_path: Path) -> None:
    """Read by trimesh at the first frame; targets and weights of the others by what the format says."""
    file = write_gltf(MODEL, TIMES, motion(), tmp_path / "towel.glb")
    scene: Any = trimesh.load(file, process=False)
    first = np.asarray(scene.geometry["cloth"].vertices)
    assert np.allclose(first[:, [0, 2, 1]] * [1, -1, 1], motion()[0, :20], atol=1e-6)
    data = file.read_bytes()
    (length,) = struct.unpack("<I", data[12:16])
    doc, body = json.loads(data[20 : 20 + length]), data[28 + length :]

    def numbers(k: int) -> np.ndarray:
        view = doc["bufferViews"][doc["accessors"][k]["bufferView"]]
        return np.frombuffer(body[view["byteOffset"] :][: view["byteLength"]], "<f4")

    target = numbers(doc["meshes"][0]["primitives"][0]["targets"][1]["POSITION"]).reshape(-1, 3)
    assert np.allclose(target, [0.2, 0.1, 0.0], atol=1e-6)  # z is y there
    sampler = doc["animations"][0]["samplers"][0]
    assert np.array_equal(numbers(sampler["input"]), [0.0, 0.5, 1.0])
    assert np.array_equal(numbers(sampler["output"]).reshape(3, 2), [[0, 0], [1, 0], [0, 1]])
    with pytest.raises(ValueError, match="one for each"):
        write_gltf(MODEL, TIMES[:2], motion(), file)


def test_a_picture_shows_the_cloth(tmp_path: Path) -> None:
    from PIL import Image

    file = render_cloth(MODEL, TIMES, motion(), tmp_path / "towel.png", size=(160, 90))
    picture = np.asarray(Image.open(file).convert("RGB")).astype(int)
    blue = (picture[..., 2] > picture[..., 0] + 30).mean()
    assert 0.01 < blue < 0.6
    with pytest.raises(ValueError, match="frames, points, 3"):
        render_cloth(MODEL, TIMES, motion()[0], file)
