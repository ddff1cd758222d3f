"""Maps: one function over k instances, through constant index tables (contact pairs, finite elements)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.prune import prune
from costate.kernel.ops.index_tables import check_table, table_parts


@dataclass(frozen=True, eq=False)
class Map(Op):
    """Instance i reads element gather[k][i, j] of input k as element j of the body's argument, and its results are added to the
    elements scatter[k][i, j] of output k, instance by instance."""

    body: Program
    gather: tuple[np.ndarray, ...]
    """Table of each input (instances, size of the body's argument)."""
    scatter: tuple[np.ndarray, ...]
    """Table of each output (instances, size of the body's result)."""
    in_sizes: tuple[int, ...]  # type: ignore[assignment]
    out_sizes: tuple[int, ...]  # type: ignore[assignment]

    @cached_property
    def count(self) -> int:
        """Number of instances."""
        return len((*self.gather, *self.scatter)[0])

    @property
    def repeats(self) -> int:
        return self.count

    def describe(self) -> tuple[Any, ...]:
        return (self.body.key, *table_parts(*self.gather, *self.scatter))

    def bodies(self) -> list[Program]:
        return [self.body]

    def check(self) -> None:
        """Raise if a table does not fit the body or the vectors."""
        ins = zip(self.gather, self.body.in_sizes, self.in_sizes, strict=True)
        outs = zip(self.scatter, self.body.out_sizes, self.out_sizes, strict=True)
        for table, width, size in (*ins, *outs):
            check_table(table, (self.count, width), size)

    def evaluate(self, *inputs: Array) -> list[Array]:
        batch = max((x.shape[1] for x in inputs), default=1)
        outs: list[Array] = [np.zeros((n, batch)) for n in self.out_sizes]
        for i in range(self.count):
            results = self.body.evaluate(*(x[t[i]] for x, t in zip(inputs, self.gather, strict=True)))
            for out, table, r in zip(outs, self.scatter, results, strict=True):
                np.add.at(out, table[i], r)
        return outs

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        moving = [k for k, t in enumerate(tans) if t is not None]
        dots = [t for t in tans if t is not None]
        op = Map(
            jvp(self.body, moving),
            (*self.gather, *(self.gather[k] for k in moving)),
            self.scatter,
            (*self.in_sizes, *(self.in_sizes[k] for k in moving)),
            self.out_sizes,
        )
        return b.stage(self, *ins), list(b.stage(op, *ins, *dots))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        of = [k for k, s in enumerate(seeds) if s is not None]
        to = [k for k, w in enumerate(wrt) if w]
        op = Map(
            vjp(self.body, to, of),
            (*self.gather, *(self.scatter[k] for k in of)),
            tuple(self.gather[k] for k in to),
            (*self.in_sizes, *(self.out_sizes[k] for k in of)),
            tuple(self.in_sizes[k] for k in to),
        )
        found = b.stage(op, *ins, *(s for s in seeds if s is not None))
        grads: list[Var | None] = [None] * len(ins)
        for k, g in zip(to, found, strict=True):
            grads[k] = g
        return grads

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        outs = [k for k, u in enumerate(used) if u]
        ins = [k for k, d in enumerate(self.body.depends_on(used)) if d]
        body = prune(replace(self.body, outputs=tuple(self.body.outputs[k] for k in outs)))
        op = Map(
            replace(body, inputs=tuple(body.inputs[k] for k in ins)),
            tuple(self.gather[k] for k in ins),
            tuple(self.scatter[k] for k in outs),
            tuple(self.in_sizes[k] for k in ins),
            tuple(self.out_sizes[k] for k in outs),
        )
        return op, ins, outs
