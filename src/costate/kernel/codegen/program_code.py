"""LLVM IR of a program: its stages in order, and the slots their values live in.

Each stage writes its results to slots of the workspace, which are free again after the last stage that reads them. Three things
save copies: an output of the program is written straight to where it is wanted, a part of a join straight into its place in the
join, and a slice is a view of the vector it is cut from. How a kind of stage is written is looked up in the unit's table.
"""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Memory, Rows, Slot, shifted
from costate.kernel.ir.program import DYNAMIC, Program, Stage, Var
from costate.kernel.ir.vector_ops import Join, Parts, Slice


def write_program(e: Emitter, program: Program, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Write all stages; results go to the slots `outs`."""
    _ProgramWriter(e, program, ins, outs).write()


class _ProgramWriter:
    def __init__(self, e: Emitter, program: Program, ins: Sequence[Slot], outs: Sequence[Slot]):
        self.e, self.program, self.outs = e, program, outs
        self.slots: dict[Var, Slot] = dict(zip(program.inputs, ins, strict=True))
        self.targets = _direct_targets(program, outs)
        self.parts = _parts(program)

    def write(self) -> None:
        """Write the stages in order, then deliver the outputs."""
        dying = _last_uses(self.program, self.parts)
        for k, s in enumerate(self.program.stages):
            self._stage(s)
            for v in dying.get(k, ()):
                slot = self.slots[v]
                if isinstance(slot, Memory) and slot.pointer == "%ws":
                    self.e.release(slot, v.size)
        for v, out in zip(self.program.outputs, self.outs, strict=True):
            if self.slots[v] != out:
                self._deliver(self.slots[v], out, v.size)

    def _stage(self, s: Stage) -> None:
        ins = [self._readable(s, k, v) for k, v in enumerate(s.inputs)]
        if isinstance(s.op, Slice):
            self.slots[s.outputs[0]] = shifted(ins[0], s.op.start)
            return
        if isinstance(s.op, Parts):
            self.slots.update(zip(s.outputs, (shifted(ins[0], start) for start in s.op.starts()), strict=True))
            return
        for k, v in enumerate(s.outputs):
            if v not in self.slots:  # a join is reserved when its first part is made
                self.slots[v] = self._part(s, k, v) if v in self.parts else self._whole(s, k, v)
        self.e.unit.writers[type(s.op)](self.e, s.op, ins, [self.slots[v] for v in s.outputs])

    def _part(self, s: Stage, k: int, v: Var) -> Slot:
        """Return the slot of output k of a stage inside the join it is a part of, if the stage can write there."""
        whole, start = self.parts[v]
        if whole not in self.slots:
            target = self.targets.get(whole)
            streamed = isinstance(target, Rows) and whole.size >= DYNAMIC // 2
            self.slots[whole] = (
                target if target and (streamed or isinstance(target, Memory)) else self.e.reserve(whole.size)
            )
        place = shifted(self.slots[whole], start)
        if isinstance(place, Rows) and not s.op.writes_rows(k, place.row_size):
            return self.e.reserve(v.size)
        return place

    def _whole(self, s: Stage, k: int, v: Var) -> Slot:
        """Return the slot of output k of a stage: where it is wanted in the end, if the stage can write there."""
        target = self.targets.get(v)
        if target is None or (isinstance(target, Rows) and not s.op.writes_rows(k, target.row_size)):
            return self.e.reserve(v.size)
        return target

    def _readable(self, s: Stage, k: int, v: Var) -> Slot:
        """Return the slot of input k of a stage, brought into memory unless the stage streams its rows."""
        slot = self.slots[v]
        if isinstance(slot, Rows) and not s.op.reads_rows(k, slot.row_size):
            self.slots[v] = self.e.materialize(slot, v.size)
        return self.slots[v]

    def _deliver(self, slot: Slot, out: Slot, size: int) -> None:
        """Copy a result to where it is wanted."""
        self.e.move(slot, out, size)


def _direct_targets(program: Program, outs: Sequence[Slot]) -> dict[Var, Slot]:
    """Return the outputs that the stage that makes them may write in place: wanted once, and not read by others if streamed."""
    read = {v for s in program.stages for v in s.inputs}
    targets: dict[Var, Slot] = {}
    for v, out in zip(program.outputs, outs, strict=True):
        once = program.outputs.count(v) == 1 and v not in program.inputs
        if once and not (isinstance(out, Rows) and v in read):
            targets[v] = out
    return targets


def _parts(program: Program) -> dict[Var, tuple[Var, int]]:
    """Map a value to the join it is a part of, and where in it: such values are made where they will be."""
    free = {v for s in program.stages if not isinstance(s.op, Slice | Parts | Join) for v in s.outputs}
    free -= set(program.outputs)
    found: dict[Var, tuple[Var, int]] = {}
    for s in program.stages:
        if isinstance(s.op, Join):
            for v, start in zip(s.inputs, s.op.starts(), strict=True):
                if v in free:
                    found[v] = s.outputs[0], start
                    free.remove(v)
    return found


def _last_uses(program: Program, parts: dict[Var, tuple[Var, int]]) -> dict[int, list[Var]]:
    """Map the index of a stage to the variables whose region is free after it. A view, and a part, keep the region they lie in
    alive."""
    root: dict[Var, Var] = {v: whole for v, (whole, _) in parts.items()}
    last: dict[Var, int] = {}
    for k, s in enumerate(program.stages):
        for v in s.inputs:
            last[root.get(v, v)] = k
        for v in s.outputs:
            if isinstance(s.op, Slice | Parts):
                root[v] = root.get(s.inputs[0], s.inputs[0])
            else:
                last[root.get(v, v)] = k
    kept = {root.get(v, v) for v in program.outputs} | set(program.inputs)
    dying: dict[int, list[Var]] = {}
    for v, k in last.items():
        if v not in kept:
            dying.setdefault(k, []).append(v)
    return dying
