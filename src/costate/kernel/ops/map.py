"""Maps: one function over k instances, through constant index tables (contact pairs, finite elements)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ops.lookup import Lookup, is_stacked

if TYPE_CHECKING:
    from costate.kernel.codegen.emit import Emitter, Place


@dataclass(frozen=True, eq=False)
class Map(Op):
    """Instance i reads element gather[k][i, j] of input k as element j of the body's argument, and its results are added to the
    elements scatter[k][i, j] of output k, instance by instance."""

    body: Program
    gather: tuple[np.ndarray, ...]
    """Per input, int table (instances, size of the body's argument)."""
    scatter: tuple[np.ndarray, ...]
    """Per output, int table (instances, size of the body's result)."""
    in_sizes: tuple[int, ...]  # type: ignore[assignment]
    out_sizes: tuple[int, ...]  # type: ignore[assignment]

    @cached_property
    def count(self) -> int:
        return len((*self.gather, *self.scatter)[0])

    def describe(self) -> tuple[Any, ...]:
        tables = [(t.shape, np.ascontiguousarray(t, np.int64).tobytes()) for t in (*self.gather, *self.scatter)]
        return (self.body.key, *(part for t in tables for part in t))

    def bodies(self) -> list[Program]:
        return [self.body]

    def evaluate(self, *inputs: Array) -> list[Array]:
        batch = max((x.shape[1] for x in inputs), default=1)
        outs: list[Array] = [np.zeros((n, batch)) for n in self.out_sizes]
        for i in range(self.count):
            results = self.body.evaluate(*(x[t[i]] for x, t in zip(inputs, self.gather, strict=True)))
            for out, table, r in zip(outs, self.scatter, results, strict=True):
                np.add.at(out, table[i], r)
        return outs

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        from costate.kernel.ir.derive import jvp

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
        from costate.kernel.ir.derive import vjp

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
        from costate.kernel.ir.passes import prune

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

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        fn = e.unit.function(self.body)
        buffers_in = [e.reserve(n) for n in self.body.in_sizes]
        buffers_out = [e.reserve(n) for n in self.body.out_sizes]
        args, results = [e.pointer(p) for p in buffers_in], [e.pointer(p) for p in buffers_out]
        sources, targets = [e.pointer(p) for p in ins], [e.pointer(p) for p in outs]
        stacked = [is_stacked(t, n) for t, n in zip(self.scatter, self.out_sizes, strict=True)]
        for target, n, alone in zip(targets, self.out_sizes, stacked, strict=True):
            if not alone:
                e.helper("vzero", f"ptr {target}", f"i64 {n}")
        gather, scatter = ([Lookup(e, t) for t in tables] for tables in (self.gather, self.scatter))
        with e.loop(str(self.count)) as i:
            read = [g.read(source, i, buffer) for g, source, buffer in zip(gather, sources, args, strict=True)]
            written = [
                e.element(target, i, s.size) if alone else buffer
                for s, target, buffer, alone in zip(scatter, targets, results, stacked, strict=True)
            ]
            e.call(fn, read, written)
            for s, target, buffer, alone in zip(scatter, targets, results, stacked, strict=True):
                if not alone:
                    s.add(target, i, buffer)
        for region, n in zip([*buffers_in, *buffers_out], [*self.body.in_sizes, *self.body.out_sizes], strict=True):
            e.release(region, n)
