"""A tile of samples through all layers of a network, forward and backward: LLVM functions that others call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from costate.train.dense.code import Code
from costate.train.dense.parts import Normalised, Product, padded
from costate.train.dense.shape import Shape

TILE = 32
"""Samples that go through all layers together: their numbers stay in the cache of a core."""
Call = Callable[..., None]
"""Write a call of a function, given its name and (pointer, offset) of its arguments."""


class Room:
    """The workspace of a network: where what a tile needs lies, in numbers."""

    def __init__(self, shape: Shape):
        self.size = 0
        self.x = [self._take(TILE * padded(n)) for n in (shape.inputs, *shape.hidden)]
        self.z, self.normal, self.slope = ([self._take(TILE * padded(m)) for m in shape.hidden] for _ in range(3))
        self.inverse = [self._take(TILE) for _ in shape.hidden]
        self.turned = [self._take(n * padded(m)) for n, m in shape.layers]
        self.target, self.share = self._take(TILE), self._take(TILE)

    def _take(self, numbers: int) -> int:
        self.size += padded(numbers)
        return self.size - padded(numbers)


def layers(shape: Shape, width: int) -> list[str]:
    """Return the functions of all hidden layers."""
    functions = []
    for k, (n, m) in enumerate(shape.layers):
        norm = Normalised(TILE, m, shape.activation, shape.epsilon)
        functions += [norm.forward(f"norm{k}", width), norm.backward(f"norm_back{k}", width)]
        functions.append(Product(TILE, n, padded(m), padded(n), 1, "bias").text(f"forward{k}", width))
        functions.append(Product(m, TILE, padded(n), 1, padded(m), "sum").text(f"weights{k}", width))
        functions.append(Product(TILE, m, padded(n), padded(m), 1, "zero").text(f"back{k}", width))
        functions.append(_turn(f"turn{k}", n, m, width))
    return functions


def _turn(name: str, n: int, m: int, width: int) -> str:
    """Return the function that transposes weights (m, n)."""
    c = Code(width)
    with c.loop(m) as i, c.loop(n) as j:
        number = c.number(c.step(c.step("%w", i.index, padded(n)), j.index, 1))
        c.line(f"store float {number}, ptr {c.step(c.step('%t', j.index, padded(m)), i.index, 1)}, align 4")
    return c.function(name, "ptr %w, ptr %t")


def begin(c: Code, shape: Shape, room: Room) -> None:
    """Write what comes before the first tile: gradients are zero, and weights are transposed."""
    with c.loop(shape.size // c.width) as k:
        c.store("zeroinitializer", c.step("%g", k.index, c.width))
    for k in range(len(shape.hidden)):
        weight = c.at("%p", shape.places[f"{3 * k}.weight"][0])
        c.line(f"call void @turn{k}(ptr {weight}, ptr {c.at('%room', room.turned[k])})")


def tile(shape: Shape, room: Room, width: int, last: Callable[[Call], None], more: Sequence[str] = ()) -> str:
    """Return the function (p, g, room, more): all layers forward, what `last` writes, all layers backward.

    `last` finds the gradient of the last hidden layer's result, from what the room and more pointers have.
    """
    c = Code(width)

    def call(name: str, *places: tuple[str, int]) -> None:
        c.line(f"call void @{name}({', '.join(f'ptr {c.at(*p)}' for p in places)})")

    for k in range(len(shape.hidden)):
        kept = [("%room", part[k]) for part in (room.normal, room.slope, room.inverse)]
        weights = [shape.at("%p", f"{3 * k + 2}.{part}") for part in ("weight", "bias")]
        inputs = [("%room", part[k]) for part in (room.x, room.turned, room.z)]
        call(f"forward{k}", *inputs, shape.at("%p", f"{3 * k}.bias"))
        call(f"norm{k}", ("%room", room.z[k]), ("%room", room.x[k + 1]), *kept, *weights)
    last(call)
    for k in reversed(range(len(shape.hidden))):
        kept = [("%room", part[k]) for part in (room.normal, room.slope, room.inverse)]
        sums = [shape.at("%g", name) for name in (f"{3 * k + 2}.weight", f"{3 * k + 2}.bias", f"{3 * k}.bias")]
        z, weight = ("%room", room.z[k]), f"{3 * k}.weight"
        call(f"norm_back{k}", z, *kept, shape.at("%p", f"{3 * k + 2}.weight"), *sums)
        call(f"weights{k}", z, ("%room", room.x[k]), shape.at("%g", weight), ("null", 0))
        if k:
            call(f"back{k}", z, shape.at("%p", weight), ("%room", room.z[k - 1]), ("null", 0))
    return c.function("tile", ", ".join(f"ptr %{name}" for name in ("p", "g", "room", *more)))
