"""A sweep of projected Gauss-Seidel: one pass over all contacts and rows, each using what those before it have become.

Two forms of the same numbers. In terms of impulses a row sums A[k, j] lambda[j] over all other rows; in terms of velocities it
reads its speed J[k] v and adds its change to v, which costs less when many rows act on few coordinates. The cheaper one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.sim.contact.pgs.law import BLOCK, block_numbers, contact_law, mobility, own_change, within
from costate.sim.contact.rows import Row

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

Block = tuple[int, ...]
"""Rows that are solved together: one row, or the normal and both tangents of a contact."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A pass over all rows, ready to be repeated."""

    function: ca.Function
    """Function (carry, system, c, bounds) -> carry; the impulses are the first elements of the carry, which starts as zeros."""
    system: SX
    """Numbers of the contact problem that a pass reads, the same for all right-hand sides c. The last are the steps of the rows:
    1 / A[k, k]."""

    @property
    def carry_size(self) -> int:
        return self.function.numel_in(0)


def make_sweep(rows: Sequence[Row], J: SX, W: SX, references: SX, options: PGS, form: str | None = None) -> Sweep:
    """Return the sweep of a problem. form: "impulses" or "velocities"; None: the one of fewer operations. J (n, nv), W = M^-1 J^T
    (nv, n); references: how easily the point of every row moves in any direction (see `mobility`), (n,)."""
    A = J @ W
    if form is None:
        # Velocities pass from row to row in one chain of dependent operations: measured, they pay from 2.5 times fewer on.
        form = "impulses" if A.nnz() <= 2.5 * (J.nnz() + W.nnz()) else "velocities"
    n = len(rows)
    own = ca.vertcat(*(mobility(A[k, k], references[k], options.cfm) for k in range(n)))
    groups = blocks(rows)
    contacts = [_submatrix(A, block) for block in groups if len(block) == 3]
    numbers = ca.vertcat(SX(0, 1), *(block_numbers(a, options.cfm) for a in contacts))
    make = _over_impulses if form == "impulses" else _over_velocities
    return make(rows, groups, (A, J, W), (numbers, 1 / own), options)


def blocks(rows: Sequence[Row]) -> list[Block]:
    """Return the rows that are solved together, in their order."""
    second = {r.contact: k - 1 for k, r in enumerate(rows) if r.kind == "tangent"}
    return [(k, second[k], second[k] + 1) if k in second else (k,) for k, r in enumerate(rows) if r.kind != "tangent"]


def _over_impulses(
    rows: Sequence[Row], groups: list[Block], matrices: tuple[SX, SX, SX], numbers: tuple[SX, SX], options: PGS
) -> Sweep:
    n = len(rows)
    lower = ca.tril(matrices[0], False)  # it is symmetric
    start, a = SX.sym("lambda", n), SX.sym("a", lower.nnz())
    block, step = (SX.sym(name, x.numel()) for name, x in zip(("block", "step"), numbers, strict=True))
    c, bounds = SX.sym("c", n), SX.sym("bound", n)
    strict = SX(lower.sparsity(), a)
    full = strict + strict.T
    impulse = list(ca.vertsplit(start))

    def speed(k: int, group: Block) -> SX:
        """Return the speed of a row without the impulses of its group. What was found last comes last: the shortest chain of
        dependent operations."""
        found = c[k]
        for j in [*range(group[-1] + 1, n), *range(group[0])]:
            if full.sparsity().has_nz(k, j):
                found = found + full[k, j] * impulse[j]
        return found

    solve = _solver(rows, groups, block, step, bounds, options)
    for group in groups:
        u, old = [speed(i, group) for i in group], [impulse[i] for i in group]
        for i, new in zip(group, solve(group, u, old), strict=True):
            impulse[i] = new
    function = ca.Function("sweep", [start, ca.vertcat(a, block, step), c, bounds], [ca.vertcat(*impulse)])
    return Sweep(function, ca.vertcat(nonzeros(lower), *numbers))


def _over_velocities(
    rows: Sequence[Row], groups: list[Block], matrices: tuple[SX, SX, SX], numbers: tuple[SX, SX], options: PGS
) -> Sweep:
    _, J, W = matrices
    n, nv = J.shape
    start, moved = SX.sym("lambda", n), SX.sym("v", nv)
    j, w = SX.sym("j", J.nnz()), SX.sym("w", W.nnz())
    block, step = (SX.sym(name, x.numel()) for name, x in zip(("block", "step"), numbers, strict=True))
    c, bounds = SX.sym("c", n), SX.sym("bound", n)
    rows_J, columns_W = SX(J.sparsity(), j), SX(W.sparsity(), w)
    impulse, v = list(ca.vertsplit(start)), moved
    solve = _solver(rows, groups, block, step, bounds, options)
    at = _places(groups)
    for group in groups:
        old = [impulse[i] for i in group]
        u = [c[k] + _tree_sum(rows_J[k, :], v) for k in group]
        u = _without(u, at[group], block, step, group, old, options)
        for i, new in zip(group, solve(group, u, old), strict=True):
            v = v + columns_W[:, i] * (new - impulse[i])
            impulse[i] = new
    function = ca.Function(
        "sweep",
        [ca.vertcat(start, moved), ca.vertcat(j, w, block, step), c, bounds],
        [ca.vertcat(*impulse, ca.densify(v))],
    )
    return Sweep(function, ca.vertcat(nonzeros(J), nonzeros(W), *numbers))


def _without(u: list[SX], at: int, block: SX, step: SX, group: Block, old: list[SX], options: PGS) -> list[SX]:
    """Return speeds without what the impulses of the own group have changed of them."""
    if len(group) == 1:  # A[k, k] step[k] = 1 / (1 + cfm)
        return [u[0] - old[0] / (step[group[0]] * (1 + options.cfm))]
    return ca.vertsplit(ca.vertcat(*u) - own_change(block[at : at + BLOCK], ca.vertcat(*old)))


def _solver(
    rows: Sequence[Row], groups: list[Block], block: SX, step: SX, bounds: SX, options: PGS
) -> Callable[[Block, list[SX], list[SX]], list[SX]]:
    """Return the function (group, speeds without its impulses, last impulses) -> impulses."""
    at = _places(groups)

    def solve(group: Block, u: list[SX], old: list[SX]) -> list[SX]:
        k = group[0]
        if len(group) == 3:
            numbers = block[at[group] : at[group] + BLOCK]
            return ca.vertsplit(contact_law(ca.vertcat(*u), numbers, ca.vertcat(*old), bounds[group[1]], options.cone))
        aim = -u[0] * step[k]
        return [within(aim, bounds[k]) if rows[k].kind == "friction" else ca.if_else(u[0] < 0, aim, 0)]

    return solve


def _places(groups: list[Block]) -> dict[Block, int]:
    """Return where the BLOCK numbers of each group begin, of groups that are contacts with friction."""
    contacts = [g for g in groups if len(g) == 3]
    return dict.fromkeys(groups, 0) | {g: BLOCK * k for k, g in enumerate(contacts)}


def _submatrix(A: SX, block: Block) -> SX:
    return ca.densify(ca.vertcat(*(ca.horzcat(*(A[i, j] for j in block)) for i in block)))


def _tree_sum(row: SX, v: SX) -> SX:
    """Return row @ v, summed in pairs: a short chain of dependent operations."""
    terms = [row[0, i] * v[i] for i in row.sparsity().get_col()]
    while len(terms) > 1:
        terms = [sum(terms[i : i + 2], SX(0)) for i in range(0, len(terms), 2)]
    return terms[0] if terms else SX(0)


def nonzeros(A: SX) -> SX:
    """Return the entries of a sparse matrix as a vector."""
    return ca.vec(SX(A.nz[:])) if A.nnz() else SX(0, 1)  # of a row it is a row
