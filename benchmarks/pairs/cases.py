"""Pairs of convex solids in many poses, degenerate ones included, and the kernel that says where they touch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import casadi as ca
import numpy as np
import torch
from casadi import SX
from numpy.typing import NDArray

from benchmarks.pairs.oracle import CORES, Body, CoalPair, MujocoPair, least_depth, rotation, separation
from costate.collision.mesh.hull import hull_of
from costate.collision.narrow import POINT, pair_program, pose
from costate.collision.pairs import Placed, by_program, contact_points
from costate.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, Solid, Sphere, resized, sizes
from costate.kernel import Kernel, ProgramBuilder
from costate.physics.algebra.quaternion import to_rotation

Array = NDArray[np.float64]
CORNERS = np.round(np.random.default_rng(0).normal(size=(10, 3)) * [0.1, 0.12, 0.08], 3)
BODIES = {
    "sphere": Body("sphere", np.array([0.12])),
    "capsule": Body("capsule", np.array([0.07, 0.3])),
    "box": Body("box", np.array([0.2, 0.3, 0.16])),
    "cylinder": Body("cylinder", np.array([0.1, 0.24])),
    "ellipsoid": Body("ellipsoid", np.array([0.1, 0.15, 0.07])),
    "hull": Body("hull", CORNERS),
}
PAIRS = tuple(combinations_with_replacement(BODIES, 2))
FORMS = {"usual": 1.0, "tiny": 0.02, "large": 10.0, "thin": 0.01}
"""Factors of sizes; of thin ones only along z, or of the radius."""
USUAL = ("usual", "usual")
OTHER = (
    ("tiny", "usual"),
    ("usual", "tiny"),
    ("thin", "usual"),
    ("usual", "thin"),
    ("thin", "thin"),
    ("large", "tiny"),
)


def formed(body: Body, form: str) -> Body:
    """A body of other sizes."""
    factor: Array | float = FORMS[form]
    if form == "thin":
        one_of = {"sphere": [0], "capsule": [0], "cylinder": [1]}.get(body.kind, [2])
        factor = np.where(np.isin(np.arange(body.sizes.shape[-1]), one_of), factor, 1.0)
    return Body(body.kind, body.sizes * factor)


def solid(body: Body) -> Solid:
    s = body.sizes
    made = {
        "sphere": lambda: Sphere(float(s[0])),
        "capsule": lambda: Capsule(*map(float, s)),
        "cylinder": lambda: Cylinder(*map(float, s)),
        "box": lambda: Box(SX(s)),
        "ellipsoid": lambda: Ellipsoid(SX(s)),
        "hull": lambda: hull_of(s),
    }
    return made[body.kind]()


@cache
def kernel(a: str, b: str) -> Kernel:
    """Places (n, 7) of a pair from poses x, y (position, quaternion wxyz) and sizes."""
    solids = solid(BODIES[a]), solid(BODIES[b])
    counts = [len(sizes(s)) for s in solids]
    p = ProgramBuilder("pair")
    args = [p.input(name, n) for name, n in zip(("x", "y", "sa", "sb"), (7, 7, *counts), strict=True)]
    q, x, y, s, t = (SX.sym(k, n) for k, n in zip("qxyst", (7, 12, 12, *counts), strict=True))
    column = ca.vertcat(ca.vec(to_rotation(ca.vertcat(q[4:], q[3]))), q[:3])
    poses = [p.call(ca.Function("column", [q], [column]), v)[0] for v in args[:2]]
    if by_program(*solids):
        (found,) = p.call(pair_program(*solids), *poses, *args[2:])
    else:
        placed = [Placed(resized(o, v), *pose(u)) for o, v, u in zip(solids, (s, t), (x, y), strict=True)]
        rows = [ca.vertcat(c.gap, c.point, c.normal) for c in contact_points(*placed)]
        (found,) = p.call(ca.Function("formula", [x, y, s, t], [ca.vertcat(*rows)]), *poses, *args[2:])
    p.output("places", found, (found.size // POINT, POINT))
    return p.kernel()


def places(a: Body, b: Body, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """(..., places, 7) from poses (..., 7): gap, point, normal from b to a."""
    own = [torch.tensor(sizes(solid(k)), dtype=x.dtype) for k in (a, b)]
    return kernel(a.kind, b.kind)(x=x, y=y, sa=own[0], sb=own[1]).places


# --- poses ------------------------------------------------------------------------------------------------------------


def quaternions(random: np.random.Generator, n: int) -> Array:
    q = random.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def random_poses(random: np.random.Generator, a: Body, b: Body, n: int) -> tuple[Array, Array]:
    """Draw poses from coincident to well apart."""
    way = quaternions(random, n)[:, :3]
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    far = np.linalg.norm(a.half) + np.linalg.norm(b.half)
    y = np.concatenate([random.uniform(-0.1, 0.1, (n, 3)), quaternions(random, n)], 1)
    x = np.concatenate([y[:, :3] + way * random.uniform(0, far, (n, 1)), quaternions(random, n)], 1)
    return x, y


HALF_TURNS = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
QUARTER_TURNS = np.concatenate(
    [
        HALF_TURNS,
        np.sqrt(0.5) * np.array([[1, s * (k == 0), s * (k == 1), s * (k == 2)] for k in range(3) for s in (-1, 1)]),
    ]
)


def aligned_poses(random: np.random.Generator, a: Body, b: Body, n: int) -> tuple[Array, Array]:
    """Turned by multiples of right angles, or about z alone; along each axis centred, flush, touching, or anywhere."""
    turn = QUARTER_TURNS[random.integers(len(QUARTER_TURNS), size=(2, n))]
    spin = random.uniform(-np.pi, np.pi, n) * (random.random(n) < 0.25)
    turn[1, spin != 0] = [1, 0, 0, 0]
    turn[0, spin != 0] = np.stack([np.cos(spin / 2), 0 * spin, 0 * spin, np.sin(spin / 2)], 1)[spin != 0]
    half = [np.abs(_turned(q, body.half)) for q, body in zip(turn, (a, b), strict=True)]
    sides = random.choice([-1, 1], (n, 3))
    offsets = np.stack(
        [
            0 * sides,
            sides * (half[0] - half[1]),
            sides * (half[0] + half[1]),
            random.uniform(-1, 1, (n, 3)) * (half[0] + half[1]),
        ]
    )
    offset = np.take_along_axis(offsets, random.integers(4, size=(1, n, 3)), 0)[0]
    return np.concatenate([offset, turn[0]], 1), np.concatenate([0 * offset, turn[1]], 1)


def _turned(q: Array, v: Array) -> Array:
    return np.einsum("nij,j->ni", np.abs(np.round(rotation(q), 12)), v)


def centred_poses(random: np.random.Generator, a: Body, b: Body, n: int) -> tuple[Array, Array]:
    """Coincident centres, turned at random."""
    poses = [np.concatenate([np.zeros((n, 3)), quaternions(random, n)], 1) for _ in range(2)]
    return poses[0], poses[1]


def touching_poses(random: np.random.Generator, a: Body, b: Body, n: int) -> tuple[Array, Array]:
    """Random ones, moved along the normal until the distance is zero."""
    x, y = random_poses(random, a, b, n)
    found = places(a, b, torch.tensor(x), torch.tensor(y)).numpy()
    first = found[np.arange(n), found[..., 0].argmin(1)]
    x[:, :3] -= first[:, :1] * first[:, 4:]
    return x, y


# --- comparison -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Compared:
    """Distances of one pair in many poses [m], all (n,)."""

    gap: Array
    """Least of the places."""
    certified: Array
    """Compute how far apart the solids are along the normal of that place."""
    libraries: Array
    """Distances by MuJoCo and coal, (2, n)."""
    proven: Array
    """The largest of what their directions prove, and of the exact least depth where cores are flat."""

    @property
    def overlaps(self) -> NDArray[np.bool_]:
        return self.libraries.max(0) < -1e-6

    @property
    def error(self) -> Array:
        """Compute the error of the gap against what its own normal proves; apart also to the nearer of the two libraries."""
        apart = np.abs(self.libraries - self.gap).min(0)
        return np.maximum(np.where(self.overlaps, 0, apart), np.abs(self.gap - self.certified))

    @property
    def deeper(self) -> Array:
        """Compute how much deeper than the least depth that is known it is, of those that overlap."""
        return np.maximum(self.proven - self.gap, 0)[self.overlaps]


def compare(a: Body, b: Body, x: Array, y: Array) -> Compared:
    found = places(a, b, torch.tensor(x), torch.tensor(y)).numpy()
    first = found[np.arange(len(x)), found[..., 0].argmin(1)]
    distances, proofs = [], []
    for library in (MujocoPair(a, b), CoalPair(a, b)):
        answers = [library.distance(u, v) for u, v in zip(x, y, strict=True)]
        n = np.array([n for _, n in answers])
        distances.append([d for d, _ in answers])
        unit = np.abs(np.linalg.norm(n, axis=1) - 1) < 1e-9  # where solids touch, MuJoCo has no direction
        proofs += [np.where(unit, separation(a, b, x, y, way), -np.inf) for way in (n, -n)]
    certified = separation(a, b, x, y, first[:, 4:])
    if a.kind in CORES and b.kind in CORES:
        poses = zip(x, y, certified > 0, strict=True)
        proofs.append([np.nan if apart else least_depth(a, b, u, v) for u, v, apart in poses])
    if not by_program(solid(a), solid(b)):  # depths of formulas are those of points, not of the whole solid
        certified = np.where(certified < 0, first[:, 0], certified)
    return Compared(first[:, 0], certified, np.array(distances), np.nanmax(proofs, 0))


CASES = {
    "random": (random_poses, 0.6),
    "aligned": (aligned_poses, 0.1),
    "centred": (centred_poses, 0.05),
    "touching": (touching_poses, 0.05),
}
"""Kind of poses -> how they are made, share of all; the rest are random ones of other sizes."""


def cases(a: str, b: str, count: int, seed: int = 0) -> list[tuple[str, Body, Body, Array, Array]]:
    """(kind, bodies, poses) that make up so many poses of a pair."""
    random = np.random.default_rng([seed, *map(ord, a + b)])
    found = []
    for kind, (make, share) in CASES.items():
        bodies = BODIES[a], BODIES[b]
        found.append((kind, *bodies, *make(random, *bodies, max(2, round(share * count)))))
    for forms in OTHER:
        bodies = formed(BODIES[a], forms[0]), formed(BODIES[b], forms[1])
        found.append(
            ("-".join(forms), *bodies, *random_poses(random, *bodies, max(2, round(0.2 * count / len(OTHER)))))
        )
    return found
