"""Units: everything the object code of one kernel is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from costate.kernel.codegen.emit import Emitter, Function
from costate.kernel.codegen.names import Names
from costate.kernel.codegen.pieces import Piece
from costate.kernel.codegen.program_code import write_program
from costate.kernel.codegen.slots import Memory, Slot
from costate.kernel.ir.program import DYNAMIC, Op, Program
from costate.kernel.ir.straight import Straight
from costate.kernel.vecmath import symbol

YIELD = "sched_yield"
"""Function of the system that lets other threads run."""
Writer = Callable[[Emitter, Any, Sequence[Slot], Sequence[Slot]], None]
"""Write a stage: (emitter, op, slots of its inputs, slots of its outputs)."""


@dataclass
class Unit:
    """IR functions, pieces of straight-line code, and external constants of one kernel."""

    names: Names
    writers: Mapping[type[Op], Writer]
    """Kind of stage -> what writes it; `codegen/stages` has the table."""
    known: Callable[[str], Piece | None] = lambda key: None
    """Key of a straight-line op -> its piece, if it was compiled before."""
    functions: dict[str, str] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)
    """Straight-line code, by key of the op."""
    globals: list[str] = field(default_factory=list)
    grids: dict[str, np.ndarray] = field(default_factory=dict)
    """Constant arrays the code refers to by symbol; they stay outside of the object code."""
    loop_workspace: int = 0
    """Vectors of workspace that a thread needs which takes part in loops over blocks."""
    ops: dict[str, int] = field(default_factory=dict)
    """Operations of each op that computes by itself, by key."""
    made: dict[str, Function] = field(default_factory=dict)
    """Functions written so far, by key."""
    _constants: dict[tuple[str, bytes], str] = field(default_factory=dict)

    @property
    def n_ops(self) -> int:
        """Operations, without what calls the pieces."""
        return sum(piece.n_ops for piece in self.pieces.values())

    @property
    def flops(self) -> int:
        """Floating point operations."""
        return sum(piece.flops for piece in self.pieces.values())

    def straight(self, op: Straight) -> tuple[Sequence[str], int]:
        """Return the chunk names of a straight-line function, and the workspace they share."""
        if op.key not in self.pieces:
            self.pieces[op.key] = self.known(op.key) or Piece.of(op)
            self.ops[op.key] = self.pieces[op.key].n_ops
        return self.pieces[op.key].names, self.pieces[op.key].slots

    def function(self, program: Program) -> Function:
        """Return a program as a function of its own, for loop bodies."""
        if program.key not in self.made:
            self.made[program.key] = self._chunk_alone(program) or self._write(program)
        return self.made[program.key]

    def _chunk_alone(self, program: Program) -> Function | None:
        """Return the chunk of a program that is one chunk: it needs no wrapper."""
        if len(program.stages) != 1 or self.names.parts > 1:
            return None
        (stage,) = program.stages
        if not isinstance(stage.op, Straight) or (stage.inputs, stage.outputs) != (program.inputs, program.outputs):
            return None
        chunks, slots = self.straight(stage.op)
        return Function(chunks[0], slots) if len(chunks) == 1 else None

    def _write(self, program: Program) -> Function:
        name = f"p{len(self.made)}_{program.key[:8]}"
        e = Emitter(self, nested=True)
        ins: list[Slot] = [Memory(f"%i{k}") for k in range(len(program.inputs))]
        outs: list[Slot] = [Memory(f"%o{k}") for k in range(len(program.outputs))]
        write_program(e, program, ins, outs)
        arguments = self.names.arguments(len(ins), len(outs))
        self.functions[name] = e.finish(f"define internal void @{name}({arguments}) #0")
        return Function(name, e.workspace)

    def constant(self, values: np.ndarray, kind: str) -> str:
        """Return a constant array inside the object code: kind i32, i64."""
        key = kind, np.ascontiguousarray(values, np.int64).tobytes()
        if key not in self._constants:
            self._constants[key] = f"@table{len(self.globals)}"
            items = ", ".join(f"{kind} {int(v)}" for v in values.ravel())
            self.globals.append(f"{self._constants[key]} = internal constant [{values.size} x {kind}] [{items}]")
        return self._constants[key]

    def declarations(self) -> set[str]:
        """Return declarations of what the functions use: chunks, grids and intrinsics."""
        n = self.names
        chunks = {
            f"declare void @{name}({', '.join(['ptr'] * piece.pointers)})"
            for piece in self.pieces.values()
            for name in piece.names
        }
        intrinsics = {
            f"declare {n.vec} @llvm.masked.load.{n.suffix}.p0(ptr, {n.mask}, {n.vec})",
            f"declare {n.vec} @llvm.floor.{n.suffix}({n.vec})",
            f"declare {n.vec} @llvm.fma.{n.suffix}({n.vec}, {n.vec}, {n.vec})",
            f"declare {n.scalar} @llvm.vector.reduce.fmax.{n.suffix}({n.vec})",
            f"declare {n.scalar} @llvm.vector.reduce.fmin.{n.suffix}({n.vec})",
        }
        if "share" in self.functions:
            intrinsics |= {f"declare i32 @{YIELD}()"}
        return chunks | intrinsics | {f"@{name} = external global i8" for name in self.grids}

    def imports(self) -> list[str]:
        """Return the external symbols: vector functions that the chunks call, and constant grids."""
        names = set[str]().union(*(piece.calls for piece in self.pieces.values()))
        return (
            [symbol(name, self.names.width, self.names.dtype) for name in sorted(names)]
            + sorted(self.grids)
            + [YIELD] * ("share" in self.functions)
        )

    def work(self, program: Program) -> tuple[int, int]:
        """Count (operations per sample, operations per sample and step of dynamic loops) of an optimised program."""
        total, per_step = 0, 0
        for s in program.stages:
            inside = sum(self.work(body)[0] for body in s.op.bodies())
            if s.op.repeats == DYNAMIC:
                per_step += inside
            else:
                total += self.ops.get(s.op.key, 0) + inside * s.op.repeats
        return total, per_step
