"""Operations that choose, join, move and repeat: the numbers stay what they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from costate.train.network.builder import Builder, Operand, UnsupportedError, Value


def axis_of(x: Value, dim: int) -> int:
    """Return the axis of one sample, from the end, of a dimension of torch, in which the batch is the first."""
    dim = dim - (x.rank + 1) if dim >= 0 else dim
    if not -x.rank <= dim < 0:
        raise UnsupportedError("an operation along the batch: each sample must be computed by itself")
    return dim


def axes_of(x: Value, dims: int | Sequence[int] | None) -> list[int]:
    """Return the axes of one sample, from the end, of dimensions of torch."""
    if dims is None or (not isinstance(dims, int) and not len(dims)):
        raise UnsupportedError(
            "a sum, mean or maximum over all samples: name the dimensions it is taken over, such as dim=-1"
        )
    return [axis_of(x, d) for d in ([dims] if isinstance(dims, int) else dims)]


def view(b: Builder, x: Value, shape: Sequence[int]) -> Value:
    """Add another shape; the batch stays first."""
    shape = list(shape)
    if -1 in shape:
        shape[shape.index(-1)] = b.batch * prod(x.shape) // -prod(shape)
    if not shape or shape[0] != b.batch:
        raise UnsupportedError(f"a view of the shape {shape}: the batch must stay the first dimension")
    return b.reshape(x, shape[1:])


def squeeze(b: Builder, x: Value, dims: Any = None) -> Value:
    """Add the value without axes of size one."""
    axes = range(-x.rank, 0) if dims is None else axes_of(x, dims)
    gone = [a for a in axes if x.shape[a] == 1]
    return b.reshape(x, [n for d, n in enumerate(x.shape) if d - x.rank not in gone])


def unsqueeze(b: Builder, x: Value, dim: int) -> Value:
    """Add a new axis of size one."""
    place = dim - 1 if dim >= 0 else x.rank + 1 + dim
    if place < 0:
        raise UnsupportedError("a dimension before the batch")
    return b.reshape(x, [*x.shape[:place], 1, *x.shape[place:]])


def flatten(b: Builder, x: Value, start: int = 0, end: int = -1) -> Value:
    """Add several axes as one."""
    first, last = (axis_of(x, d) + x.rank for d in (start, end))
    return b.reshape(x, [*x.shape[:first], -1, *x.shape[last + 1 :]])


def permute(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    """Add another order of axes."""
    if dims[0] not in (0, -x.rank - 1):
        raise UnsupportedError("a permutation that moves the batch")
    return b.permute(x, [axis_of(x, d) for d in dims[1:]])


def transpose(b: Builder, x: Value, one: int, two: int) -> Value:
    """Add two axes that change places."""
    axes = list(range(-x.rank, 0))
    one, two = axis_of(x, one), axis_of(x, two)
    axes[one], axes[two] = axes[two], axes[one]
    return b.permute(x, axes)


def expand(b: Builder, x: Value, shape: Sequence[int], implicit: bool = False) -> Value:
    """Add a value that is repeated along axes of size one."""
    if len(shape) != x.rank + 1:
        raise UnsupportedError(f"an expansion to {list(shape)}, which has other dimensions than the value")
    return b.expand(x, [m if n == -1 else n for n, m in zip(shape[1:], x.shape, strict=True)])


def repeat(b: Builder, x: Value, times: Sequence[int]) -> Value:
    """Add copies of a value along its axes."""
    if len(times) != x.rank + 1 or times[0] != 1:
        raise UnsupportedError(f"repeat{tuple(times)}: the batch must stay as it is")
    for axis, n in zip(range(-x.rank, 0), times[1:], strict=True):
        x = b.take(x, axis, [*range(x.shape[axis])] * n)
    return x


def part(b: Builder, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    """Add a slice."""
    size = b.batch if dim in (0, -x.rank - 1) else x.shape[axis_of(x, dim)]
    chosen = list(range(size)[slice(start, end, step)])
    return x if chosen == list(range(size)) else b.take(x, axis_of(x, dim), chosen)


def select(b: Builder, x: Value, dim: int, index: int) -> Value:
    """Add one entry of an axis, without the axis."""
    axis = axis_of(x, dim)
    one = b.take(x, axis, [range(x.shape[axis])[index]])
    return b.reshape(one, [n for d, n in enumerate(one.shape) if d - x.rank != axis])


def split(b: Builder, x: Value, sizes: int | Sequence[int], dim: int = 0) -> list[Value]:
    """Add parts of given sizes."""
    axis = axis_of(x, dim)
    total = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, total - k) for k in range(0, total, sizes)]
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return [b.take(x, axis, range(end - n, end)) for end, n in zip(ends, sizes, strict=True)]


def chunk(b: Builder, x: Value, count: int, dim: int = 0) -> list[Value]:
    """Add a number of parts."""
    return split(b, x, -(-x.shape[axis_of(x, dim)] // count), dim)


def unbind(b: Builder, x: Value, dim: int = 0) -> list[Value]:
    """Add each entry of an axis by itself."""
    return [select(b, x, dim, k) for k in range(x.shape[axis_of(x, dim)])]


def cat(b: Builder, parts: Sequence[Operand], dim: int = 0) -> Value:
    """Add values one behind the other; constants are repeated for each sample."""
    like = next(p for p in parts if isinstance(p, Value))
    return b.join([b.everywhere(p, like) for p in parts], axis_of(like, dim))


def stack(b: Builder, parts: Sequence[Operand], dim: int = 0) -> Value:
    """Add values along a new axis."""
    like = next(p for p in parts if isinstance(p, Value))
    rows = [unsqueeze(b, b.everywhere(p, like), dim) for p in parts]
    return b.join(rows, axis_of(rows[0], dim))


def indexed(b: Builder, x: Value, indices: Sequence[Any]) -> Value:
    """Add entries chosen by a list of constant numbers."""
    used = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(used) != 1 or not isinstance(used[0][1], torch.Tensor) or used[0][1].dim() != 1:
        raise UnsupportedError("an index other than one list of constant numbers")
    dim, chosen = used[0]
    return index_select(b, x, dim, chosen.nonzero()[:, 0] if chosen.dtype == torch.bool else chosen)


def index_select(b: Builder, x: Value, dim: int, chosen: torch.Tensor) -> Value:
    """Add entries by number."""
    axis = axis_of(x, dim)
    return b.take(x, axis, [range(x.shape[axis])[int(k)] for k in chosen])


def flip(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    """Add axes in reverse."""
    for axis in axes_of(x, dims):
        x = b.take(x, axis, range(x.shape[axis])[::-1])
    return x


def unflatten(b: Builder, x: Value, dim: int, sizes: Sequence[int]) -> Value:
    """Add one axis as several."""
    place = axis_of(x, dim) + x.rank
    return b.reshape(x, [*x.shape[:place], *sizes, *x.shape[place + 1 :]])
