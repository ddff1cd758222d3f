"""The advance of a state: from velocities to the next state.

Linear velocities of floating and planar joints are given in the axes of the moving body, which turn during the step. A step keeps
these axes still until its end: velocities in between (v_free, and what impulses make of it) are in the axes of its start.
So a body that spins and flies keeps its linear momentum exactly, as it would with velocities in world axes. Where bodies coast
(bias.py) the same holds for the angular velocities of single bodies, and their angular momentum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.model import Model
from costate.physics.algebra import quaternion
from costate.physics.algebra.spatial import cross
from costate.physics.integrate import integrate
from costate.physics.joints import JOINTS

if TYPE_CHECKING:
    from costate.sim.setup import Setup


def turning(model: Model, v: SX) -> SX:
    """Return omega x v of joints with linear velocities in turning axes, (nv,): added to their acceleration it gives that in axes
    that stand still."""
    rows = SX(model.nv, 1)
    for kind, _, i, n in _turning(model):
        x, w = v[i : i + n], v[i + n : i + JOINTS[kind].nv]
        rows[i : i + n] = cross(w, x) if kind == "floating" else ca.vertcat(-w * x[1], w * x[0])
    return rows


def advance(setup: Setup, q: SX, travelled: SX, after: SX, dt: float | SX) -> SX:
    """Return the next state (nx,). travelled: mean velocity of the step; after: velocity at its end; both in the axes of its
    start."""
    model = setup.scene.model
    moved = integrate(model, q, travelled, dt)
    velocity = SX(after)
    single = dict(single_bodies(model)) if setup.coasts else {}
    for kind, k, i, n in _turning(model):
        turn = travelled[i + n : i + JOINTS[kind].nv] * dt
        R = quaternion.to_rotation(q[k + 3 : k + 7]) if kind == "floating" else _turn(q[k + 2])
        moved[k : k + n] = q[k : k + n] + R @ travelled[i : i + n] * dt
        back = quaternion.to_rotation(quaternion.exp(turn)).T if kind == "floating" else _turn(turn).T
        velocity[i : i + n] = back @ after[i : i + n]
        if i in single:
            velocity[i + n : i + 6] = back @ after[i + n : i + 6]
    for i in (i for i, n in single.items() if n == 0):
        back = quaternion.to_rotation(quaternion.exp(travelled[i : i + 3] * dt)).T
        velocity[i : i + 3] = back @ after[i : i + 3]
    return ca.vertcat(moved, velocity)


def turned_back(model: Model, way: SX, x: SX) -> SX:
    """Return velocities or accelerations (nv,), given in the axes after a way (velocity times time, (nv,)), in those before it."""
    rows = SX(x)
    for kind, _, i, n in _turning(model):
        turn = way[i + n : i + JOINTS[kind].nv]
        R = quaternion.to_rotation(quaternion.exp(turn)) if kind == "floating" else _turn(turn)
        rows[i : i + n] = R @ x[i : i + n]
    return rows


def single_bodies(model: Model) -> list[tuple[int, int]]:
    """Return (first velocity, number of linear velocities) of floating and spherical joints on the world that carry one body."""
    base, carrying = {model.links[0].name: ""}, set()
    for j in model.joints:
        base[j.child] = base[j.parent] if j.kind == "fixed" else j.name
        if j.kind != "fixed":
            carrying.add(base[j.parent])
    return [
        (i, len(JOINTS[j.kind].linear))
        for j, i in zip(model.joints, model.v_index, strict=True)
        if j.kind in ("floating", "spherical") and base[j.parent] == "" and j.name not in carrying
    ]


def _turn(angle: SX) -> SX:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))


def _turning(model: Model) -> list[tuple[str, int, int, int]]:
    """Return (kind, first coordinate, first velocity, number of linear velocities) of joints that both slide and turn."""
    return [
        (j.kind, iq, iv, len(JOINTS[j.kind].linear))
        for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True)
        if j.kind in ("floating", "planar") and not j.mimic
    ]
