"""The compiler's table of contents: a program in, object code out.

    program --prune, fuse--> program --tape: number values, fold, fuse multiply-adds--> chunks --lower--> LLVM IR --> object code

Read `program.py` for what a program is, `derive.py` for derivatives, `stages/` for the kinds of stages, `tape.py` and `lower.py`
for straight-line code, `emit.py` and `driver.py` for everything around it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from costate.kernel.chunks import Chunk
from costate.kernel.driver import Layout, emit_kernel
from costate.kernel.emit import Unit
from costate.kernel.jit import module_text, object_code
from costate.kernel.lower import Names
from costate.kernel.passes import optimize
from costate.kernel.program import Program
from costate.kernel.target import Target
from costate.kernel.vecmath import FUNCTIONS, symbol
from costate.kernel.workers import compile_chunks


@dataclass(frozen=True)
class Artifact:
    """A compiled kernel, ready to be linked: what the cache stores."""

    images: tuple[bytes, ...]
    """Object files."""
    workspace: int
    """Vectors of workspace per thread."""
    n_ops: int
    flops: int
    seconds: float
    """Time it took to compile."""
    imports: tuple[str, ...]
    """External symbols: vector functions and constant grids."""


def compile_program(program: Program, layout: Layout, target: Target, dtype: str) -> Artifact:
    """Compile for a CPU and a number type."""
    start = time.perf_counter()
    unit, workspace = lower_program(program, layout, target, dtype)
    images = [object_code(main_text(unit, target), target), *compile_chunks(unit.chunks, target, dtype)]
    imports = _vector_functions(unit) + sorted(unit.grids)
    return Artifact(tuple(images), workspace, unit.n_ops, unit.flops, time.perf_counter() - start, tuple(imports))


def lower_program(program: Program, layout: Layout, target: Target, dtype: str) -> tuple[Unit, int]:
    """IR functions and chunks of a program, and the workspace they need."""
    unit = Unit(Names(dtype, target.lanes(dtype)))
    workspace = emit_kernel(unit, optimize(program), layout)
    return unit, workspace


def main_text(unit: Unit, target: Target) -> str:
    """The module with loops and the entry; chunks are declared."""
    declarations = {_declaration(c) for c in unit.chunks} | _intrinsics(unit)
    declarations |= {f"@{name} = external global i8" for name in unit.grids}
    return module_text(target, list(unit.functions.values()), declarations, unit.globals)


def _declaration(chunk: Chunk) -> str:
    return f"declare void @{chunk.name}({', '.join(['ptr'] * (chunk.n_inputs + chunk.n_outputs + 1))})"


def _intrinsics(unit: Unit) -> set[str]:
    n = unit.names
    return {
        f"declare {n.vec} @llvm.masked.load.{n.suffix}.p0(ptr, {n.mask}, {n.vec})",
        f"declare {n.vec} @llvm.floor.{n.suffix}({n.vec})",
        f"declare {n.scalar} @llvm.vector.reduce.fmax.{n.suffix}({n.vec})",
    }


def _vector_functions(unit: Unit) -> list[str]:
    """Symbols of the vector functions the chunks call."""
    ops = {ins[0] for c in unit.chunks for _, ins in c.body}
    names = (ops & FUNCTIONS.keys()) | ({"sincos"} if ops & {"sincos", "cossin"} else set())
    return [symbol(name, unit.names.width, unit.names.dtype) for name in sorted(names)]
