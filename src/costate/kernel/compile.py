"""The compiler's table of contents: a program in, object code out.

    program --optimize--> program --write--> unit (LLVM IR of loops, chunks of straight-line code) --LLVM--> object code

To read, in this order: `ir/program.py` says what a program is, `ir/derive.py` what its derivatives are; `ops/` has loops, branches
and tables. `passes/optimize.py` comes before code is written, `codegen/driver.py` and `codegen/program_code.py` write the code
around the stages, `codegen/stages/` that of each kind, `codegen/from_casadi.py`, `chunks.py` and `lower.py` straight-line code.
`machine/` has LLVM, worker processes and the cache.
"""

from __future__ import annotations

import time
from dataclasses import replace

from costate.core.fork import COMPILING
from costate.core.limits import excess
from costate.kernel.codegen.driver import Layout, emit_kernel
from costate.kernel.codegen.stages import WRITERS
from costate.kernel.codegen.unit import Unit
from costate.kernel.ir.program import Program, block_of
from costate.kernel.machine.artifact import Artifact
from costate.kernel.machine.jit import module_text, object_code
from costate.kernel.machine.target import Target
from costate.kernel.machine.workers import compile_chunks
from costate.kernel.passes.optimize import optimize


def compile_program(program: Program, layout: Layout, target: Target, dtype: str) -> Artifact:
    """Compile for a CPU and a number type."""
    start = time.perf_counter()
    with COMPILING:
        program = optimize(program)
        unit, workspace = lower_program(program, layout, target, dtype)
        target = replace(target, block=block_of(program))
    if too_long := excess("operations", unit.n_ops):
        raise ValueError(f"this function is too long to compile: {too_long}. Loops (scan, map) keep code short")
    images = [object_code(main_text(unit, target), target), *compile_chunks(unit.chunks, target, dtype)]
    work, step_work = unit.work(program)
    imports = tuple(unit.imports())
    helper = (unit.loop_workspace + 1) * unit.names.stride if "share" in unit.functions else 0
    seconds = time.perf_counter() - start
    return Artifact(tuple(images), workspace, helper, unit.n_ops, unit.flops, work, step_work, seconds, imports)


def lower_program(program: Program, layout: Layout, target: Target, dtype: str) -> tuple[Unit, int]:
    """Return the unit of an optimised program, and the workspace it needs [bytes]."""
    unit = Unit(replace(target, block=block_of(program)).names(dtype), WRITERS)
    workspace = emit_kernel(unit, program, layout)
    return unit, workspace * unit.names.stride


def main_text(unit: Unit, target: Target) -> str:
    """Return the module with the loops and the entry; chunks are compiled apart and only declared here."""
    return module_text(target, list(unit.functions.values()), unit.declarations(), unit.globals)
