"""Convex hulls: solids bounded by flat polygons, made of any points."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from itertools import pairwise

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.collision.shapes import rays
from costate.collision.shapes.convex import SNAP, Convex, Flats
from costate.collision.shapes.solid import Points as Balls
from costate.collision.shapes.solid import length

Points = NDArray[np.float64]

VERTICES = 32
"""Most corners of a hull: what contact costs grows with them."""
POLYGON = 8
"""Most corners of a face that take part in contact."""
EDGE = 12
"""Numbers of an edge: a point, its unit direction, and for both faces the unit direction into the face, normal to the edge."""
COPLANAR = 1e-6
"""Facets whose normals differ by less, and that lie as near, are one face (relative to the hull's size)."""
ON_FACE = 1e-6
"""Depth below a face at which a corner still belongs to it [m]."""


@dataclass(frozen=True, eq=False)
class Hull(Convex):
    """A convex hull. Its numbers are columns, so that hulls of equal counts are one program with different data."""

    points_flat: SX
    """Corners, x y z one after the other [m], (3 V,)."""
    normals_flat: SX
    """Outward unit normals of the faces, (3 F,)."""
    polygons_flat: SX
    """Corners of the faces in order, M for each face, the last one repeated where there are fewer, (3 M F,)."""
    edges_flat: SX
    """EDGE numbers for each edge, (EDGE E,)."""

    is_round = False

    @property
    def corners(self) -> list[SX]:
        return _rows(self.points_flat)

    @property
    def normals(self) -> list[SX]:
        return _rows(self.normals_flat)

    @property
    def polygons(self) -> list[list[SX]]:
        rows = _rows(self.polygons_flat)
        m = self.polygons_flat.numel() // self.normals_flat.numel()
        return [rows[k : k + m] for k in range(0, len(rows), m)]

    @property
    def edges(self) -> list[SX]:
        return [self.edges_flat[k : k + EDGE] for k in range(0, self.edges_flat.numel(), EDGE)]

    def place(self, name: str) -> tuple[int, int]:
        """Return where the numbers of a field begin among all sizes, and how many they are."""
        counts = {f.name: getattr(self, f.name).numel() for f in fields(self)}
        before = list(counts)[: list(counts).index(name)]
        return sum(counts[k] for k in before), counts[name]

    def distance(self, p: SX) -> SX:
        """Return the distance to the planes of the faces: exact inside and above a face, a lower bound beyond edges and corners."""
        planes = [ca.dot(n, p - q[0]) for n, q in zip(self.normals, self.polygons, strict=True)]
        return ca.mmax(ca.vertcat(*planes))

    def points(self) -> Balls:
        return [(p, 0.0) for p in self.corners]

    def centre(self) -> SX:
        corners = self.corners
        return sum(corners[1:], corners[0]) / len(corners)

    def support(self, d: SX) -> SX:
        corners = self.corners
        best, most = corners[0], ca.dot(corners[0], d)
        for p in corners[1:]:
            reach = ca.dot(p, d)
            best, most = ca.if_else(reach > most, p, best), ca.fmax(reach, most)
        return best

    def face(self, d: SX) -> list[SX]:
        """Return, of the faces around the corner that is furthest, the one turned most to the direction."""
        tip, unit = self.support(d), d / length(d)
        best, most = ca.vertcat(*self.polygons[0]), SX(-2)
        for polygon, normal in zip(self.polygons, self.normals, strict=True):
            touches = ca.dot(normal, tip - polygon[0]) > -ON_FACE
            turned = ca.if_else(touches, ca.dot(normal, unit), -2)
            best, most = ca.if_else(turned > most, ca.vertcat(*polygon), best), ca.fmax(turned, most)
        return [best[3 * k : 3 * k + 3] for k in range(len(self.polygons[0]))]

    def flats(self, n: SX) -> Flats:
        """Return those of the face whose normal is nearly n; of all edges met by directions near n, the one most nearly normal to
        it."""
        first, second, most = SX.zeros(3), SX.zeros(3), SX(1 - SNAP**2 / 2)
        for polygon, normal in zip(self.polygons, self.normals, strict=True):
            along = ca.dot(normal, n)
            sides = [q - p for p, q in pairwise(polygon[:3])]
            first = ca.if_else(along > most, sides[0], first)
            second = ca.if_else(along > most, sides[1], second)
            most = ca.fmax(along, most)
        edge, least = SX.zeros(3), SX(SNAP)
        for row in self.edges:
            beside = ca.fmax(ca.dot(n, row[6:9]), ca.dot(n, row[9:]))
            off = ca.if_else(beside < SNAP, ca.fabs(ca.dot(n, row[3:6])), 1)
            edge, least = ca.if_else(off < least, row[3:6], edge), ca.fmin(off, least)
        return _unit_or_zero(first), _unit_or_zero(second), edge

    def bounding_sphere(self) -> tuple[SX, SX]:
        middle = self.centre()
        return middle, ca.mmax(ca.vertcat(*(length(p - middle) for p in self.corners)))

    def bounding_box(self) -> tuple[SX, SX]:
        corners = ca.horzcat(*self.corners)
        low, high = (ca.vertcat(*(f(corners[k, :]) for k in range(3))) for f in (ca.mmin, ca.mmax))
        return (low + high) / 2, (high - low) / 2

    def interval(self, p: SX, d: SX) -> rays.Interval:
        return rays.between([(n, ca.dot(n, q[0])) for n, q in zip(self.normals, self.polygons, strict=True)], p, d)


def _unit_or_zero(v: SX) -> SX:
    square = ca.dot(v, v)
    return v / ca.sqrt(ca.if_else(square > 0, square, 1))


def _rows(flat: SX) -> list[SX]:
    return [flat[k : k + 3] for k in range(0, flat.numel(), 3)]


def hull_of(points: Points, limit: int = VERTICES, name: str = "") -> Hull:
    """Return the hull of points (n, 3) [m]. One with more corners than the limit is replaced by one within it, with a warning that
    says how far it is inside of the other."""
    corners, loops, normals = hull_faces(within_limit(np.asarray(points, float), limit, name))
    m = 4 if max(map(len, loops)) <= 4 else POLYGON
    polygons = np.array([_padded(corners[loop], m) for loop in loops])
    edges = hull_edges(corners, loops, normals)
    columns = (_repeated(x, 8) for x in (corners, normals, polygons, edges))
    return Hull(*(SX(ca.DM(x.ravel())) for x in columns))


def _repeated(rows: Points, count: int) -> Points:
    """Repeat the last row up to a count that is doubled until it is enough, so that many hulls share programs."""
    while count < len(rows):
        count *= 2
    return np.concatenate([rows, np.repeat(rows[-1:], count - len(rows), 0)])


def hull_faces(points: Points) -> tuple[Points, list[NDArray[np.int64]], Points]:
    """Return corners (V, 3), per face the corners around it, counter-clockwise from outside, and normals (F, 3)."""
    hull = _convex_hull(points)
    corners = points[hull.vertices]
    index = {int(v): k for k, v in enumerate(hull.vertices)}
    size = np.ptp(corners, axis=0).max()
    planes = hull.equations * np.array([1, 1, 1, 1 / size])
    faces: list[list[int]] = []
    for k in range(len(planes)):
        same = next((f for f in faces if np.abs(planes[f[0]] - planes[k]).max() < COPLANAR), None)
        if same is None:
            faces.append([k])
        else:
            same.append(k)
    normals = np.array([hull.equations[f[0], :3] for f in faces])
    loops = [
        _around(corners, np.unique([index[int(v)] for v in hull.simplices[f].ravel()]), n)
        for f, n in zip(faces, normals, strict=True)
    ]
    return corners, loops, normals


def hull_edges(corners: Points, loops: list[NDArray[np.int64]], normals: Points) -> Points:
    """Return rows of EDGE numbers, (E, EDGE)."""
    rows: dict[tuple[int, int], list[Points]] = {}
    for loop, normal in zip(loops, normals, strict=True):
        for i, j in zip(loop.tolist(), np.roll(loop, -1).tolist(), strict=True):
            along = (corners[j] - corners[i]) / np.linalg.norm(corners[j] - corners[i])
            inward = np.cross(normal, along)
            key = (min(i, j), max(i, j))
            rows.setdefault(key, [corners[i], along]).append(inward)
    # An edge that only one face has is within another: nothing meets it alone.
    return np.array([np.concatenate(row) for row in rows.values() if len(row) == 4])


def _convex_hull(points: Points):
    from scipy.spatial import ConvexHull, QhullError

    try:
        return ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise ValueError(
            f"{len(points)} points have no hull with a volume: give at least four that are not in one plane"
        ) from error


def _around(corners: Points, members: NDArray[np.int64], normal: Points) -> NDArray[np.int64]:
    """Return the corners of a face in order, starting so that the second one is where the face turns most."""
    p = corners[members]
    u = p[0] - p.mean(0)
    v = np.cross(normal, u)
    loop = members[np.argsort(np.arctan2((p - p.mean(0)) @ v, (p - p.mean(0)) @ u))]
    q = corners[loop]
    ahead, back = np.roll(q, -1, 0) - q, q - np.roll(q, 1, 0)
    turn = np.linalg.norm(np.cross(back, ahead), axis=1)
    turn /= np.linalg.norm(back, axis=1) * np.linalg.norm(ahead, axis=1)
    return np.roll(loop, 1 - int(np.argmax(turn)))


def _padded(polygon: Points, m: int) -> Points:
    if len(polygon) > m:  # evenly around
        return polygon[np.linspace(0, len(polygon), m, endpoint=False).astype(int)]
    return np.concatenate([polygon, np.repeat(polygon[-1:], m - len(polygon), 0)])


def within_limit(points: Points, limit: int, name: str = "") -> Points:
    """Return the corners of the hull; if there are too many, they are chosen one by one where most is still missing."""
    corners = points[_convex_hull(points).vertices]
    if len(corners) <= limit:
        return corners
    extremes = {int(np.argmax(s * corners[:, k])) for k in range(3) for s in (-1, 1)}
    centre = corners.mean(0)
    chosen = list(extremes)
    while len(chosen) < 6 or np.linalg.matrix_rank(corners[chosen] - corners[chosen[0]], tol=1e-9) < 3:
        chosen.append(
            int(np.argmax(np.linalg.norm(corners - centre, axis=1) * ~np.isin(np.arange(len(corners)), chosen)))
        )
    missing = np.inf
    while len(chosen) < limit:
        outside, missing = _furthest_outside(corners, chosen)
        chosen.append(outside)
    _, missing = _furthest_outside(corners, chosen)
    warnings.warn(
        f"the hull of {name or 'a mesh'} has {len(corners)} corners; contact uses {limit} of them and is up to {missing:.2g} m "
        "inside of it. Where that matters give a simpler mesh, convex parts (shapes.decomposition), or contact='grid'",
        stacklevel=2,
    )
    return corners[chosen]


def _furthest_outside(corners: Points, chosen: list[int]) -> tuple[int, float]:
    equations = _convex_hull(corners[chosen]).equations
    out = (corners @ equations[:, :3].T + equations[:, 3]).max(1)
    worst = int(np.argmax(out))
    return worst, float(out[worst])


def mass_properties(points: Points, mass: float) -> tuple[Points, Points]:
    """Return centre of mass [m] (3,) and inertia about it [kg m^2] (3, 3) of an even solid that fills the hull of points."""
    hull = _convex_hull(points)
    middle = points[hull.vertices].mean(0)
    corners = points[hull.simplices] - middle  # tetrahedra from the middle to every facet
    volumes = np.abs(np.linalg.det(corners)) / 6
    total = volumes.sum()
    com = (volumes[:, None] * corners.sum(1) / 4).sum(0) / total
    summed = corners.sum(1)
    second = np.einsum("t,tki,tkj->ij", volumes, corners, corners) + np.einsum("t,ti,tj->ij", volumes, summed, summed)
    covariance = mass * (second / (20 * total) - np.outer(com, com))
    return com + middle, np.trace(covariance) * np.eye(3) - covariance
