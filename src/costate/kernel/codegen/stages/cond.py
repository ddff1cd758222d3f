"""LLVM IR of a branch: each program runs if some lane wants it, and the results are blended."""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Slot
from costate.kernel.ops.cond import Cond


def write_cond(e: Emitter, op: Cond, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Run `then` into the outputs, `otherwise` into the workspace, and take what each lane asked for."""
    n = e.n
    condition = e.pointer(ins[0])
    args = [e.pointer(p) for p in ins[1:]]
    targets = [e.pointer(p) for p in outs]
    with e.scratch():
        others = [e.hold(size) for size in op.out_sizes]
        yes = e.new(f"fcmp une {n.vec} {e.load(n.vec, condition)}, zeroinitializer")
        bits = f"i{n.width}"
        mask = e.new(f"bitcast {n.mask} {yes} to {bits}")
        with e.when(e.new(f"icmp ne {bits} {mask}, 0")):
            e.call(e.unit.function(op.then), args, targets)
        with e.when(e.new(f"icmp ne {bits} {mask}, -1")):
            e.call(e.unit.function(op.otherwise), args, others)
        for target, other, size in zip(targets, others, op.out_sizes, strict=True):
            e.helper("vblend", f"ptr {target}", f"ptr {other}", f"ptr {condition}", f"i64 {size}")
