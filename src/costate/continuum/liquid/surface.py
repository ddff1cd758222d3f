"""Cells that hold liquid in a step, and the V-cycle's numbers for them: both change from step to step."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from costate.continuum.fluid.grid import Grid
from costate.continuum.fluid.multigrid import Level
from costate.kernel.fields import OWN, Entities, Field, FieldBuilder

ROUNDS = 2
"""Rounds in which velocities are spread to faces without liquid."""


def wet_numbers(f: FieldBuilder, grid: Grid, cells: Entities, held: Field, room: Field) -> Field:
    """Return the numbers of the finest level (1 + 2 d), where cells that hold particles and are not solid are liquid.

    held: Number of particles in each cell. room: Number of neighbours of a cell that are not solid, 0 for solid cells.
    """
    (wet,) = f.for_each(cells, lambda n, room: ca.if_else(n > 0.5, room > 0, 0), [held, room])
    sides = f.table(cells, cells, grid.table([grid.unit(a, s) for a in range(grid.d) for s in (-1, 1)]))
    return f.for_each(cells, lambda w, others, n: ca.vertcat(w * n, w * others), [wet, wet[sides], room])[0]


def apart(level: Level) -> np.ndarray:
    """Return 1 where a cell and its neighbour below or above along each axis lie in different cells of the coarser level, else 0
    (count, 2 d)."""
    parent = level.parents.reshape(level.shape)
    found = [np.roll(parent, s, a) != parent for a in range(level.d) for s in (1, -1)]
    return np.stack(found).reshape(2 * level.d, -1).T.astype(float)


def coarser_numbers(f: FieldBuilder, level: Level, own: Field, split: Field, coarse: Entities) -> Field:
    """Return the numbers of the next level: sums over the cells within, by half (see `Level.coarser`)."""
    parents = f.table(own.of, coarse, level.parents)

    def body(numbers: ca.SX, split: ca.SX) -> ca.SX:
        links = numbers[1:]
        return ca.vertcat(numbers[0] - ca.dot(links, 1 - split), split * links) / 2

    return f.for_each(own.of, body, [own, split], [parents])[0]


def all_numbers(
    f: FieldBuilder, levels: Sequence[Level], finest: Field, splits: Sequence[Field], sets: Sequence[Entities]
) -> list[Field]:
    """Return the numbers of every level."""
    found = [finest]
    for k, split in enumerate(splits):
        found.append(coarser_numbers(f, levels[k], found[-1], split, sets[k + 1]))
    return found


def spread_out(f: FieldBuilder, grid: Grid, cells: Entities, u: list[Field], finest: Field) -> list[Field]:
    """Return the velocities, where at faces that touch no liquid they are the mean of neighbours that do: in the air and within
    walls, along which the liquid slips. Two rounds reach as far as the weights of particles do."""
    d = grid.d
    below = f.table(cells, cells, grid.table([grid.unit(a, -1) for a in range(d)]))
    sides = f.table(cells, cells, grid.table([grid.unit(a, s) for a in range(d) for s in (-1, 1)]))
    (wet,) = f.for_each(cells, lambda n: n[0] > 0, [finest])
    (known,) = f.for_each(cells, lambda w, others: ca.fmax(ca.repmat(w, d, 1), others), [wet, wet[below]])

    def body(known: ca.SX, others: ca.SX, *both: ca.SX) -> tuple[ca.SX, ...]:
        found, there = [], []
        for a in range(d):
            seen = others[:, a]
            some = ca.sum1(seen)
            mean = ca.dot(seen, both[d + a]) / ca.fmax(some, 1)
            found.append(ca.if_else(ca.logic_and(known[a] == 0, some > 0), mean, both[a]))
            there.append(ca.fmax(known[a], some > 0))
        return *found, ca.vertcat(*there)

    for _ in range(ROUNDS):
        *u, known = f.for_each(cells, body, [known, known[sides], *u, *(c[sides] for c in u)], [OWN] * (d + 1))
    return u
