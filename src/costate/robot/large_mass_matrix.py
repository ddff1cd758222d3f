"""The mass matrix of a robot with very many joints: a loop over its entries, as straight-line code would be too long."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.symbols import flat_function, specs_of
from costate.model import Model
from costate.physics import Parameters
from costate.physics.dynamics.mass_rows import WIDTH, count_pairs, mass_entry, mass_rows

PAIRS = 4000
"""Entries up to which straight-line code is written: about 200,000 operations, those of a chain of 89 joints."""


def is_large(model: Model) -> bool:
    """Tell whether the mass matrix of a model takes a loop."""
    return count_pairs(model) > PAIRS


def large_mass_matrix(model: Model, params: Parameters, symbols: Mapping[str, SX]) -> Kernel:
    """Return the kernel of the mass matrix M(q), shape (nv, nv): the same function as the row "mass_matrix" of FUNCTIONS."""
    q = SX.sym("q", model.nq)
    rows, owners = mass_rows(model, params, q)
    used = {key: x for key, x in symbols.items() if ca.depends_on(rows, x)}
    inputs = {"q": q, **used}
    b = ProgramBuilder(f"{model.name}.mass_matrix")
    given = [b.input(spec.name, spec.shape) for spec in specs_of(inputs)]
    (table,) = b.call(flat_function(b.name, list(inputs.values()), [rows]), *given)
    _, (found,), _ = b.scan(_entries_of_a_row(owners, model.nv), len(owners), [], [table], [table])
    (spec,) = specs_of({"M": SX(model.nv, model.nv)})
    b.output(spec.name, _summed(b, found, owners, model.nv), spec.shape)
    return b.kernel()


def _entries_of_a_row(owners: list[int], nv: int) -> Program:
    """Return the program (a row, all rows) -> the entries of that row in the nv columns of the matrix."""
    count = len(owners)
    b = ProgramBuilder("row")
    row, table = b.inputs(WIDTH, count * WIDTH)
    reads = [(row, np.tile(np.arange(WIDTH), (count, 1))), (table, np.arange(count * WIDTH).reshape(count, WIDTH))]
    (found,) = b.map(mass_entry, reads, [(nv, np.array(owners).reshape(-1, 1))])
    return b.program(found)


def _summed(b: ProgramBuilder, found: Var, owners: list[int], nv: int) -> Var:
    """Add the rows (n, nv) to the rows of the matrix that they belong to, or put them in order."""
    if owners == list(range(nv)):
        return found
    columns = np.arange(nv)
    reads = np.arange(len(owners) * nv).reshape(-1, nv)
    (summed,) = b.map(lambda x: x, [(found, reads)], [(nv * nv, np.array(owners)[:, None] * nv + columns)])
    return summed
