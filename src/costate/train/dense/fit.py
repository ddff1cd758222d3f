"""Fitting a network with one output to targets: passes of minibatches with Adam, as one compiled function.

For a tile of samples at a time: layers forward, error, layers backward, gradients added up. Then the gradient of the minibatch is
shortened to its longest length, and Adam (Kingma and Ba, 2015) moves the weights.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from costate.kernel.machine.jit import Library, module_text, object_code
from costate.kernel.machine.target import Target, host
from costate.train.dense.code import Code, constant, declarations
from costate.train.dense.parts import padded
from costate.train.dense.shape import Shape
from costate.train.dense.tile import TILE, Call, Room, begin, layers, tile

BETAS = (0.7, 0.95)
"""Memories of Adam: short ones, since what is learnt from changes with the policy."""
EPSILON = 1e-8
"""Least scale of a step of Adam."""
_POINTERS = ("x", "y", "order", "edges", "rates", "p", "g", "m", "v", "room", "losses")


def module(shape: Shape, target: Target) -> str:
    """Return the text of the module of a network."""
    width, room = target.lanes("f32"), Room(shape)
    functions = [*layers(shape, width), _take(shape, room, width), _error(shape, width), _tile(shape, room, width)]
    functions += [_adam(shape, width), _fit(shape, room, width)]
    return module_text(target, functions, declarations(width), [])


def _take(shape: Shape, room: Room, width: int) -> str:
    """Return the function that collects the samples of a tile; those beyond the last one count nothing."""
    c = Code(width)
    whole = c.new("sitofp i64 %count to float")
    share = c.op("fdiv", constant(2.0), whole, "float")
    with c.loop(TILE) as s:
        k = c.new(f"add i64 %first, {s.index}")
        real = c.new(f"icmp slt i64 {k}, %count")
        k = c.new(f"select i1 {real}, i64 {k}, i64 0")
        sample = c.new(f"load i64, ptr {c.new(f'getelementptr i64, ptr %order, i64 {k}')}")
        source = c.step("%x", sample, padded(shape.inputs))
        goal = c.step(c.at("%room", room.x[0]), s.index, padded(shape.inputs))
        for v in range(padded(shape.inputs) // width):
            c.store(c.load(c.at(source, v * width)), c.at(goal, v * width))
        y = c.number(c.step("%y", sample, 1))
        c.line(f"store float {y}, ptr {c.step(c.at('%room', room.target), s.index, 1)}, align 4")
        part = c.new(f"select i1 {real}, float {share}, float {constant(0.0)}")
        c.line(f"store float {part}, ptr {c.step(c.at('%room', room.share), s.index, 1)}, align 4")
    return c.function("take", "ptr %x, ptr %y, ptr %order, i64 %first, i64 %count, ptr %room")


def _error(shape: Shape, width: int) -> str:
    """Return the function (y, g, target, share, w, b, dw, db, loss) of the last layer, the error and their gradients."""
    c = Code(width)
    stride = padded(shape.hidden[-1])
    vectors = range(stride // width)
    w = [c.load(c.at("%w", v * width)) for v in vectors]
    bias = c.number("%b")
    start = [c.load(c.at("%dw", v * width)) for v in vectors]
    scalars = [c.number("%db"), c.number("%loss")]
    kinds = [c.vec] * len(start) + ["float"] * 2
    with c.loop(TILE, *start, *scalars, kinds=kinds) as s:
        y = [c.load(c.at(c.step("%y", s.index, stride), v * width)) for v in vectors]
        value = c.op("fadd", c.total([c.op("fmul", a, b) for a, b in zip(w, y, strict=True)]), bias, "float")
        off = c.op("fsub", value, c.number(c.step("%target", s.index, 1)), "float")
        bar = c.op("fmul", off, c.number(c.step("%share", s.index, 1)), "float")
        all_ = c.spread(bar)
        for v in vectors:
            c.store(c.op("fmul", all_, w[v]), c.at(c.step("%g", s.index, stride), v * width))
        s.then = [c.fma(all_, y[v], s.values[v]) for v in vectors]
        half = c.op("fmul", c.op("fmul", bar, off, "float"), constant(0.5), "float")
        s.then += [c.op("fadd", s.values[-2], bar, "float"), c.op("fadd", s.values[-1], half, "float")]
    for v in vectors:
        c.store(s.then[v], c.at("%dw", v * width))
    c.line(f"store float {s.then[-2]}, ptr %db, align 4")
    c.line(f"store float {s.then[-1]}, ptr %loss, align 4")
    names = ("y", "g", "target", "share", "w", "b", "dw", "db", "loss")
    return c.function("error", ", ".join(f"ptr %{name}" for name in names))


def _tile(shape: Shape, room: Room, width: int) -> str:
    """Return the function (p, g, room, loss): all layers forward and backward."""

    def last(call: Call) -> None:
        count = len(shape.hidden)
        weights = [shape.at(base, f"{3 * count}.{part}") for base in ("%p", "%g") for part in ("weight", "bias")]
        places = [("%room", k) for k in (room.x[count], room.z[count - 1], room.target, room.share)]
        call("error", *places, *weights, ("%loss", 0))

    return tile(shape, room, width, last, ["loss"])


def _adam(shape: Shape, width: int) -> str:
    """Return the function (p, g, m, v, clip, rate, scale): shorten the gradient, then move the weights.

    rate: learning rate over the first correction of the bias; scale: inverse root of the second.
    """
    c = Code(width)
    count = shape.size // width
    with c.loop(count, "zeroinitializer") as k:
        g = c.load(c.step("%g", k.index, width))
        k.then = [c.fma(g, g, k.values[0])]
    length = c.new(f"call float @llvm.sqrt.f32(float {c.total(k.then)})")
    factor = c.op("fdiv", "%clip", c.op("fadd", length, constant(1e-6), "float"), "float")
    more = c.new(f"fcmp ogt float {factor}, {constant(1.0)}")
    factor = c.spread(c.new(f"select i1 {more}, float {constant(1.0)}, float {factor}"))
    rate, scale = c.spread("%rate"), c.spread("%scale")
    with c.loop(count) as k:
        at = [c.step(pointer, k.index, width) for pointer in ("%p", "%g", "%m", "%v")]
        p, g, m, v = (c.load(a) for a in at)
        g = c.op("fmul", g, factor)
        m = c.fma(c.splat(1 - BETAS[0]), c.op("fsub", g, m), m)
        v = c.fma(c.op("fmul", g, g), c.splat(1 - BETAS[1]), c.op("fmul", v, c.splat(BETAS[1])))
        below = c.fma(c.unary("sqrt", v), scale, c.splat(EPSILON))
        step = c.op("fdiv", c.op("fmul", rate, m), below)
        for value, place in zip((c.op("fsub", p, step), m, v), (at[0], at[2], at[3]), strict=True):
            c.store(value, place)
    return c.function("adam", "ptr %p, ptr %g, ptr %m, ptr %v, float %clip, float %rate, float %scale")


def _fit(shape: Shape, room: Room, width: int) -> str:
    """Return the function that does all updates."""
    c = Code(width)
    with c.loop("%updates") as u:
        first, end = (
            c.new(f"load i64, ptr {c.new(f'getelementptr i64, ptr %edges, i64 {k}')}")
            for k in (u.index, c.new(f"add i64 {u.index}, 1"))
        )
        count = c.new(f"sub i64 {end}, {first}")
        order = c.new(f"getelementptr i64, ptr %order, i64 {first}")
        loss = c.step("%losses", u.index, 1)
        c.line(f"store float {constant(0.0)}, ptr {loss}, align 4")
        begin(c, shape, room)
        tiles = c.new(f"sdiv i64 {c.new(f'add i64 {count}, {TILE - 1}')}, {TILE}")
        with c.loop(tiles) as t:
            at = c.new(f"mul i64 {t.index}, {TILE}")
            c.line(f"call void @take(ptr %x, ptr %y, ptr {order}, i64 {at}, i64 {count}, ptr %room)")
            c.line(f"call void @tile(ptr %p, ptr %g, ptr %room, ptr {loss})")
        rates = c.step("%rates", u.index, 2)
        rate, scale = c.number(rates), c.number(c.at(rates, 1))
        c.line(f"call void @adam(ptr %p, ptr %g, ptr %m, ptr %v, float %clip, float {rate}, float {scale})")
    arguments = ", ".join(f"ptr %{name}" for name in _POINTERS)
    return c.function("fit", f"{arguments}, i64 %updates, float %clip", "")


@lru_cache(maxsize=16)
def compiled(shape: Shape) -> tuple[Any, Library]:
    """Return the function of a shape, and the library that holds it."""
    target = host()
    library = Library([object_code(module(shape, target), target)], ["fit"], {})
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(_POINTERS), ctypes.c_int64, ctypes.c_float)
    return kind(library.address("fit")), library
