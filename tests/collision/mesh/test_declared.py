"""Mesh files that declare far more than they hold are refused before anything is made of it."""

from __future__ import annotations

import json
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from costate.collision.mesh.declared import check_declared
from costate.collision.mesh.files import load_triangles


def gltf(corners: int = 300) -> tuple[dict[str, Any], bytes]:
    """Return the header and the data of a sound file."""
    points = np.random.default_rng(0).normal(size=(corners, 3)).astype("<f4").tobytes()
    indices = np.arange(corners, dtype="<u4").tobytes()
    header = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": corners, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5125, "count": corners, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteLength": len(points)},
            {"buffer": 0, "byteOffset": len(points), "byteLength": len(indices)},
        ],
        "buffers": [{"byteLength": len(points) + len(indices)}],
    }
    return header, points + indices


def glb(path: Path, header: dict[str, Any], data: bytes) -> Path:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(data), 0x004E4942) + data
    path.write_bytes(struct.pack("<III", 0x46546C67, 2, 12 + len(chunks)) + chunks)
    return path


def _zeros(header: dict[str, Any]) -> None:
    header["accessors"].append({"componentType": 5126, "count": 10**9, "type": "MAT4"})


def _no_view(header: dict[str, Any]) -> None:
    del header["accessors"][0]["bufferView"]
    header["accessors"][0]["count"] = 10**9


def _views(header: dict[str, Any]) -> None:
    header["bufferViews"] += header["bufferViews"][:1] * 100_000


def _nodes(header: dict[str, Any]) -> None:
    header["nodes"] *= 10_000
    header["scenes"][0]["nodes"] = list(range(10_000))


def _children(header: dict[str, Any]) -> None:
    header["nodes"] += [{"children": [0]}] * 6000


def _primitives(header: dict[str, Any]) -> None:
    header["meshes"][0]["primitives"] *= 6000


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_zeros, "UNPACKED_MB"),
        (_no_view, "UNPACKED_MB"),
        (_views, "UNPACKED_MB"),
        (_nodes, "PARTS"),
        (_children, "PARTS"),
        (_primitives, "PARTS"),
    ],
)
def test_gltf_that_declares_too_much(tmp_path: Path, change: Any, name: str) -> None:
    header, data = gltf()
    assert len(load_triangles(glb(tmp_path / "sound.glb", header, data))[1]) == 100
    change(header)
    with pytest.raises(ValueError, match=rf"large.glb: .* exceed the limit of .* COSTATE_MAX_MESH_{name} "):
        load_triangles(glb(tmp_path / "large.glb", header, data))
    (tmp_path / "large.gltf").write_text(json.dumps(header))
    with pytest.raises(ValueError, match=rf"large.gltf: .* COSTATE_MAX_MESH_{name} "):
        load_triangles(tmp_path / "large.gltf")


def test_copies_of_large_meshes(tmp_path: Path) -> None:
    """A hundred copies of 100,000 corners: the file has 2 MB, and what is made of it 300."""
    header, data = gltf(99_999)
    header["nodes"] *= 200
    header["scenes"][0]["nodes"] = list(range(200))
    with pytest.raises(ValueError, match=r"COSTATE_MAX_MESH_UNPACKED_MB"):
        load_triangles(glb(tmp_path / "copies.glb", header, data))


def test_gltf_with_impossible_numbers(tmp_path: Path) -> None:
    for count in (-1, "many", None, 1e400):
        header, data = gltf()
        header["accessors"][0]["count"] = count
        with pytest.raises(ValueError, match=r"a.glb is damaged"):
            load_triangles.__wrapped__(glb(tmp_path / "a.glb", header, data))
    path = glb(tmp_path / "a.glb", *gltf())
    path.write_bytes(path.read_bytes()[:12] + struct.pack("<II", 0xFFFFFFF0, 0x4E4F534A) + b"{}")
    with pytest.raises(ValueError, match=r"declares 4,294,967,280 bytes of JSON, and is shorter"):
        load_triangles.__wrapped__(path)


def test_buffers_lie_beside_the_file(tmp_path: Path) -> None:
    header, data = gltf()
    (tmp_path / "mesh").mkdir()
    for name, sound in (("data.bin", True), ("../data.bin", False), (str(tmp_path / "data.bin"), False)):
        (tmp_path / "mesh" / name).write_bytes(data)
        header["buffers"][0]["uri"] = name
        path = tmp_path / "mesh" / "a.gltf"
        path.write_text(json.dumps(header))
        if sound:
            assert len(load_triangles.__wrapped__(path)[1]) == 100
        else:
            with pytest.raises(ValueError, match="is outside of the folders"):
                load_triangles.__wrapped__(path)


def test_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solid = "solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid s\n"
    triangle = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
    files = {"a.stl": solid * 60, "a.obj": triangle + "".join(f"usemtl m{i}\nf 1 2 3\n" for i in range(60))}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert len(load_triangles.__wrapped__(tmp_path / name)[1]) == 60
    monkeypatch.setenv("COSTATE_MAX_MESH_PARTS", "50")
    for name in files:
        with pytest.raises(ValueError, match=rf"{name}: 60 parts of a mesh file exceed the limit of 50"):
            load_triangles.__wrapped__(tmp_path / name)


COLLADA = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"><library_geometries><geometry id="g"><mesh>
<float_array>0 0 0 1 0 0 0 1 0</float_array></mesh></geometry></library_geometries><library_nodes>{nodes}</library_nodes>
<library_visual_scenes><visual_scene id="s"><node><instance_node url="#n{last}"/></node></visual_scene></library_visual_scenes>
</COLLADA>"""


def test_collada_copies_that_double(tmp_path: Path) -> None:
    def written(levels: int, first: str = '<instance_geometry url="#g"/>') -> Path:
        nodes = [f'<node id="n0">{first}</node>']
        nodes += [f'<node id="n{i}">{2 * f"""<instance_node url="#n{i - 1}"/>"""}</node>' for i in range(1, levels)]
        (tmp_path / "a.dae").write_text(COLLADA.format(nodes="".join(nodes), last=levels - 1))
        return tmp_path / "a.dae"

    check_declared(written(10))
    with pytest.raises(ValueError, match=r"a.dae: 549,755,813,888 parts of a mesh file"):
        check_declared(written(40))
    with pytest.raises(ValueError, match="a node copies itself"):
        check_declared(written(10, '<instance_node url="#n5"/>'))
    (tmp_path / "a.dae").write_text('<!DOCTYPE a [<!ENTITY b "c">]><COLLADA>&b;</COLLADA>')
    with pytest.raises(ValueError, match="document types are refused"):
        check_declared(tmp_path / "a.dae")


def test_archives_are_read_in_a_process_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So what a glTF file inside of one declares is bounded, too."""
    header, data = gltf(30_000)
    header["nodes"] *= 3000
    header["scenes"][0]["nodes"] = list(range(3000))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(glb(tmp_path / "a.glb", header, data), "a.glb")
    monkeypatch.setenv("COSTATE_MAX_READ_MEMORY_MB", "300")
    monkeypatch.setenv("COSTATE_MAX_READ_SECONDS", "3")
    start = time.process_time()
    with pytest.raises(ValueError, match=r"a.zip: the limit of .* COSTATE_MAX_READ_(SECONDS|MEMORY_MB) "):
        load_triangles(tmp_path / "a.zip")
    assert time.process_time() - start < 5.0  # of this process
    box = trimesh.creation.box()
    box.export(tmp_path / "box.3mf")
    vertices, faces = load_triangles(tmp_path / "box.3mf")
    assert len(faces) == 12 and np.allclose(np.abs(vertices), 0.5)
