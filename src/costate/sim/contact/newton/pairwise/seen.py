"""A look at contacts that are solved pair by pair: distances, points and forces, in the order of the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.sim.contact.newton.pairwise.kinds import Pairs
from costate.sim.contact.newton.pairwise.law import Law
from costate.sim.contact.newton.pairwise.places import Places, joined, total
from costate.sim.contact.newton.rows import axes_of
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton


def pairwise_gaps(options: Newton, setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> Var:
    """Add the distances of all contact points, also of pairs that are far apart."""
    pairs, points = _points(options, setup, b, args)
    order = pairs.point_at[np.argsort(pairs.point_pair, kind="stable")].tolist()
    return b.trace(lambda x: x[order], points)


def pairwise_seen(options: Newton, setup: Setup, b: ProgramBuilder, args: Sequence[Var], impulses: Var) -> list[Var]:
    """Add points, normals, gaps, normal forces, friction forces and torques of all contacts."""
    pairs, points = _points(options, setup, b, args)
    place, first = pairs.order()
    columns: list[list[Var]] = [[] for _ in range(6)]
    for law in pairs.laws:
        members = list(law.members)
        reads = [
            (points, pairs.point_at[members][:, None] + np.arange(law.width)),
            (impulses, first[members][:, None] + np.arange(law.dim)),
        ]
        targets = [(n * len(place), n * place[members][:, None] + np.arange(n)) for n in (3, 3, 1, 1, 3, 3)]
        found = b.map(lambda x, impulse, law=law: _seen(law, x, impulse / setup.dt), reads, targets)
        for column, value in zip(columns, found, strict=True):
            column.append(value)
    return [total(b, column) for column in columns]


def _seen(law: Law, numbers: SX, force: SX) -> list[SX]:
    """Return point, normal, gap, normal force, friction force and torque of a contact point."""
    gap, point, normal, along = ca.vertsplit(numbers, [0, 1, 4, POINT, law.width])
    slides, turns = axes_of(normal, along if along.numel() else None, law.dim, law.options.cone)
    rub = sum((d * force[1 + k] for k, d in enumerate(slides)), SX.zeros(3))
    twist = sum((d * force[1 + len(slides) + k] for k, d in enumerate(turns)), SX.zeros(3))
    return [point, normal, gap, force[0], rub, twist]


def _points(options: Newton, setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> tuple[Pairs, Var]:
    """Add the contact points of all pairs, kind by kind."""
    s = Symbols(setup)
    pairs = Pairs(s, options)
    places = Places(pairs)
    poses, sizes, _ = s.call(b, "placed", pairs.shape_numbers(), args)
    every = places.split(b, b.constant(np.ones(sum(places.counts))))
    return pairs, joined(b, places.points(b, every, poses, sizes))
