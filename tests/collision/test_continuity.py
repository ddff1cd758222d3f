"""Gaps of every pair of kinds with a formula: they change no faster than the solids move, and their derivatives are theirs."""

from __future__ import annotations

from itertools import combinations_with_replacement

import casadi as ca
import numpy as np
import pytest
from casadi import SX
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
RADIUS = 0.25
"""Radius of a ball around any of the solids that have an end [m]."""


def formula(a: Solid, b: Solid) -> ca.Function | None:
    """Gaps of a pair, a at a pose (12,) and b at the origin; None for pairs that do not touch."""
    x = SX.sym("x", 12)
    found = contact_points(Placed(a, *pose(x)), Placed(b, SX.eye(3), SX.zeros(3)))
    return ca.Function("gaps", [x], [ca.densify(ca.vertcat(*(c.gap for c in found)))]) if found else None


def paths_of(a: str, b: str) -> Paths:
    """Paths of a past b, from apart to deep inside."""
    random = np.random.default_rng([*map(ord, a + b)])
    if b in ("socket", "chamfered"):
        return random_paths(random, RADIUS, random.normal(size=(PATHS, 3)) * [0.006, 0.006, 0.03] + [0, 0, 0.1], 0.1)
    middles = random.normal(size=(PATHS, 3))
    return random_paths(random, RADIUS, middles / np.linalg.norm(middles, axis=1)[:, None] * random.uniform(0, 0.25, (PATHS, 1)))
