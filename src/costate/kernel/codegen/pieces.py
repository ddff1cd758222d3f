"""Pieces: the straight-line code of one function, as kernels share it.

A step, its gradient, a roll-out and its gradient have half of their code in common. A piece is named by what it computes, so that
one which was compiled for another kernel of this process is linked as it is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from costate.core.fork import lock
from costate.kernel.codegen.chunks import Chunk, cut
from costate.kernel.codegen.from_casadi import tape_of
from costate.kernel.ir.straight import Straight
from costate.kernel.vecmath import FUNCTIONS

LIMIT = 256 << 20
"""Bytes of object code that are kept for later kernels."""
SMALL = 200
"""Operations below which a piece is not worth an object file of its own: it is compiled together with others, again each time."""


@dataclass(frozen=True)
class Piece:
    """Straight-line code: its chunks, and what the code around them has to know."""

    names: tuple[str, ...]
    """Functions to be called one after the other."""
    pointers: int
    """Number of their arguments, the workspace included."""
    slots: int
    """Vectors of workspace."""
    n_ops: int
    flops: int
    calls: frozenset[str]
    """Vector functions they call."""
    chunks: tuple[Chunk, ...] = ()
    """Empty once the piece is compiled."""
    images: tuple[bytes, ...] = ()
    """Object files, once there are some."""

    @classmethod
    def of(cls, op: Straight) -> Piece:
        """Translate a function."""
        tape = tape_of(op.fn)
        n_inputs, n_outputs = len(op.in_sizes), len(op.out_sizes)
        chunks, slots = cut(f"s_{op.key[:24]}", tape, n_inputs, n_outputs)
        ops = {ins[0] for ins in tape.instructions}
        calls = (ops & FUNCTIONS.keys()) | ({"sincos"} if ops & {"sincos", "cossin"} else set())
        names = tuple(c.name for c in chunks)
        pointers = n_inputs + n_outputs + 1
        return cls(names, pointers, slots, tape.n_ops, tape.flops, frozenset(calls), tuple(chunks))


class Known:
    """Compiled pieces of this process; those used last stay."""

    def __init__(self, limit: int = LIMIT):
        self.limit = limit
        self._pieces: OrderedDict[Hashable, Piece] = OrderedDict()
        self._bytes = 0
        self._lock = lock()

    def finder(self, *code: Hashable) -> Callable[[str], Piece | None]:
        """Return the function (key of an op) -> piece, for a target and a number type."""

        def find(key: str) -> Piece | None:
            with self._lock:
                if piece := self._pieces.get((key, *code)):
                    self._pieces.move_to_end((key, *code))
                return piece

        return find

    def keep(self, piece: Piece, images: tuple[bytes, ...], key: str, *code: Hashable) -> None:
        """Remember a compiled piece, and forget the one that was not used for longest if they are too many."""
        with self._lock:
            if (key, *code) not in self._pieces:
                self._pieces[key, *code] = replace(piece, chunks=(), images=images)
                self._bytes += sum(map(len, images))
            while self._bytes > self.limit:
                _, old = self._pieces.popitem(last=False)
                self._bytes -= sum(map(len, old.images))
