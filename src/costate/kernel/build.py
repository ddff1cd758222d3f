"""Building programs: named inputs and outputs, and a method per kind of stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any, overload

import casadi as ca
import numpy as np

from costate.kernel.ir.program import Builder, Program, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import Slice, add, concat, zeros
from costate.kernel.kernel import Kernel
from costate.kernel.ops.cond import Cond
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.map import Map
from costate.kernel.ops.scan import Scan
from costate.kernel.ops.table import Corners
from costate.kernel.ops.walk import Walk
from costate.kernel.signature import Spec
from costate.kernel.tracing import Body, body_program, trace

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
        """A named input of shape (n,), or (rows, n) for a sequence or a row-major matrix."""
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
        """Elements start .. start + size."""
        if not 0 <= start <= start + size <= value.size:
            raise ValueError(f"slice {start}:{start + size} is outside of a vector of {value.size} elements")
        return self._builder.stage(Slice(value.size, start, size), value)[0]

    def concat(self, *values: Var) -> Var:
        return concat(self._builder, *values)

    def add(self, u: Var, v: Var) -> Var:
        return add(self._builder, u, v)

    def zeros(self, size: int) -> Var:
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
        """carry[t+1], y[t] = body(carry[t], x[t], shared). Returns final carries, stacked results, and with `keep` the states
        ((steps + 1) rows) of every carry. If kept states are an output of the kernel, its backward reads them from there."""
        carries = [carry] if isinstance(carry, Var) else list(carry)
        rows = [s.size // steps for s in sequences] if steps else []
        program = body_program(body, [*_sizes(carries), *rows, *_sizes(shared)])
        op = Scan(program, steps, len(carries), len(sequences), (keep,) * len(carries), reverse)
        self._check_scan(op, carries)
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
        self._check_scan(op, carries)
        result = self._builder.stage(op, *carries, *shared)
        return result[:n], result[n]

    def _check_scan(self, op: Scan, carries: list[Var]) -> None:
        given, made = tuple(c.size for c in carries), op.body.out_sizes[: op.n_carry]
        if given != made:
            raise ValueError(
                f"the body of a scan must return the carries it takes, first: carries have sizes {given}, it returns {made}"
            )

    def map(
        self,
        body: Body,
        inputs: Sequence[tuple[Var, np.ndarray]],
        outputs: Sequence[tuple[int, np.ndarray] | None],
    ) -> list[Var]:
        """One function over k instances. inputs: (value, int table (k, n)): instance i reads those n elements. outputs: for every
        result (size, int table (k, m)): instance i is added to those m elements; None stacks the instances, (k * m)."""
        gather = tuple(np.atleast_2d(np.asarray(t, np.int64)) for _, t in inputs)
        program = body_program(body, [t.shape[1] for t in gather])
        count = len(gather[0])
        scatter, sizes = [], []
        for spec, m in zip(outputs, program.out_sizes, strict=True):
            size, table = spec or (count * m, np.arange(count * m).reshape(count, m))
            scatter.append(np.asarray(table, np.int64).reshape(count, m))
            sizes.append(size)
        in_sizes = tuple(v.size for v, _ in inputs)
        _check_tables(program, gather, in_sizes, scatter, sizes)
        op = Map(program, gather, tuple(scatter), in_sizes, tuple(sizes))
        return self._builder.stage(op, *(v for v, _ in inputs))

    def walk(
        self,
        body: Body,
        flags: Var,
        states: Sequence[tuple[Var, np.ndarray]],
        reads: Sequence[tuple[Var, np.ndarray]] = (),
        sums: Sequence[tuple[int, np.ndarray]] = (),
        rounds: int = 1,
    ) -> tuple[list[Var], list[Var], list[Var]]:
        """Instances that change shared states one after the other: (local states, reads) -> (local states, results to be summed,
        rows), `rounds` times for every instance whose flag is not zero.

        states, reads: (value, int table (k, n)): instance i has those n elements. sums: (size, int table (k, m)) for the results
        that are added to a vector. Returns final states, sums, and the rows of all visits; a row is only written where some lane
        takes the instance, and may only be read by a walk with the same flags or fewer.
        """
        tables = [[np.atleast_2d(np.asarray(t, np.int64)) for _, t in group] for group in (states, reads, sums)]
        program = body_program(body, [t.shape[1] for t in (*tables[0], *tables[1])])
        sizes = [tuple(v.size for v, _ in states), tuple(v.size for v, _ in reads), tuple(n for n, _ in sums)]
        n, r = len(states), len(reads)
        local, results = program.in_sizes[: n + r], program.out_sizes[n : n + len(sums)]
        if len(program.in_sizes) != n + r or program.out_sizes[:n] != program.in_sizes[:n]:
            raise ValueError(
                f"the body of a walk takes {n} local states and {r} reads and returns the states first: it maps "
                f"{program.in_sizes} to {program.out_sizes}"
            )
        for table, width, size in zip(chain(*tables), (*local, *results), chain(*sizes), strict=True):
            _check_table_of(table, (flags.size, width), size)
        for table in tables[0]:
            if any(len(set(row)) < len(row) for row in table.tolist()):
                raise ValueError("an instance of a walk must not have an element of a state twice")
        op = Walk(program, rounds, flags.size, *map(tuple, tables), *sizes, keep=(False,) * n)  # type: ignore[arg-type]
        return op.split_out(self._builder.stage(op, flags, *(v for v, _ in states), *(v for v, _ in reads)))[:3]

    def cond(self, condition: Var, then: Body, otherwise: Body, *args: Var) -> list[Var]:
        """then(args) where the condition is not zero, else otherwise(args). A branch no lane takes is not run."""
        op = Cond(body_program(then, _sizes(args)), body_program(otherwise, _sizes(args)))
        if op.then.in_sizes != op.otherwise.in_sizes or op.then.out_sizes != op.otherwise.out_sizes:
            raise ValueError(
                f"both branches must take and return the same sizes: {op.then.in_sizes} -> {op.then.out_sizes} and "
                f"{op.otherwise.in_sizes} -> {op.otherwise.out_sizes}"
            )
        return self._builder.stage(op, condition, *args)

    def custom(self, body: Body, *args: Var, tangent: Body | None = None, adjoint: Body | None = None) -> list[Var]:
        """body(args) with derivatives of your own. tangent: (inputs, outputs, input tangents) -> output tangents; adjoint: (inputs,
        outputs, output seeds) -> input gradients."""
        program = body_program(body, _sizes(args))
        ins, outs = program.in_sizes, program.out_sizes
        forward = None if tangent is None else body_program(tangent, ins + outs + ins)
        backward = None if adjoint is None else body_program(adjoint, ins + outs + outs)
        op = Custom(program, forward, backward)
        _check_custom(op)
        return self._builder.stage(op, *args)

    def implicit(self, solver: Body, residual: Callable[..., ca.SX], *args: Var) -> Var:
        """y = solver(args) with residual(y, *args) = 0, differentiated by the implicit function theorem: derivatives depend on
        the solution alone, not on how it was found."""
        program = body_program(solver, _sizes(args))
        tangent, adjoint = _implicit_derivatives(program, residual)
        return self.custom(program, *args, tangent=tangent, adjoint=adjoint)[0]

    def table(
        self, x: Var, grid: np.ndarray, axes: Sequence[tuple[float, float] | np.ndarray], method: str = "linear"
    ) -> Var:
        """Interpolate in a constant grid.

        Args:
            x: The point (d).
            grid: Values (n_1, ..., n_d, channels), at least two points per axis.
            axes: Per axis (first coordinate, spacing), or the increasing coordinates of its points.
            method: "linear", or "cubic" (Catmull-Rom, continuous first derivatives).
        Beyond the grid, linear extrapolates the last cell; cubic does too, with its edge points repeated.
        """
        grid = np.asarray(grid, np.float64)
        _check_table(x, grid, axes, method)
        before, reach = {"linear": (0, 2), "cubic": (1, 4)}[method]
        (u,) = self.call(_cell_coordinates(grid.shape[:-1], axes), x)
        values, cell = self._builder.stage(Corners(grid, before, reach), u)
        return self.call(_interpolation(len(grid.shape) - 1, grid.shape[-1], reach), u, cell, values)[0]


def _sizes(values: Sequence[Var]) -> list[int]:
    return [v.size for v in values]


def _check_tables(program, gather, in_sizes, scatter, sizes) -> None:
    tables = [
        *zip(gather, program.in_sizes, in_sizes, strict=True),
        *zip(scatter, program.out_sizes, sizes, strict=True),
    ]
    for table, width, size in tables:
        _check_table_of(table, (len(gather[0]), width), size)


def _check_table_of(table: np.ndarray, shape: tuple[int, int], size: int) -> None:
    if table.shape != shape:
        raise ValueError(f"an index table has shape {table.shape}, expected {shape}: instances x elements")
    if table.size and not 0 <= table.min() <= table.max() < size:
        raise ValueError(
            f"an index table reaches from {table.min()} to {table.max()}, outside of a vector of {size} elements"
        )


def _check_custom(op: Custom) -> None:
    ins, outs = op.in_sizes, op.out_sizes
    for name, program, expected, returned in (
        ("tangent", op.tangent, ins + outs + ins, outs),
        ("adjoint", op.adjoint, ins + outs + outs, ins),
    ):
        if program and (program.in_sizes != expected or program.out_sizes != returned):
            raise ValueError(
                f"the {name} of a custom stage must map sizes {expected} to {returned}, but maps {program.in_sizes} to "
                f"{program.out_sizes}"
            )


def _implicit_derivatives(program: Program, residual: Callable[..., ca.SX]) -> tuple[ca.Function, ca.Function]:
    args = [ca.SX.sym(f"a{k}", n) for k, n in enumerate(program.in_sizes)]
    (n,) = program.out_sizes
    y, seed = ca.SX.sym("y", n), ca.SX.sym("s", n)
    dots = [ca.SX.sym(f"d{k}", m) for k, m in enumerate(program.in_sizes)]
    r = residual(y, *args)
    jacobian = ca.jacobian(r, y)
    pushed = ca.jtimes(r, ca.vertcat(*args), ca.vertcat(*dots))
    tangent = ca.Function("tangent", [*args, y, *dots], [-ca.solve(jacobian, pushed)])
    multiplier = ca.solve(jacobian.T, seed)
    grads = [-ca.jtimes(r, a, multiplier, True) for a in args]
    return tangent, ca.Function("adjoint", [*args, y, seed], [ca.densify(g) for g in grads])


def _check_table(x: Var, grid: np.ndarray, axes: Sequence[object], method: str) -> None:
    d = grid.ndim - 1
    if method not in ("linear", "cubic"):
        raise ValueError(f"unknown interpolation '{method}': use 'linear' or 'cubic'")
    if d < 1 or x.size != d or len(axes) != d or min(grid.shape[:-1]) < 2:
        raise ValueError(
            f"a grid of shape {grid.shape} (points per axis, then channels) needs a point of {d} coordinates and {d} axes with at "
            f"least two points each; got a point of {x.size} and {len(axes)} axes"
        )


def _cell_coordinates(shape: Sequence[int], axes: Sequence[tuple[float, float] | np.ndarray]) -> ca.Function:
    """Coordinates in units of cells: exact for even axes, piecewise linear for given points."""
    x = ca.SX.sym("x", len(shape))
    rows = []
    for k, (n, axis) in enumerate(zip(shape, axes, strict=True)):
        if isinstance(axis, tuple) and len(axis) == 2 and np.ndim(axis[0]) == 0:
            rows.append((x[k] - axis[0]) / axis[1])
            continue
        points = np.asarray(axis, float)
        if points.shape != (n,) or np.any(np.diff(points) <= 0):
            raise ValueError(f"axis {k} needs {n} increasing coordinates, got {points}")
        u = (x[k] - points[0]) / (points[1] - points[0])
        for i in range(1, n - 1):
            u = ca.if_else(x[k] >= points[i], i + (x[k] - points[i]) / (points[i + 1] - points[i]), u)
        rows.append(u)
    return ca.Function("cells", [x], [ca.vertcat(*rows)])


def _interpolation(d: int, channels: int, reach: int) -> ca.Function:
    u, cell, values = ca.SX.sym("u", d), ca.SX.sym("cell", d), ca.SX.sym("values", reach**d * channels)
    weights = [_WEIGHTS[reach](u[k] - cell[k]) for k in range(d)]
    total = ca.SX.zeros(channels)
    for corner, step in enumerate(product(range(reach), repeat=d)):
        w = ca.SX(1)
        for axis, s in enumerate(step):
            w = w * weights[axis][s]
        total += w * values[corner * channels : (corner + 1) * channels]
    return ca.Function("interpolate", [u, cell, values], [total])


def _cubic(t: ca.SX) -> list[ca.SX]:
    """Catmull-Rom weights of the points at -1, 0, 1, 2."""
    return [
        ((-0.5 * t + 1) * t - 0.5) * t,
        (1.5 * t - 2.5) * t * t + 1,
        ((-1.5 * t + 2) * t + 0.5) * t,
        (0.5 * t - 0.5) * t * t,
    ]


_WEIGHTS: dict[int, Callable[[ca.SX], list[ca.SX]]] = {2: lambda t: [1 - t, t], 4: _cubic}
