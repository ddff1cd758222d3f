"""Building programs over fields: arrays of numbers with an axis of entities (nodes, elements, particles, cells).

f = FieldBuilder("spread")
nodes, bars = f.entities("nodes", 1000), f.entities("bars", 999)
ends = f.table(bars, nodes, np.stack([np.arange(999), np.arange(1, 1000)], 1))
T, k = f.field("T", nodes), f.input("k", 1)
heat, = f.for_each(bars, lambda T, k: k * ca.vertcat(T[1] - T[0], T[0] - T[1]), [T[ends], k], [ends])
new, = f.for_each(nodes, lambda T, q: T + q, [T, heat], [OWN])
f.field_output("T", new)
step = f.kernel()                # step(T=(..., 1000), k=(..., 1)).T
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costate.kernel.build import ProgramBuilder
from costate.kernel.ir.program import Builder, Op, Program, Stage, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.checkpoints import level_lengths, nested_scan
from costate.kernel.ops.fields.access import Access, Greatest, Indexed, Own, Shared, Stencil
from costate.kernel.ops.fields.blocks import BLOCK, block_count
from costate.kernel.ops.fields.for_each import ForEach
from costate.kernel.ops.fields.krylov import ConjugateGradients, Space
from costate.kernel.ops.fields.newton import Matrix, Newton
from costate.kernel.ops.fields.pack import Pack, Unpack
from costate.kernel.ops.index_tables import check_table, index_table
from costate.kernel.ops.scan import Scan
from costate.kernel.tracing import Body, Size, trace

OWN = "own"
"""Write: the entity's own numbers."""
TOTAL = "total"
"""Write: the sum over all entities, a vector that all can read."""
GREATEST = "greatest"
"""Write: the greatest number of all entities, and 0, one by one: a vector that all can read, without a derivative."""


@dataclass(frozen=True)
class Entities:
    """A set of entities."""

    name: str
    count: int


@dataclass(frozen=True, eq=False)
class Table:
    """A constant table (count, m): which entities of another set each entity reads, or adds to."""

    of: Entities
    to: Entities
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Around:
    """Cells of a grid around a computed index: those at index + offsets."""

    to: Entities
    index: Field
    """Number of a cell, per entity, as a field of whole numbers. It has no derivative."""
    offsets: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Field:
    """Numbers of all entities of a set: n each."""

    of: Entities
    n: int
    var: Var

    def __getitem__(self, place: Table | Around) -> Read:
        """Read the numbers of other entities: those of a table, or around an index."""
        if place.to != self.of:
            raise ValueError(
                f"a field of {self.of.count} {self.of.name} is read through a table of {place.to.count} {place.to.name}; "
                "give a table to the entities that have the field"
            )
        return Read(self, place)


@dataclass(frozen=True, eq=False)
class Read:
    """A field read through a table or around an index."""

    field: Field
    place: Table | Around


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of a solve, and how it was found."""

    value: Field
    status: Var
    """Numbers about the solve: converged (1; 0 or NaN if it broke down or ran out of iterations), relative residual, iterations of
    conjugate gradients; of `solve` also the number of Newton steps. It has no derivative."""


Write = str | Table | Around
Operator = Program | Callable[..., Field]
"""Function of fields and shared vectors: a program, or (builder, x, *args) -> field, which adds stages to the builder."""


@dataclass
class FieldBuilder(ProgramBuilder):
    """Chains stages over fields into one kernel. Everything that `ProgramBuilder` has works on vectors that all entities share."""

    def entities(self, name: str, count: int) -> Entities:
        """Declare a set of entities."""
        if count < 1:
            raise ValueError(f"{count} {name}: expected at least one")
        return Entities(name, count)

    def table(self, of: Entities, to: Entities, rows: np.ndarray) -> Table:
        """Declare a constant table (count, m) of entities that each entity reads, or adds to."""
        rows = index_table(rows)
        check_table(rows, (of.count, rows.shape[1]), to.count)
        return Table(of, to, rows)

    def around(self, to: Entities, index: Field, offsets: Sequence[int]) -> Around:
        """Declare the cells at a computed index plus offsets. An index that would leave the grid is moved to its edge."""
        if index.n != 1:
            raise ValueError(f"an index has {index.n} numbers per entity; expected one, the number of a cell")
        return Around(to, index, tuple(int(k) for k in offsets))

    def field(self, name: str, of: Entities, n: int | None = None, frames: int | None = None) -> Field:
        """Declare a field as a named input: (count, n), or (count,) without n; (frames, count * n) for the sequence of a scan."""
        shape = of.count if n is None else (of.count, n)
        plain = self.input(name, shape if frames is None else (frames, of.count * (n or 1)))
        return Field(of, n or 1, self._builder.stage(Pack(of.count, n or 1, frames or 1), plain)[0])

    def carried(self, of: Entities, n: int = 1) -> Field:
        """Declare a field as an input of a program: the body of a scan takes its carries so."""
        (var,) = self.inputs(block_count(of.count) * n)
        return Field(of, n, var)

    def field_output(self, name: str, value: Field, frames: int = 1, flat: bool | None = None) -> None:
        """Name a field as an output: (count, n), or (count,) for one number per entity; (frames, count * n) with frames that a scan
        has stacked."""
        of, n = value.of, value.n
        plain = self._builder.stage(Unpack(of.count, n, frames), value.var)[0]
        one = n == 1 if flat is None else flat
        self.output(name, plain, (frames, of.count * n) if frames > 1 else of.count * n if one else (of.count, n))

    def as_field(self, var: Var, of: Entities, n: int = 1) -> Field:
        """Return a vector that a scan has carried as the field it is."""
        return Field(of, n, var)

    def scan(
        self,
        body: Body,
        steps: int,
        carry: Var | Sequence[Var],
        sequences: Sequence[Var] = (),
        shared: Sequence[Var] = (),
        keep: bool = False,
        reverse: bool = False,
        memory: str | float | None = None,
    ) -> tuple[list[Var], list[Var], list[Var]]:
        """Repeat a step; see `ProgramBuilder.scan`. A backward pass keeps the sums that entities add to others': they are short,
        and what they are made of is long to compute.

        memory: Bytes that a gradient in float64 may keep, such as "2 GB"; where all states do not fit, checkpoints are kept in as
        many levels as it takes (see `checkpoints.py`). None: all states.
        """
        if not isinstance(body, Program):
            if memory is not None:
                raise ValueError(
                    "memory limits scans whose body is a program; give `g.program(...)` of another builder"
                )
            return super().scan(body, steps, carry, sequences, shared, keep, reverse)
        carries = [carry] if isinstance(carry, Var) else list(carry)
        if memory is None:
            return _remembering(self._builder, body, steps, carries, sequences, shared, keep, reverse)
        if keep or reverse:
            raise ValueError(
                "a scan with a limit of memory runs forward and keeps no states: leave out keep and reverse"
            )
        number = BLOCK * 8
        more = number * sum(v.size for v in _sums_of(body))
        lengths = level_lengths(steps, number * sum(c.size for c in carries), more, memory)

        def repeat(b: Builder, *given: Any) -> tuple[list[Var], list[Var]]:
            return _remembering(b, *given)[:2]

        found = nested_scan(self._builder, repeat, body, lengths, steps, carries, list(sequences), list(shared))
        return *found, []

    def for_each(
        self,
        of: Entities,
        body: Callable[..., Any],
        reads: Sequence[Field | Read | Var],
        writes: Sequence[Write] = (OWN,),
        between: Var | None = None,
    ) -> list[Any]:
        """Apply a function of symbols to every entity; return a field, or for TOTAL a vector, per write.

        Args:
            of: The entities.
            body: Function of SX: a column (n) for the entity's own field and for shared vectors, (m, n) for what is read through a
                table or around an index (a column if n is 1). It returns a column per write.
            reads: Own fields, fields of other entities (`T[table]`), vectors that all share.
            writes: OWN, TOTAL, GREATEST, or a table or cells whose entities the result is added to (m * n numbers, entry by entry).
            between: Vector (2): first entity, and the one behind the last, that do anything; what others write is 0.
        """
        accesses, sizes, values = [], [], []
        indices: list[Field] = []
        for r in reads:
            access, size, var = _read(of, r, indices)
            accesses.append(access)
            sizes.append(size)
            values.append(var)
        traced, _ = trace(body, sizes)
        fn = Straight(traced)
        if len(fn.out_sizes) != len(writes):
            raise ValueError(f"the function of {of.name} returned {len(fn.out_sizes)} results for {len(writes)} writes")
        targets = [_write(of, w, size, indices) for w, size in zip(writes, fn.out_sizes, strict=True)]
        op = ForEach(fn, of.count, tuple(accesses), tuple(targets), len(indices), between is not None)
        op.check()
        limits = [between] if between is not None else []
        found = self._builder.stage(op, *limits, *values, *(i.var for i in indices))
        return [_made(of, w, a, v) for w, a, v in zip(writes, targets, found, strict=True)]

    def cg(
        self,
        apply: Operator,
        rhs: Field,
        args: Sequence[Field | Var] = (),
        diagonal: Field | None = None,
        tolerance: float = 1e-10,
        limit: int = 1000,
        precondition: tuple[Operator, Sequence[Field | Var]] | None = None,
    ) -> Solution:
        """Solve A x = b by conjugate gradients; A is symmetric and positive definite.

        Args:
            apply: Operator (x, *args) -> A x.
            rhs: Right-hand side b.
            args: What A depends on: fields and shared vectors. Derivatives with respect to them and to b are those of the solution.
            diagonal: Positive field that preconditions, for instance the diagonal of A. It changes the iterations only.
            tolerance: Largest |b - A x| / |b|; 5e-7 at least in float32, 1e-15 in float64.
            limit: Largest number of iterations.
            precondition: Symmetric positive definite operator (r, *numbers) -> z about as A^-1, and the numbers, instead of a
                diagonal. Nothing is differentiated by them.

        A derivative whose own solve does not reach the tolerance is NaN. In derivatives of both orders A is taken as symmetric.
        """
        space = Space(rhs.of.count, rhs.n)
        program = self._operator(apply, rhs, args)
        scale = [] if diagonal is None else [diagonal]
        by = diagonal is not None
        if precondition is not None:
            by, scale = self._operator(precondition[0], rhs, precondition[1]), list(precondition[1])
        op = ConjugateGradients(program, space, by, tolerance, limit)
        op.check()
        return self._solution(op, rhs, [rhs, *scale, *args])

    def solve(
        self,
        residual: Operator,
        start: Field,
        args: Sequence[Field | Var] = (),
        diagonal: Operator | None = None,
        tolerance: float = 1e-10,
        steps: int = 50,
        limit: int = 1000,
        matrix: Matrix | None = None,
    ) -> Solution:
        """Solve R(y, *args) = 0 by Newton's method; the Jacobian of R is symmetric and positive definite.

        Args:
            residual: Operator (y, *args) -> R. It may have kinks, and steep parts.
            start: Where to start. The solution does not depend on it, nor do derivatives.
            args: What R depends on: fields and shared vectors. Derivatives with respect to them are those of the solution.
            diagonal: Operator (y, *args) -> positive field that preconditions, for instance the diagonal of the Jacobian.
            tolerance: Largest |R| / |R at the start|, 5e-7 at least in float32. A step that is lost in the rounding of y is enough.
            steps: Largest number of Newton steps.
            limit: Largest number of iterations of conjugate gradients in a step.
            matrix: Programs of products with the Jacobian, instead of the derivative of the residual and a diagonal.
        """
        space = Space(start.of.count, start.n)
        by = None if diagonal is None else self._operator(diagonal, start, args)
        op = Newton(self._operator(residual, start, args), by, space, tolerance, steps, limit, matrix)
        op.check()
        return self._solution(op, start, [start, *args])

    def _operator(self, operator: Operator, x: Field, args: Sequence[Field | Var]) -> Program:
        """Return the program of an operator."""
        if isinstance(operator, Program):
            return operator
        g = FieldBuilder("operator")
        ins = [g.carried(a.of, a.n) if isinstance(a, Field) else g.inputs(a.size)[0] for a in (x, *args)]
        return g.program(operator(g, *ins).var)

    def _solution(self, op: Op, like: Field, given: Sequence[Field | Var]) -> Solution:
        value, status = self._builder.stage(op, *(v.var if isinstance(v, Field) else v for v in given))
        return Solution(Field(like.of, like.n, value), status)


def _remembering(
    b: Builder,
    body: Program,
    steps: int,
    carries: Sequence[Var],
    sequences: Sequence[Var],
    shared: Sequence[Var],
    keep: bool = False,
    reverse: bool = False,
) -> tuple[list[Var], list[Var], list[Var]]:
    """Add a scan whose backward pass keeps the sums of its body."""
    sums = _sums_of(body)
    n, own = len(carries), len(body.outputs)
    program = replace(body, outputs=(*body.outputs, *sums))
    remember = tuple(range(own - n, own - n + len(sums)))
    op = Scan(program, steps, n, len(sequences), (keep,) * n, reverse, remember=remember)
    op.check()
    finals, results, states = op.split_out(b.stage(op, *carries, *sequences, *shared))
    return finals, results[: own - n], states


def _sums_of(body: Program) -> list[Var]:
    """Return all sums that entities of a program add to others', except its results."""
    return [v for s in body.stages if isinstance(s.op, ForEach) for v in _sums(s) if v not in body.outputs]


def _sums(stage: Stage) -> list[Var]:
    """Return the results of a stage that are sums at other entities."""
    assert isinstance(stage.op, ForEach)
    writes = zip(stage.op.writes, stage.outputs, strict=True)
    return [v for w, v in writes if isinstance(w, Indexed | Stencil)]


def _read(of: Entities, read: Field | Read | Var, indices: list[Field]) -> tuple[Access, Size, Var]:
    if isinstance(read, Var):
        return Shared(read.size), read.size, read
    if isinstance(read, Field):
        if read.of != of:
            raise ValueError(f"a function of {of.name} reads a field of {read.of.name}: name a table, field[table]")
        return Own(of.count, read.n), read.n, read.var
    access = _reach(of, read.place, read.field.n, indices)
    m = access.width // read.field.n
    return access, (m if read.field.n == 1 else (m, read.field.n)), read.field.var


def _reach(of: Entities, place: Table | Around, n: int, indices: list[Field]) -> Access:
    if isinstance(place, Table):
        if place.of != of:
            raise ValueError(f"a function of {of.name} uses a table of {place.of.name}")
        return Indexed(place.rows, place.to.count, n)
    if place.index.of != of:
        raise ValueError(f"a function of {of.name} uses an index of {place.index.of.name}")
    if place.index not in indices:
        indices.append(place.index)
    return Stencil(place.to.count, place.offsets, n, indices.index(place.index))


def _write(of: Entities, write: Write, size: int, indices: list[Field]) -> Access:
    if write == OWN:
        return Own(of.count, size)
    if write == TOTAL:
        return Shared(size)
    if write == GREATEST:
        return Greatest(size)
    assert isinstance(write, Table | Around)
    m = write.rows.shape[1] if isinstance(write, Table) else len(write.offsets)
    if size % m:
        raise ValueError(
            f"the function of {of.name} returned {size} numbers for {m} {write.to.name}: expected a multiple"
        )
    return _reach(of, write, size // m, indices)


def _made(of: Entities, write: Write, access: Access, var: Var) -> Field | Var:
    if write in (TOTAL, GREATEST):
        return var
    return Field(of if write == OWN else write.to, access.n, var)  # type: ignore[union-attr]
