"""A mass on a rail, which is a double integrator with closed-form solutions."""

from __future__ import annotations

import casadi as ca
import numpy as np

import costate as cs
from costate.model import Inertia, Joint, Link, Model
from costate.optimise import Cost

DT = 0.1
A = np.array([[1, DT], [0, 1]])
B = np.array([[DT**2], [DT]])
"""Of the world's step, which is semi-implicit: v' = v + dt u, q' = q + dt v'."""
Q, R, LAST = np.diag([0.04, 0.01]), np.array([[0.09]]), np.diag([25.0, 4.0])
"""Hessians of `cart_cost`."""


def cart_world(effort: float = float("inf"), actuator: cs.VelocityServo | None = None, dt: float = DT) -> cs.World:
    """Return a world with a mass of 1 kg that slides along x, pushed by a force or a servo; no contact."""
    links = Link("rail"), Link("cart", Inertia(1.0, np.zeros(3), np.eye(3)))
    slide = Joint("slide", "prismatic", "rail", "cart", axis=np.array([1.0, 0, 0]), max_effort=np.array([effort]))
    return cs.World(robots=[cs.Robot(Model("cart", links, (slide,)))], actuators=actuator, contact=None, dt=dt)


def cart_cost(world: cs.World) -> Cost:
    return Cost(
        world,
        lambda s: ca.vertcat(0.3 * s.u, 0.1 * s.v, 0.2 * (s.q - s["goal"])),
        lambda s: ca.vertcat(5 * (s.q - s["goal"]), 2 * s.v),
        inputs={"goal": 1},
    )
