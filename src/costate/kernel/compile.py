"""The compiler's table of contents: a program in, object code out.

    program --prune, fuse--> program --tape: number values, fold, fuse multiply-adds--> chunks --lower--> LLVM IR --> object code

Read `program.py` for what a program is, `derive.py` for derivatives, `stages/` for the kinds of stages, `tape.py` and `lower.py`
for straight-line code, `emit.py` and `driver.py` for everything around it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from costate.kernel.codegen.chunks import Chunk
from costate.kernel.codegen.driver import Layout, emit_kernel
from costate.kernel.codegen.emit import Unit
from costate.kernel.codegen.lower import Names
from costate.kernel.ir.passes import optimize
from costate.kernel.ir.program import DYNAMIC, Op, Program
from costate.kernel.machine.jit import module_text, object_code
from costate.kernel.machine.target import Target
from costate.kernel.machine.workers import compile_chunks
from costate.kernel.ops.map import Map
from costate.kernel.ops.scan import Scan
from costate.kernel.ops.straight import Straight
from costate.kernel.ops.walk import Walk
from costate.kernel.vecmath import FUNCTIONS, symbol


@dataclass(frozen=True)
class Artifact:
    """A compiled kernel, ready to be linked: what the cache stores."""

    images: tuple[bytes, ...]
    """Object files."""
    workspace: int
    """Vectors of workspace per thread."""
    n_ops: int
    flops: int
    work: int
    """Operations per sample, loops counted as often as they run (while loops: at most), dynamic ones left out."""
    step_work: int
    """Operations per sample and step of a loop of dynamic length."""
    seconds: float
    """Time it took to compile."""
    imports: tuple[str, ...]
    """External symbols: vector functions and constant grids."""


def compile_program(program: Program, layout: Layout, target: Target, dtype: str) -> Artifact:
    """Compile for a CPU and a number type."""
    start = time.perf_counter()
    program = optimize(program)
    unit, workspace = lower_program(program, layout, target, dtype)
    images = [object_code(main_text(unit, target), target), *compile_chunks(unit.chunks, target, dtype)]
    imports = _vector_functions(unit) + sorted(unit.grids)
    work, step_work = count_work(program, unit)
    seconds = time.perf_counter() - start
    return Artifact(tuple(images), workspace, unit.n_ops, unit.flops, work, step_work, seconds, tuple(imports))


def lower_program(program: Program, layout: Layout, target: Target, dtype: str) -> tuple[Unit, int]:
    """IR functions and chunks of an optimised program, and the workspace they need."""
    unit = Unit(Names(dtype, target.lanes(dtype)))
    workspace = emit_kernel(unit, program, layout)
    return unit, workspace


def count_work(program: Program, unit: Unit) -> tuple[int, int]:
    """(operations per sample, operations per sample and step of dynamic loops)."""
    total, per_step = 0, 0
    for stage in program.stages:
        op = stage.op
        inside = sum(count_work(body, unit)[0] for body in op.bodies())
        if isinstance(op, Straight):
            total += unit.ops.get(op.key, 0)
        elif isinstance(op, Scan) and op.steps == DYNAMIC:
            per_step += inside
        else:
            total += inside * _repeats(op)
    return total, per_step


def _repeats(op: Op) -> int:
    """How often the body of an op runs, at most."""
    if isinstance(op, Walk):
        return op.rounds * op.count
    return op.steps if isinstance(op, Scan) else op.count if isinstance(op, Map) else 1


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
