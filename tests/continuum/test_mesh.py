"""Meshes against closed forms and the topology of solids."""

from __future__ import annotations

import time

import numpy as np
import pytest

from costate.continuum import EVER, HexMesh, Part, block, cylinder, published_size, wall
from costate.continuum.shapes import draw_up

CUBE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], dtype=float)
ONE = np.arange(8)[None]

PARTS = {
    "wall": lambda: wall(0.01, 0.003, 0.002),
    "block without a plate": lambda: block((0.006, 0.004, 0.003), plate=None),
    "cylinder": lambda: cylinder(0.005, 0.003),
    "tube": lambda: cylinder(0.006, 0.003, inner=0.004, pattern="spiral"),
    "tube without a plate": lambda: cylinder(0.006, 0.003, inner=0.004, plate=None),
}


def row(count: int, birth: list[float]) -> HexMesh:
    """Return unit cubes in a row along x."""
    line = np.arange(count + 1.0)
    points = np.stack(np.meshgrid(line, [0.0, 1.0], indexing="ij"), axis=-1).reshape(-1, 2)
    p = np.arange(2 * (count + 1)).reshape(-1, 2)
    quads = np.stack([p[:-1, 0], p[1:, 0], p[1:, 1], p[:-1, 1]], axis=1)
    return HexMesh.sorted(*draw_up(points, quads, np.array([0.0, 1.0])), birth)


def test_volume_of_a_parallelepiped_is_the_determinant_of_its_edges() -> None:
    rng = np.random.default_rng(0)
    A = np.eye(3) + 0.3 * rng.standard_normal((3, 3))
    mesh = HexMesh(CUBE @ A.T, ONE, np.zeros(1))
    assert mesh.volume == pytest.approx(np.linalg.det(A), rel=1e-14)
    a, b, c = A.T
    areas = [np.linalg.norm(np.cross(*pair)) for pair in ((a, b), (a, b), (b, c), (b, c), (a, c), (a, c))]
    np.testing.assert_allclose(np.sort(mesh.faces().areas), np.sort(areas), rtol=1e-14)


def test_volume_of_a_frustum() -> None:
    top = CUBE.copy()
    top[4:, :2] = 0.5 + 0.4 * (top[4:, :2] - 0.5)
    mesh = HexMesh(top, ONE, np.zeros(1))
    assert mesh.volume == pytest.approx((1 + 0.4 + 0.16) / 3, rel=1e-14)
    slant = np.hypot(1.0, 0.3)
    assert mesh.faces().areas.sum() == pytest.approx(1 + 0.16 + 4 * 0.7 * slant, rel=1e-14)


def test_volume_of_a_twisted_hexahedron_by_the_divergence_theorem() -> None:
    rng = np.random.default_rng(1)
    X = CUBE + 0.15 * rng.standard_normal((8, 3))
    mesh = HexMesh(X, ONE, np.zeros(1))
    # Midpoints of a fine grid on each bilinear face: sum of x . n dA / 3.
    n = 200
    s = (np.arange(n) + 0.5) / n
    u, v = np.meshgrid(s, s)
    total = 0.0
    for a, b, c, d in X[mesh.faces().faces]:
        u_, v_ = u[..., None], v[..., None]
        x = (1 - u_) * (1 - v_) * a + u_ * (1 - v_) * b + u_ * v_ * c + (1 - u_) * v_ * d
        normal = np.cross((1 - v_) * (b - a) + v_ * (c - d), (1 - u_) * (d - a) + u_ * (c - b))
        total += (x * normal).sum() / (3 * n * n)
    assert mesh.volume == pytest.approx(total, rel=1e-4)


def test_faces_of_three_cubes_in_a_row() -> None:
    mesh = row(3, [2.0, 1.0, EVER])  # the right one is there, then the middle one comes, then the left one
    assert mesh.centres[:, 0].tolist() == [2.5, 1.5, 0.5]
    faces = mesh.faces()
    x = mesh.nodes[faces.faces][:, :, 0]
    across = {float(a[0]): k for k, a in enumerate(x) if np.ptp(a) == 0}
    expected = {0.0: (2.0, np.inf), 1.0: (1.0, 2.0), 2.0: (EVER, 1.0), 3.0: (EVER, np.inf)}
    assert {key: (faces.birth[k], faces.death[k]) for key, k in across.items()} == expected
    assert len(faces) == 4 + 3 * 4
    assert [int(faces.exposed(t).sum()) for t in (0.0, 1.0, 1.5, 2.0)] == [6, 10, 10, 14]
    assert [mesh.alive(t) for t in (-9.0, 0.999, 1.0, 2.0)] == [1, 1, 2, 3]
    assert len(mesh.surface(0.0)) == 6 and len(mesh.surface()) == 14


def test_a_face_between_elements_born_together_is_never_exposed() -> None:
    assert len(row(2, [1.0, 1.0]).faces()) == 10


def test_births_of_nodes() -> None:
    mesh = row(3, [2.0, 1.0, EVER])
    assert dict(zip(mesh.nodes[:, 0].tolist(), mesh.node_birth.tolist(), strict=True)) == {0: 2, 1: 1, 2: EVER, 3: EVER}


@pytest.mark.parametrize("name", PARTS)
def test_every_face_is_of_one_or_two_elements_and_the_surface_is_closed(name: str) -> None:
    part: Part = PARTS[name]()
    mesh = part.mesh
    surface = mesh.surface()
    # Each element has six sides; an inner face takes two of them, an outer one takes one.
    alone = HexMesh(
        mesh.nodes, mesh.elements, np.arange(float(len(mesh.elements)))
    )  # no two are born together: all faces are seen
    inner = int(np.isfinite(alone.faces().death).sum())
    assert 2 * inner + len(surface) == 6 * len(mesh.elements)
    # Each edge of the surface is followed once in either direction: it is closed, and all its faces look outwards or all inwards.
    edges = np.concatenate([surface[:, [k, (k + 1) % 4]] for k in range(4)])
    forth = {tuple(e) for e in edges.tolist()}
    assert len(forth) == len(edges) and {(b, a) for a, b in forth} == forth
    characteristic = len(np.unique(surface)) - len(edges) // 2 + len(surface)
    assert characteristic == (0 if name == "tube without a plate" else 2)
    # By the divergence theorem, with flat faces: outwards.
    a, b, c, d = (mesh.nodes[surface[:, k]] for k in range(4))
    enclosed = ((a + b + c + d) / 4 * np.cross(c - a, d - b) / 2).sum() / 3
    assert mesh.volume == pytest.approx(enclosed, rel=1e-12)


@pytest.mark.parametrize("time", [0.0, 0.3, 0.9, 2.0])
def test_the_surface_is_closed_while_the_part_grows(time: float) -> None:
    mesh = block((0.004, 0.003, 0.002)).mesh
    surface = mesh.surface(time)
    a, b, c, d = (mesh.nodes[surface[:, k]] for k in range(4))
    enclosed = ((a + b + c + d) / 4 * np.cross(c - a, d - b) / 2).sum() / 3
    assert mesh.volumes[: mesh.alive(time)].sum() == pytest.approx(enclosed, rel=1e-12)


def test_coincident_nodes_are_merged() -> None:
    mesh = row(3, [0.0, 1.0, 2.0])
    rng = np.random.default_rng(0)
    loose = mesh.nodes[mesh.elements].reshape(-1, 3) + 1e-7 * rng.uniform(-1, 1, (24, 3))
    separate = HexMesh(loose, np.arange(24).reshape(3, 8), mesh.birth)
    joined = HexMesh.sorted(loose, np.arange(24).reshape(3, 8), mesh.birth, merge=1e-6)
    assert len(separate.faces()) == 18 and len(joined.nodes) == 16 and len(joined.faces()) == len(mesh.faces())
    assert joined.volume == pytest.approx(3, rel=1e-6)


def test_merging_a_large_mesh_gives_back_its_nodes() -> None:
    mesh = published_size().mesh
    start = time.process_time()
    joined = HexMesh.sorted(
        mesh.nodes[mesh.elements].reshape(-1, 3), np.arange(8 * 15070).reshape(-1, 8), mesh.birth, merge=1e-6
    )
    assert time.process_time() - start < 5  # 0.5 s alone
    assert len(joined.nodes) == 18438
    np.testing.assert_array_equal(joined.nodes[joined.elements], mesh.nodes[mesh.elements])


def test_sorting_is_stable() -> None:
    mesh = row(100, [float(k % 2) for k in range(100)])
    assert mesh.centres[:, 0].tolist() == [*np.arange(0.5, 100, 2), *np.arange(1.5, 100, 2)]
    assert mesh.birth.tolist() == [0.0] * 50 + [1.0] * 50


def test_arrays_are_copies_that_cannot_be_changed() -> None:
    nodes = CUBE.copy()
    mesh = HexMesh(nodes, ONE, np.zeros(1))
    nodes[:] = 0
    assert mesh.volume == pytest.approx(1)
    with pytest.raises(ValueError, match="read-only"):
        mesh.nodes[0] = 1


INVERTED = np.roll(np.arange(8), 4)
FOLDED = CUBE.copy()
FOLDED[6] = [0.2, 0.2, 0.4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((CUBE, ONE + 1, [0.0]), "row 0 of elements .*8 nodes, numbered from 0 to 7: subtract 1"),
        ((CUBE, ONE[:, :4], [0.0]), r"elements has the shape \(1, 4\); expected \(number, 8\)"),
        ((CUBE[:, :2], ONE, [0.0]), r"nodes has the shape \(8, 2\); expected \(number, 3\): positions in metres"),
        ((CUBE, ONE + 0.5, [0.0]), "expected whole numbers"),
        ((CUBE, ONE, [0.0, 1.0]), "expected a time for each of 1 elements"),
        ((CUBE, ONE, [np.inf]), "birth of element 0 is inf"),
        ((CUBE, [ONE[0], ONE[0]], [1.0, 0.0]), r"element 1 is born at 0 s, before element 0 at 1 s.*HexMesh.sorted\("),
        (
            (CUBE, [ONE[0], INVERTED], [0.0, 0.0]),
            r"1 of 2 elements have a bad shape \(number 1\); element 1 is inverted.*swap",
        ),
        ((CUBE * [1, 1, 0], ONE, [0.0]), "element 0 is flat"),
        ((FOLDED, ONE, [0.0]), "element 0 is flat, or folded at a corner"),
        ((CUBE, [[0, 1, 2, 3, 4, 5, 6, 6]], [0.0]), "has a node twice .*no wedges"),
        ((np.full((8, 3), np.nan), ONE, [0.0]), "row 0 of nodes is .*expected finite"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HexMesh(*arguments)


def test_a_face_of_three_elements_is_refused() -> None:
    with pytest.raises(ValueError, match="elements 0, 1, 2 share the face"):
        HexMesh(CUBE, np.repeat(ONE, 3, axis=0), np.zeros(3)).faces()


def test_errors_of_sorted_have_the_numbers_given() -> None:
    with pytest.raises(ValueError, match="element 0 is inverted"):
        HexMesh.sorted(CUBE, [INVERTED, ONE[0]], [1.0, 0.0])


def test_fifteen_thousand_elements_are_quick() -> None:
    start = time.process_time()
    mesh = published_size().mesh
    faces = mesh.faces()
    assert mesh.volumes.min() > 0 and len(faces) > 15070 and np.isfinite(mesh.node_birth.max())
    assert time.process_time() - start < 3  # 0.25 s alone
