"""Move inertia towards the root where that changes no torque, so that fewer parameters are left to compute with.

A thin rod along a revolute joint's axis moves the same whether it belongs to the child or to the parent, as do a body's
rotational inertia at a prismatic joint and a point mass at a spherical joint's centre. Moving these parts of each body
to its parent, from the tips to the root, does not change the dynamics, but removes mass, one first moment and one
second moment of every revolute body (the minimal inertial parameters: Khalil & Kleinfinger, 1987; Gautier & Khalil,
1990). The parts that arrive at the root never move, and are dropped. A single body may end up with an impossible
inertia, but the mass matrix and each pivot of its factorisation stay the same.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import casadi as ca
from casadi import DM, SX

from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import zeros
from costate.physics.joints import JOINTS
from costate.physics.tree import ROOT, Body, Step, Tree


@lru_cache(maxsize=32)
def regroup(tree: Tree) -> Tree:
    """Return a tree with the same dynamics and fewer inertial parameters. Bodies with symbolic ones keep them."""
    bodies = list(tree.bodies)
    for i in reversed(range(len(bodies))):
        body = bodies[i]
        if not (body.inertia.is_constant() and body.rotation.is_constant() and body.translation.is_constant()):
            continue
        stays, moves = _split(body)
        bodies[i] = replace(body, inertia=stays)
        if body.parent != ROOT:
            parent = bodies[body.parent]
            at_rest = Step(body.rotation, SX.eye(3), body.translation)
            bodies[body.parent] = replace(parent, inertia=_exact(parent.inertia + at_rest.inertia_up(moves)))
    return replace(tree, bodies=tuple(bodies))


def _split(body: Body) -> tuple[Inertia, Inertia]:
    """Split the inertia of a body into the part that stays with it and the part that its parent can carry."""
    own = body.inertia
    nothing = Inertia.zero()
    if body.kind is JOINTS["revolute"]:
        return _without(own, _RADIAL, _OFF_AXIS), Inertia(
            own.mass, _kept(own.first, _AXIAL), _kept(own.second, _ON_AXIS)
        )
    if body.kind is JOINTS["prismatic"]:
        # Only the second moment: the body turns with its parent whatever the position of the joint.
        return Inertia(own.mass, own.first, SX(3, 3)), Inertia(SX(1, 1), zeros(), own.second)
    if body.kind is JOINTS["spherical"]:
        return Inertia(SX(1, 1), own.first, own.second), Inertia(own.mass, zeros(), SX(3, 3))
    return own, nothing


_AXIAL = DM([0, 0, 1])
_RADIAL = DM([1, 1, 0])
_ON_AXIS = DM([[0, 0, 0], [0, 0, 0], [0, 0, 1]])
_OFF_AXIS = DM([[1, 1, 1], [1, 1, 1], [1, 1, 0]])


def _without(own: Inertia, first: DM, second: DM) -> Inertia:
    return Inertia(SX(1, 1), _kept(own.first, first), _kept(own.second, second))


def _kept(x: SX, mask: DM) -> SX:
    """Keep the entries of x under the mask; the others become structural zeros."""
    return x * SX(ca.sparsify(mask))


def _exact(inertia: Inertia) -> Inertia:
    return Inertia(ca.sparsify(inertia.mass), ca.sparsify(inertia.first), ca.sparsify(inertia.second))
