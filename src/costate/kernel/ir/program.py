"""Programs: the compiler's intermediate representation.

A program is a list of stages over vector-valued variables, each assigned once. A stage applies an `Op`: a straight-line
function (`straight.py`), a slice or a join (`vector_ops.py`), a loop, a branch, a look-up (one file each in `ops/`). Every op can
say what it means (`evaluate`), differentiate itself forward and backward into further stages (`jvp`, `vjp`) and drop what nobody
uses (`restrict`). So derivatives of programs are programs, to any order. How an op becomes machine code is not its own business:
`codegen/stages/` has a writer for every kind.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costate.core.fork import cached_property

Array = NDArray[np.floating[Any]]


DYNAMIC = 1 << 40
"""Length of a sequence that is only known when the kernel is called. Scans over such sequences stream them from and to the
kernel's tensors; DYNAMIC + 1 is one row more, and so on."""


@dataclass(frozen=True, eq=False)
class Var:
    """A vector value, assigned once. Compared by identity."""

    size: int


class Op(ABC):
    """The operation of a stage. Ops are constant; variables live outside, in stages."""

    in_sizes: tuple[int, ...]
    out_sizes: tuple[int, ...]
    block: int = 0
    """Lanes that the op needs of one sample: 0 if each lane is a sample of its own, else entities side by side (`ops/fields`)."""

    @cached_property
    def key(self) -> str:
        """Digest of everything the generated code depends on."""
        return digest(type(self).__name__, self.in_sizes, self.out_sizes, *self.describe())

    @abstractmethod
    def describe(self) -> tuple[Any, ...]:
        """Return what tells this op from others of its kind, as strings, numbers and bytes."""

    @abstractmethod
    def evaluate(self, *inputs: Array) -> Sequence[Array]:
        """Compute outputs (m, batch) from inputs (n, batch), in NumPy and slowly: this defines the op."""

    @abstractmethod
    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        """Add stages for the outputs and their tangents. A tangent that is None is zero."""

    def replay(self, b: Builder, ins: Sequence[Var], given: Sequence[Var | None]) -> tuple[list[Var], Any]:
        """Add the forward stages of a backward pass: outputs, and whatever `vjp` wants kept. `given` outputs are known already."""
        outs = b.stage(self, *ins)
        return [g or o for g, o in zip(given, outs, strict=True)], None

    @abstractmethod
    def vjp(
        self,
        b: Builder,
        ins: Sequence[Var],
        outs: Sequence[Var],
        kept: Any,
        seeds: Sequence[Var | None],
        wrt: Sequence[bool],
    ) -> list[Var | None]:
        """Add stages for the gradients of the inputs named in wrt; None where zero."""

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        """Return an op for the used outputs only: (op, kept inputs, kept outputs)."""
        return self, list(range(len(self.in_sizes))), list(range(len(self.out_sizes)))

    def bodies(self) -> Sequence[Program]:
        """Return the programs this op runs inside."""
        return ()

    def derivatives(self, kinds: Sequence[str]) -> Sequence[Program]:
        """Return derivatives ("tangent", "adjoint") that do not follow from the bodies."""
        return ()

    def grids(self) -> dict[str, np.ndarray]:
        """Return the constant arrays the code refers to by name."""
        return {}

    @property
    def repeats(self) -> int:
        """Number of times the bodies run, at most."""
        return 1

    def reads_rows(self, k: int, row_size: int) -> bool:
        """Return whether input k can be streamed from a kernel tensor with rows of this size."""
        return False

    def writes_rows(self, k: int, row_size: int) -> bool:
        """Return whether output k can be streamed to a kernel tensor with rows of this size."""
        return False


def digest(*parts: Any) -> str:
    """Return a hash of bytes, and of the representations of other things."""
    h = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


@dataclass(frozen=True)
class Stage:
    """An op applied to variables."""

    op: Op
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]


@dataclass(frozen=True)
class Program:
    """Stages in order, from input variables to output variables."""

    inputs: tuple[Var, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[Var, ...]

    @property
    def in_sizes(self) -> tuple[int, ...]:
        return tuple(v.size for v in self.inputs)

    @property
    def out_sizes(self) -> tuple[int, ...]:
        return tuple(v.size for v in self.outputs)

    @cached_property
    def key(self) -> str:
        number = {v: i for i, v in enumerate(self.inputs)}
        rows: list[Any] = [self.in_sizes]
        for s in self.stages:
            for v in s.outputs:
                number[v] = len(number)
            rows.append((s.op.key, [number[v] for v in s.inputs], [number[v] for v in s.outputs]))
        return digest(*rows, [number[v] for v in self.outputs])

    def key_with(self, kinds: Sequence[str]) -> str:
        """Return a digest of the program and of given derivatives of its ops: what derivatives of the code depend on."""
        if not kinds:
            return self.key
        return digest(self.key, *(p.key_with(kinds) for op in ops_of(self) for p in op.derivatives(kinds)))

    def evaluate(self, *inputs: Array) -> list[Array]:
        """Run by interpretation: the reference that compiled code is tested against."""
        values = dict(zip(self.inputs, inputs, strict=True))
        for s in self.stages:
            results = s.op.evaluate(*(values[v] for v in s.inputs))
            values.update(zip(s.outputs, results, strict=True))
        return [values[v] for v in self.outputs]

    @cached_property
    def _dependencies(self) -> dict[tuple[bool, ...], list[bool]]:
        """Answers of `depends_on` so far."""
        return {}

    def depends_on(self, outputs: Sequence[bool]) -> list[bool]:
        """Return which inputs the chosen outputs may depend on."""
        key = tuple(map(bool, outputs))
        if key not in self._dependencies:
            self._dependencies[key] = self._depends_on(key)
        return list(self._dependencies[key])

    def _depends_on(self, outputs: Sequence[bool]) -> list[bool]:
        live = {v for v, o in zip(self.outputs, outputs, strict=True) if o}
        for s in reversed(self.stages):
            used = [v in live for v in s.outputs]
            if any(used):
                _, kept, _ = s.op.restrict(used)
                live.update(s.inputs[k] for k in kept)
        return [v in live for v in self.inputs]


@dataclass
class Builder:
    """Collects stages. `Builder().input(3)`, `.stage(op, x)`, `.finish(y)`."""

    inputs: list[Var] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    known: set[Var] = field(default_factory=set)

    def input(self, size: int) -> Var:
        """Declare an input."""
        self.inputs.append(Var(size))
        self.known.add(self.inputs[-1])
        return self.inputs[-1]

    def stage(self, op: Op, *inputs: Var) -> list[Var]:
        """Add a stage; return its outputs."""
        given = tuple(v.size for v in inputs)
        if given != op.in_sizes:
            raise ValueError(f"{type(op).__name__} takes inputs of sizes {op.in_sizes}, but was given {given}")
        self.check_known(inputs)
        outputs = tuple(Var(n) for n in op.out_sizes)
        self.known.update(outputs)
        self.stages.append(Stage(op, inputs, outputs))
        return list(outputs)

    def inline(self, program: Program, *inputs: Var) -> list[Var]:
        """Append another program's stages."""
        given = tuple(v.size for v in inputs)
        if given != program.in_sizes:
            raise ValueError(f"the program takes inputs of sizes {program.in_sizes}, but was given {given}")
        values = dict(zip(program.inputs, inputs, strict=True))
        for s in program.stages:
            values.update(zip(s.outputs, self.stage(s.op, *(values[v] for v in s.inputs)), strict=True))
        return [values[v] for v in program.outputs]

    def check_known(self, values: Sequence[Var]) -> None:
        """Raise if a value belongs to another program."""
        if not self.known.issuperset(values):
            raise ValueError("a value of another program was given; pass values made by this one, or make it an input")

    def finish(self, *outputs: Var) -> Program:
        """Return the program that computes the outputs."""
        self.check_known(outputs)
        return Program(tuple(self.inputs), tuple(self.stages), tuple(outputs))


def ops_of(program: Program, kinds: Sequence[str] = ()) -> Iterator[Op]:
    """Yield all ops of a program, those of loop bodies included, and of given derivatives ("tangent", "adjoint")."""
    for s in program.stages:
        yield s.op
        for body in (*s.op.bodies(), *s.op.derivatives(kinds)):
            yield from ops_of(body, kinds)


def block_of(program: Program) -> int:
    """Return how many lanes belong to one sample: 0 if a lane is a sample."""
    return max((op.block for op in ops_of(program)), default=0)
