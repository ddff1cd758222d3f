"""A sweep of projected Gauss-Seidel: one pass over all rows, each using what the rows before it have become.

Two forms of the same numbers. In terms of impulses a row sums A[k, j] lambda[j] over all other rows; in terms of velocities it
reads its speed J[k] v and adds its change to v, which costs less when many rows act on few coordinates. The cheaper one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.sim.contact.rows import Row

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


@dataclass(frozen=True, eq=False)
class Sweep:
    """A pass over all rows, ready to be repeated."""

    function: ca.Function
    """Function (carry, system, c, bounds) -> carry; the impulses are the first elements of the carry, which starts as zeros."""
    system: SX
    """Numbers of the contact problem that a pass reads, the same for all right-hand sides c."""

    @property
    def carry_size(self) -> int:
        return self.function.numel_in(0)


def make_sweep(rows: Sequence[Row], J: SX, W: SX, options: PGS, form: str | None = None) -> Sweep:
    """Return the sweep of a problem. form: "impulses" or "velocities"; None: the one of fewer operations. J (n, nv), W = M^-1 J^T
    (nv, n)."""
    A = J @ W
    if form is None:
        # Velocities pass from row to row in one chain of dependent operations: measured, they pay from 2.5 times fewer on.
        form = "impulses" if A.nnz() <= 2.5 * (J.nnz() + W.nnz()) else "velocities"
    # The step of a row is 1 / A[k, k], softened by cfm; the tiny number leaves a row that nothing can move as it is.
    steps = 1 / (ca.diag(A) * (1 + options.cfm) + 1e-30)
    return (
        _over_impulses(rows, A, steps, options) if form == "impulses" else _over_velocities(rows, J, W, steps, options)
    )


def _over_impulses(rows: Sequence[Row], A: SX, steps: SX, options: PGS) -> Sweep:
    n = len(rows)
    lower = ca.tril(A, False)  # it is symmetric
    start, a, step = SX.sym("lambda", n), SX.sym("a", lower.nnz()), SX.sym("step", n)
    c, bounds = SX.sym("c", n), SX.sym("bound", n)
    strict = SX(lower.sparsity(), a)
    full = strict + strict.T
    impulse = list(ca.vertsplit(start))

    def aim(k: int) -> SX:
        speed = c[k]
        # What was found last comes last: the shortest chain of dependent operations.
        for j in [*range(k + 1, n), *range(k)]:
            if full.sparsity().has_nz(k, j):
                speed = speed + full[k, j] * impulse[j]
        return -speed * step[k]

    for block in blocks(rows, options):
        aims = [aim(k) for k in block]
        for i, new in zip(block, projected(rows, block, aims, impulse, step, bounds), strict=True):
            impulse[i] = new
    function = ca.Function("sweep", [start, ca.vertcat(a, step), c, bounds], [ca.vertcat(*impulse)])
    return Sweep(function, ca.vertcat(_nonzeros(lower), steps))


def _over_velocities(rows: Sequence[Row], J: SX, W: SX, steps: SX, options: PGS) -> Sweep:
    n, nv = J.shape
    start, moved = SX.sym("lambda", n), SX.sym("v", nv)
    j, w, step = SX.sym("j", J.nnz()), SX.sym("w", W.nnz()), SX.sym("step", n)
    c, bounds = SX.sym("c", n), SX.sym("bound", n)
    rows_J, columns_W = SX(J.sparsity(), j), SX(W.sparsity(), w)
    impulse, v = list(ca.vertsplit(start)), moved
    for block in blocks(rows, options):
        # A[k, k] step[k] = 1 / (1 + cfm): what the row itself has added to v is taken out again.
        own = [impulse[k] / (1 + options.cfm) for k in block]
        aims = [o - (c[k] + _tree_sum(rows_J[k, :], v)) * step[k] for k, o in zip(block, own, strict=True)]
        for i, new in zip(block, projected(rows, block, aims, impulse, step, bounds), strict=True):
            v = v + columns_W[:, i] * (new - impulse[i])
            impulse[i] = new
    function = ca.Function(
        "sweep",
        [ca.vertcat(start, moved), ca.vertcat(j, w, step), c, bounds],
        [ca.vertcat(*impulse, ca.densify(v))],
    )
    return Sweep(function, ca.vertcat(_nonzeros(J), _nonzeros(W), steps))


def _tree_sum(row: SX, v: SX) -> SX:
    """Return row @ v, summed in pairs: a short chain of dependent operations."""
    terms = [row[0, i] * v[i] for i in row.sparsity().get_col()]
    while len(terms) > 1:
        terms = [sum(terms[i : i + 2], SX(0)) for i in range(0, len(terms), 2)]
    return terms[0] if terms else SX(0)


def blocks(rows: Sequence[Row], options: PGS) -> list[tuple[int, ...]]:
    """Return the rows that change together: every row by itself, but both tangents of a contact with a friction cone."""
    if options.cone != "cone":
        return [(k,) for k in range(len(rows))]
    second = [
        r.kind == "tangent" and rows[k - 1].kind == "tangent" and rows[k - 1].contact == r.contact
        for k, r in enumerate(rows)
    ]
    return [(k, k + 1) if second[k + 1 : k + 2] == [True] else (k,) for k in range(len(rows)) if not second[k]]


def projected(
    rows: Sequence[Row], block: tuple[int, ...], aims: list[SX], impulse: list[SX], step: SX, bounds: SX
) -> list[SX]:
    """Return what the rows of a block may be where they would like to be `aims`."""
    k = block[0]
    row = rows[k]
    if row.kind in ("normal", "limit"):
        return [ca.fmax(aims[0], 0)]
    most = bounds[k] * impulse[row.contact] if row.kind == "tangent" else bounds[k]
    if len(block) == 1:
        return [within(aims[0], most)]
    # Both directions take the shorter of their steps: then friction that is at its bound points against the sliding.
    short = ca.fmin(step[block[0]], step[block[1]])
    x, y = (impulse[i] + (aim - impulse[i]) * (short / step[i]) for i, aim in zip(block, aims, strict=True))
    return list(_onto_disk(x, y, most))


def within(x: SX, most: SX) -> SX:
    """Return x, or the bound that it is beyond. A bound of zero holds whatever x does, so there is no derivative: shapes that are
    apart and do not move sideways feel no friction in their gradient (minimum and maximum would share it among equal
    arguments)."""
    free = ca.if_else(most > 0, x, 0)
    return ca.if_else(x > most, most, ca.if_else(x < -most, -most, free))


def _onto_disk(x: SX, y: SX, radius: SX) -> tuple[SX, SX]:
    """Scale a tangential impulse back to the friction disk; where that is a point, as in `within`."""
    size2 = x * x + y * y
    inside = size2 < radius * radius
    scale = ca.if_else(inside, 1, radius / ca.sqrt(ca.if_else(size2 > 0, size2, 1)))
    return scale * x, scale * y


def _nonzeros(A: SX) -> SX:
    return ca.vec(SX(A.nz[:])) if A.nnz() else SX(0, 1)  # of a row it is a row
