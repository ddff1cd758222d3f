"""Names: LLVM's spelling of the types and constants of one vector type."""

from __future__ import annotations

import struct

DTYPES = {"f64": ("double", 8), "f32": ("float", 4)}
"""Short name -> (LLVM type, bytes)."""


class Names:
    """LLVM spellings for one vector type."""

    def __init__(self, dtype: str, width: int):
        self.dtype, self.width = dtype, width
        self.scalar, self.bytes = DTYPES[dtype]
        self.vec = f"<{width} x {self.scalar}>"
        self.mask = f"<{width} x i1>"
        self.suffix = f"v{width}{dtype}"
        self.stride = width * self.bytes
        """Bytes of one vector."""

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
