"""LLVM IR of products with a matrix that all samples share: its numbers lie side by side, and are spread over the lanes in use."""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.names import Names
from costate.kernel.codegen.slots import Slot
from costate.kernel.ops.dense import Common, Dense

TOGETHER = 8
"""Sums that are computed side by side: enough that none waits for the one before."""


def write_common(e: Emitter, op: Common, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Put the first lane's numbers side by side; make them NaN if lanes differ."""
    e.unit.functions.setdefault("common", _common(e.n))
    e.line(f"call void @common(ptr {e.pointer(ins[0])}, ptr {e.pointer(outs[0])}, i64 {op.size})")


def write_dense(e: Emitter, op: Dense, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Call a function of the matrix's shape."""
    name = f"dense{op.rows}x{op.columns}{'t' if op.transposed else ''}"
    e.unit.functions.setdefault(name, _product(name, op, e.n))
    e.unit.ops[op.key] = op.rows * op.columns
    pointers = [*(e.pointer(p) for p in ins), e.pointer(outs[0])]
    e.line(f"call void @{name}({', '.join(f'ptr {p}' for p in pointers)})")


def _product(name: str, op: Dense, n: Names) -> str:
    """Write the function (w, x, y): y in groups of sums, each a loop over x."""
    (_, inner), (count,) = op.in_sizes, op.out_sizes
    across, along = (1, op.columns) if op.transposed else (op.columns, 1)
    whole, rest = divmod(count, TOGETHER)
    lines = ["entry:", "  br label %groups"]
    if whole:
        lines += ["groups:", "  %g = phi i64 [0, %entry], [%g.next, %sum.done]"]
        lines += [f"  %g.row = mul i64 %g, {TOGETHER}"]
        lines += _sums("sum", "groups", TOGETHER, "%g.row", n, inner, across, along)
        lines += ["  %g.next = add i64 %g, 1", f"  %g.more = icmp slt i64 %g.next, {whole}"]
        lines += ["  br i1 %g.more, label %groups, label %rest"]
    else:
        lines += ["groups:", "  br label %rest"]
    lines += ["rest:"]
    if rest:
        lines += _sums("last", "rest", rest, str(whole * TOGETHER), n, inner, across, along)
    body = "\n".join([*lines, "  ret void"])
    return f"define internal void @{name}(ptr noalias %w, ptr noalias %x, ptr noalias %y) #0 {{\n{body}\n}}\n"


def _sums(p: str, before: str, count: int, first: str, n: Names, inner: int, across: int, along: int) -> list[str]:
    """Write the sums y[first + r] = sum over k of w[(first + r) across + k along] x[k], r < count."""
    lines = [f"  %{p}.at = mul i64 {first}, {across}", f"  %{p}.w = getelementptr {n.scalar}, ptr %w, i64 %{p}.at"]
    lines += [f"  br label %{p}.loop", f"{p}.loop:", f"  %{p}.k = phi i64 [0, %{before}], [%{p}.next, %{p}.loop]"]
    lines += [f"  %{p}.a{r} = phi {n.vec} [zeroinitializer, %{before}], [%{p}.b{r}, %{p}.loop]" for r in range(count)]
    lines += [f"  %{p}.px = getelementptr {n.vec}, ptr %x, i64 %{p}.k"]
    lines += [f"  %{p}.x = load {n.vec}, ptr %{p}.px, align {n.align}"]
    lines += [f"  %{p}.kw = mul i64 %{p}.k, {along}", f"  %{p}.pw = getelementptr {n.scalar}, ptr %{p}.w, i64 %{p}.kw"]
    for r in range(count):
        q = f"%{p}.{r}"
        lines += [f"  {q}.p = getelementptr {n.scalar}, ptr %{p}.pw, i64 {r * across}"]
        lines += [f"  {q}.w = load {n.scalar}, ptr {q}.p, align {n.bytes}"]
        lines += [f"  {q}.one = insertelement {n.vec} poison, {n.scalar} {q}.w, i64 0"]
        lines += [f"  {q}.v = shufflevector {n.vec} {q}.one, {n.vec} poison, <{n.width} x i32> zeroinitializer"]
        lines += [f"  %{p}.b{r} = call {n.vec} @llvm.fma.{n.suffix}({n.vec} {q}.v, {n.vec} %{p}.x, {n.vec} %{p}.a{r})"]
    lines += [f"  %{p}.next = add i64 %{p}.k, 1", f"  %{p}.more = icmp slt i64 %{p}.next, {inner}"]
    lines += [f"  br i1 %{p}.more, label %{p}.loop, label %{p}.done", f"{p}.done:"]
    lines += [f"  %{p}.y = getelementptr {n.vec}, ptr %y, i64 {first}"]
    for r in range(count):
        lines += [f"  %{p}.y{r} = getelementptr {n.vec}, ptr %{p}.y, i64 {r}"]
        lines += [f"  store {n.vec} %{p}.b{r}, ptr %{p}.y{r}, align {n.align}"]
    return lines


def _common(n: Names) -> str:
    """Write the function (source, target, count) that takes the first lane of every vector."""
    same = f"<{n.width} x i32> zeroinitializer"
    return f"""define internal void @common(ptr noalias %source, ptr noalias %target, i64 %n) #0 {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  %bad = phi {n.mask} [zeroinitializer, %entry], [%worse, %loop]
  %ps = getelementptr {n.vec}, ptr %source, i64 %k
  %x = load {n.vec}, ptr %ps, align {n.align}
  %one = shufflevector {n.vec} %x, {n.vec} poison, {same}
  %other = fcmp one {n.vec} %x, %one
  %worse = or {n.mask} %bad, %other
  %first = extractelement {n.vec} %x, i64 0
  %pt = getelementptr {n.scalar}, ptr %target, i64 %k
  store {n.scalar} %first, ptr %pt, align {n.bytes}
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %look
look:
  %bits = bitcast {n.mask} %worse to i{n.width}
  %any = icmp ne i{n.width} %bits, 0
  br i1 %any, label %spoil, label %done
spoil:
  %j = phi i64 [0, %look], [%then, %spoil]
  %pj = getelementptr {n.scalar}, ptr %target, i64 %j
  store {n.scalar} 0x7FF8000000000000, ptr %pj, align {n.bytes}
  %then = add i64 %j, 1
  %go = icmp slt i64 %then, %n
  br i1 %go, label %spoil, label %done
done:
  ret void
}}
"""
