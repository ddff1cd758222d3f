"""LLVM IR of a map: a loop over its instances."""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Slot
from costate.kernel.codegen.stages.lookup import Lookup, is_stacked
from costate.kernel.ops.map import Map


def write_map(e: Emitter, op: Map, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Gather, call the body, and add its results to their elements. What is in place already is not moved."""
    with e.scratch():
        _write_instances(e, op, ins, outs)


def _write_instances(e: Emitter, op: Map, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    fn = e.unit.function(op.body)
    args, results = [e.hold(n) for n in op.body.in_sizes], [e.hold(n) for n in op.body.out_sizes]
    sources, targets = [e.pointer(p) for p in ins], [e.pointer(p) for p in outs]
    stacked = [is_stacked(t, n) for t, n in zip(op.scatter, op.out_sizes, strict=True)]
    for target, n, alone in zip(targets, op.out_sizes, stacked, strict=True):
        if not alone:
            e.helper("vzero", f"ptr {target}", f"i64 {n}")
    gather, scatter = ([Lookup(e, t) for t in tables] for tables in (op.gather, op.scatter))
    with e.loop(str(op.count)) as i:
        read = [g.read(source, i, buffer) for g, source, buffer in zip(gather, sources, args, strict=True)]
        written = [
            e.element(target, i, s.size) if alone else buffer
            for s, target, buffer, alone in zip(scatter, targets, results, stacked, strict=True)
        ]
        e.call(fn, read, written)
        for s, target, buffer, alone in zip(scatter, targets, results, stacked, strict=True):
            if not alone:
                s.add(target, i, buffer)
