"""A compiled program run operation by operation in torch: what differentiating the same physics with autograd costs.

Every scalar of the program is a tensor over the batch. Autograd keeps every intermediate result until the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from costate.kernel.codegen.from_casadi import tape_of
from costate.kernel.codegen.tape import NOT_COUNTED, Tape
from costate.kernel.ir.program import Program, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import Slice
from costate.kernel.ops.cond import Cond
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.epsilon import EPSILON, Epsilon
from costate.kernel.ops.scan import Scan
from costate.kernel.passes.optimize import optimize

Values = list[torch.Tensor]

OPS: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "neg": torch.neg,
    "sq": torch.square,
    "twice": lambda a: a + a,
    "inv": torch.reciprocal,
    "sqrt": torch.sqrt,
    "fabs": torch.abs,
    "fmin": torch.minimum,
    "fmax": torch.maximum,
    "sin": torch.sin,
    "cos": torch.cos,
    "fma": lambda a, b, c: torch.addcmul(c, a, b),
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: torch.addcmul(c, a, b, value=-1),
    "lt": lambda a, b: (a < b).to(a.dtype),
    "le": lambda a, b: (a <= b).to(a.dtype),
    "eq": lambda a, b: (a == b).to(a.dtype),
    "ne": lambda a, b: (a != b).to(a.dtype),
    "not": lambda a: (a == 0).to(a.dtype),
    "and": lambda a, b: ((a != 0) & (b != 0)).to(a.dtype),
    "or": lambda a, b: ((a != 0) | (b != 0)).to(a.dtype),
    "select": lambda c, a, b: torch.where(c != 0, a, b),
    "if_else_zero": lambda c, a: torch.where(c != 0, a, torch.zeros_like(a)),
}


class TorchProgram:
    """Callable on tensors (batch, n) per input."""

    def __init__(self, program: Program):
        self.program = optimize(program)
        self._tapes: dict[str, Tape] = {}
        self.n_ops = self._count(self.program)
        """Number of operations of a step in which no iteration with an end is repeated and no condition holds."""

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        columns = [list(x.unbind(-1)) for x in inputs]
        return [torch.stack(torch.broadcast_tensors(*y), -1) for y in self._run(self.program, columns)]

    def _run(self, program: Program, inputs: Sequence[Values]) -> list[Values]:
        values: dict[Var, Values] = dict(zip(program.inputs, inputs, strict=True))
        for s in program.stages:
            args = [values[v] for v in s.inputs]
            values.update(zip(s.outputs, self._stage(s.op, args), strict=True))
        return [values[v] for v in program.outputs]

    def _stage(self, op: object, args: list[Values]) -> list[Values]:
        match op:
            case Scan():
                return self._scan(op, args)
            case Cond():
                return self._cond(op, args)
            case Custom():
                return self._run(op.body, args)
            case Epsilon():
                return [[torch.tensor(EPSILON[8], dtype=torch.float64)]]
            case Slice():
                return [args[0][op.start : op.start + op.size]]
            case Straight():
                return self._straight(op, args)
        raise TypeError(f"{op!r} has no counterpart in torch here")

    def _scan(self, op: Scan, args: list[Values]) -> list[Values]:
        carries, sequences, shared = op.split_in(args)
        assert not sequences and len(op.body.outputs) == op.n_carry and not any(op.keep) and not op.counted
        if op.until is None:
            for _ in range(op.steps):
                carries = self._run(op.body, [*carries, *shared])
            return carries
        taken = torch.zeros((), dtype=torch.float64)
        going = torch.tensor(True)
        for _ in range(op.steps):
            going = going & (self._run(op.until, [*carries, *shared])[0][0] == 1)
            if not bool(going.any()):
                break
            carries = _where(going, self._run(op.body, [*carries, *shared]), carries)
            taken = taken + going
        return [*carries, [taken]]

    def _cond(self, op: Cond, args: list[Values]) -> list[Values]:
        """Run the branches that some sample takes."""
        (condition,), *given = args
        yes = condition != 0
        if bool(yes.all()) or not bool(yes.any()):
            return self._run(op.then if bool(yes.all()) else op.otherwise, given)
        return _where(yes, self._run(op.then, given), self._run(op.otherwise, given))

    def _straight(self, op: Straight, args: list[Values]) -> list[Values]:
        tape = self._tapes.setdefault(op.key, tape_of(op.fn))
        x: list[torch.Tensor] = []
        second: dict[int, torch.Tensor] = {}
        for i, (name, *operands) in enumerate(tape.instructions):
            if name == "input":
                x.append(args[operands[0]][operands[1]])
            elif name == "const":
                x.append(torch.tensor(float.fromhex(operands[0]), dtype=torch.float64))
            elif name in ("sincos", "cossin"):
                both = torch.sin(x[operands[0]]), torch.cos(x[operands[0]])
                first, second[i] = both if name == "sincos" else both[::-1]
                x.append(first)
            elif name == "second":
                x.append(second[operands[0]])
            else:
                x.append(OPS[name](*(x[k] for k in operands)))
        outs = [[x[0]] * n for n in op.out_sizes]
        for out, element, value in tape.outputs:
            outs[out][element] = x[value]
        return outs

    def _count(self, program: Program) -> int:
        total = 0
        for s in program.stages:
            if isinstance(s.op, Scan):
                total += (1 if s.op.until else s.op.steps) * self._count(s.op.body)
            elif isinstance(s.op, Cond):
                total += self._count(s.op.otherwise)
            elif isinstance(s.op, Custom):
                total += self._count(s.op.body)
            elif isinstance(s.op, Straight):
                total += sum(i[0] not in NOT_COUNTED for i in tape_of(s.op.fn).instructions)
        return total


def _where(condition: torch.Tensor, yes: list[Values], no: list[Values]) -> list[Values]:
    return [[torch.where(condition, a, b) for a, b in zip(*pair, strict=True)] for pair in zip(yes, no, strict=True)]
