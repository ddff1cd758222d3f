"""Small loops over vectors that every kernel carries along: copy, add, gather, blend, ...

They are written once per kernel and called with pointers, so that the code of long vectors stays short.
"""

from __future__ import annotations

from collections.abc import Callable

from costate.kernel.codegen.names import Names


def _loop(n: Names, name: str, streams: str, result: str, body: str = "", held: str = "", table: str = "") -> str:
    """Write a function (streams, held, table, n) that goes over n vectors of the streams and stores `result`.

    Vectors come as %x, %y in the order of the streams. `held` is a single vector that stays, %h; where there is a body, it may
    compute with all of them. The result %g goes to `held`, any other to the first stream. Elements of the stream that `table`
    names are looked up: element k is at table[k].
    """
    order = streams.split()
    target = f"%{held}" if result == "%g" else f"%p_{order[0]}"
    lines = []
    if table:
        lines += [
            f"%k = udiv i64 %at, {n.stride}",
            "%entry_k = getelementptr i32, ptr %table, i64 %k",
            "%index = load i32, ptr %entry_k",
            "%wide = sext i32 %index to i64",
            f"%there = mul i64 %wide, {n.stride}",
        ]
    for pointer, value in zip(order, "xy", strict=False):
        offset = "%there" if pointer == table else "%at"
        lines.append(f"%p_{pointer} = getelementptr i8, ptr %{pointer}, i64 {offset}")
        lines.append(f"%{value} = load {n.vec}, ptr %p_{pointer}, align {n.align}")
    if held:
        lines.append(f"%h = load {n.vec}, ptr %{held}, align {n.align}")
    lines += [line.strip() for line in body.strip().splitlines()]
    lines.append(f"store {n.vec} {result}, ptr {target}, align {n.align}")
    pointers = [*order, *held.split(), *(["table"] if table else [])]
    step = n.stride if table else n.align
    inside = "\n".join(f"  {line}" for line in lines)
    return f"""define internal void @{name}({", ".join(f"ptr %{p}" for p in pointers)}, i64 %n) #0 {{
entry:
  %end = mul i64 %n, {n.stride}
  br label %head
head:
  %at = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %at, %end
  br i1 %more, label %body, label %done
body:
{inside}
  %next = add i64 %at, {step}
  br label %head
done:
  ret void
}}
"""


def _copy(n: Names) -> str:
    """Write the loop of target = source."""
    return _loop(n, "vcopy", "target source", "%y")


def _zero(n: Names) -> str:
    """Write the loop of target = 0."""
    return _loop(n, "vzero", "target", "zeroinitializer")


def _blend(n: Names) -> str:
    """Write the loop of target = mask ? target : other, lane by lane; NaN in the mask makes NaN."""
    body = f"""%on = fcmp one {n.vec} %h, zeroinitializer
    %nan = fcmp uno {n.vec} %h, %h
    %b = select {n.mask} %on, {n.vec} %x, {n.vec} %y
    %z = select {n.mask} %nan, {n.vec} {n.splat(float("nan"))}, {n.vec} %b"""
    return _loop(n, "vblend", "target other", "%z", body, held="mask")


def _mask(n: Names) -> str:
    """Write the loop of target = mask ? target : 0, lane by lane."""
    body = f"""%on = fcmp one {n.vec} %h, zeroinitializer
    %z = select {n.mask} %on, {n.vec} %x, {n.vec} zeroinitializer"""
    return _loop(n, "vmask", "target", "%z", body, held="mask")


def _gather(n: Names) -> str:
    """Write the loop of target[k] = source[table[k]]."""
    return _loop(n, "vgather", "target source", "%y", table="source")


def _scatter(n: Names) -> str:
    """Write the loop of target[table[k]] += source[k]."""
    return _loop(n, "vscatter", "target source", "%z", f"%z = fadd {n.vec} %y, %x", table="target")


def _assign(n: Names) -> str:
    """Write the loop of target[table[k]] = source[k]."""
    return _loop(n, "vassign", "target source", "%y", table="target")


def _add(n: Names) -> str:
    """Write the loop of target += source."""
    return _loop(n, "vadd", "target source", "%z", f"%z = fadd {n.vec} %y, %x")


def _greatest(n: Names) -> str:
    """Write the loop of target = max(target, source)."""
    body = f"%c = fcmp ugt {n.vec} %x, %y\n    %z = select {n.mask} %c, {n.vec} %x, {n.vec} %y"
    return _loop(n, "vmax", "target source", "%z", body)


def _finite(n: Names) -> str:
    """Write the loop that sets flag = 0 in lanes where some vector of the source is not finite."""
    body = f"""%d = fsub {n.vec} %x, %x
    %bad = fcmp uno {n.vec} %d, %d
    %g = select {n.mask} %bad, {n.vec} zeroinitializer, {n.vec} %h"""
    return _loop(n, "vfinite", "source", "%g", body, held="flag")


HELPERS: dict[str, Callable[[Names], str]] = {
    "vcopy": _copy,
    "vzero": _zero,
    "vblend": _blend,
    "vmask": _mask,
    "vgather": _gather,
    "vscatter": _scatter,
    "vassign": _assign,
    "vadd": _add,
    "vmax": _greatest,
    "vfinite": _finite,
}
