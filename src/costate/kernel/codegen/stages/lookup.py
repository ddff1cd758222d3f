"""Index tables in code: which elements an instance of a map or a walk reads and writes."""

from __future__ import annotations

import numpy as np

from costate.kernel.codegen.emit import Emitter


class Lookup:
    """A table (instances, n) of elements of a vector. Where the elements of every instance lie one after the other, only the first
    is stored, and they are read and written in place."""

    def __init__(self, e: Emitter, table: np.ndarray):
        self.e = e
        self.size = table.shape[1]
        self.in_place = self.size > 0 and bool(np.all(table == table[:, :1] + np.arange(self.size)))
        self._constant = e.unit.constant(table[:, 0] if self.in_place else table, "i32")

    def address(self, pointer: str, i: str) -> str:
        """Return where the elements of instance i begin, if they are in place."""
        assert self.in_place
        first = self.e.load("i32", self.e.new(f"getelementptr i32, ptr {self._constant}, i64 {i}"))
        return self.e.element(pointer, self.e.new(f"sext i32 {first} to i64"))

    def _row(self, i: str) -> str:
        return self.e.new(f"getelementptr i32, ptr {self._constant}, i64 {self.e.new(f'mul i64 {i}, {self.size}')}")

    def read(self, pointer: str, i: str, buffer: str) -> str:
        """Return the elements of instance i: where they are, or gathered in the buffer."""
        if self.in_place:
            return self.address(pointer, i)
        self.gather(pointer, i, buffer)
        return buffer

    def gather(self, pointer: str, i: str, target: str) -> None:
        """Copy the elements of instance i to a buffer."""
        if self.in_place:
            self.e.copy(target, self.address(pointer, i), self.size)
        else:
            self._helper("vgather", target, pointer, i)

    def add(self, pointer: str, i: str, source: str) -> None:
        """Add a buffer to the elements of instance i."""
        if self.in_place:
            self._helper("vadd", self.address(pointer, i), source)
        else:
            self._helper("vscatter", pointer, source, i)

    def assign(self, pointer: str, i: str, source: str) -> None:
        """Set the elements of instance i from a buffer."""
        if self.in_place:
            self.e.copy(self.address(pointer, i), source, self.size)
        else:
            self._helper("vassign", pointer, source, i)

    def _helper(self, name: str, target: str, source: str, i: str = "") -> None:
        table = [f"ptr {self._row(i)}"] if i else []
        self.e.helper(name, f"ptr {target}", f"ptr {source}", *table, f"i64 {self.size}")


def is_stacked(table: np.ndarray, size: int) -> bool:
    """Return whether instance after instance fills a vector from its beginning to its end."""
    return table.size == size and bool(np.array_equal(table.ravel(), np.arange(size)))
