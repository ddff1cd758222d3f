"""Parts of cloth and ropes that are near each other, and how far they may move before they touch.

They are pairs of a point and a triangle, and of two edges, that share no point. `near_pairs` finds those within a distance;
`free_share` how much of a motion nothing passes through anything in: it advances by what distances allow, step by step (additive
continuous collision detection, Li et al. 2021), and so never passes a contact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

GAP = 0.2
"""Share of the distance at the beginning of a motion that is kept at its end."""
ROUNDS = 200
"""Largest number of advances."""
FEW = 20_000
"""Number of pairs up to which all are tried, which is faster than a tree."""


@dataclass(frozen=True, eq=False)
class Surfaces:
    """Triangles and edges that may touch."""

    triangles: np.ndarray
    """Points of the triangles (n, 3)."""
    edges: np.ndarray
    """Points of the edges (n, 2): those of triangles, and segments of ropes."""
    count: int
    """Number of points."""
    joined: np.ndarray
    """Pairs of points that are sewn together (n, 2), and so never touch."""

    @cached_property
    def same(self) -> np.ndarray:
        """Number of every point (count); points that are sewn together have one."""
        number = np.arange(self.count)
        for a, b in self.joined:
            number[number == number[b]] = number[a]
        return number

    def near_pairs(self, x: np.ndarray, reach: float, move: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs (n, 4) that are nearer than `reach` at x, or may be within a motion, and their kinds (n)."""
        spread = 0.0 if move is None else 4 * float(np.linalg.norm(move - move.mean(0), axis=1).max(initial=0))
        found = [self._points_and_triangles(x, reach + spread), self._edges(x, reach + spread)]
        pairs = np.concatenate(found)
        kinds = np.repeat([0, 1], [len(f) for f in found])
        if not len(pairs):
            return pairs, kinds
        room = reach if move is None else reach + _rates(pairs, kinds, move)
        keep = distances(x, pairs, kinds) < room
        return pairs[keep], kinds[keep]

    @cached_property
    def _every(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """All pairs of points and triangles, and of edges, that share no point; none where a tree finds the near ones."""
        none = np.zeros(0, np.int64)
        points, edges = (none, none), (none, none)
        if self.count * len(self.triangles) <= FEW:
            points = self._strangers(*(k.ravel() for k in np.indices((self.count, len(self.triangles)))))
        if len(self.edges) ** 2 <= FEW:
            edges = self._apart(*np.triu_indices(len(self.edges), 1))
        return points, edges

    def _strangers(self, p: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return those of some pairs of points and triangles that share no point."""
        keep = ~(self.same[self.triangles[t]] == self.same[p][:, None]).any(1)
        return p[keep], t[keep]

    def _apart(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return those of some pairs of edges that share no point."""
        a, b = self.same[self.edges[i]], self.same[self.edges[j]]
        keep = ~(a[:, :, None] == b[:, None, :]).any((1, 2))
        return i[keep], j[keep]

    def _points_and_triangles(self, x: np.ndarray, reach: float) -> np.ndarray:
        tri = self.triangles
        if not len(tri):
            return np.zeros((0, 4), np.int64)
        corners = x[tri]
        p, t = self._every[0]
        if self.count * len(tri) > FEW:
            centres = corners.mean(1)
            size = np.sqrt(((corners - centres[:, None]) ** 2).sum(-1).max())
            hits = KDTree(x).sparse_distance_matrix(KDTree(centres), size + reach, output_type="ndarray")
            p, t = self._strangers(hits["i"], hits["j"])
        low, high = corners.min(1) - reach, corners.max(1) + reach
        boxed = ((x[p] >= low[t]) & (x[p] <= high[t])).all(1)
        return np.column_stack([p[boxed], tri[t[boxed]]])

    def _edges(self, x: np.ndarray, reach: float) -> np.ndarray:
        ends = x[self.edges]
        i, j = self._every[1]
        if len(self.edges) ** 2 > FEW:
            half = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).max() / 2
            i, j = self._apart(*KDTree(ends.mean(1)).query_pairs(2 * half + reach, output_type="ndarray").T)
        low, high = ends.min(1), ends.max(1)
        boxed = ((low[i] - reach <= high[j]) & (low[j] - reach <= high[i])).all(1)
        return np.concatenate([self.edges[i[boxed]], self.edges[j[boxed]]], 1)

    def free_share(self, x: np.ndarray, move: np.ndarray) -> float:
        """Return the largest share of a motion, up to 1, in which nothing comes nearer than GAP of its distance at x."""
        pairs, kinds = self.near_pairs(x, 0.0, move)
        if not len(pairs):
            return 1.0
        rate = _rates(pairs, kinds, move)
        start = distances(x, pairs, kinds)
        least, t = GAP * start, np.zeros(len(pairs))
        going = rate > 0
        best = 1.0
        for _ in range(ROUNDS):
            if not going.any():
                break
            k = np.nonzero(going)[0]
            d = distances(x + 0, pairs[k], kinds[k], move, t[k])
            step = (d - least[k]) / rate[k]
            stuck = step * rate[k] < 0.1 * least[k]  # as near as it may come
            best = min(best, float(t[k][stuck].min(initial=1.0)))
            t[k] = np.where(stuck, t[k], t[k] + 0.9 * step)
            going[k] = ~stuck & (t[k] < best)
        else:
            best = min(best, float(t[going].min(initial=1.0)))
        return best


def _rates(pairs: np.ndarray, kinds: np.ndarray, move: np.ndarray) -> np.ndarray:
    """Return the most that the distance of each pair can change in a motion [m]."""
    m = move[pairs]
    m = m - m.mean(1, keepdims=True)
    size = np.linalg.norm(m, axis=2)
    first = np.where(kinds == 0, size[:, 0], size[:, :2].max(1))
    second = np.where(kinds == 0, size[:, 1:].max(1), size[:, 2:].max(1))
    return first + second


def distances(x: np.ndarray, pairs: np.ndarray, kinds: np.ndarray, move=None, share=None) -> np.ndarray:
    """Return the distances (n) [m] of pairs, perhaps after a share of a motion."""
    points = x[pairs]
    if move is not None and share is not None:
        points = points + share[:, None, None] * move[pairs]
    out = np.empty(len(pairs))
    for kind, of in ((0, _to_triangle), (1, _between_edges)):
        k = kinds == kind
        out[k] = of(*(points[k, i] for i in range(4)))
    return out


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)


def _to_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the squares of the distances of points from segments."""
    e = b - a
    t = np.clip(_dot(p - a, e) / np.maximum(_dot(e, e), 1e-300), 0, 1)
    return ((p - a - t[:, None] * e) ** 2).sum(1)


def _to_triangle(p: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    u, v, q = b - a, c - a, p - a
    uu, uv, vv, qu, qv = _dot(u, u), _dot(u, v), _dot(v, v), _dot(q, u), _dot(q, v)
    det = np.maximum(uu * vv - uv * uv, 1e-300)
    s, t = (vv * qu - uv * qv) / det, (uu * qv - uv * qu) / det
    inside = (s >= 0) & (t >= 0) & (s + t <= 1)
    plane = ((q - s[:, None] * u - t[:, None] * v) ** 2).sum(1)
    sides = np.minimum(np.minimum(_to_segment(p, a, b), _to_segment(p, b, c)), _to_segment(p, c, a))
    return np.sqrt(np.where(inside, plane, sides))


def _between_edges(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    u, v, r = b - a, d - c, a - c
    uu, uv, vv, ur, vr = _dot(u, u), _dot(u, v), _dot(v, v), _dot(u, r), _dot(v, r)
    det = uu * vv - uv * uv
    s = np.clip((uv * vr - ur * vv) / np.maximum(det, 1e-300), 0, 1)
    t = np.clip((uv * s + vr) / np.maximum(vv, 1e-300), 0, 1)
    inner = ((r + s[:, None] * u - t[:, None] * v) ** 2).sum(1)
    ends = np.minimum(
        np.minimum(_to_segment(a, c, d), _to_segment(b, c, d)), np.minimum(_to_segment(c, a, b), _to_segment(d, a, b))
    )
    return np.sqrt(np.minimum(inner, ends))
