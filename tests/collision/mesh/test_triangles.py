"""Meshes: closed, facing outwards, and of the right volume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costate.collision.mesh.files import mesh_from_file
from costate.collision.mesh.triangles import UNIT, Mesh, creased
from costate.collision.shapes.socket import socket_mesh

# Volumes of the solids the unit meshes stand for. Round ones are inscribed polygons and so a little smaller.
VOLUMES = {"sphere": 4 / 3 * np.pi, "cylinder": np.pi, "cone": np.pi / 3, "box": 1.0}


def volume(mesh: Mesh) -> float:
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces].astype(float), 1, 0)
    return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6)


def outwards(mesh: Mesh) -> np.ndarray:
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces].astype(float), 1, 0)
    return np.einsum("fi,fi->f", np.cross(b - a, c - a), mesh.normals[mesh.faces].mean(1))


@pytest.mark.parametrize("name", UNIT)
def test_triangles_face_the_way_of_their_normals(name: str) -> None:
    mesh = UNIT[name]()
    assert (outwards(mesh) > 0).all()
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes(name: str) -> None:
    found = volume(UNIT[name]())
    assert VOLUMES[name] * 0.96 < found <= VOLUMES[name] * (1 + 1e-6)


def test_socket_is_a_cup() -> None:
    cup = socket_mesh(0.03, 0.05, 0.08, 0.02)
    assert (outwards(cup) > 0).all()
    assert volume(cup) == pytest.approx(np.pi * (0.05**2 * 0.1 - 0.03**2 * 0.08), rel=0.01)
    assert cup.vertices[:, 2].min() == pytest.approx(-0.1) and cup.vertices[:, 2].max() == pytest.approx(0.0)


def test_creases_stay_sharp_and_curves_smooth() -> None:
    box, ball = UNIT["box"](), UNIT["sphere"]()
    assert np.allclose(np.abs(creased(box.vertices, box.faces).normals).max(1), 1)
    smooth = creased(ball.vertices.astype(float), ball.faces)
    assert np.abs(smooth.normals - smooth.vertices).max() < 0.1  # a sphere's normals are its points


def test_mesh_files(tmp_path: Path) -> None:
    import trimesh

    path = tmp_path / "part.stl"
    trimesh.creation.box((1.0, 2.0, 3.0)).export(path)
    mesh = mesh_from_file(path)
    assert volume(mesh) == pytest.approx(6.0)
    assert np.abs(mesh.vertices).max(0) == pytest.approx([0.5, 1.0, 1.5])
