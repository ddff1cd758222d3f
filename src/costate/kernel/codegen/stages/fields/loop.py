"""Loops over blocks: functions of their own, so that several threads can share the blocks.

    void loop(ptr context, i64 begin, i64 end, ptr workspace)        blocks begin .. end - 1

The context is an array of 64-bit words: pointers and numbers that all blocks need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from costate.kernel.codegen.emit import Emitter, Function
from costate.kernel.codegen.stages.fields.team import team_functions
from costate.kernel.ops.fields.blocks import BLOCK


class Loop:
    """A loop over blocks that is being written."""

    def __init__(self, e: Emitter):
        self.e = e
        self.index = ""
        """Number of the block."""

    def word(self, k: int, kind: str = "ptr") -> str:
        """Load a word of the context."""
        return self.e.load(kind, self.e.new(f"getelementptr i64, ptr %ctx, i64 {k}"))

    def part(self, pointer: str, part: int) -> str:
        """Return the address of a part of a block's lanes."""
        return self.e.new(f"getelementptr i8, ptr {pointer}, i64 {part * self.e.n.align}") if part else pointer

    def at(self, pointer: str, element: int, part: int = 0) -> str:
        """Return the address of an element behind a pointer."""
        offset = element * self.e.n.stride + part * self.e.n.align
        return self.e.new(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer

    def store(self, vector: str, address: str) -> None:
        """Store a vector."""
        self.e.line(f"store {self.e.n.vec} {vector}, ptr {address}, align {self.e.n.align}")

    def load(self, address: str) -> str:
        """Load a vector."""
        return self.e.new(f"load {self.e.n.vec}, ptr {address}, align {self.e.n.align}")


def loop_function(e: Emitter, key: str, before: Callable[[Loop], None], body: Callable[[Loop], None]) -> Function:
    """Return the function of a loop, written once per unit: `before` writes what comes before the first block, `body` a block."""
    made = e.unit.made
    if key not in made:
        inner = Emitter(e.unit, nested=True)
        loop = Loop(inner)
        name = f"l{len(made)}_{key[:12]}"
        with inner.scratch():
            before(loop)
            count = inner.new("sub i64 %end, %begin")
            with inner.loop(count) as i:
                loop.index = inner.new(f"add i64 %begin, {i}")
                body(loop)
        e.unit.functions[name] = inner.finish(
            f"define internal void @{name}(ptr %ctx, i64 %begin, i64 %end, ptr %ws) #0"
        )
        made[key] = Function(name, inner.workspace)
    return made[key]


def run_loop(
    e: Emitter, loop: Function, words: Sequence[tuple[str, str]], begin: str, end: str, serial: bool = False
) -> None:
    """Call a loop for blocks begin .. end - 1, shared by the team unless it is serial. words: (kind, value) of the context."""
    e.context += 1
    context = f"%ctx{e.context}"
    e.allocas.append(f"  {context} = alloca [{max(len(words), 1)} x i64], align 8")
    for k, (kind, value) in enumerate(words):
        e.line(f"store {kind} {value}, ptr {e.new(f'getelementptr i64, ptr {context}, i64 {k}')}")
    below = e.below(loop.workspace)
    e.unit.loop_workspace = max(e.unit.loop_workspace, loop.workspace)
    if serial:
        e.line(f"call void @{loop.name}(ptr {context}, i64 {begin}, i64 {end}, ptr {below})")
        return
    e.unit.functions.update(team_functions())
    e.line(f"call void @share(ptr @{loop.name}, ptr {context}, i64 {begin}, i64 {end}, ptr {below})")


def zero_outside(e: Emitter, pointer: str, size: int, blocks: int, begin: str, end: str) -> None:
    """Set the elements of blocks before `begin` and from `end` on to 0."""
    if (begin, end) == ("0", str(blocks)):
        return
    e.helper("vzero", f"ptr {pointer}", f"i64 {_times(e, begin, size)}")
    rest = e.new(f"sub i64 {blocks}, {end}")
    e.helper("vzero", f"ptr {e.element(pointer, end, size)}", f"i64 {_times(e, rest, size)}")


def _times(e: Emitter, value: str, factor: int) -> str:
    return e.new(f"mul i64 {value}, {factor}")


def keep_lanes(loop: Loop, pointer: str, size: int, first: str, last: str) -> None:
    """Set the numbers of entities before `first` and from `last` on to 0, in the elements of one block."""
    e = loop.e
    start = e.new(f"mul i64 {loop.index}, {BLOCK}")
    low, high = e.new(f"sub i64 {first}, {start}"), e.new(f"sub i64 {last}, {start}")
    e.unit.functions.setdefault("vkeep", _keep(e))
    e.line(f"call void @vkeep(ptr {pointer}, i64 {size * BLOCK}, i64 {low}, i64 {high})")


def _keep(e: Emitter) -> str:
    scalar = e.n.scalar
    return f"""define internal void @vkeep(ptr %target, i64 %n, i64 %low, i64 %high) #0 {{
entry:
  br label %head
head:
  %k = phi i64 [0, %entry], [%next, %done]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %body, label %quit
body:
  %lane = and i64 %k, {BLOCK - 1}
  %under = icmp slt i64 %lane, %low
  %over = icmp sge i64 %lane, %high
  %out = or i1 %under, %over
  br i1 %out, label %clear, label %done
clear:
  %at = getelementptr {scalar}, ptr %target, i64 %k
  store {scalar} 0.0, ptr %at
  br label %done
done:
  %next = add i64 %k, 1
  br label %head
quit:
  ret void
}}
"""
