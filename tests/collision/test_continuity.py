"""Gaps of every pair of kinds with a formula: they change no faster than the solids move, and their derivatives are theirs."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import torch
from casadi import SX
from scipy.spatial import ConvexHull
from tests.collision.paths import PATHS, STEPS, Paths, depths, fastest, random_paths

import costate as cs
from benchmarks.pairs.cases import CORNERS
from costate.collision.contact_point import Placed, pose
from costate.collision.kinds import solid_of
from costate.collision.mesh.hull import hull_of
from costate.collision.pairs import by_program, contact_points
from costate.collision.shapes import Solid

ROUND_CORNER = cs.shapes.sphere(0.12, position=(0.1, 0.05, 0))
KINDS: dict[str, Solid] = {
    "sphere": solid_of(cs.shapes.sphere(0.06)),
    "capsule": solid_of(cs.shapes.capsule(0.05, 0.2)),
    "box": solid_of(cs.shapes.box((0.2, 0.3, 0.16))),
    "cylinder": solid_of(cs.shapes.cylinder(0.05, 0.24)),
    "ellipsoid": solid_of(cs.shapes.ellipsoid((0.1, 0.15, 0.07))),
    "hull": hull_of(CORNERS),
    "plane": solid_of(cs.shapes.plane()),
    "socket": solid_of(cs.shapes.socket(0.052, 0.08, 0.06, 0.01)),
    "chamfered": solid_of(cs.shapes.socket(0.052, 0.08, 0.06, 0.01, chamfer=0.004)),
    "union": solid_of(cs.shapes.union(cs.shapes.box((0.2, 0.15, 0.16)), ROUND_CORNER)),
    "intersection": solid_of(cs.shapes.intersection(cs.shapes.box((0.2, 0.2, 0.2)), cs.shapes.sphere(0.13))),
    "difference": solid_of(cs.shapes.difference(cs.shapes.box((0.2, 0.2, 0.2)), ROUND_CORNER)),
    "offset": solid_of(cs.shapes.offset(cs.shapes.box((0.12, 0.1, 0.14)), 0.03)),
}
RADII = {"sphere": 0.06, "capsule": 0.15, "box": 0.198, "cylinder": 0.13, "ellipsoid": 0.15, "hull": 0.26}
"""Radius of a ball around the origin of a solid [m]; of the others, which are all smaller, LARGE."""
LARGE = 0.25
MOUTH = 0.2
"""Radius of a ball around a cylinder's origin that also holds the edge of the mouth that it goes through [m]."""
LEAST = 1 + 1e-6
"""Change of a gap by the motion, at most: rounding."""


def formula(a: Solid, b: Solid) -> ca.Function | None:
    """Gaps of a pair, a at a pose (12,) and b at the origin; None for pairs that do not touch."""
    x = SX.sym("x", 12)
    found = contact_points(Placed(a, *pose(x)), Placed(b, SX.eye(3), SX.zeros(3)))
    return ca.Function("gaps", [x], [ca.densify(ca.vertcat(*(c.gap for c in found)))]) if found else None


FORMULAS = {
    (a, b): made
    for a, b in combinations_with_replacement(KINDS, 2)
    if not by_program(KINDS[a], KINDS[b]) and (made := formula(KINDS[a], KINDS[b]))
}
"""Pairs with a formula; hollow and endless solids among themselves do not touch."""


def paths_of(a: str, b: str, seed: int = 0, tilt: float = np.pi) -> Paths:
    """Paths of a past b, from apart to deep inside."""
    random = np.random.default_rng([seed, *map(ord, a + b)])
    middles, radius = random.normal(size=(PATHS, 3)), RADII.get(a, LARGE)
    if b in ("socket", "chamfered"):  # in the bore, over the mouth, over the wall and beside it
        middles = middles * [0.012, 0.012, 0.03] + [0, 0, 0.1]
        return random_paths(random, max(radius, MOUTH), middles, tilt)
    away = random.uniform(0, 0.25, (PATHS, 1)) / np.linalg.norm(middles, axis=1, keepdims=True)
    return random_paths(random, radius, middles * away, tilt)


def check_continuity(gaps: ca.Function, paths: Paths) -> tuple[float, float]:
    """Check that the smallest gap is continuous; return the share of poses that overlap, and the deepest [m]."""
    found = np.array(gaps.map(PATHS * STEPS)(paths.poses.T)).T
    most, place = fastest(found, paths)
    assert most < LEAST, f"the smallest gap changes by {most:.4g} times the motion: {place}"
    return depths(found)


@pytest.mark.parametrize(("a", "b"), FORMULAS, ids=lambda k: k)
def test_the_smallest_gap_is_continuous(a: str, b: str) -> None:
    check_continuity(FORMULAS[a, b], paths_of(a, b))


@pytest.mark.study
@pytest.mark.parametrize("seed", range(1, 20))
@pytest.mark.parametrize(("a", "b"), FORMULAS, ids=lambda k: k)
def test_the_smallest_gap_is_continuous_on_more_paths(a: str, b: str, seed: int) -> None:
    check_continuity(FORMULAS[a, b], paths_of(a, b, seed))


@pytest.mark.parametrize("tilt", [0.02, 0.3])
@pytest.mark.parametrize("cup", ["socket", "chamfered"])
def test_a_cylinder_in_a_bore(cup: str, tilt: float) -> None:
    """Upright and leaning, from above the mouth down to the floor, shallow and deep in the wall."""
    share, deepest = check_continuity(FORMULAS["cylinder", cup], paths_of("cylinder", cup, seed=1, tilt=tilt))
    assert share > 0.3 and deepest > 0.02


@pytest.mark.parametrize(("a", "b"), FORMULAS, ids=lambda k: k)
def test_slopes_are_those_of_the_smallest_gap(a: str, b: str) -> None:
    """Along every path the automatic derivative is the difference of neighbours, but for the few where another row takes over."""
    paths, gaps = paths_of(a, b, tilt=0.1 if a == "cylinder" else np.pi), FORMULAS[a, b]
    x, dx = SX.sym("x", 12), SX.sym("dx", 12)
    least = ca.mmin(gaps(x))
    slope = ca.Function("slope", [x, dx], [least, ca.jtimes(least, x, dx)])
    spin = np.cross(paths.turn[:, None, None], np.swapaxes(paths.rotations, -1, -2))  # of each axis of the solid
    moved = np.broadcast_to(paths.velocity[:, None], paths.positions.shape)
    rates = np.concatenate([spin.reshape(PATHS * STEPS, 9), moved.reshape(-1, 3)], 1)
    value, rate = (np.array(v).reshape(PATHS, STEPS) for v in slope.map(PATHS * STEPS)(paths.poses.T, rates.T))
    assert np.isfinite(rate).all()
    differences = (value[:, 2:] - value[:, :-2]) / 2 / paths.motion
    off = np.abs(differences - rate[:, 1:-1] / paths.motion)
    short = paths.motion[:, 0] < np.median(paths.motion)  # long steps differ by their curvature
    assert np.median(off) < 1e-3 and np.mean(off[short] > 0.02) < 0.05


# --- pairs with a program of their own, in worlds: convex solids, meshes, height fields --------------------------------

HEIGHTS = 0.05 * np.outer(np.cos(np.linspace(-3, 3, 9)), np.sin(np.linspace(-1.5, 2.5, 9)))
BODIES = {
    "sphere": lambda file: cs.shapes.sphere(0.06),
    "capsule": lambda file: cs.shapes.capsule(0.05, 0.2),
    "box": lambda file: cs.shapes.box((0.2, 0.3, 0.16)),
    "cylinder": lambda file: cs.shapes.cylinder(0.05, 0.24),
    "ellipsoid": lambda file: cs.shapes.ellipsoid((0.1, 0.15, 0.07)),
    "hull": lambda file: cs.shapes.mesh(file),
    "grid": lambda file: cs.shapes.mesh(file, contact="grid"),
    "hills": lambda file: cs.shapes.heightfield(HEIGHTS, (1.0, 1.0)),
}
FIELDS = ("grid", "hills")
INTERPOLATED = 3**0.5
"""The same for distances that are interpolated on a grid: each of their three slopes is at most 1."""
NEAR = 0.01
"""Distance within which a grid has samples; beyond, the surface is found in two steps [m]."""
DEEP = 0.07
"""Depth below which directions of programs are found to a few degrees: where the centre of one solid is inside the other [m]."""
OTHERS = [
    (a, b)
    for a, b in combinations_with_replacement(BODIES, 2)
    if a not in FIELDS and (b in FIELDS or by_program(KINDS[a], KINDS[b]))
]
CHEAP = {("box", "box"), ("capsule", "cylinder"), ("ellipsoid", "grid"), ("box", "hills")}


@pytest.fixture(scope="session")
def stone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of a convex mesh."""
    file = tmp_path_factory.mktemp("stone") / "stone.obj"
    corners, faces = CORNERS, ConvexHull(CORNERS).simplices + 1
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {i} {j} {k}" for i, j, k in faces]
    file.write_text("\n".join(lines))
    return file


@pytest.mark.parametrize(
    ("a", "b"), [pytest.param(*p, marks=() if p in CHEAP else pytest.mark.study) for p in OTHERS], ids=lambda k: k
)
def test_the_smallest_gap_in_a_world_is_continuous(a: str, b: str, stone: Path) -> None:
    body = cs.Body("a", [BODIES[a](stone)], 1.0)
    world = cs.World(bodies=[body], scenery=[cs.Static("b", BODIES[b](stone))], contact=cs.PGS())
    paths = paths_of(a, b)
    states = torch.zeros(PATHS * STEPS, world.nx, dtype=torch.float64)
    states[:, :7] = torch.tensor(paths.quaternions[:, [0, 1, 2, 4, 5, 6, 3]])  # x, y, z, w
    gaps = world.gaps(states).numpy()
    most, place = fastest(gaps, paths, DEEP, NEAR if b == "grid" else np.inf)
    bound = INTERPOLATED if b == "grid" else LEAST
    assert most < bound, f"the smallest gap changes by {most:.4g} times the motion: {place}"
    share, deepest = depths(gaps)
    assert share > 0.02 and deepest > 0.003
