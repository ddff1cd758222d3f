"""Names: LLVM's spelling of the types and constants of one vector type."""

from __future__ import annotations

import struct

DTYPES = {"f64": ("double", 8), "f32": ("float", 4)}
"""Short name -> (LLVM type, bytes)."""


class Names:
    """LLVM spellings for one vector type."""

    def __init__(self, dtype: str, width: int, lanes: int = 0):
        self.dtype, self.width = dtype, width
        self.fields = lanes > 0
        """True if all lanes belong to one sample, whose entities lie side by side."""
        self.parts = max(lanes // width, 1)
        """Vectors of one element: 1, or more where elements have more lanes than a vector (fields)."""
        self.scalar, self.bytes = DTYPES[dtype]
        self.vec = f"<{width} x {self.scalar}>"
        self.mask = f"<{width} x i1>"
        self.suffix = f"v{width}{dtype}"
        self.align = width * self.bytes
        """Bytes of one vector."""
        self.stride = self.align * self.parts
        """Bytes from one element to the next."""

    def splat(self, value: float) -> str:
        """Return a constant in all lanes."""
        if self.dtype == "f32":
            value = _to_f32(value)
        return f"splat ({self.scalar} 0x{struct.pack('>d', value).hex().upper()})"

    def arguments(self, n_inputs: int, n_outputs: int) -> str:
        """Return the parameters of a function of vectors: inputs, outputs, workspace."""
        names = [f"%i{k}" for k in range(n_inputs)] + [f"%o{k}" for k in range(n_outputs)] + ["%ws"]
        return ", ".join(f"ptr noalias {n}" for n in names)


def _to_f32(value: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
