"""Height fields, grids and convex parts: against planes, smooth surfaces, closed forms and trimesh; what is kept on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from casadi import SX
from scipy.optimize import minimize
from tests.gradients import Tolerances, check_gradients

from benchmarks.pairs.cases import BODIES, quaternions, solid
from benchmarks.pairs.oracle import reach, rotation
from costate.collision.mesh import files as meshes
from costate.collision.mesh.fields import Grid, Heights
from costate.collision.narrow import POINT, pair_program
from costate.collision.shapes import Field, Solid, sizes
from costate.kernel import Kernel, ProgramBuilder

trimesh = pytest.importorskip("trimesh")

SLOPE = np.array([0.3, -0.2])
EXTENT = np.array([2.0, 1.0])


def sampled(surface, nx: int, ny: int) -> Heights:
    x, y = (np.linspace(-e / 2, e / 2, n) for e, n in zip(EXTENT, (nx, ny), strict=True))
    return Heights(SX(EXTENT), surface(x[:, None], y[None]) * np.ones((nx, ny)))


def looked_up(field: Field, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances (n,) and normals (n, 3)."""
    b = ProgramBuilder("lookup")
    args = [b.input(name, n) for name, n in zip("ps", field.lookup().in_sizes, strict=True)]
    b.output("found", b.call(field.lookup(), *args)[0])
    found = b.kernel()(p=torch.tensor(points), s=torch.tensor(sizes(field), dtype=torch.float64)).found.numpy()
    return found[:, 0], found[:, 1:]


def above(height: float, count: int = 50) -> np.ndarray:
    """Points whose nearest ones are not at the border."""
    random = np.random.default_rng(0)
    return random.uniform([-0.7, -0.25, -0.1], [0.7, 0.25, height], (count, 3))


# --- height fields ----------------------------------------------------------------------------------------------------


def test_distance_to_a_slope_is_exact() -> None:
    """Five by four samples of a plane."""
    points = above(0.4)
    distance, normal = looked_up(sampled(lambda x, y: SLOPE[0] * x + SLOPE[1] * y, 5, 4), points)
    way = np.array([*-SLOPE, 1]) / np.sqrt(1 + SLOPE @ SLOPE)
    assert np.abs(distance - points @ way).max() < 1e-12
    assert np.abs(normal - way).max() < 1e-12


def test_distance_to_waves() -> None:
    """Against the nearest point of the smooth surface, found by scipy. Samples every 5 cm of waves 2 m long, within 2 cm."""

    def surface(x, y):
        return 0.1 * np.sin(3 * x) + 0.05 * np.cos(4 * y)

    points = above(0.0)
    points[:, 2] = surface(*points[:, :2].T) + np.linspace(-0.02, 0.02, len(points))
    distance, normal = looked_up(sampled(surface, 41, 21), points)
    for p, d, n in zip(points, distance, normal, strict=True):
        foot = minimize(
            lambda x, p=p: (x[0] - p[0]) ** 2 + (x[1] - p[1]) ** 2 + (surface(*x) - p[2]) ** 2, p[:2], tol=1e-14
        ).x
        away = p - [*foot, surface(*foot)]
        assert abs(d - np.copysign(np.linalg.norm(away), away[2])) < 2e-5
        slopes = [0.3 * np.cos(3 * foot[0]), -0.2 * np.sin(4 * foot[1])]
        assert np.abs(n - np.array([-slopes[0], -slopes[1], 1]) / np.sqrt(1 + np.dot(slopes, slopes))).max() < 5e-3


def test_a_height_field_has_upright_sides() -> None:
    points = np.array([[1.01, 0, -0.1], [0, -0.53, -0.2], [1.01, 0, 0.2]])
    distance, normal = looked_up(sampled(lambda x, y: 0 * x * y, 3, 3), points)
    assert np.allclose(distance, [0.01, 0.03, 0.2]) and np.allclose(normal, [[1, 0, 0], [0, -1, 0], [0, 0, 1]])


def pair_kernel(a: Solid, field: Field) -> Kernel:
    program = pair_program(a, field)
    b = ProgramBuilder("pair")
    args = [b.input(name, n) for name, n in zip(("x", "y", "sa", "sf"), program.in_sizes, strict=True)]
    b.output("places", b.call(program, *args)[0], (program.out_sizes[0] // POINT, POINT))
    return b.kernel()


def column(position: np.ndarray, q: np.ndarray) -> torch.Tensor:
    """Rotation, column by column, and position, (..., 12)."""
    turned = np.swapaxes(rotation(q), -1, -2).reshape(*q.shape[:-1], 9)
    return torch.tensor(np.concatenate([turned, position], -1))


@pytest.mark.parametrize("kind", ["capsule", "cylinder", "ellipsoid", "hull"])
def test_solids_over_a_slope(kind: str) -> None:
    """The least gap is the height above the plane less how far the solid reaches, unless a side of the field is nearer than that;
    derivatives against differences."""
    field = sampled(lambda x, y: SLOPE[0] * x + SLOPE[1] * y, 5, 4)
    a = solid(BODIES[kind])
    k = pair_kernel(a, field)
    position, q = above(0.4), quaternions(np.random.default_rng(1), 50)
    given = {"sa": torch.tensor(sizes(a), dtype=torch.float64), "sf": torch.tensor(EXTENT)}
    turned = np.array([0.8, 0.1, -0.3, 0.5])  # the field is tilted too
    x = position @ rotation(turned).T + [0.1, 0.2, 0.3]
    R = rotation(turned) @ rotation(q)
    pose = torch.tensor(np.concatenate([np.swapaxes(R, -1, -2).reshape(-1, 9), x], 1))
    base = column(np.array([0.1, 0.2, 0.3]), turned)
    found = k(x=pose, y=base, **given).places.numpy()
    way = np.array([*-SLOPE, 1]) / np.sqrt(1 + SLOPE @ SLOPE)
    expected = position @ way - reach(BODIES[kind], -np.einsum("nij,i->nj", rotation(q), way))
    shallow = expected > -0.1
    assert shallow.sum() > 30 and np.abs(found[..., 0].min(1) - expected)[shallow].max() < 1e-9
    first = found[np.arange(50), found[..., 0].argmin(1)][shallow]
    assert np.abs(first[:, 4:] - rotation(turned) @ way).max() < 1e-9
    if kind == "cylinder":
        check_gradients(
            lambda u, v: k(x=u, y=v, **{n: t.to(u.dtype) for n, t in given.items()}).places[..., 0, :],
            (pose[0], base),
            names=("x", "y"),
            step=1e-6,
            tolerances=Tolerances(finite_difference=1e-5),
        )


# --- grids ------------------------------------------------------------------------------------------------------------


def ring(sections: int = 24) -> Any:
    return trimesh.creation.torus(0.2, 0.06, major_sections=sections, minor_sections=sections // 2)


def test_signed_distance_of_a_cube() -> None:
    points = np.random.default_rng(0).uniform(-2, 2, (200, 3))
    out = np.abs(points) - 1
    expected = np.where((out < 0).all(1), out.max(1), np.linalg.norm(np.maximum(out, 0), axis=1))
    cube = trimesh.creation.box((2, 2, 2)).triangles.view(np.ndarray)
    assert np.abs(meshes.signed_distance(points, cube) - expected).max() < 1e-12


def test_grid_of_a_ring(tmp_path: Path, monkeypatch) -> None:
    """Near the surface against trimesh's nearest points of the same triangles: the grid rounds off a fraction of a cell. Far beyond
    the grid against the torus."""
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path))
    mesh = ring()
    grid = meshes.grid_of(np.asarray(mesh.vertices), np.asarray(mesh.faces))
    random = np.random.default_rng(0)
    points = mesh.sample(100, seed=0) + random.uniform(-0.02, 0.02, (100, 3))
    away = random.normal(size=(50, 3))
    away *= random.uniform(0.4, 0.8, (50, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    distance, normal = looked_up(grid, np.concatenate([points, away]))
    nearest = trimesh.proximity.closest_point_naive(mesh, points)[1]
    assert np.abs(np.abs(distance[:100]) - nearest).max() < 0.15 * grid.spacing
    exact = np.hypot(np.hypot(away[:, 0], away[:, 1]) - 0.2, away[:, 2]) - 0.06
    assert np.abs(distance[100:] - exact).max() < 0.25 * grid.spacing
    assert np.abs(np.linalg.norm(normal, axis=1) - 1).max() < 1e-12


def test_a_grid_is_made_once_and_damage_is_noticed(tmp_path: Path, monkeypatch) -> None:
    made = []
    sample = meshes._sampled
    monkeypatch.setattr(meshes, "_sampled", lambda *args: made.append(1) or sample(*args))
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path))
    mesh = trimesh.creation.box((0.2, 0.1, 0.1))

    def values(cells: int = 8) -> np.ndarray:
        return meshes.grid_of(np.asarray(mesh.vertices), np.asarray(mesh.faces), cells).values

    first = values()
    assert np.array_equal(values(), first) and len(made) == 1
    (file,) = (tmp_path / "meshes").iterdir()
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[-5] ^= 1
    for damaged in (bytes(flipped), whole[: len(whole) // 2], b""):
        file.write_bytes(damaged)
        assert np.array_equal(values(), first)
        assert file.read_bytes() == whole
    assert len(made) == 4
    values(9)
    assert len(made) == 5
    monkeypatch.setenv("COSTATE_CACHE", str(file))  # a folder that cannot be made
    assert np.array_equal(values(), first)


def test_gradients_of_a_grid(tmp_path: Path, monkeypatch) -> None:
    """Of a ball next to a ring, and beyond its grid."""
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path))
    mesh = ring(12)
    grid = meshes.grid_of(np.asarray(mesh.vertices), np.asarray(mesh.faces), 12)
    assert isinstance(grid, Grid)
    a = solid(BODIES["sphere"])
    k = pair_kernel(a, grid)
    given = {"sa": torch.tensor([0.05], dtype=torch.float64), "sf": torch.tensor([0.0], dtype=torch.float64)}
    base = column(np.zeros(3), np.array([0.9, 0.1, 0.2, -0.3]))
    for position in ([0.213, 0.031, 0.107], [0.5, 0.2, 0.31]):
        check_gradients(
            lambda u, v: k(x=u, y=v, **{n: t.to(u.dtype) for n, t in given.items()}).places[..., 0, :],
            (column(np.array(position), np.array([1.0, 0, 0, 0])), base),
            names=("x", "y"),
            step=1e-6,
            tolerances=Tolerances(finite_difference=1e-5),
        )


# --- convex parts -----------------------------------------------------------------------------------------------------


def write_trough(path: Path) -> Path:
    """A U: a floor 2 cm thick and two walls, 20 cm high and 20 cm apart."""
    outline = np.array(
        [[-0.12, 0], [0.12, 0], [0.12, 0.2], [0.1, 0.2], [0.1, 0.02], [-0.1, 0.02], [-0.1, 0.2], [-0.12, 0.2]]
    )
    strips = [[0, 1, 4, 5], [1, 2, 3, 4], [0, 5, 6, 7]]
    front = [[s[0], s[k], s[k + 1]] for s in strips for k in (1, 2)]
    n = len(outline)
    faces = front + [[a + n, c + n, b + n] for a, b, c in front]
    for i in range(n):
        j = (i + 1) % n
        faces += [[i, i + n, j], [j, i + n, j + n]]
    vertices = np.array([[x, y, z] for y in (-0.15, 0.15) for x, z in outline])
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    mesh.fix_normals()
    assert mesh.is_watertight and abs(mesh.volume - 0.3 * (0.24 * 0.02 + 2 * 0.02 * 0.18)) < 1e-9
    mesh.export(path)
    return path


def test_convex_parts_leave_a_trough_open(tmp_path: Path, monkeypatch) -> None:
    """Made once; damaged ones are made again."""
    pytest.importorskip("coacd")
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path / "cache"))
    path = write_trough(tmp_path / "trough.obj")
    parts = meshes.convex_parts(path, 0.05)
    assert len(parts) >= 3
    loaded = [trimesh.load(p, force="mesh").convex_hull for p in parts]
    whole = trimesh.load(path, force="mesh")
    assert abs(sum(p.volume for p in loaded) / whole.volume - 1) < 0.05
    assert whole.convex_hull.volume > 2 * whole.volume
    written = parts[0].stat().st_mtime_ns
    assert meshes.convex_parts(path, 0.05) == parts and parts[0].stat().st_mtime_ns == written
    text = parts[0].read_text()
    parts[0].write_text(text.replace("0", "1", 1))
    assert meshes.convex_parts(path, 0.05) == parts and parts[0].read_text() == text


def test_without_coacd_the_error_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(ImportError, match=r"needs coacd: .*\[decompose\]'"):
        meshes.convex_parts(write_trough(tmp_path / "trough.obj"))
