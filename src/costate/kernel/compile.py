"""The compiler's table of contents: a program in, object code out.

    program --optimize--> program --write--> unit (LLVM IR of loops, chunks of straight-line code) --LLVM--> object code

To read, in this order: `ir/program.py` says what a program is, `ir/derive.py` what its derivatives are; `ops/` has loops, branches
and tables. `passes/optimize.py` comes before code is written, `codegen/driver.py` and `codegen/program_code.py` write the code
around the stages, `codegen/stages/` that of each kind, `codegen/from_casadi.py`, `chunks.py` and `lower.py` straight-line code.
`machine/` has LLVM, worker processes and the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from costate.core.fork import COMPILING
from costate.core.limits import excess
from costate.kernel.codegen.chunks import Chunk
from costate.kernel.codegen.driver import Layout, emit_kernel
from costate.kernel.codegen.pieces import SMALL, Known, Piece
from costate.kernel.codegen.stages import WRITERS
from costate.kernel.codegen.unit import Unit
from costate.kernel.ir.program import Program, block_of
from costate.kernel.machine.artifact import Artifact
from costate.kernel.machine.jit import module_text, object_code
from costate.kernel.machine.target import Target
from costate.kernel.machine.workers import compile_chunks
from costate.kernel.passes.optimize import optimize

KNOWN = Known()
"""Straight-line code that was compiled in this process."""
JOB_CHUNKS, SMALL_CHUNKS = 3, 15
"""Chunks per object file: of a piece, and of several small ones."""


def compile_program(program: Program, layout: Layout, target: Target, dtype: str) -> Artifact:
    """Compile for a CPU and a number type."""
    start = time.perf_counter()
    with COMPILING:
        program = optimize(program)
        target = replace(target, block=block_of(program))
        unit, workspace = lower_program(program, layout, target, dtype, KNOWN.finder(target, dtype))
    if too_long := excess("operations", unit.n_ops):
        raise ValueError(f"this function is too long to compile: {too_long}. Loops (scan, map) keep code short")
    images = [object_code(main_text(unit, target), target), *_piece_images(unit, target, dtype)]
    work, step_work = unit.work(program)
    imports = tuple(unit.imports())
    helper = (unit.loop_workspace + 1) * unit.names.stride if "share" in unit.functions else 0
    seconds = time.perf_counter() - start
    return Artifact(tuple(images), workspace, helper, unit.n_ops, unit.flops, work, step_work, seconds, imports)


def lower_program(
    program: Program,
    layout: Layout,
    target: Target,
    dtype: str,
    known: Callable[[str], Piece | None] = lambda key: None,
) -> tuple[Unit, int]:
    """Return the unit of an optimised program, and the workspace it needs [bytes]; known: pieces that are compiled already."""
    unit = Unit(replace(target, block=block_of(program)).names(dtype), WRITERS, known)
    workspace = emit_kernel(unit, program, layout)
    return unit, workspace * unit.names.stride


def jobs(unit: Unit) -> list[tuple[str | None, Sequence[Chunk]]]:
    """Return what is to be compiled: (key of the piece, or None for several small ones; chunks of one object file)."""
    found: list[tuple[str | None, Sequence[Chunk]]] = []
    small: list[Chunk] = []
    for key, piece in unit.pieces.items():
        if piece.n_ops < SMALL:
            small += piece.chunks
        else:
            found += [(key, piece.chunks[k : k + JOB_CHUNKS]) for k in range(0, len(piece.chunks), JOB_CHUNKS)]
    return found + [(None, small[k : k + SMALL_CHUNKS]) for k in range(0, len(small), SMALL_CHUNKS)]


def _piece_images(unit: Unit, target: Target, dtype: str) -> list[bytes]:
    """Compile the pieces that are not known, and remember them; return the object files of all."""
    todo = jobs(unit)
    made: dict[str | None, list[bytes]] = {}
    for (key, _), image in zip(todo, compile_chunks([chunks for _, chunks in todo], target, dtype), strict=True):
        made.setdefault(key, []).append(image)
    images = []
    for key, piece in unit.pieces.items():
        if key in made:
            KNOWN.keep(piece, tuple(made[key]), key, target, dtype)
        images += made.get(key, piece.images)
    return images + made.get(None, [])


def main_text(unit: Unit, target: Target) -> str:
    """Return the module with the loops and the entry; chunks are compiled apart and only declared here."""
    return module_text(target, list(unit.functions.values()), unit.declarations(), unit.globals)
