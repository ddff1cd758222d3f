"""Compiled loops against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from costate.draw.compiled.code import F32, F64, I64, Code
from costate.draw.compiled.corners import place
from costate.draw.compiled.loop import loop
from costate.draw.compiled.shadows import mean, outline

RNG = np.random.default_rng(0)


@loop(x=np.float32, y=np.float64, count=int, factor=float, out=np.float64)
def mixed(code: Code, a: Any) -> None:
    """Return a sum of branches and conversions."""
    total = code.variable(code.number(0.0, F64))
    with code.loop(code.number(0, I64), a.count) as i:
        x, y = a.x[i].to(F64), a.y[i]
        total.set(total.get() + code.select(x < y, x * a.factor, 1.0 - y / 3.0))
        with code.when((x > 0.5) & (y <= 0.5)):
            total.set(total.get() + code.sqrt(x) - code.floor(y * 10.0) + (i & 1).to(F32).to(F64))
        a.out[i] = total.get()


def test_the_language_computes_what_it_says() -> None:
    x, y = RNG.random(50).astype(np.float32), RNG.random(50)
    out = np.empty(50)
    mixed(x=x, y=y, count=50, factor=1.5, out=out)
    wide = x.astype(float)
    terms = np.where(wide < y, wide * 1.5, 1 - y / 3)
    terms += np.where((wide > 0.5) & (y <= 0.5), np.sqrt(wide) - np.floor(10 * y) + np.arange(50) % 2, 0)
    assert out == pytest.approx(np.cumsum(terms), rel=1e-14)


def test_arrays_of_another_type_are_refused() -> None:
    x = np.zeros(3)
    with pytest.raises(TypeError, match="x is a contiguous array of float32; float64 given"):
        mixed(x=x, y=x, count=3, factor=1.0, out=x)
    with pytest.raises(TypeError, match="contiguous"):
        mixed(x=np.zeros(6, np.float32)[::2], y=x, count=3, factor=1.0, out=x)


def test_corners_move_with_their_owners() -> None:
    vertices, normals = RNG.random((2, 20, 3)).astype(np.float32)
    owner, poses = RNG.integers(0, 4, 20).astype(np.int32), RNG.random((4, 3, 4))
    points, turned = np.empty_like(vertices), np.empty_like(normals)
    place(vertices=vertices, normals=normals, owner=owner, poses=poses, count=20, points=points, turned=turned)
    R, p = poses[owner, :, :3], poses[owner, :, 3]
    assert points == pytest.approx(np.einsum("nij,nj->ni", R, vertices) + p, abs=1e-6)
    assert turned == pytest.approx(np.einsum("nij,nj->ni", R, normals), abs=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reach", [1, 3, 40])
def test_running_means_are_convolutions(axis: int, reach: int) -> None:
    image = RNG.random((16, 16)).astype(np.float32)
    smooth = np.empty_like(image)
    line, step = ((1, 16), (16, 1))[axis]
    mean(image=image, lines=16, length=16, line=line, step=step, reach=reach, smooth=smooth)
    window = np.ones(2 * reach + 1) / (2 * reach + 1)
    wanted = np.apply_along_axis(lambda x: np.convolve(x, window)[reach : reach + 16], axis, image)
    assert smooth == pytest.approx(wanted, abs=1e-6)


def test_the_outline_is_the_covered_part_of_four_pixels() -> None:
    depth = np.where(RNG.random((8, 8)) < 0.5, 1.0, np.inf).astype(np.float32)
    covered = np.empty((4, 4), np.float32)
    outline(depth=depth, half=4, covered=covered)
    assert covered == pytest.approx(np.isfinite(depth).reshape(4, 2, 4, 2).mean((1, 3)))
