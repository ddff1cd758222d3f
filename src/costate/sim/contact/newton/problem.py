"""The problem Newton's method solves: its numbers, and what the problems of all states have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import casadi as ca
from casadi import SX

from costate.physics.algebra.ltl import factor
from costate.sim.contact.newton.cost import Cost
from costate.sim.contact.newton.rows import Block


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of a problem, as expressions."""

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
    depth: SX = field(default_factory=lambda: SX(0, 1))
    """Depths of the blocks that begin and end, (onsets,)."""
    first: SX = field(default_factory=lambda: SX(0, 1))
    """Their weights at depth 0, then their dampings there, (2 onsets,)."""

    def deviations(self, a: SX) -> SX:
        """Return x = J a - aref of all rows."""
        return ca.densify(ca.vertcat(*self.J) @ a - self.target)

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

    @property
    def span(self) -> slice:
        """Range of its blocks among all blocks."""
        return slice(self.blocks.start, self.blocks.stop)


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
    onsets: tuple[int, ...]
    """Blocks that begin and end: contacts and limits."""

    @property
    def nv(self) -> int:
        return self.M.size1()

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(pattern.size1() for pattern in self.J)

    @property
    def sizes(self) -> list[int]:
        """Sizes of the flat data."""
        variable = 1 + max((m for row in self.friction for m in row if isinstance(m, int)), default=-1)
        return [self.M.nnz(), self.nv, sum(pattern.nnz() for pattern in self.J), len(self.costs), self.n, variable]

    @property
    def first_rows(self) -> list[int]:
        """Number of the first row of every block."""
        return [sum(c.dim for c in self.costs[:k]) for k in range(len(self.costs))]

    def data(self, m: SX, f: SX, j: SX, D: SX, target: SX, mu: SX) -> Data:
        """Return flat data in its shapes."""
        J = tuple(SX(pattern, j[g.nz]) for pattern, g in zip(self.J, self.groups, strict=True))
        return Data(SX(self.M, m), f, J, D, target, mu)

    def blocks(self, g: Group, x: SX, D: SX, mu: SX) -> Iterator[tuple[Cost, list[SX], SX, list[SX]]]:
        """Yield (cost, its x, weight, friction coefficients) for the rows x of a group, with its weights D."""
        at = 0
        for n, k in enumerate(g.blocks):
            cost = self.costs[k]
            own = [mu[m] if isinstance(m, int) else SX(m) for m in self.friction[k]]
            yield cost, [x[i] for i in range(at, at + cost.dim)], D[n], own
            at += cost.dim

    # --- pieces of the cost ---------------------------------------------------------------------------------------

    def mass(self, m: SX) -> SX:
        """Return the mass matrix (nv, nv) from the entries of its lower triangle."""
        return _symmetric(SX(self.M, m))

    def free(self, m: SX, f: SX) -> SX:
        """Return the accelerations without constraints."""
        return factor(self.mass(m)).solve(f)

    def force(self, d: Data, x: SX) -> SX:
        """Return the forces of all rows, (n,)."""
        return ca.vertcat(*(self._push(g, x[g.rows], d.D[g.span], d.mu) for g in self.groups))

    def gradient(self, d: Data, a: SX, x: SX) -> SX:
        return _symmetric(d.M) @ a - d.f - ca.vertcat(*d.J).T @ self.force(d, x)

    def hessian(self, d: Data, x: SX) -> SX:
        """Return the lower triangle of the Hessian."""
        parts = zip(self.groups, d.J, strict=True)
        return sum((self._bend(g, J, x[g.rows], d.D[g.span], d.mu) for g, J in parts), d.M)

    def _push(self, g: Group, x: SX, D: SX, mu: SX) -> SX:
        return ca.vertcat(*(f for c, v, w, own in self.blocks(g, x, D, mu) for f in c.force(v, w, own)))

    def _bend(self, g: Group, J: SX, x: SX, D: SX, mu: SX) -> SX:
        C = ca.diagcat(*(c.hessian(v, w, own) for c, v, w, own in self.blocks(g, x, D, mu)))
        return ca.tril(J.T @ (C @ J))

    def terms(self, g: Group, j: SX, D: SX, mu: SX, x: SX) -> tuple[SX, SX]:
        """Return a group's part of the Hessian and of the generalised forces."""
        J = SX(self.J[g.index], j)
        return self._bend(g, J, x, D, mu), J.T @ self._push(g, x, D, mu)

    def patterns(self, g: Group) -> tuple[ca.Sparsity, ca.Sparsity]:
        """Return the patterns of what `terms` returns."""
        sizes = g.nz.stop - g.nz.start, len(g.blocks), self.sizes[-1], g.rows.stop - g.rows.start
        bend, push = self.terms(g, *(SX.sym("s", n) for n in sizes))
        return bend.sparsity(), push.sparsity()


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
    onsets = [(k, b.onset) for k, b in enumerate(sorted_blocks) if b.onset]
    depth, *first = (
        ca.densify(ca.vertcat(SX(0, 1), *(getattr(x, name) for _, x in onsets)))
        for name in ("depth", "weight", "damping")
    )
    rows, begin = tuple(_rows(found, order)), tuple(k for k, _ in onsets)
    problem = Problem(lower.sparsity(), patterns, costs, friction, tuple(groups), rows, begin)
    return Data(lower, f, J, D, target, mu, depth, ca.vertcat(*first)), problem


def _rows(found: Sequence[Block], order: Sequence[int]) -> list[int]:
    """Return the row in the new order of every row in the old one."""
    start: dict[int, int] = {}
    at = 0
    for k in order:
        start[k] = at
        at += found[k].dim
    return [start[k] + i for k, b in enumerate(found) for i in range(b.dim)]


def _symmetric(lower: SX) -> SX:
    return lower + ca.tril(lower, False).T


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
