"""The choice of four contact points."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
import pytest
from casadi import SX

from costate.collision.convex.manifold import ManifoldPoint, pick

SQUARE = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]


def picked(places: Sequence[tuple[float, float]], gaps: Sequence[float]) -> set[tuple[float, float]]:
    """Return the places of the points that are picked of some with these gaps."""
    x = SX.sym("x", 4, len(places))
    points = pick([ManifoldPoint(SX(1), x[:, k]) for k in range(len(places))])
    at = np.array([[*p, gap, 0.0] for p, gap in zip(places, gaps, strict=True)]).T
    valid, found = ca.Function("f", [x], [ca.vertcat(*(p.valid for p in points)), ca.horzcat(*(p.at for p in points))])(
        at
    )
    return {(float(found[0, k]), float(found[1, k])) for k in range(4) if float(valid[k])}


@pytest.mark.parametrize("seed", range(8))
def test_rounding_does_not_choose(seed: int) -> None:
    """Of a square with points on its edges and inside of it, all as deep as each other but for rounding: the corners."""
    noise = 1e-12 * np.random.default_rng(seed).normal(size=9)
    assert picked([(0.5, 0.0), (0.0, 0.5), (0.3, 0.3), (1.0, 0.7), (0.5, 1.0), *SQUARE], noise.tolist()) == set(SQUARE)


def test_a_body_stands_on_the_corners_of_its_face() -> None:
    """Corners of a wedge whose top reaches further than its base."""
    top = [(3.0, 0.0), (3.0, 1.0), (2.0, 0.0), (2.0, 1.0)]
    assert picked([*top, *SQUARE], [1.2, 1.2, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]) == set(SQUARE)


def test_the_deepest_point_is_kept() -> None:
    """Of the rim of a tilted disc, wherever it is lowest; others only where it lies about flat."""
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    rim = [(float(np.cos(a)), float(np.sin(a))) for a in angles]
    for tilt, lowest in ((1e-5, 3), (1e-2, 7), (0.5, 12)):
        gaps = [tilt * (1 - np.cos(a - angles[lowest])) for a in angles]
        found = picked(rim, gaps)
        assert rim[lowest] in found and (len(found) == 4 or tilt > 0.25)
