"""Independent distances of two convex solids: MuJoCo's, coal's, the hull of all differences of corners, and a certificate.

The certificate needs no other library: along a unit direction n two solids are n . (x - y) - h_a(-n) - h_b(n) apart, h being how
far each reaches. No direction gives more than the distance (or minus the least depth).
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Body:
    """A solid of a kind: sphere (radius), capsule and cylinder (radius, length), box (edges), ellipsoid (semi-axes), or hull."""

    kind: str
    sizes: Array
    """Size [m]; of a hull its corners (n, 3)."""

    @property
    def half(self) -> Array:
        """Extent from its origin along its axes [m], (3,)."""
        return np.array([max(reach(self, np.array([way])).item() for way in (axis, -axis)) for axis in np.eye(3)])


_REACH: dict[str, Callable[[Array, Array], Array]] = {
    "sphere": lambda s, d: s[0] * np.linalg.norm(d, axis=-1),
    "capsule": lambda s, d: s[0] * np.linalg.norm(d, axis=-1) + np.abs(d[..., 2]) * s[1] / 2,
    "cylinder": lambda s, d: s[0] * np.hypot(d[..., 0], d[..., 1]) + np.abs(d[..., 2]) * s[1] / 2,
    "box": lambda s, d: np.abs(d) @ s / 2,
    "ellipsoid": lambda s, d: np.linalg.norm(s * d, axis=-1),
    "hull": lambda s, d: (d @ s.T).max(-1),
}


def reach(body: Body, d: Array) -> Array:
    """Largest d . x over the solid, directions d (n, 3) in its frame."""
    return _REACH[body.kind](body.sizes, d)


def rotation(q: Array) -> Array:
    """(..., 3, 3) from quaternions wxyz (..., 4)."""
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(r, -1) for r in rows], -2)


def separation(a: Body, b: Body, x: Array, y: Array, n: Array) -> Array:
    """Compute the gap along unit directions n (..., 3) from b to a; poses are position and quaternion wxyz, (..., 7)."""
    own = [np.einsum("...ij,...i->...j", rotation(p[..., 3:]), way) for p, way in ((x, -n), (y, n))]
    return np.einsum("...i,...i->...", n, x[..., :3] - y[..., :3]) - reach(a, own[0]) - reach(b, own[1])


class MujocoPair:
    """Two geoms, each on a mocap body."""

    def __init__(self, a: Body, b: Body):
        import mujoco

        bodies, meshes = "", ""
        for k, body in enumerate((a, b)):
            if body.kind == "hull":
                vertices = " ".join(f"{v:.17g}" for v in body.sizes.ravel())
                meshes += f'<mesh name="m{k}" vertex="{vertices}" inertia="convex"/>'
            bodies += f'<body mocap="true"><geom {_mujoco_geom(body, k)}/></body>'
        self.model = mujoco.MjModel.from_xml_string(
            f'<mujoco><option ccd_tolerance="1e-10" ccd_iterations="200"/><asset>{meshes}</asset>'
            f"<worldbody>{bodies}</worldbody></mujoco>"
        )
        self.data = mujoco.MjData(self.model)
        self._mujoco = mujoco

    def distance(self, x: Array, y: Array) -> tuple[float, Array]:
        """Distance, and direction up to its sign."""
        self.data.mocap_pos[:], self.data.mocap_quat[:] = (x[:3], y[:3]), (x[3:], y[3:])
        self._mujoco.mj_kinematics(self.model, self.data)
        ends = np.zeros(6)
        found = self._mujoco.mj_geomDistance(self.model, self.data, 0, 1, 100.0, ends)
        return found, (ends[3:] - ends[:3]) / max(np.linalg.norm(ends[3:] - ends[:3]), 1e-12)


def _mujoco_geom(body: Body, k: int) -> str:
    s = body.sizes
    if body.kind == "hull":
        return f'type="mesh" mesh="m{k}"'
    if body.kind in ("box", "capsule", "cylinder"):  # half lengths
        s = s / (2 if body.kind == "box" else np.array([1, 2]))
    return f'type="{body.kind}" size="{" ".join(f"{v:.17g}" for v in s)}"'


class CoalPair:
    """Signed distances by GJK and EPA, to tight tolerances."""

    def __init__(self, a: Body, b: Body):
        import coal  # pyright: ignore[reportMissingImports]

        self._coal = coal
        self._shapes = [_coal_shape(coal, body) for body in (a, b)]
        self._request = coal.DistanceRequest()
        self._request.gjk_tolerance, self._request.epa_tolerance = 1e-9, 1e-9
        self._request.gjk_max_iterations, self._request.epa_max_iterations = 500, 500

    def distance(self, x: Array, y: Array) -> tuple[float, Array]:
        """Distance, and direction up to its sign."""
        poses = [self._coal.Transform3s(rotation(p[3:]), p[:3]) for p in (x, y)]
        result = self._coal.DistanceResult()
        found = self._coal.distance(self._shapes[0], poses[0], self._shapes[1], poses[1], self._request, result)
        return found, np.array(result.normal)


def _coal_shape(coal, body: Body):
    s = body.sizes
    if body.kind == "hull":
        from scipy.spatial import ConvexHull

        hull = ConvexHull(s)
        points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        index = {int(v): k for k, v in enumerate(hull.vertices)}
        for v in hull.vertices:
            points.append(s[v])
        for corners, plane in zip(hull.simplices, hull.equations, strict=True):
            i, j, k = (int(c) for c in corners)
            if np.dot(np.cross(s[j] - s[i], s[k] - s[i]), plane[:3]) < 0:
                j, k = k, j
            triangles.append(coal.Triangle(index[i], index[j], index[k]))
        return coal.Convex(points, triangles)
    kind = {"sphere": "Sphere", "capsule": "Capsule", "cylinder": "Cylinder", "box": "Box", "ellipsoid": "Ellipsoid"}
    return getattr(coal, kind[body.kind])(*(float(v) for v in s))


CORES: dict[str, Callable[[Array], tuple[Array, float]]] = {
    "sphere": lambda s: (np.zeros((1, 3)), s[0]),
    "capsule": lambda s: (np.array([[0, 0, -s[1] / 2], [0, 0, s[1] / 2]]), s[0]),
    "box": lambda s: (np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * s / 2, 0.0),
    "hull": lambda s: (s, 0.0),
}
"""Corners of the core, and the radius around it, of kinds that are flat but for rounding."""


def least_depth(a: Body, b: Body, x: Array, y: Array) -> float:
    """Compute the depth of two bodies whose flat cores overlap, from the hull of all differences of corners; NaN if they do not."""
    from scipy.spatial import ConvexHull, QhullError

    (p, r), (q, s) = CORES[a.kind](a.sizes), CORES[b.kind](b.sizes)
    p, q = x[:3] + p @ rotation(x[3:]).T, y[:3] + q @ rotation(y[3:]).T
    try:
        planes = ConvexHull((p[:, None] - q[None]).reshape(-1, 3)).equations[:, 3]
    except QhullError:
        return np.nan
    return planes.max() - r - s if planes.max() <= 0 else np.nan
