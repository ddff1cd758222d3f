"""Contact geometry of every pair of shapes: against MuJoCo's distances, dense sampling and finite differences."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import casadi as ca
import numpy as np
import pytest
from casadi import DM, SX

import costate as cs
from costate.collision import shapes as solids
from costate.collision.kinds import solid_of
from costate.collision.pairs import Placed, by_program, contact_points, tangents
from costate.collision.shapes import FAR, Solid, resized, sizes

mujoco = pytest.importorskip("mujoco")

PRIMITIVES = {
    "sphere": cs.shapes.sphere(0.12),
    "capsule": cs.shapes.capsule(0.07, 0.3),
    "box": cs.shapes.box((0.2, 0.3, 0.16)),
    "cylinder": cs.shapes.cylinder(0.1, 0.24),
    "ellipsoid": cs.shapes.ellipsoid((0.1, 0.15, 0.07)),
    "plane": cs.shapes.plane(),
}
PAIRS = [
    (a, b)
    for a, b in combinations_with_replacement(PRIMITIVES, 2)
    if (a, b) != ("plane", "plane") and not by_program(solid_of(PRIMITIVES[a]), solid_of(PRIMITIVES[b]))
]
"""Pairs with a formula; those that are programs are in tests/collision/test_pairs.py."""


def pair_function(a: Solid, b: Solid, size_a: SX | None = None) -> ca.Function:
    """(position and quaternion wxyz of a, of b) -> gaps, points (3, n), normals (3, n)."""
    x, y = SX.sym("x", 7), SX.sym("y", 7)
    placed = [Placed(s, rotation(z[3:]), z[:3]) for s, z in ((a, x), (b, y))]
    found = contact_points(*placed)
    columns = [ca.horzcat(*(getattr(c, f) for c in found)) for f in ("gap", "point", "normal")]
    inputs = [x, y] if size_a is None else [x, y, size_a]
    return ca.Function("pair", inputs, [ca.densify(c) for c in columns])


def rotation(q: SX) -> SX:
    w, x, y, z = ca.vertsplit(q / ca.norm_2(q))
    return ca.blockcat(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_poses(random: np.random.Generator, n: int, reach: float) -> list[np.ndarray]:
    """Positions within a cube and any orientations, (7,)."""
    quaternions = random.normal(size=(n, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    return list(np.concatenate([random.uniform(-reach, reach, (n, 3)), quaternions], 1))


# --- against MuJoCo ---------------------------------------------------------------------------------------------------

GEOM = {
    "sphere": lambda s: f'type="sphere" size="{s[0]}"',
    "capsule": lambda s: f'type="capsule" size="{s[0]} {s[1] / 2}"',
    "box": lambda s: f'type="box" size="{s[0] / 2} {s[1] / 2} {s[2] / 2}"',
    "cylinder": lambda s: f'type="cylinder" size="{s[0]} {s[1] / 2}"',
    "ellipsoid": lambda s: f'type="ellipsoid" size="{s[0]} {s[1]} {s[2]}"',
    "plane": lambda s: 'type="plane" size="0 0 1"',
}


class MujocoPair:
    """Two shapes, each on a mocap body."""

    def __init__(self, a: str, b: str):
        geoms = [GEOM[k](PRIMITIVES[k].size) for k in (a, b)]
        bodies = "".join(f'<body mocap="true"><geom {g}/></body>' for g in geoms)
        self.model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
        self.data = mujoco.MjData(self.model)

    def distance(self, x: np.ndarray, y: np.ndarray) -> float:
        self.data.mocap_pos[:], self.data.mocap_quat[:] = (x[:3], y[:3]), (x[3:], y[3:])
        mujoco.mj_kinematics(self.model, self.data)
        return mujoco.mj_geomDistance(self.model, self.data, 0, 1, 10.0, np.zeros(6))


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda x: x)
def test_distance_is_mujocos(a: str, b: str) -> None:
    """Apart: the least gap."""
    random = np.random.default_rng(len(a + b))
    pair, reference = pair_function(solid_of(PRIMITIVES[a]), solid_of(PRIMITIVES[b])), MujocoPair(a, b)
    errors = []
    for x, y in zip(random_poses(random, 400, 0.5), random_poses(random, 400, 0.1), strict=True):
        expected = reference.distance(x, y)
        if expected > 1e-4:
            errors.append(float(ca.mmin(pair(x, y)[0])) - expected)
    errors = np.array(errors)
    assert len(errors) > 50
    assert np.abs(errors).max() < 1e-6


# --- against sampling -------------------------------------------------------------------------------------------------

HOLLOW = cs.shapes.difference(cs.shapes.cylinder(0.2, 0.3), cs.shapes.cylinder(0.15, 0.3, position=(0, 0, 0.05)))
COMPOSED = {
    "union": cs.shapes.union(cs.shapes.box((0.3, 0.2, 0.2)), cs.shapes.sphere(0.12, position=(0.15, 0.05, 0))),
    "intersection": cs.shapes.intersection(cs.shapes.box((0.3, 0.3, 0.3)), cs.shapes.sphere(0.19)),
    "difference": HOLLOW,
    "offset": cs.shapes.offset(cs.shapes.box((0.2, 0.1, 0.2)), 0.03),
    "socket": cs.shapes.socket(0.1, 0.15, 0.2, 0.04),
    "chamfered socket": cs.shapes.socket(0.1, 0.15, 0.2, 0.04, chamfer=0.02),
}


def inside(shape) -> ca.Function:
    """Distance of many points (3, n)."""
    p = SX.sym("p", 3)
    return ca.Function("distance", [p], [solid_of(shape).distance(p)]).map(60**3)


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_distance_against_sampling(name: str) -> None:
    """The sign is membership as sets say; no surface is nearer than the distance, and for unions and offsets one is there."""
    grid = np.linspace(-0.35, 0.35, 60)
    points = np.stack(np.meshgrid(grid, grid, grid), -1).reshape(-1, 3)
    distance = np.array(inside(COMPOSED[name])(points.T)).ravel()
    member = MEMBER[name](*points.T)
    far = np.abs(distance) > 1e-9
    assert np.array_equal((distance < 0)[far], member[far])
    random = np.random.default_rng(0)
    solid_points = points[member]
    half = math.sqrt(3) / 2 * (grid[1] - grid[0])  # a surface is within half a diagonal of a grid point inside of it
    for k in random.choice(np.flatnonzero(~member), 60, replace=False):
        nearest = np.linalg.norm(solid_points - points[k], axis=1).min()
        assert distance[k] < nearest + 1e-9
        if name in ("union", "offset"):
            assert distance[k] > nearest - 2 * half


MEMBER = {
    "union": lambda x, y, z: (
        ((np.abs(x) < 0.15) & (np.abs(y) < 0.1) & (np.abs(z) < 0.1))
        | ((x - 0.15) ** 2 + (y - 0.05) ** 2 + z**2 < 0.12**2)
    ),
    "intersection": lambda x, y, z: (
        (np.maximum(np.maximum(np.abs(x), np.abs(y)), np.abs(z)) < 0.15) & (x * x + y * y + z * z < 0.19**2)
    ),
    "difference": lambda x, y, z: (x * x + y * y < 0.04) & (np.abs(z) < 0.15) & ((x * x + y * y > 0.0225) | (z < -0.1)),
    "offset": lambda x, y, z: (
        np.maximum(np.abs(x) - 0.1, 0) ** 2 + np.maximum(np.abs(y) - 0.05, 0) ** 2 + np.maximum(np.abs(z) - 0.1, 0) ** 2
        < 0.03**2
    ),
    "socket": lambda x, y, z: (x * x + y * y < 0.0225) & (z < 0) & (z > -0.24) & ((x * x + y * y > 0.01) | (z < -0.2)),
    "chamfered socket": lambda x, y, z: (
        MEMBER["socket"](x, y, z) & ((z < -0.2) | (np.hypot(x, y) > 0.1 + np.maximum(z + 0.02, 0)))
    ),
}


def test_points_that_are_cut_away_do_not_touch() -> None:
    """A box without one half has four corners left, and no others where sizes are inputs."""
    half = cs.shapes.difference(cs.shapes.box((0.2, 0.2, 0.2)), cs.shapes.box((0.4, 0.4, 0.4), position=(0, 0, 0.2)))
    assert isinstance(half, Solid)
    corners = [p for p, _ in half.points()]
    assert len([p for p in corners if float(p[2]) < 0]) == 4
    assert all(float(p[2]) <= 0 for p in corners)
    s = SX.sym("s", len(sizes(half)))
    pair = pair_function(resized(half, s), solids.Plane(), s)
    gaps = np.array(pair([0, 0, 0.1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0], sizes(half))[0]).ravel()
    assert len(gaps[gaps < FAR / 2]) == len(corners)
    assert abs(gaps.min()) < 1e-12


# --- a cylinder in a bore ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chamfer", [0.0, 0.001])
def test_cylinder_in_bore_finds_the_deepest_rim_point(chamfer: float) -> None:
    """Against a rim of 20,000 points, in the bore, at its mouth and above: 32 fixed points would miss 0.05 mm."""
    radius, length, bore = 0.03, 0.2, 0.031
    cup = solids.ChamferedSocket(bore, 0.05, 0.06, 0.02, chamfer) if chamfer else solids.Socket(bore, 0.05, 0.06, 0.02)
    pair = pair_function(solids.Cylinder(radius, length), cup)
    random = np.random.default_rng(3)
    angle = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
    rim = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full_like(angle, -length / 2)])
    misses = []
    for k in range(60):
        tilt = random.uniform(-0.02, 0.02, 2)
        q = np.array([1, *(tilt / 2), 0])
        height = (-0.03, 0.0, 0.001)[k % 3] + random.uniform(-1e-3, 1e-3)
        x = np.array([*random.uniform(-2e-3, 2e-3, 2), length / 2 + height, *(q / np.linalg.norm(q))])
        R = np.array(ca.Function("R", [], [rotation(SX(x[3:]))])()["o0"])
        world = R @ rim + x[:3, None]
        beyond = bore - np.linalg.norm(world[:2], axis=0)
        faces = [beyond, world[2]] + ([(beyond + chamfer + world[2]) / math.sqrt(2)] if chamfer else [])
        distance = np.max(faces, axis=0)
        gap = float(pair(x, [0, 0, 0, 1, 0, 0, 0])[0][0])
        assert -3e-7 < gap - distance.min() < 1e-9  # where two faces meet, the samples are as far beside
        misses.append(distance[:: 20_000 // 32].min() - distance.min())
    assert max(misses) > 4e-5


def test_cylinder_beside_a_socket_is_as_far_as_it_is() -> None:
    """The nearest of its rim's four points to the outside, 50 mm from the middle."""
    pair = pair_function(solids.Cylinder(0.03, 0.2), solids.Socket(0.031, 0.05, 0.06, 0.02))
    gaps = np.array(pair([0.2, 0, 0.05, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0])[0])
    assert abs(gaps.min() - (0.2 - 0.03 - 0.05)) < 1e-9


def test_centred_cylinder_has_finite_derivatives() -> None:
    x = SX.sym("x", 7)
    placed = Placed(solids.Cylinder(0.03, 0.2), rotation(x[3:]), x[:3])
    found = contact_points(placed, Placed(solids.Socket(0.031, 0.05, 0.06, 0.02), SX.eye(3), SX.zeros(3)))
    everything = ca.vertcat(*(ca.vertcat(c.gap, c.point, c.normal) for c in found))
    J = ca.Function("J", [x], [ca.jacobian(everything, x)])
    assert np.isfinite(np.array(J([0, 0, 0.07, 1, 0, 0, 0]))).all()


# --- derivatives ------------------------------------------------------------------------------------------------------

GRADIENT_PAIRS = [
    *PAIRS,
    *(("sphere", name) for name in COMPOSED),
    ("box", "difference"),
    ("cylinder", "socket"),
    ("cylinder", "chamfered socket"),
    ("offset", "plane"),
    ("union", "box"),
]


@pytest.mark.parametrize(("a", "b"), GRADIENT_PAIRS, ids=lambda x: x)
def test_gradients_in_poses_and_sizes(a: str, b: str) -> None:
    """Gap, point and normal of every candidate, apart and overlapping, in both poses and the first shape's sizes: automatic
    derivatives against central differences, at points where those of two step lengths agree (elsewhere a feature switches)."""
    first, second = (solid_of((PRIMITIVES | COMPOSED)[k]) for k in (a, b))
    size = SX.sym("s", len(sizes(first)))
    pair = pair_function(resized(first, size), second, size)
    x, y = SX.sym("x", 7), SX.sym("y", 7)
    everything = ca.vertcat(*(ca.vec(v) for v in pair(x, y, size)))
    inputs = ca.vertcat(x, y, size)
    f = ca.Function("f", [inputs], [everything])
    J = ca.Function("J", [inputs], [ca.jacobian(everything, inputs)])
    random = np.random.default_rng(7)
    checked = apart = 0
    for p, q in zip(random_poses(random, 30, 0.35), random_poses(random, 30, 0.05), strict=True):
        at = np.concatenate([p, q, sizes(first)])
        direction = random.normal(size=len(at))
        exact = np.array(J(at) @ direction).ravel()
        assert np.isfinite(exact).all()
        wide, narrow = (
            np.array((f(at + h * direction) - f(at - h * direction)) / (2 * h)).ravel() for h in (1e-5, 1e-6)
        )
        smooth = np.abs(wide - narrow) < 1e-6 * (1 + np.abs(wide))
        assert np.abs(exact - narrow)[smooth].max() < 1e-5 * (1 + np.abs(exact[smooth]).max())
        checked += smooth.mean()
        apart += float(ca.mmin(f(at)[: pair.size2_out(0)])) > 0
    assert checked > 24, "most points should be away from switches"
    assert apart > 3, "some poses should be apart"


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda x: x)
def test_normals_are_gradients_of_gaps(a: str, b: str) -> None:
    """Moving the first shape along a contact's normal opens its gap at rate one; normals have length one. Not where the axis of a
    capsule is inside a box: there its nearest point lies on a ridge between two faces, where the gap has no single normal."""
    deepest = -PRIMITIVES["capsule"].size[0] if (a, b) == ("capsule", "box") else -FAR
    pair = pair_function(solid_of(PRIMITIVES[a]), solid_of(PRIMITIVES[b]))
    random = np.random.default_rng(5)
    for p, q in zip(random_poses(random, 20, 0.4), random_poses(random, 20, 0.05), strict=True):
        gap, _, normal = (np.array(v) for v in pair(p, q))
        for k in np.flatnonzero((gap[0] < FAR / 2) & (gap[0] > deepest)).tolist():
            n = normal[:, k]
            assert abs(np.linalg.norm(n) - 1) < 1e-9
            shift = np.concatenate([1e-6 * n, np.zeros(4)])
            ahead, back = (float(pair(p + s * shift, q)[0][k]) for s in (1, -1))
            # Not where another feature takes over.
            if abs(ahead - 2 * gap[0, k] + back) < 1e-9:
                assert abs((ahead - back) / 2e-6 - 1) < 1e-3


def test_tangents_are_orthonormal() -> None:
    n = SX.sym("n", 3)
    basis = ca.Function("t", [n], [ca.horzcat(n, *tangents(n))])
    random = np.random.default_rng(1)
    axes = [*np.eye(3), *-np.eye(3), *(v / np.linalg.norm(v) for v in random.normal(size=(50, 3)))]
    for axis in axes:
        B = np.array(basis(DM(axis)))
        assert np.abs(B.T @ B - np.eye(3)).max() < 1e-12
