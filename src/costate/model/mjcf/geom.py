"""The geoms of MJCF as shapes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.model.errors import Assumptions
from costate.model.rotation import from_wxyz
from costate.model.shape import Shape
from costate.model.surface import Softness, Surface
from costate.model.transform import Transform

_KINDS: dict[int, tuple[str, Any]] = {
    0: ("plane", lambda s: s[:0]),
    1: ("heightfield", lambda s: 2 * s[:2]),
    2: ("sphere", lambda s: s[:1]),
    3: ("capsule", lambda s: s[:2] * (1, 2)),
    4: ("ellipsoid", lambda s: s),
    5: ("cylinder", lambda s: s[:2] * (1, 2)),
    6: ("box", lambda s: 2 * s),
    7: ("mesh", None),
}
"""Our kind, and our sizes from MuJoCo's half sizes, by mjtGeom."""
_HIDDEN_GROUP = 3
"""First group that is not drawn: by MuJoCo's convention those of groups 3 to 5 are not."""
_DEFAULT_COLOR = np.array([0.5, 0.5, 0.5, 1.0])


def read_geoms(
    mj: Any, body: int, listed: Collection[int], assumed: Assumptions
) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """Return the visual and the collision shapes of a body. Most geoms are both.

    listed: geoms that may touch though their bits are zero.
    """
    visuals, collisions = [], []
    first = int(mj.body_geomadr[body])
    for g in range(first, first + int(mj.body_geomnum[body])):
        name = mj.geom(g).name or f"geom{g}"
        if int(mj.geom_type[g]) not in _KINDS:
            assumed.note("distance fields, left out", name)
            continue
        shape = _shape(mj, g)
        if int(mj.geom_group[g]) < _HIDDEN_GROUP:
            visuals.append(shape)
        if mj.geom_contype[g] or mj.geom_conaffinity[g] or g in listed:
            collisions.append(shape)
    return tuple(visuals), tuple(collisions)


def _shape(mj: Any, g: int) -> Shape:
    kind, sizes = _KINDS[int(mj.geom_type[g])]
    pose = Transform(from_wxyz(mj.geom_quat[g]), np.array(mj.geom_pos[g]))
    path, heights = None, None
    if kind == "mesh":
        size, pose, path = _mesh(mj, int(mj.geom_dataid[g]), pose)
    elif kind == "heightfield":
        size, heights = _heights(mj, int(mj.geom_dataid[g]))
    else:
        size = sizes(np.array(mj.geom_size[g]))
    return Shape(
        kind=kind,
        size=size,
        pose=pose,
        name=mj.geom(g).name,
        color=_color(mj, g),
        mesh=path,
        uri=path,
        friction=float(mj.geom_friction[g, 0]),
        surface=_surface(mj, g),
        heights=heights,
    )


def _surface(mj: Any, g: int) -> Surface:
    sliding, torsion, rolling = map(float, mj.geom_friction[g])
    return Surface(
        friction=(sliding, torsion, rolling),
        condim=int(mj.geom_condim[g]),
        softness=softness(mj.geom_solref[g], mj.geom_solimp[g]),
        margin=float(mj.geom_margin[g]),
        gap=float(mj.geom_gap[g]),
        priority=int(mj.geom_priority[g]),
        solmix=float(mj.geom_solmix[g]),
        contype=int(mj.geom_contype[g]),
        conaffinity=int(mj.geom_conaffinity[g]),
    )


def softness(solref: Array, solimp: Array) -> Softness:
    time, ratio = map(float, solref)
    low, high, width, middle, power = map(float, solimp)
    return Softness((time, ratio), (low, high, width, middle, power))


def _heights(mj: Any, f: int) -> tuple[Array, Array]:
    """Return lengths and heights of a height field, whose rows go along y and whose values are shares of its height."""
    start, rows, columns = int(mj.hfield_adr[f]), int(mj.hfield_nrow[f]), int(mj.hfield_ncol[f])
    shares = np.array(mj.hfield_data[start : start + rows * columns], float).reshape(rows, columns)
    half_x, half_y, height, _ = mj.hfield_size[f]
    return np.array([2 * half_x, 2 * half_y]), height * shares.T


def _mesh(mj: Any, m: int, pose: Transform) -> tuple[Array, Transform, str | None]:
    """Scale, pose and file of a mesh. MuJoCo moves its vertices to their principal frame; the file's are not."""
    moved = Transform(from_wxyz(mj.mesh_quat[m]), np.array(mj.mesh_pos[m]))
    start = int(mj.mesh_pathadr[m])
    path = None if start < 0 else bytes(mj.paths[start:]).split(b"\0")[0].decode()
    return np.array(mj.mesh_scale[m]), pose @ moved.inverse(), path


def _color(mj: Any, g: int) -> tuple[float, float, float, float]:
    rgba, material = mj.geom_rgba[g], int(mj.geom_matid[g])
    if material >= 0 and np.allclose(rgba, _DEFAULT_COLOR):
        rgba = mj.mat_rgba[material]
    r, g_, b, a = map(float, np.round(rgba, 6))  # stored in single precision
    return r, g_, b, a
