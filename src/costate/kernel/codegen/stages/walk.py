"""LLVM IR of a walk: a list of the instances some lane takes, and loops over it."""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Slot
from costate.kernel.codegen.stages.lookup import Lookup
from costate.kernel.ops.walk import Walk

INDEX_BYTES = 4


def write_walk(e: Emitter, op: Walk, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Write the loop of a walk."""
    with e.scratch():
        _WalkWriter(e, op, ins, outs).write()


class _WalkWriter:
    def __init__(self, e: Emitter, walk: Walk, ins: Sequence[Slot], outs: Sequence[Slot]):
        self.e, self.walk = e, walk
        self.flags, *given = (e.pointer(p) for p in ins)
        self.starts, self.reads, self.rows = walk.split_in(given)
        self.states, self.sums, self.rows_out, kept = walk.split_out([e.pointer(p) for p in outs])
        self.kept = dict(zip(walk.kept, kept, strict=True))
        self.state_tables, self.gather, self.scatter = (
            [Lookup(e, t) for t in tables] for tables in (walk.states, walk.gather, walk.scatter)
        )

    def write(self) -> None:
        """List the instances that some lane takes, then visit them in every round."""
        e, walk = self.e, self.walk
        for target, source, n in zip(self.states, self.starts, walk.state_sizes, strict=True):
            e.copy(target, source, n)
        for target, n in zip(self.sums, walk.sum_sizes, strict=True):
            e.helper("vzero", f"ptr {target}", f"i64 {n}")
        listed, number = self._listed()
        args = [e.hold(n) for n in walk.body.in_sizes]
        results = [e.hold(n) for n in walk.body.out_sizes]
        with e.loop(str(walk.rounds)) as turn, e.loop(number) as step:
            t = e.new(f"sub i64 {walk.rounds - 1}, {turn}") if walk.reverse else turn
            at = e.new(f"sub i64 {e.new(f'sub i64 {number}, 1')}, {step}") if walk.reverse else step
            i = e.load("i32", e.new(f"getelementptr i32, ptr {listed}, i64 {at}"))
            self._visit(t, e.new(f"sext i32 {i} to i64"), args, results)

    def _listed(self) -> tuple[str, str]:
        """Return the pointer to the numbers of the instances that some lane takes, and how many they are."""
        e, n = self.e, self.e.n
        listed = e.hold(-(-self.walk.count * INDEX_BYTES // n.stride))
        found = e.variable("i64", "0")
        with e.loop(str(self.walk.count)) as i:
            number = e.load("i64", found)
            short = e.new(f"trunc i64 {i} to i32")
            e.line(f"store i32 {short}, ptr {e.new(f'getelementptr i32, ptr {listed}, i64 {number}')}")
            bits = self._lanes(e.element(self.flags, i))
            taken = e.new(f"zext i1 {e.new(f'icmp ne i{n.width} {bits}, 0')} to i64")
            e.line(f"store i64 {e.new(f'add i64 {number}, {taken}')}, ptr {found}")
        return listed, e.load("i64", found)

    def _lanes(self, flag: str) -> str:
        """Return the bits of the lanes whose flag is not zero."""
        e, n = self.e, self.e.n
        on = e.new(f"fcmp une {n.vec} {e.load(n.vec, flag)}, zeroinitializer")
        return e.new(f"bitcast {n.mask} {on} to i{n.width}")

    def _visit(self, t: str, i: str, args: list[str], results: list[str]) -> None:
        e, walk = self.e, self.walk
        visit = e.new(f"add i64 {e.new(f'mul i64 {t}, {walk.count}')}, {i}")
        buffers, read_buffers, _ = walk.split_in(args)
        new, totals, _, _ = walk.split_out(results)
        local = [self._local(k, visit, i, buffer) for k, buffer in enumerate(buffers)]
        reads = [g.read(p, i, buffer) for g, p, buffer in zip(self.gather, self.reads, read_buffers, strict=True)]
        rows = [e.element(p, visit, n) for p, n in zip(self.rows, walk.row_sizes, strict=True)]
        made = [e.element(p, visit, n) for p, n in zip(self.rows_out, walk.row_out_sizes, strict=True)]
        e.call(e.unit.function(walk.body), [*local, *reads, *rows], [*new, *totals, *made])
        self._leave_out(e.element(self.flags, i), local, new, [*totals, *made])
        for table, target, source in zip(self.state_tables, self.states, new, strict=True):
            table.assign(target, i, source)
        for table, target, source in zip(self.scatter, self.sums, totals, strict=True):
            table.add(target, i, source)

    def _local(self, k: int, visit: str, i: str, buffer: str) -> str:
        """Return the local state: kept where that is asked for, else in place or in the buffer."""
        table, state = self.state_tables[k], self.states[k]
        if k not in self.kept:
            return table.read(state, i, buffer)
        row = self.e.element(self.kept[k], visit, table.size)
        table.gather(state, i, row)
        return row

    def _leave_out(self, flag: str, local: list[str], new: list[str], results: list[str]) -> None:
        """Let lanes whose flag is zero keep their states and give zeros."""
        e, walk = self.e, self.walk
        some = e.new(f"icmp ne i{e.n.width} {self._lanes(flag)}, -1")
        nan = e.new(f"fcmp uno {e.n.vec} {e.load(e.n.vec, flag)}, zeroinitializer")
        odd = e.new(f"icmp ne i{e.n.width} {e.new(f'bitcast {e.n.mask} {nan} to i{e.n.width}')}, 0")
        with e.when(e.new(f"or i1 {some}, {odd}")):
            for target, old, n in zip(new, local, walk.body.out_sizes, strict=False):
                e.helper("vblend", f"ptr {target}", f"ptr {old}", f"ptr {flag}", f"i64 {n}")
            for target, n in zip(results, walk.body.out_sizes[len(new) :], strict=True):
                e.helper("vmask", f"ptr {target}", f"ptr {flag}", f"i64 {n}")
