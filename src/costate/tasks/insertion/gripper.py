"""The insertion cell with a gripper that is a mechanism: two fingers on slides, geared to each other, closed around the bottle.

The task fixes the bottle to the gripper (scene.py), so that its states hold arm and socket alone. Here the fingers and the bottle
between them have coordinates of their own, and constraints hold them: the gear couples the fingers, and each finger is welded to
the bottle. The motion is that of the task, which `tests/tasks/test_insertion_gripper.py` checks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from costate.model import Inertia, Joint, Link, Model
from costate.model.constraint import Constraint, Couple, Weld
from costate.robot import Robot
from costate.sim import PGS, Torque, VelocityServo, World
from costate.sim.scene.parts import solid_inertia
from costate.tasks.insertion.scene import TOUCHING, arm_with_bottle, socket_body
from costate.tasks.insertion.task import Insertion

FINGER_MASS = 0.05
"""Part of the gripper's mass that each finger has [kg]."""
SIDES = {"left_finger": 1.0, "right_finger": -1.0}
"""Way along x in which a finger closes; its joint's coordinate grows with it."""
CLOSED: tuple[Constraint, ...] = (
    Couple("ur5/right_finger_joint", "ur5/left_finger_joint"),
    Weld("ur5/left_finger", "ur5/bottle"),
    Weld("ur5/right_finger", "ur5/bottle"),
)
"""Constraints that make gripper and bottle one: both fingers move alike, and the bottle with both of them, so none moves."""


def arm_with_fingers() -> Model:
    """Return the task's arm, with its gripper in three parts that weigh as much as the one, and a bottle that slides in it."""
    arm = arm_with_bottle()
    links = {link.name: link for link in arm.links}
    palm, *pads = links["gripper"].visuals
    x = np.array([1.0, 0.0, 0.0])
    fingers = []
    for name, pad in zip(SIDES, sorted(pads, key=lambda s: s.pose.translation[0]), strict=True):
        inertia = Inertia(FINGER_MASS, pad.pose.translation, solid_inertia(pad, FINGER_MASS))
        fingers.append(Link(name, inertia, (pad,)))
    rest = _without(links["gripper"].inertia, [f.inertia for f in fingers])
    links |= {"gripper": Link("gripper", rest, (palm,))}
    joints = [replace(j, kind="prismatic", axis=x) if j.name == "grip" else j for j in arm.joints]
    joints += [Joint(f"{name}_joint", "prismatic", "gripper", name, axis=side * x) for name, side in SIDES.items()]
    assert arm.home is not None
    home = np.concatenate([arm.home, np.zeros(3)])
    return replace(arm, name="ur5_gripper", links=(*links.values(), *fingers), joints=tuple(joints), home=home)


def _without(whole: Inertia, parts: list[Inertia]) -> Inertia:
    """Return what is left of a mass distribution; all in the same axes."""
    mass = whole.mass - sum(p.mass for p in parts)
    com = (whole.mass * whole.com - sum(p.mass * p.com for p in parts)) / mass
    about = whole.matrix + _apart(whole, com) - sum(p.matrix + _apart(p, com) for p in parts)
    return Inertia(mass, com, about)


def _apart(inertia: Inertia, point: np.ndarray) -> np.ndarray:
    """Return what a mass adds to an inertia about another point."""
    r = inertia.com - point
    return inertia.mass * (r @ r * np.eye(3) - np.outer(r, r))


def gripper_world(task: Insertion) -> World:
    """Return the task's world with contact. q = arm joints (6), bottle, left finger, right finger, socket x, y, angle."""
    o = task.options
    own = VelocityServo(gravity_compensation="nominal") if o.actuation == "velocity" else Torque()
    arm = [f"ur5/{j.name}" for j in task.arm.model.joints if j.nv]
    return World(
        robots={"ur5": Robot(arm_with_fingers()).double()},
        bodies=[socket_body()],
        actuators=dict.fromkeys(arm, own),
        contact=PGS(friction=o.friction, sweeps=30),
        integrator="euler",  # as in the task's world
        substeps=o.substeps,
        dt=o.dt,
        collide=TOUCHING,
        constraints=CLOSED,
        check=False,
    )
