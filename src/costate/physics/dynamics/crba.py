"""Mass matrix: the composite rigid body algorithm (Walker & Orin, 1982), in body frames."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.core.limits import excess
from costate.model.model import Model
from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import cross
from costate.physics.dynamics.passive import armature
from costate.physics.dynamics.regroup import regroup
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Body, Step, Tree

OPERATIONS = 53
"""Operations for each entry above the diagonal, in a chain of revolute joints without parallel axes."""


def crba(model: Model, params: Parameters, q: SX) -> SX:
    """Return the mass matrix M(q), shape (nv, nv), with rotor inertias on its diagonal.

    Entries between different branches of the tree are structural zeros.
    """
    tree = regroup(Tree.of(model, params))
    return composite_matrix(tree, tree.steps(q)) + ca.diag(armature(model, params))


def composite_matrix(tree: Tree, steps: list[Step]) -> SX:
    """Return the mass matrix of the rigid bodies alone, without rotors, shape (nv, nv)."""
    _check_size(tree)
    composites = _composites(tree, steps)
    entries: dict[tuple[int, int], SX] = {}
    for i, body in enumerate(tree.bodies):
        for column, wrench in enumerate(_unit_wrenches(body, composites[i])):
            _walk_to_root(tree, steps, i, column, wrench, entries)
    M = SX(tree.nv, tree.nv)
    for (row, column), value in entries.items():
        M[row, column] = value
    return M


def _check_size(tree: Tree) -> None:
    """Raise if the code would be too long, before it is written."""
    above: dict[int, int] = {ROOT: 0}
    for i, body in enumerate(tree.bodies):
        above[i] = above[body.parent] + body.kind.nv
    pairs = sum(body.kind.nv * above[i] for i, body in enumerate(tree.bodies))
    if too_long := excess("operations", OPERATIONS * pairs):
        raise ValueError(
            f"the mass matrix of {tree.nv} velocities, with up to {max(above.values())} directions of joints in a row, is too long "
            f"to compile as one expression: {too_long}. robot.mass_matrix and most functions of a robot do without it, but worlds "
            "and the forward dynamics of robots with mimic joints do not: fix joints that hardly move, or leave out mimic joints"
        )


def _composites(tree: Tree, steps: list[Step]) -> list[Inertia]:
    """Return the inertia of every body together with all bodies it carries, about its own origin."""
    composites = [body.inertia for body in tree.bodies]
    for i in reversed(range(len(composites))):
        parent = tree.bodies[i].parent
        if parent != ROOT:
            composites[parent] += steps[i].inertia_up(composites[i])
    return composites


def _unit_wrenches(body: Body, composite: Inertia) -> list[tuple[SX, SX]]:
    """Return the wrenches that accelerate the composite by one along each direction of the joint, in the body frame."""
    unit = SX.eye(3)
    linear = [(composite.mass * unit[:, k], cross(composite.first, unit[:, k])) for k in body.kind.linear]
    rotational = composite.rotational()
    angular = [(cross(unit[:, k], composite.first), rotational[:, k]) for k in body.kind.angular]
    return [(body.scale * f, body.scale * n) for f, n in linear + angular]


def _walk_to_root(
    tree: Tree, steps: list[Step], start: int, column: int, wrench: tuple[SX, SX], entries: dict[tuple[int, int], SX]
) -> None:
    """Add the torques that one unit wrench needs at its own joint and at every joint towards the root."""
    force, moment = wrench
    me = tree.bodies[start].v_start + column
    i = start
    while i != ROOT:
        body = tree.bodies[i]
        for k, torque in enumerate(ca.vertsplit(body.project(force, moment))):
            other = body.v_start + k
            if i == start:
                # Two velocities of one joint meet here twice, in both orders: take one, for exact symmetry.
                if k <= column:
                    _add(entries, other, me, torque, mirror=k != column)
            elif other == me:
                _add(entries, me, me, 2 * torque)
            else:
                _add(entries, other, me, torque, mirror=True)
        if body.parent != ROOT:
            force, moment = steps[i].up(force), steps[i].up(moment)
            moment += cross(steps[i].translation, force)
        i = body.parent


def _add(entries: dict[tuple[int, int], SX], row: int, column: int, value: SX, mirror: bool = False) -> None:
    if value.nnz() == 0:
        return
    for key in {(row, column), (column, row)} if mirror else {(row, column)}:
        entries[key] = entries[key] + value if key in entries else value
