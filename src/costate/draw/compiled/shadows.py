"""Shadows: the scene seen from the sun, and its outline on the ground, smoothed."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.draw.compiled.code import F32, F64, I64, Code, Vector
from costate.draw.compiled.loop import loop


@loop(depth=np.float32, half=int, covered=np.float32)
def outline(code: Code, a: Any) -> None:
    """Return how much of two by two pixels of a depth map (2 half, 2 half) is covered, shape (half, half)."""
    zero = code.number(0, I64)
    with code.loop(zero, a.half) as y, code.loop(zero, a.half) as column:
        at = y * a.half * 4 + column * 2
        hits = [code.select(a.depth[at + k] < float("inf"), code.number(0.25, F32), 0.0) for k in (0, 1)]
        hits += [code.select(a.depth[at + a.half * 2 + k] < float("inf"), code.number(0.25, F32), 0.0) for k in (0, 1)]
        a.covered[y * a.half + column] = hits[0] + hits[1] + hits[2] + hits[3]


@loop(image=np.float32, lines=int, length=int, line=int, step=int, reach=int, smooth=np.float32)
def mean(code: Code, a: Any) -> None:
    """Take the running mean over 2 reach + 1 elements along the lines of an image; beyond its edges there is nothing.

    line, step: elements from one line to the next, and along a line.
    """
    zero = code.number(0, I64)
    factor = 1.0 / (2 * a.reach + 1).to(F64)
    with code.loop(zero, a.lines) as k:
        start = k * a.line
        total = code.variable(code.number(0.0, F64))
        with code.loop(zero, code.smallest(a.reach, a.length)) as i:
            total.set(total.get() + a.image[start + i * a.step].to(F64))
        with code.loop(zero, a.length) as i:
            ahead, behind = i + a.reach, i - a.reach - 1
            with code.when(ahead < a.length):
                total.set(total.get() + a.image[start + ahead * a.step].to(F64))
            with code.when(behind >= 0):
                total.set(total.get() - a.image[start + behind * a.step].to(F64))
            a.smooth[start + i * a.step] = (total.get() * factor).to(F32)


@loop(points=np.float32, owner=np.int32, alpha=np.float32, axes=np.float64, ground=float, count=int, ends=np.float64)
def bounds(code: Code, a: Any) -> None:
    """Return lowest and highest coordinate along the rows of `axes` (3, 3) of the points above the ground whose owners are more
    opaque than transparent: shape (2, 3), infinite where there are none."""
    zero = code.number(0, I64)
    low = [code.variable(code.number(float("inf"), F64)) for _ in range(3)]
    high = [code.variable(code.number(float("-inf"), F64)) for _ in range(3)]
    with code.loop(zero, a.count) as i:
        p = a.points.three(i).wide()
        with code.when((a.alpha[a.owner[i]] > 0.5) & (p.z > a.ground)):
            for k in range(3):
                x = a.axes.three(code.number(k, I64)).dot(p)
                low[k].set(code.smallest(low[k].get(), x))
                high[k].set(code.largest(high[k].get(), x))
    for k in range(3):
        a.ends[k], a.ends[3 + k] = low[k].get(), high[k].get()


@loop(points=np.float32, owner=np.int32, alpha=np.float32, to_map=np.float64, count=int, local=np.float32)
def cast(code: Code, a: Any) -> None:
    """Project points onto a map, by [A | b] (3, 4); not a number where the owner is more transparent than opaque."""
    zero = code.number(0, I64)
    with code.loop(zero, a.count) as i:
        p = a.points.three(i).wide()
        opaque = a.alpha[a.owner[i]] > 0.5
        for k in range(3):
            row = Vector(*(a.to_map[4 * k + m] for m in range(3)))
            a.local[i * 3 + k] = code.select(opaque, (row.dot(p) + a.to_map[4 * k + 3]).to(F32), float("nan"))
