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

from costate.continuum.cloth.layers.room import GAP

ROUNDS = 200
"""Largest number of advances."""
FEW = 200_000
"""Number of pairs up to which all boxes are compared, which is faster than a tree."""


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

    def near_pairs(self, x: np.ndarray, reach: float, room: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs (n, 4) that are nearer than `reach` at x, and their kinds (n): those of points and triangles first.

        room: How far every point may move (count) [m]: then those that may be nearer after such a motion.
        """
        room = np.zeros(self.count) if room is None else room
        found = [self.boxed(x, reach, room, "point triangle"), self.boxed(x, reach, room, "edge edge")]
        pairs = np.concatenate(found)
        kinds = np.repeat([0, 1], [len(f) for f in found])
        far = room[pairs]
        wide = np.where(kinds, far[:, :2].max(1, initial=0), far[:, 0])
        wide += np.where(kinds, far[:, 2:].max(1, initial=0), far[:, 1:].max(1, initial=0))
        keep = distances(x, pairs, kinds) < reach + wide
        return pairs[keep], kinds[keep]

    @cached_property
    def _parts(self) -> dict[str, np.ndarray]:
        """Points (n, k) of all parts of each kind."""
        return {"point": np.arange(self.count)[:, None], "edge": self.edges, "triangle": self.triangles}

    @cached_property
    def _strangers(self) -> dict[str, np.ndarray | None]:
        """Flags of the parts of two kinds that share no point, each pair once; None where a tree finds the near ones."""
        found: dict[str, np.ndarray | None] = {}
        for kinds in ("point triangle", "edge edge", "edge triangle"):
            a, b = (self._parts[k] for k in kinds.split())
            apart = self._apart(a[:, None], b[None]) if len(a) * len(b) <= FEW else None
            found[kinds] = np.triu(apart, 1) if apart is not None and a is b else apart
        return found

    def _apart(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return whether parts (..., k) and (..., l) share no point."""
        return ~(self.same[a][..., :, None] == self.same[b][..., None, :]).any((-2, -1))

    def boxed(self, x: np.ndarray, reach: float, room: np.ndarray, kinds: str) -> np.ndarray:
        """Return the pairs (n, k + l) of two kinds of parts, such as "point triangle", whose boxes are nearer than `reach`."""
        a, b = (self._parts[k] for k in kinds.split())
        if not len(a) or not len(b):
            return np.zeros((0, a.shape[1] + b.shape[1]), np.int64)
        low, high = x - room[:, None] - reach / 2, x + room[:, None] + reach / 2
        (la, ha), (lb, hb) = ((low[p].min(1), high[p].max(1)) for p in (a, b))
        near = self._strangers[kinds]
        if near is not None:
            for k in range(3):
                near = near & (la[:, None, k] < hb[None, :, k]) & (lb[None, :, k] < ha[:, None, k])
            i, j = np.nonzero(near)
        else:
            sizes = [np.linalg.norm(top - bottom, axis=1).max() / 2 for bottom, top in ((la, ha), (lb, hb))]
            trees = KDTree((la + ha) / 2), KDTree((lb + hb) / 2)
            hits = trees[0].sparse_distance_matrix(trees[1], sum(sizes), output_type="ndarray")
            i, j = hits["i"], hits["j"]
            good = ((la[i] < hb[j]) & (lb[j] < ha[i])).all(1) & self._apart(a[i], b[j])
            good &= (i < j) | (a is not b)
            i, j = i[good], j[good]
        return np.concatenate([a[i], b[j]], 1)

    def free_share(self, x: np.ndarray, move: np.ndarray) -> float:
        """Return the largest share of a motion, up to 1, in which nothing comes nearer than GAP of its distance at x."""
        pairs, kinds = self.near_pairs(x, 0.0, np.linalg.norm(move - move.mean(0), axis=1))
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
            d = distances(x, pairs[k], kinds[k], move, t[k])
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
    starts, ends = np.concatenate([a, b, c]), np.concatenate([b, c, a])
    sides = _to_segment(np.concatenate([p] * 3), starts, ends).reshape(3, -1).min(0)
    return np.sqrt(np.where(inside, plane, sides))


def _between_edges(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    u, v, r = b - a, d - c, a - c
    uu, uv, vv, ur, vr = _dot(u, u), _dot(u, v), _dot(v, v), _dot(u, r), _dot(v, r)
    det = uu * vv - uv * uv
    s = np.clip((uv * vr - ur * vv) / np.maximum(det, 1e-300), 0, 1)
    t = np.clip((uv * s + vr) / np.maximum(vv, 1e-300), 0, 1)
    inner = ((r + s[:, None] * u - t[:, None] * v) ** 2).sum(1)
    points, starts = np.concatenate([a, b, c, d]), np.concatenate([c, c, a, a])
    ends = _to_segment(points, starts, np.concatenate([d, d, b, b])).reshape(4, -1).min(0)
    return np.sqrt(np.minimum(inner, ends))
