"""The gradient of a network's weights, given that of its outputs: all samples in one compiled function."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from costate.kernel.machine.jit import Library, module_text, object_code
from costate.kernel.machine.target import Target, host
from costate.train.dense.code import Code, declarations
from costate.train.dense.parts import Product, padded
from costate.train.dense.shape import Shape
from costate.train.dense.tile import TILE, Call, Room, begin, layers, tile

_POINTERS = ("x", "bars", "p", "g", "room")


def pull_back(network: nn.Sequential, x: Tensor, bars: Tensor) -> None:
    """Set the gradients of a network's weights to those of the sum of outputs times bars (N, m), at inputs x (N, n)."""
    shape = Shape.of(network)
    count = -(-len(x) // TILE)
    weights, gradient, room = (torch.zeros(n, dtype=torch.float32) for n in (shape.size, shape.size, Room(shape).size))
    shape.pack(network, weights)
    rows = _rows(x, count * TILE), _rows(bars, count * TILE)
    compiled(shape)[0](*(t.data_ptr() for t in (*rows, weights, gradient, room)), count)
    for (_, view), weight in zip(shape.views(gradient), network.parameters(), strict=True):
        weight.grad = view.reshape(weight.shape).clone()


def _rows(x: Tensor, count: int) -> Tensor:
    """Return rows with their padding, and further ones of zeros."""
    found = torch.zeros(count, padded(x.shape[1]), dtype=torch.float32)
    found[: len(x), : x.shape[1]] = x
    return found


def module(shape: Shape, target: Target) -> str:
    """Return the text of the module of a network."""
    width, room = target.lanes("f32"), Room(shape)
    m, h = shape.outputs, shape.hidden[-1]
    functions = [*layers(shape, width), _sum(m, width)]
    functions.append(Product(m, TILE, padded(h), 1, padded(m), "sum").text("last_weights", width))
    functions.append(Product(TILE, m, padded(h), padded(m), 1, "zero").text("last_back", width))

    def last(call: Call) -> None:
        count = len(shape.hidden)
        y, z, name = ("%room", room.x[count]), ("%room", room.z[count - 1]), f"{3 * count}.weight"
        call("last_weights", ("%bars", 0), y, shape.at("%g", name), ("null", 0))
        call("last_back", ("%bars", 0), shape.at("%p", name), z, ("null", 0))
        call("sum", ("%bars", 0), shape.at("%g", f"{3 * count}.bias"))

    functions += [tile(shape, room, width, last, ["bars"]), _pull(shape, room, width)]
    return module_text(target, functions, declarations(width), [])


def _sum(outputs: int, width: int) -> str:
    """Return the function (bars, sums) that adds the rows of a tile."""
    c = Code(width)
    for v in range(padded(outputs) // width):
        place = c.at("%sums", v * width)
        with c.loop(TILE, c.load(place)) as s:
            s.then = [c.op("fadd", s.values[0], c.load(c.at(c.step("%bars", s.index, padded(outputs)), v * width)))]
        c.store(s.then[0], place)
    return c.function("sum", "ptr %bars, ptr %sums")


def _pull(shape: Shape, room: Room, width: int) -> str:
    """Return the function that goes over all tiles."""
    c = Code(width)
    begin(c, shape, room)
    stride = TILE * padded(shape.inputs)
    with c.loop("%tiles") as t:
        source = c.step("%x", t.index, stride)
        with c.loop(stride // width) as k:
            c.store(c.load(c.step(source, k.index, width)), c.step(c.at("%room", room.x[0]), k.index, width))
        bars = c.step("%bars", t.index, TILE * padded(shape.outputs))
        c.line(f"call void @tile(ptr %p, ptr %g, ptr %room, ptr {bars})")
    return c.function("pull", f"{', '.join(f'ptr %{name}' for name in _POINTERS)}, i64 %tiles", "")


@lru_cache(maxsize=16)
def compiled(shape: Shape) -> tuple[Any, Library]:
    """Return the function of a shape, and the library that holds it."""
    target = host()
    library = Library([object_code(module(shape, target), target)], ["pull"], {})
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(_POINTERS), ctypes.c_int64)
    return kind(library.address("pull")), library
