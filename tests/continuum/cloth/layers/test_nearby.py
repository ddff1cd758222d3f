"""Distances of pairs, and how far they may move, against brute force."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch

from costate.continuum.cloth.body import sheet
from costate.continuum.cloth.layers import nearby
from costate.continuum.cloth.layers.nearby import Surfaces, distances
from costate.continuum.cloth.layers.pairs import Pairs, nearest
from costate.continuum.cloth.layers.room import GAP, room
from costate.continuum.cloth.topology import edges_of
from costate.kernel.fields import Entities, Field, FieldBuilder

KINDS = pytest.mark.parametrize("kind", [0, 1], ids=["point and triangle", "edges"])


def sampled(X: np.ndarray, kind: int, n: int = 60) -> float:
    """Least distance of many points of both parts of a pair: a little too great."""
    t = np.linspace(0, 1, n)
    if kind:
        u, v = np.meshgrid(t, t)
        apart = X[0] + u[..., None] * (X[1] - X[0]) - X[2] - v[..., None] * (X[3] - X[2])
    else:
        u, v = np.meshgrid(t, t)
        u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
        apart = X[0] - X[1] - u[..., None] * (X[2] - X[1]) - v[..., None] * (X[3] - X[1])
    return float(np.linalg.norm(apart, axis=-1).min())


@KINDS
def test_both_distances_are_those_of_sampled_points(kind: int) -> None:
    rng = np.random.default_rng(kind)
    X = ca.SX.sym("X", 4, 3)
    compiled = ca.Function("d", [X], list(nearest(X, ca.SX([1, kind]))))
    for _ in range(60):
        points = rng.normal(size=(4, 3))
        (found,) = distances(points, np.arange(4)[None], np.array([kind]))
        n, d, w = (np.array(v).ravel() for v in compiled(points))
        assert d[0] == pytest.approx(found, abs=1e-9)
        assert np.allclose(points.T @ w, d * n, atol=1e-9)
        assert found <= sampled(points, kind) + 1e-12
        assert found > sampled(points, kind) - 0.08  # lattices of 60 are as coarse


def surfaces(count: int = 2) -> tuple[Surfaces, np.ndarray]:
    """Some sheets above one another."""
    flat = sheet((4, 4), (0.3, 0.3))
    triangles = np.concatenate([flat.triangles + 16 * k for k in range(count)])
    x = np.concatenate([flat.points + k * np.array([0.01, 0.02, 0.05]) for k in range(count)])
    return Surfaces(triangles, edges_of(triangles), 16 * count, np.zeros((0, 2), int)), x


@pytest.mark.parametrize("few", [0, nearby.FEW], ids=["by trees", "all tried"])
def test_all_near_pairs_are_found(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "FEW", few)
    of, x = surfaces()
    x = x + 0.02 * np.random.default_rng(0).normal(size=x.shape)
    pairs, kinds = of.near_pairs(x, 0.03)
    found = {(int(k), *p) for p, k in zip(pairs.tolist(), kinds, strict=True)}
    every = [(0, p, *t) for p in range(32) for t in of.triangles.tolist() if p not in t]
    edges = of.edges.tolist()
    every += [(1, *a, *b) for i, a in enumerate(edges) for b in edges[i + 1 :] if not set(a) & set(b)]
    rows = np.array([e[1:] for e in every])
    near = distances(x, rows, np.array([e[0] for e in every])) < 0.03
    assert found == {e for e, k in zip(every, near, strict=True) if k}
    assert 20 < len(found) < len(every) / 4


def test_motions_stop_before_anything_is_passed() -> None:
    of, x = surfaces()
    move = np.zeros_like(x)
    move[16:, 2] = -0.2  # through the lower sheet at a quarter of the way
    share = of.free_share(x, move)
    assert (1 - 1.3 * GAP) / 4 < share <= (1 - GAP) / 4 + 1e-12
    assert of.free_share(x, np.broadcast_to([0.0, 0.0, -5.0], x.shape)) == 1.0  # both together
    away = np.where(np.arange(32)[:, None] >= 16, [0.0, 0.0, 0.5], 0.0)
    assert of.free_share(x, away) == 1.0


def test_steps_stop_where_motions_do() -> None:
    """The compiled search for the length of a step against that of NumPy, and balls that points may not leave."""
    of, x = surfaces()
    rng = np.random.default_rng(0)
    x = x + 0.01 * rng.normal(size=x.shape)
    f, points = FieldBuilder("room"), Entities("points", 32)
    pairs = Pairs(1024, points, 0.01, 2e-3, 100.0)
    y, d = f.field("y", points, 3), f.field("d", points, 3)
    *fields, ball = (f.input(n, k) if to is None else f.field(n, to, k) for n, to, k in pairs.inputs())
    assert isinstance(ball, Field)
    f.output("found", room(pairs, f, y, d, fields, ball))
    kernel = f.kernel()
    shares = []
    for fast in (0.01, 0.03, 0.06):
        move = 0.015 * rng.normal(size=x.shape)
        move[16:, 2] -= fast
        size = np.linalg.norm(move - move.mean(0), axis=1)
        near, kinds = of.near_pairs(x, 0.0, size)
        rows, numbers = np.zeros((1024, 4)), np.zeros((1024, 2))
        rows[: len(near)], numbers[: len(near)] = near, np.column_stack([np.ones(len(near)), kinds])
        given = {f"pair{k}": rows[:, k : k + 1].copy() for k in range(4)}
        given |= {"pairs": numbers, "span": np.array([0.0, len(near)]), "y": x, "d": -move}
        shares.append(of.free_share(x, move))
        for radius, expected in ((2.0, (shares[-1], 0)), (0.1 * shares[-1], (0.1 * shares[-1], 1))):
            given["ball"] = np.column_stack([x, radius * size])
            found = kernel(**{k: torch.as_tensor(v) for k, v in given.items()}).found
            assert found.numpy() == pytest.approx(expected, rel=1e-9)
    assert min(shares) < 0.6
