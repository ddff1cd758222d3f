"""Stages that apply one straight-line function to every entity of a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costate.kernel.ir.program import Array, Builder, Op, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.fields.access import Access
from costate.kernel.ops.fields.blocks import BLOCK, from_blocks


@dataclass(frozen=True, eq=False)
class ForEach(Op):
    """inputs: [range], what is read, indices of stencils; outputs: what is written.

    A range (first, behind the last) leaves the other entities out: what they would write is 0.
    """

    fn: Straight
    """Function of one entity."""
    count: int
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    n_indices: int = 0
    ranged: bool = False

    block = BLOCK

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        blocks = -(-self.count // BLOCK)
        return (2,) * self.ranged + tuple(r.size for r in self.reads) + (blocks,) * self.n_indices

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(w.size for w in self.writes)

    def describe(self) -> tuple[Any, ...]:
        accesses = [a.describe() for a in (*self.reads, *self.writes)]
        return (self.fn.key, self.count, accesses, self.n_indices, self.ranged)

    def grids(self) -> dict[str, np.ndarray]:
        return {name: grid for a in (*self.reads, *self.writes) for name, grid in a.grids().items()}

    def check(self) -> None:
        """Raise if the function does not fit what it reads and writes."""
        given, made = tuple(r.width for r in self.reads), tuple(w.width for w in self.writes)
        if (given, made) != (self.fn.in_sizes, self.fn.out_sizes):
            raise ValueError(
                f"the function of an entity takes {self.fn.in_sizes} numbers and returns {self.fn.out_sizes}; what it reads has "
                f"{given}, what it writes {made}"
            )

    def split(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Split the inputs into (range, what is read, indices)."""
        a = int(self.ranged)
        b = a + len(self.reads)
        return list(items[:a]), list(items[a:b]), list(items[b:])

    def evaluate(self, *inputs: Array) -> list[Array]:
        limits, values, indices = self.split(inputs)
        first, last = (int(limits[0][0, 0]), int(limits[0][1, 0])) if limits else (0, self.count)
        at = [from_blocks(np.asarray(i), self.count)[:, 0] for i in indices]
        alive = (np.arange(self.count) >= first) & (np.arange(self.count) < last)
        args = [r.read(_lanes(x), self.count, _index(r, at)) for r, x in zip(self.reads, values, strict=True)]
        with np.errstate(all="ignore"):
            results = self.fn.evaluate(*(a.T for a in args)) if self.count else []
        kept = [np.where(alive[:, None], np.asarray(r).T, 0.0) for r in results]
        return [w.write(r, _index(w, at)) for w, r in zip(self.writes, kept, strict=True)]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        outs = b.stage(self, *ins)
        limits, values, indices = self.split(ins)
        _, dots, _ = self.split(tans)
        active = [k for k, t in enumerate(dots) if t is not None]
        if not active:
            return outs, [None] * len(outs)
        fn, moved = self.fn.tangents(active)
        op = replace(self, fn=fn, reads=(*self.reads, *(self.reads[k] for k in active)))
        found = b.stage(op, *limits, *values, *(t for t in dots if t is not None), *indices)
        return outs, [v if m else None for v, m in zip(found, moved, strict=True)]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        limits, values, indices = self.split(ins)
        of = [k for k, s in enumerate(seeds) if s is not None]
        _, wanted, _ = self.split(wrt)
        to = [k for k, w in enumerate(wanted) if w]
        grads: list[Var | None] = [None] * len(ins)
        if not to:
            return grads
        fn, moved = self.fn.gradients(of, to)
        op = replace(
            self,
            fn=fn,
            reads=(*self.reads, *(self.writes[k] for k in of)),
            writes=tuple(self.reads[k] for k in to),
        )
        found = b.stage(op, *limits, *values, *(s for s in seeds if s is not None), *indices)
        for k, g, m in zip(to, found, moved, strict=True):
            if m:
                grads[int(self.ranged) + k] = g
        return grads

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        fn, ins, outs = self.fn.restrict(used)
        assert isinstance(fn, Straight)
        reads, writes = tuple(self.reads[k] for k in ins), tuple(self.writes[k] for k in outs)
        a, n = int(self.ranged), len(self.reads)
        kept = [*range(a), *(a + k for k in ins), *(a + n + k for k in range(self.n_indices))]
        return replace(self, fn=fn, reads=reads, writes=writes), kept, outs


def _lanes(x: Array) -> np.ndarray:
    return np.broadcast_to(x, (len(x), BLOCK))


def _index(access: Access, indices: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return the computed index of a stencil."""
    k = getattr(access, "index", None)
    return None if k is None else indices[k]
