"""Measures of cloth: energy, how near its points are to shapes, and whether it passes through itself."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.continuum.cloth.model import ClothModel, Numbers
from costate.continuum.cloth.state import ClothState
from costate.continuum.mpm.fill import distances
from costate.kernel import Kernel
from costate.kernel.fields import TOTAL, FieldBuilder

FLAT = 1e-9
"""Volume, by the cube of the size of triangles, below which an edge lies in the plane of a triangle."""


def energy(model: ClothModel, state: ClothState, parameters: Numbers | None = None) -> Tensor:
    """Return the energy (...) [J]: of motion, of weight, and in the elements; without contact."""
    dtype = state.x.dtype
    fixed = model.fixed(dtype, parameters, None, None, 0.0)
    given = {k: v for k, v in fixed.items() if k.startswith(("own", "fixed"))}
    gravity = torch.as_tensor(model.gravity, dtype=dtype)
    return _energy(model)(x=state.x, v=state.v, gravity=gravity, **given).energy[..., 0]


@lru_cache(maxsize=16)
def _energy(model: ClothModel) -> Kernel:
    f, step = FieldBuilder("cloth energy"), model.rollout.step
    x, v, own = f.field("x", step.points, 3), f.field("v", step.points, 3), f.field("own", step.points, 2)
    gravity = f.input("gravity", 3)

    def body(x, v, own, g):
        return own[0] * (ca.sumsqr(v) / 2 - ca.dot(g, x))

    parts = f.for_each(step.points, body, [x, v, own, gravity], [TOTAL])
    for group in step.scene.groups:
        numbers = f.field(f"fixed_{group.name}", group.entities, group.element.n_fixed)
        table = f.table(group.entities, step.points, group.table)
        parts += f.for_each(group.entities, group.element.energy, [x[table], numbers], [TOTAL])
    f.output("energy", f.call(lambda *p: sum(p), *parts)[0])
    return f.kernel()


def gaps(model: ClothModel, x: Tensor) -> Tensor:
    """Return the distance (..., points, colliders) [m] of every point from every collider that does not move."""
    flat = x.detach().reshape(-1, 3).numpy()
    found = [torch.as_tensor(distances(c.shape, flat)[0]) for c in model.colliders if not c.moves]
    return torch.stack(found, -1).reshape(*x.shape[:-1], len(found))


def crossings(model: ClothModel, x: Tensor) -> int:
    """Return how many edges pass through triangles at positions x (points, 3): 0 unless cloth has gone through cloth."""
    surfaces, at = model.surfaces, x.detach().double().numpy()
    near = surfaces.boxed(at, 0.0, np.zeros(len(at)), "edge triangle")
    if not len(near):
        return 0
    p, q, a, b, c = at[near].swapaxes(0, 1)
    size = float(np.linalg.norm(b - a, axis=1).max())

    def side(u, v, w, z):
        return np.einsum("ij,ij->i", np.cross(v - u, w - u), z - u)

    above, below = side(a, b, c, p), side(a, b, c, q)
    across = (above * below < 0) & (np.minimum(abs(above), abs(below)) > FLAT * size**3)
    turns = [side(p, q, a, b), side(p, q, b, c), side(p, q, c, a)]
    inside = np.all([s > 0 for s in turns], 0) | np.all([s < 0 for s in turns], 0)
    return int((across & inside).sum())
