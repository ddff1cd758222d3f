"""LLVM IR of a scan: a loop around a call of its body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Memory, Slot
from costate.kernel.ir.program import DYNAMIC
from costate.kernel.ops.scan import Scan


@dataclass
class _Carry:
    """The memory of a carry while the loop runs: rows of its kept states, or two buffers in turn."""

    size: int
    current: str
    """Variable that holds the pointer to the current value."""
    buffers: tuple[str, str] | None
    states: Slot | None


def write_scan(e: Emitter, op: Scan, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Write the loop of a scan."""
    with e.scratch():
        _ScanWriter(e, op, ins, outs).write()


class _ScanWriter:
    def __init__(self, e: Emitter, scan: Scan, ins: Sequence[Slot], outs: Sequence[Slot]):
        self.e, self.scan = e, scan
        self.ins, self.outs = ins, outs
        self.carry_in, self.sequences, self.shared = scan.split_in(ins)
        self.finals, self.results, states = scan.split_out(outs)
        kept = iter(states)
        self.states: list[Slot | None] = [next(kept) if k else None for k in scan.keep]
        self.sizes = scan.body.in_sizes[: scan.n_carry]

    def write(self) -> None:
        """Write what comes before the loop, the loop, and what comes after it."""
        e, scan = self.e, self.scan
        shared = [e.pointer(p) for p in self.shared]
        steps = self._trip_count()
        active = e.hold(1) if scan.masked else ""
        self._prepare_results()
        carries = [self._start(k, steps) for k in range(scan.n_carry)]
        rows_in = [self._row_buffer(p, n) for p, n in zip(self.sequences, scan.row_sizes, strict=True)]
        rows_out = [
            self._row_buffer(p, n) for p, n in zip(self.results, scan.body.out_sizes[scan.n_carry :], strict=True)
        ]
        if scan.until:
            e.line(f"store {e.n.vec} {e.n.splat(1.0)}, ptr {active}")
        with e.loop(steps) as k:
            e.quit_if_stopped()
            t = e.new(f"sub i64 {e.new(f'sub i64 {steps}, 1')}, {k}") if scan.reverse else k
            if scan.until:
                self._ask(carries, shared, active)
            elif scan.counted:
                self._count_down(t, active)
            self._step(k, t, carries, rows_in, rows_out, shared, active)
        for carry, slot in zip(carries, self.finals, strict=True):
            e.copy(e.pointer(slot), e.load("ptr", carry.current), carry.size)

    def _trip_count(self) -> str:
        """Number of steps: constant, or the largest count of any lane."""
        e = self.e
        if not self.scan.counted:
            return e.length() if self.scan.steps == DYNAMIC else str(self.scan.steps)
        counts = e.load(e.n.vec, e.pointer(self.ins[-1]))
        name = f"llvm.vector.reduce.fmax.{e.n.suffix}"
        return e.new(f"fptosi {e.n.scalar} {e.new(f'call {e.n.scalar} @{name}({e.n.vec} {counts})')} to i64")

    def _prepare_results(self) -> None:
        """Set rows that a masked loop may never reach to zero, and the number of steps taken."""
        e = self.e
        if self.scan.masked:
            for slot, n in zip(self.results, self.scan.body.out_sizes[self.scan.n_carry :], strict=True):
                e.helper("vzero", f"ptr {e.pointer(slot)}", f"i64 {n * self.scan.steps}")
        if self.scan.until:
            e.helper("vzero", f"ptr {e.pointer(self.outs[-1])}", "i64 1")

    def _start(self, k: int, steps: str) -> _Carry:
        e, size, states = self.e, self.sizes[k], self.states[k]
        initial = e.pointer(self.carry_in[k])
        first_row = steps if self.scan.reverse else "0"
        if states is None or not isinstance(states, Memory):
            buffers = e.hold(size), e.hold(size)
            if states is not None:
                e.write_row(states, first_row, initial)  # type: ignore[arg-type]
            return _Carry(size, e.variable("ptr", initial), buffers, states)
        row = e.element(e.pointer(states), first_row, size)
        e.copy(row, initial, size)
        return _Carry(size, e.variable("ptr", row), None, states)

    def _row_buffer(self, slot: Slot, size: int) -> str:
        """Reserve a row of the workspace for a tensor that is streamed; others are read and written where they are."""
        return "" if isinstance(slot, Memory) else self.e.hold(size)

    def _ask(self, carries: list[_Carry], shared: list[str], active: str) -> None:
        """Evaluate the condition; leave when no lane goes on."""
        e, n = self.e, self.e.n
        assert self.scan.until is not None
        fn = e.unit.function(self.scan.until)
        answer = e.hold(1)
        e.call(fn, [e.load("ptr", c.current) for c in carries] + shared, [answer])
        was = e.load(n.vec, active)
        yes = e.new(f"fcmp oeq {n.vec} {e.load(n.vec, answer)}, {n.splat(1.0)}")
        now = e.new(f"select {n.mask} {yes}, {n.vec} {was}, {n.vec} zeroinitializer")
        e.line(f"store {n.vec} {now}, ptr {active}")
        most = e.new(f"call {n.scalar} @llvm.vector.reduce.fmax.{n.suffix}({n.vec} {now})")
        e.leave_if(e.new(f"fcmp oeq {n.scalar} {most}, 0.0"))
        taken = e.pointer(self.outs[-1])
        more = e.new(f"fadd {n.vec} {e.load(n.vec, taken)}, {now}")
        for part in range(n.parts):
            at = e.new(f"getelementptr i8, ptr {taken}, i64 {part * n.align}")
            e.line(f"store {n.vec} {more}, ptr {at}, align {n.align}")

    def _count_down(self, t: str, active: str) -> None:
        e, n = self.e, self.e.n
        time = e.new(f"sitofp i64 {t} to {n.scalar}")
        one = e.new(f"insertelement {n.vec} poison, {n.scalar} {time}, i64 0")
        now = e.new(f"shufflevector {n.vec} {one}, {n.vec} poison, <{n.width} x i32> zeroinitializer")
        before = e.new(f"fcmp olt {n.vec} {now}, {e.load(n.vec, e.pointer(self.ins[-1]))}")
        mask = e.new(f"select {n.mask} {before}, {n.vec} {n.splat(1.0)}, {n.vec} zeroinitializer")
        e.line(f"store {n.vec} {mask}, ptr {active}")

    def _step(self, k, t, carries, rows_in, rows_out, shared, active) -> None:
        e, scan = self.e, self.scan
        after = t if scan.reverse else e.new(f"add i64 {t}, 1")
        sources = [e.load("ptr", c.current) for c in carries]
        targets = [self._target(c, k, after) for c in carries]
        xs = [self._read(p, b, t, n) for p, b, n in zip(self.sequences, rows_in, scan.row_sizes, strict=True)]
        sizes = scan.body.out_sizes[scan.n_carry :]
        ys = [b or e.element(e.pointer(p), t, n) for p, b, n in zip(self.results, rows_out, sizes, strict=True)]
        e.call(e.unit.function(scan.body), [*sources, *xs, *shared], [*targets, *ys])
        if scan.masked and not e.n.fields:  # the lanes of a field are one sample: all of them go on, or none
            self._freeze(carries, sources, targets, ys, sizes, active)
        for c, target in zip(carries, targets, strict=True):
            if c.states is not None and c.buffers:
                e.write_row(c.states, after, target)
            e.line(f"store ptr {target}, ptr {c.current}")
        for slot, buffer, y in zip(self.results, rows_out, ys, strict=True):
            if buffer:
                e.write_row(slot, t, y)  # type: ignore[arg-type]

    def _target(self, carry: _Carry, k: str, after: str) -> str:
        e = self.e
        if carry.buffers is None:
            assert carry.states is not None
            return e.element(e.pointer(carry.states), after, carry.size)
        odd = e.new(f"trunc i64 {k} to i1")
        return e.new(f"select i1 {odd}, ptr {carry.buffers[1]}, ptr {carry.buffers[0]}")

    def _read(self, slot: Slot, buffer: str, t: str, size: int) -> str:
        if not buffer:
            return self.e.element(self.e.pointer(slot), t, size)
        self.e.read_row(slot, t, buffer)  # type: ignore[arg-type]
        return buffer

    def _freeze(self, carries, sources, targets, ys, sizes, active) -> None:
        """Let finished lanes keep their carry and give zero results."""
        e = self.e
        for c, source, target in zip(carries, sources, targets, strict=True):
            e.helper("vblend", f"ptr {target}", f"ptr {source}", f"ptr {active}", f"i64 {c.size}")
        for y, n in zip(ys, sizes, strict=True):
            e.helper("vmask", f"ptr {y}", f"ptr {active}", f"i64 {n}")
