"""The worlds that the simulation benchmark measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import costate as cs
from costate.model import Model, Shape, Transform, load_model
from costate.sim import Body, ContactModel, Hard, Static, World

DT = 0.002
GROUND = Static("ground", Shape("plane", np.zeros(0)))
STIFFNESS, DAMPING = 300.0, 8.0
"""Springs and dampers that keep a Laikago on its feet under random torques [N m/rad, N m s/rad]."""


def standing(friction: float = 0.0) -> Model:
    """A Laikago with a spring and a damper in every joint. friction: Coulomb friction of its joints [N m]."""
    model = load_model("laikago")
    assert model.home is not None
    joints = []
    for j, at in zip(model.joints, model.q_index, strict=True):
        if j.nv == 1:
            j = replace(j, stiffness=STIFFNESS, damping=DAMPING, rest=float(model.home[at]), friction=friction)
        joints.append(j)
    return replace(model, joints=tuple(joints))


def laikagos(
    count: int = 1,
    limits: bool = False,
    friction: float = 0.0,
    check: bool = True,
    contact: ContactModel | None = None,
) -> World:
    """Laikagos in a row, four foot spheres each. contact: None for `Hard`."""
    robot = cs.Robot(standing(friction))
    names = [f"laikago{k}" for k in range(count)]
    poses = {n: Transform(np.eye(3), np.array([0.0, k, 0.0])) for k, n in enumerate(names)}
    return World(
        robots=dict.fromkeys(names, robot),
        poses=poses,
        scenery=[GROUND],
        contact=contact or Hard(joint_limits=limits, joint_friction=friction > 0),
        dt=DT,
        integrator="implicit",
        collide=lambda a, b: "ground" in (a, b) and ("toe" in a or "toe" in b),
        check=check,
    )


def chain(joints: int) -> World:
    """A pendulum of that many links, without contact."""
    return World(robots=[cs.Robot(load_model(f"pendulum{joints}"))], contact=None, dt=1e-4)


def sole(spheres: int) -> World:
    """One body that stands on that many spheres: all rows act on six coordinates."""
    side = int(np.ceil(np.sqrt(spheres)))
    spots = [(0.1 * (k % side - (side - 1) / 2), 0.1 * (k // side - (side - 1) / 2)) for k in range(spheres)]
    at = [Transform(np.eye(3), np.array([x, y, -0.1])) for x, y in spots]
    feet = [Shape("sphere", np.array([0.02]), pose) for pose in at]
    body = Body("body", feet, 5.0, inertia=0.1 * np.eye(3), pose=Transform(np.eye(3), np.array([0, 0, 0.12])))
    return World(bodies=[body], scenery=[GROUND], contact=Hard(), dt=DT)


def balls(count: int) -> World:
    """That many balls on a plane, which do not touch each other."""
    shape = Shape("sphere", np.array([0.1]))
    bodies = [
        Body(f"ball{k}", [shape], 1.0, pose=Transform(np.eye(3), np.array([0.3 * k, 0, 0.1]))) for k in range(count)
    ]
    return World(bodies=bodies, scenery=[GROUND], contact=Hard(), dt=DT, collide=lambda a, b: "ground" in (a, b))
