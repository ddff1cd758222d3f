"""Stages between tensors (count, n), entity by entity, and fields in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.kernel.ir.program import Array, Builder, Op, Var
from costate.kernel.ops.fields.blocks import BLOCK, block_count, from_blocks, to_blocks


@dataclass(frozen=True, eq=False)
class Pack(Op):
    """Frames of numbers (frames, count, n) as frames of blocks."""

    count: int
    n: int
    frames: int = 1

    block = BLOCK

    @property
    def plain(self) -> int:
        """Numbers of all frames."""
        return self.frames * self.count * self.n

    @property
    def blocked(self) -> int:
        """Elements of all frames."""
        return self.frames * block_count(self.count) * self.n

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.plain,)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.blocked,)

    def describe(self) -> tuple[Any, ...]:
        return (self.count, self.n, self.frames)

    def evaluate(self, *inputs: Array) -> list[Array]:
        frames = inputs[0][:, 0].reshape(self.frames, self.count, self.n)
        return [np.concatenate([to_blocks(f) for f in frames])]

    def transposed(self) -> Op:
        """Return the op that undoes this one, which also is its adjoint."""
        return Unpack(self.count, self.n, self.frames)

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        assert tans[0] is not None
        return b.stage(self, *ins), list(b.stage(self, tans[0]))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        (seed,) = seeds
        assert seed is not None
        return list(b.stage(self.transposed(), seed))

    def reads_rows(self, k: int, row_size: int) -> bool:
        return row_size % self.n == 0


@dataclass(frozen=True, eq=False)
class Unpack(Pack):
    """Frames of blocks as frames of numbers (frames, count, n)."""

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.blocked,)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.plain,)

    def evaluate(self, *inputs: Array) -> list[Array]:
        frames = np.broadcast_to(inputs[0], (len(inputs[0]), BLOCK)).reshape(self.frames, -1, BLOCK)
        flat = np.concatenate([from_blocks(f, self.count).ravel() for f in frames])
        return [np.repeat(flat[:, None], BLOCK, axis=1)]

    def transposed(self) -> Op:
        return Pack(self.count, self.n, self.frames)

    def reads_rows(self, k: int, row_size: int) -> bool:
        return False

    def writes_rows(self, k: int, row_size: int) -> bool:
        return row_size % self.n == 0
