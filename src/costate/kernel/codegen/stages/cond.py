"""LLVM IR of a branch: each program runs if some lane wants it; where lanes differ, the results are blended."""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.program_code import write_program
from costate.kernel.codegen.slots import Memory, Slot
from costate.kernel.ops.cond import Cond


def write_cond(e: Emitter, op: Cond, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Run the program that all lanes ask for, or both, and take what each lane asked for."""
    n, bits = e.n, f"i{e.n.width}"
    condition = e.load(n.vec, e.pointer(ins[0]))
    # NaN is neither: it goes where results are blended.
    yes, no = (e.new(f"fcmp {kind} {n.vec} {condition}, zeroinitializer") for kind in ("one", "oeq"))
    alike = [e.new(f"icmp eq {bits} {e.new(f'bitcast {n.mask} {mask} to {bits}')}, -1") for mask in (yes, no)]
    for every, program in zip(alike, (op.then, op.otherwise), strict=True):
        with e.when(every):
            if all(isinstance(out, Memory) for out in outs):
                e.call(e.unit.function(program), [e.pointer(p) for p in ins[1:]], [e.pointer(p) for p in outs])
            else:
                write_program(e, program, ins[1:], outs)
    with e.when(e.new(f"xor i1 {e.new(f'or i1 {alike[0]}, {alike[1]}')}, true")), e.scratch():
        _blend(e, op, ins, outs)


def _blend(e: Emitter, op: Cond, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Run both programs; what goes to tensors of the kernel is brought together in the workspace."""
    args = [e.pointer(p) for p in ins[1:]]
    found = [out if isinstance(out, Memory) else Memory(e.hold(n)) for out, n in zip(outs, op.out_sizes, strict=True)]
    targets, others = [e.pointer(p) for p in found], [e.hold(n) for n in op.out_sizes]
    e.call(e.unit.function(op.then), args, targets)
    e.call(e.unit.function(op.otherwise), args, others)
    for target, other, size in zip(targets, others, op.out_sizes, strict=True):
        e.helper("vblend", f"ptr {target}", f"ptr {other}", f"ptr {e.pointer(ins[0])}", f"i64 {size}")
    for slot, out, size in zip(found, outs, op.out_sizes, strict=True):
        if slot != out:
            e.move(slot, out, size)
