"""The problem Newton's method solves: its numbers, and what the problems of all states have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.sim.contact.newton.cost import Cost
from costate.sim.contact.newton.rows import Block


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of a problem, as symbols or expressions."""

    M: SX
    """Mass matrix (nv, nv), lower triangle."""
    f: SX
    J: tuple[SX, ...]
    """Jacobian of every group, (rows, nv)."""
    D: SX
    """Weight of every block, (blocks,)."""
    target: SX
    """Reference accelerations aref, (n,)."""
    mu: SX
    """Friction coefficients that are not constant, (any,)."""

    def flat(self) -> list[SX]:
        """Return all numbers as dense columns."""
        j = ca.vertcat(SX(0, 1), *map(nonzeros, self.J))
        return [ca.densify(x) for x in (nonzeros(self.M), self.f, j, self.D, self.target, self.mu)]


@dataclass(frozen=True, eq=False)
class Group:
    """Blocks that are looked at together."""

    index: int
    blocks: range
    rows: slice
    nz: slice
    """Range among the entries of all Jacobians."""
    always: bool
    """Limits and joint friction cost too little to be skipped."""


@dataclass(frozen=True, eq=False)
class Part:
    """The symbols of one group."""

    J: SX
    D: SX
    target: SX
    mu: SX

    def inputs(self, which: str) -> list[SX]:
        of = {"j": nonzeros(self.J), "d": self.D, "t": self.target, "m": self.mu}
        return [of[c] for c in which]


@dataclass(frozen=True, eq=False)
class Problem:
    """Patterns and kinds of costs."""

    M: ca.Sparsity
    J: tuple[ca.Sparsity, ...]
    """Pattern of the Jacobian of every group."""
    costs: tuple[Cost, ...]
    friction: tuple[tuple[float | int, ...], ...]
    """Coefficients of every block: numbers (float), or indices into Data.mu (int)."""
    groups: tuple[Group, ...]
    order: tuple[int, ...]
    """Number of every row here, in the order in which the constraints were found."""

    @property
    def nv(self) -> int:
        return self.M.size1()

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(pattern.size1() for pattern in self.J)

    @cached_property
    def symbols(self) -> Data:
        variable = 1 + max((m for row in self.friction for m in row if isinstance(m, int)), default=-1)
        sizes = {"f": self.nv, "D": len(self.costs), "target": self.n, "mu": variable}
        f, D, target, mu = (SX.sym(name, size) for name, size in sizes.items())
        J = tuple(SX.sym(f"j{k}", pattern) for k, pattern in enumerate(self.J))
        return Data(SX.sym("m", self.M), f, J, D, target, mu)

    @cached_property
    def inputs(self) -> list[SX]:
        """Symbols of the flat data."""
        return self.symbols.flat()

    def part(self, g: Group) -> Part:
        d = self.symbols
        return Part(d.J[g.index], d.D[g.blocks.start : g.blocks.stop], d.target[g.rows], d.mu)

    def blocks(self, g: Group, x: SX, part: Part | None = None) -> Iterator[tuple[Cost, list[SX], SX, list[SX]]]:
        """Yield (cost, its x, weight, friction coefficients) for the rows x of a group."""
        own = part or self.part(g)
        at = 0
        for n, k in enumerate(g.blocks):
            cost = self.costs[k]
            mu = [own.mu[m] if isinstance(m, int) else SX(m) for m in self.friction[k]]
            yield cost, [x[i] for i in range(at, at + cost.dim)], own.D[n], mu
            at += cost.dim

    # --- pieces of the cost ---------------------------------------------------------------------------------------

    def full_mass(self) -> SX:
        lower = self.symbols.M
        return lower + ca.tril(lower, False).T

    def mass_times(self, a: SX) -> SX:
        return self.full_mass() @ a

    def deviations(self, a: SX) -> SX:
        """Return x = J a - aref of all rows."""
        return ca.densify(ca.vertcat(*self.symbols.J) @ a - self.symbols.target)

    def force(self, x: SX) -> SX:
        """Return the forces of all rows, (n,)."""
        rows = [f for g in self.groups for c, v, D, mu in self.blocks(g, x[g.rows]) for f in c.force(v, D, mu)]
        return ca.vertcat(*rows)

    def gradient(self, a: SX, x: SX) -> SX:
        return self.mass_times(a) - self.symbols.f - ca.vertcat(*self.symbols.J).T @ self.force(x)

    def hessian(self, x: SX) -> SX:
        """Return the lower triangle of the Hessian."""
        return sum((self._bend(g, x[g.rows]) for g in self.groups), self.symbols.M)

    def _bend(self, g: Group, x: SX) -> SX:
        J = self.symbols.J[g.index]
        C = ca.diagcat(*(c.hessian(v, D, mu) for c, v, D, mu in self.blocks(g, x)))
        return ca.tril(J.T @ (C @ J))

    def terms(self, g: Group) -> ca.Function:
        """Return (Jacobian, weights, friction, x) of a group -> entries of its part of the Hessian and of its generalised
        forces."""
        own = self.part(g)
        x = SX.sym("x", g.rows.stop - g.rows.start)
        push = own.J.T @ ca.vertcat(*(f for c, v, D, mu in self.blocks(g, x) for f in c.force(v, D, mu)))
        bend = self._bend(g, x)
        return ca.Function("terms", [*own.inputs("jdm"), x], [nonzeros(bend), nonzeros(push)])

    def patterns(self, g: Group) -> tuple[ca.Sparsity, ca.Sparsity]:
        """Return the patterns of what `terms` returns."""
        x = SX.sym("x", g.rows.stop - g.rows.start)
        ones = SX.sym("f", x.numel())
        return self._bend(g, x).sparsity(), (self.symbols.J[g.index].T @ ones).sparsity()


def make_groups(blocks: Sequence[Block]) -> tuple[list[int], list[Group]]:
    """Return an order of the blocks by what they belong to, and the groups in that order."""
    keys = [b.group for b in blocks]
    order = sorted(range(len(blocks)), key=lambda k: (keys[k] == "", keys[k], k))
    groups: list[Group] = []
    start, row, entry = 0, 0, 0
    while start < len(order):
        own = [k for k in order[start:] if keys[k] == keys[order[start]]]
        rows, entries = sum(blocks[k].dim for k in own), sum(blocks[k].J.nnz() for k in own)
        span = range(start, start + len(own))
        groups.append(
            Group(len(groups), span, slice(row, row + rows), slice(entry, entry + entries), keys[own[0]] == "")
        )
        start, row, entry = start + len(own), row + rows, entry + entries
    return order, groups


def make_problem(M: SX, f: SX, found: Sequence[Block], cone: str, impratio: float) -> tuple[Data, Problem]:
    """Return the numbers of a problem as expressions, and what is constant about it. M: (nv, nv)."""
    order, groups = make_groups(found)
    sorted_blocks = [found[k] for k in order]
    J = tuple(ca.vertcat(*(sorted_blocks[k].J for k in g.blocks)) for g in groups)
    friction, mu = _pack([b.friction for b in sorted_blocks])
    D, target = (ca.vertcat(SX(0, 1), *(getattr(b, x) for b in sorted_blocks)) for x in ("weight", "target"))
    costs = tuple(Cost(b.kind, b.dim, cone, impratio) for b in sorted_blocks)
    lower = ca.tril(M)
    patterns = tuple(x.sparsity() for x in J)
    problem = Problem(lower.sparsity(), patterns, costs, friction, tuple(groups), tuple(_rows(found, order)))
    return Data(lower, f, J, D, target, mu), problem


def _rows(found: Sequence[Block], order: Sequence[int]) -> list[int]:
    """Return the row in the new order of every row in the old one."""
    start: dict[int, int] = {}
    at = 0
    for k in order:
        start[k] = at
        at += found[k].dim
    return [start[k] + i for k, b in enumerate(found) for i in range(b.dim)]


def nonzeros(A: SX) -> SX:
    """Return the nonzeros as a column; CasADi makes a row of those of a row."""
    return ca.vec(SX(A.nz[:])) if A.nnz() else SX(0, 1)


def _pack(values: Sequence[Sequence[SX]]) -> tuple[tuple[tuple[float | int, ...], ...], SX]:
    """Return friction coefficients as numbers, or as indices into the vector of those that are not constant."""
    variable: list[SX] = []
    rows = []
    for own in values:
        row: list[float | int] = []
        for m in own:
            if m.is_constant():
                row.append(float(m))
                continue
            known = next((k for k, v in enumerate(variable) if ca.is_equal(v, m, 1)), None)
            if known is None:
                known = len(variable)
                variable.append(m)
            row.append(known)
        rows.append(tuple(row))
    return tuple(rows), ca.vertcat(SX(0, 1), *variable)
