"""Building programs: named inputs and outputs, and a method per kind of stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import casadi as ca
import numpy as np

from costate.kernel.implicit import implicit_derivatives
from costate.kernel.interpolate import Axis, interpolate
from costate.kernel.ir.program import Builder, Program, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import Slice, add, concat, zeros
from costate.kernel.kernel import Kernel
from costate.kernel.ops.cond import Cond
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.dense import Common, Dense
from costate.kernel.ops.epsilon import Epsilon
from costate.kernel.ops.finite import Finite
from costate.kernel.ops.index_tables import index_table
from costate.kernel.ops.map import Map
from costate.kernel.ops.scan import Scan
from costate.kernel.ops.walk import Walk
from costate.kernel.signature import Spec
from costate.kernel.tracing import Body, Later, body_program, derivative_program, trace

Shape = int | tuple[int, ...]
Shaped = Var | tuple[Var, tuple[int, int]]
"""A vector, or a vector to be read as a row-major matrix (rows, columns)."""


@dataclass
class ProgramBuilder:
    """Chains stages into one kernel.

        b = ProgramBuilder("rollout")
        x, u = b.input("x", 4), b.input("u", (100, 1))
        final, _, states = b.scan(step, 100, carry=x, sequences=[u], keep=True)
        b.output("states", states, (101, 4))
        rollout = b.kernel()

    Bodies are plain Python functions of CasADi symbols (their sizes follow from the variables they are given), CasADi
    functions of column vectors, or programs (`b.program()` of another builder). Variables are vectors; a sequence is its rows
    one after the other.
    """

    name: str = "program"
    _builder: Builder = field(default_factory=Builder)
    _inputs: list[Spec] = field(default_factory=list)
    _outputs: list[tuple[Spec, Var]] = field(default_factory=list)

    def input(self, name: str, shape: Shape) -> Var:
        """Declare a named input of shape (n,), or (rows, n) for a sequence or a row-major matrix."""
        spec = self._spec("input", name, shape, self._inputs)
        self._inputs.append(spec)
        return self._builder.input(spec.size)

    def inputs(self, *sizes: int, **named: Shape) -> list[Var]:
        """Declare several inputs: those without a name are called i0, i1, ... (for programs, whose inputs have an order only)."""
        given = {f"i{len(self._inputs) + k}": n for k, n in enumerate(sizes)}
        return [self.input(name, shape) for name, shape in (given | named).items()]

    def like(self, program: Program) -> list[Var]:
        """Declare inputs as another program has them."""
        return self.inputs(*program.in_sizes)

    def output(self, name: str, value: Var, shape: Shape | None = None) -> None:
        """Name a value as an output, of shape (n,), or (rows, n) for a sequence or a row-major matrix."""
        shape = value.size if shape is None else shape
        spec = self._spec("output", name, shape, [s for s, _ in self._outputs])
        self._builder.check_known([value])
        if spec.size != value.size:
            raise ValueError(
                f"output '{name}' of shape {spec.shape} has {spec.size} elements, but the value has {value.size}"
            )
        self._outputs.append((spec, value))

    def _spec(self, role: str, name: str, shape: Shape, have: Sequence[Spec]) -> Spec:
        spec = Spec(name, (shape,) if isinstance(shape, int) else tuple(shape))
        if any(s.name == name for s in have):
            raise ValueError(f"program '{self.name}' has an {role} '{name}' already; choose another name")
        if len(spec.shape) not in (1, 2):
            raise ValueError(f"{role} '{name}' has shape {spec.shape}; expected (n,) or (rows, n)")
        return spec

    def program(self, *values: Var) -> Program:
        """Return the program that computes the outputs, or the values given here (a program's outputs have an order only)."""
        if values and self._outputs:
            raise ValueError(f"program '{self.name}' has named outputs: name all of them, or give all of them here")
        return self._builder.finish(*(values or (v for _, v in self._outputs)))

    def kernel(self, check_finite: bool = False) -> Kernel:
        """Return the program as a kernel with the names of its inputs and outputs."""
        outputs = [spec for spec, _ in self._outputs]
        return Kernel.of_program(self.name, self.program(), self._inputs, outputs, check_finite)

    # --- stages ---------------------------------------------------------------------------------------------------

    @overload
    def trace(self, fn: Callable[..., ca.SX], *args: Shaped, name: str | None = None) -> Var: ...
    @overload
    def trace(self, fn: Callable[..., Sequence[ca.SX]], *args: Shaped, name: str | None = None) -> tuple[Var, ...]: ...
    def trace(self, fn: Callable[..., Any], *args: Shaped, name: str | None = None) -> Var | tuple[Var, ...]:
        """Apply a plain Python function of CasADi symbols: straight-line code.

            y, z = b.trace(lambda a, b: (a + b, a * ca.sin(b)), u, v)

        The symbols have the sizes of the variables and the names of fn's parameters; (value, (rows, columns)) is given to fn as
        a matrix, and a matrix it returns becomes a vector, both row by row. Returns a variable if fn returns one expression, a
        tuple of variables if it returns a tuple or a list.
        """
        values = [a if isinstance(a, Var) else a[0] for a in args]
        sizes = [a.size if isinstance(a, Var) else a[1] for a in args]
        function, several = trace(fn, sizes, name)
        found = self.call(function, *values)
        return tuple(found) if several else found[0]

    def call(self, body: Body, *args: Var) -> list[Var]:
        """Apply a function or a program; return the list of its results."""
        return self._builder.inline(body_program(body, [a.size for a in args]), *args)

    def constant(self, values: Any) -> Var:
        """Return a vector of numbers; those of an array are taken row by row."""
        numbers = np.asarray(values, np.float64).ravel()
        return self._builder.stage(Straight.of("constant", [], [ca.SX(ca.DM(numbers))]))[0]

    def slice(self, value: Var, start: int, size: int) -> Var:
        """Return elements start .. start + size of a vector, which are not moved."""
        if not 0 <= start <= start + size <= value.size:
            raise ValueError(f"slice {start}:{start + size} is outside of a vector of {value.size} elements")
        return self._builder.stage(Slice(value.size, start, size), value)[0]

    def concat(self, *values: Var) -> Var:
        """Join vectors, one after the other."""
        return concat(self._builder, *values)

    def add(self, u: Var, v: Var) -> Var:
        """Add two vectors."""
        return add(self._builder, u, v)

    def epsilon(self) -> Var:
        """Return the relative spacing of the kernel's numbers: 2.2e-16 in float64, 1.2e-7 in float32."""
        return self._builder.stage(Epsilon())[0]

    def zeros(self, size: int) -> Var:
        """Return a vector of zeros."""
        return zeros(self._builder, size)

    def scan(
        self,
        body: Body,
        steps: int,
        carry: Var | Sequence[Var],
        sequences: Sequence[Var] = (),
        shared: Sequence[Var] = (),
        keep: bool = False,
        reverse: bool = False,
    ) -> tuple[list[Var], list[Var], list[Var]]:
        """Repeat carry[t+1], y[t] = body(carry[t], x[t], shared). Return final carries, stacked results, and with `keep` the
        states ((steps + 1) rows) of every carry. If kept states are an output of the kernel, its backward reads them from
        there."""
        carries = [carry] if isinstance(carry, Var) else list(carry)
        rows = [s.size // steps for s in sequences] if steps else []
        program = body_program(body, [*_sizes(carries), *rows, *_sizes(shared)])
        op = Scan(program, steps, len(carries), len(sequences), (keep,) * len(carries), reverse)
        op.check()
        return op.split_out(self._builder.stage(op, *carries, *sequences, *shared))

    def while_loop(
        self, condition: Body, body: Body, limit: int, carry: Var | Sequence[Var], shared: Sequence[Var] = ()
    ) -> tuple[list[Var], Var]:
        """Repeat carry = body(carry, shared) while condition(carry, shared) is 1, at most `limit` times. Runs while any lane needs
        it; finished lanes are frozen. Returns final carries and the number of steps each sample took."""
        carries = [carry] if isinstance(carry, Var) else list(carry)
        n = len(carries)
        sizes = _sizes([*carries, *shared])
        op = Scan(body_program(body, sizes), limit, n, 0, (False,) * n, until=body_program(condition, sizes))
        op.check()
        result = self._builder.stage(op, *carries, *shared)
        return result[:n], result[n]

    def map(
        self,
        body: Body,
        inputs: Sequence[tuple[Var, np.ndarray]],
        outputs: Sequence[tuple[int, np.ndarray] | None],
    ) -> list[Var]:
        """Apply one function to k instances. inputs: (value, int table (k, n)): instance i reads those n elements. outputs: for
        every result (size, int table (k, m)): instance i is added to those m elements; None stacks the instances, (k * m)."""
        gather = tuple(index_table(t) for _, t in inputs)
        program = body_program(body, [t.shape[1] for t in gather])
        count = len(gather[0])
        stacked = [(count * m, np.arange(count * m)) for m in program.out_sizes]
        targets = [given or alone for given, alone in zip(outputs, stacked, strict=True)]
        scatter = tuple(
            np.asarray(t, np.int64).reshape(count, m) for (_, t), m in zip(targets, program.out_sizes, strict=True)
        )
        op = Map(program, gather, scatter, tuple(v.size for v, _ in inputs), tuple(n for n, _ in targets))
        op.check()
        return self._builder.stage(op, *(v for v, _ in inputs))

    def common(self, value: Var) -> Var:
        """Return a value that all samples share in the form that `dense` reads, and no other stage; NaN where samples differ."""
        return self._builder.stage(Common(value.size), value)[0]

    def dense(self, matrix: Var, x: Var) -> Var:
        """Return the product of a matrix (m, n), row by row, and a vector (n,). The matrix is `common` to all samples."""
        return self._builder.stage(Dense(matrix.size // x.size, x.size), matrix, x)[0]

    def walk(
        self,
        body: Body,
        flags: Var,
        states: Sequence[tuple[Var, np.ndarray]],
        reads: Sequence[tuple[Var, np.ndarray]] = (),
        sums: Sequence[tuple[int, np.ndarray]] = (),
        rounds: int = 1,
    ) -> tuple[list[Var], list[Var], list[Var]]:
        """Let instances change shared states one after the other: (local states, reads) -> (local states, results to be summed,
        rows), `rounds` times for every instance whose flag is not zero.

        states, reads: (value, int table (k, n)): instance i has those n elements. sums: (size, int table (k, m)) for the results
        that are added to a vector. Returns final states, sums, and the rows of all visits; a row is only written where some lane
        takes the instance, and may only be read by a walk with the same flags or fewer.
        """
        changed, read, summed = (tuple(index_table(t) for _, t in group) for group in (states, reads, sums))
        program = body_program(body, [t.shape[1] for t in (*changed, *read)])
        values = [v for v, _ in (*states, *reads)]
        sizes = tuple(v.size for v in values)
        n = len(states)
        totals = tuple(m for m, _ in sums)
        op = Walk(program, rounds, flags.size, changed, read, summed, sizes[:n], sizes[n:], totals, (False,) * n)
        op.check()
        return op.split_out(self._builder.stage(op, flags, *values))[:3]

    def cond(self, condition: Var, then: Body, otherwise: Body, *args: Var) -> list[Var]:
        """Apply then(args) where the condition is not zero, else otherwise(args). A branch no lane takes is not run."""
        op = Cond(body_program(then, _sizes(args)), body_program(otherwise, _sizes(args)))
        op.check()
        return self._builder.stage(op, condition, *args)

    def custom(
        self, body: Body, *args: Var, tangent: Body | Later | None = None, adjoint: Body | Later | None = None
    ) -> list[Var]:
        """Apply body(args) with derivatives of your own. tangent: (inputs, outputs, input tangents) -> output tangents; adjoint:
        (inputs, outputs, output seeds) -> input gradients. One that takes long to build may be given as Later(function)."""
        program = body_program(body, _sizes(args))
        ins, outs = program.in_sizes, program.out_sizes
        forward, backward = (
            derivative_program(tangent, ins + outs + ins),
            derivative_program(adjoint, ins + outs + outs),
        )
        op = Custom(program, forward, backward)
        op.check()
        return self._builder.stage(op, *args)

    def finite(self, *values: Var) -> Var:
        """Return a flag, 1 if all numbers of the vectors are finite, else 0. It has no derivative."""
        return self._builder.stage(Finite(tuple(_sizes(values))), self.constant([1.0]), *values)[0]

    def implicit(self, solver: Body, residual: Callable[..., ca.SX], *args: Var) -> Var:
        """Return y = solver(args) with residual(y, *args) = 0, differentiated by the implicit function theorem: derivatives depend
        on the solution alone, not on how it was found."""
        program = body_program(solver, _sizes(args))
        tangent, adjoint = implicit_derivatives(program, residual)
        return self.custom(program, *args, tangent=tangent, adjoint=adjoint)[0]

    def table(self, x: Var, grid: np.ndarray, axes: Sequence[Axis], method: str = "linear") -> Var:
        """Interpolate in a constant grid.

        Args:
            x: The point (d).
            grid: Values (n_1, ..., n_d, channels), at least two points per axis.
            axes: Per axis (first coordinate, spacing), or the increasing coordinates of its points.
            method: "linear", or "cubic" (Catmull-Rom, continuous first derivatives).
        Beyond the grid, linear extrapolates the last cell; cubic does too, with its edge points repeated.
        """
        return interpolate(self._builder, x, np.asarray(grid, np.float64), axes, method)


def _sizes(values: Sequence[Var]) -> list[int]:
    return [v.size for v in values]
