"""Validation: a gripper of two coupled fingers holds a cube, or loses it.

One force u drives the left finger; a constraint makes the right one follow, so each pad presses with u / 2. Friction carries the
cube as long as 2 mu (u / 2) >= m g: it is lost below mu = m g / u.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

import costate as cs
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.sim import World

MASS, EDGE = 1.0, 0.06
"""Mass and edge of the cube [kg, m]."""
GRAVITY = 9.81
FORCE = 2 * MASS * GRAVITY
"""Force of the drive [N]."""
CRITICAL = MASS * GRAVITY / FORCE
"""Friction coefficient below which the cube is lost."""
GRASP, HOLD = 0.3, 1.0
"""Seconds in which the cube is carried while the fingers close, and in which it is then watched."""
LOST = 0.02
"""Fall at the end of a cube that counts as lost [m]: 0.4 % of a free fall, what friction 0.4 % too low would let it fall."""
PAD = (0.02, 0.05, 0.14)
"""Thickness, width, height [m]."""

MODELS: dict[str, tuple[cs.ContactModel, float, int]] = {
    "Hard": (cs.Hard(), 0.01, 5),
    "PGS": (cs.PGS(sweeps=100, impacts=0), 0.01, 5),  # nothing strikes; 16 squeezed contact points settle slowly
    "Newton, pyramids": (cs.Newton(cone="pyramidal"), 0.01, 5),
    "Newton, elliptic": (cs.Newton(cone="elliptic"), 0.01, 5),
    "Compliant": (cs.Compliant(friction_speed=1e-3, smoothing=2e-5), 0.01, 100),
}
"""Contact model, control step [s], substeps."""


def fingers() -> cs.Robot:
    """A palm with two fingers on slides along x, which close with growing coordinates."""
    x = np.array([1.0, 0.0, 0.0])
    finger = Inertia(0.2, np.zeros(3), 1e-4 * np.eye(3))
    pads = [Link(name, finger, (cs.shapes.box(PAD),), (cs.shapes.box(PAD),)) for name in ("left", "right")]
    apart = Transform(translation=x * (EDGE + PAD[0]) / 2)
    joints = (
        Joint("left_joint", "prismatic", "palm", "left", apart.inverse(), x),
        Joint("right_joint", "prismatic", "palm", "right", apart, -x),
    )
    return cs.Robot(Model("gripper", (Link("palm"), *pads), joints))


def gripper(name: str) -> World:
    """The fingers, the cube between them, and friction as an input."""
    contact, dt, substeps = MODELS[name]
    return World(
        robots={"gripper": fingers()},
        bodies=[cs.Body("cube", [cs.shapes.box((EDGE, EDGE, EDGE))], MASS)],
        constraints=[cs.Couple("right_joint", "left_joint")],
        actuators={"left_joint": cs.Torque()},
        contact=contact,
        dt=dt,
        substeps=substeps,
        collide=[("gripper/left", "cube"), ("gripper/right", "cube")],
        parameters=["friction"],
        gravity=(0.0, 0.0, -GRAVITY),
    )


@dataclass(frozen=True)
class Falls:
    """The fall of the cube for each of some friction coefficients."""

    friction: np.ndarray
    """(n,)."""
    times: np.ndarray
    """Since it was let go [s], (t,)."""
    fallen: np.ndarray
    """Falls [m], (t, n)."""
    pressure: np.ndarray
    """Normal force of a pad when the cube was let go, the mean of both [N], (n,)."""

    @property
    def lost(self) -> np.ndarray:
        return self.fallen[-1] > LOST


def try_frictions(world: World, friction: np.ndarray) -> Falls:
    """All of them at once."""
    count, grasp, hold = len(friction), round(GRASP / world.dt), round(HOLD / world.dt)
    controls = torch.full((grasp + hold, count, 1), FORCE, dtype=torch.float64)
    carried = torch.zeros(grasp + hold, count, 6, dtype=torch.float64)
    carried[:grasp, :, 2] = MASS * GRAVITY
    mu = torch.as_tensor(friction)[:, None]
    start = world.initial_state(count, torch.float64)
    states = world.rollout(start, controls, params={"friction": mu}, wrenches={"cube": carried})
    height = states[grasp:, :, world.coordinates("cube")[0]][..., 2]
    contacts = world.contacts(
        states[grasp - 1], controls[0], params={"friction": mu}, wrenches={"cube": carried[grasp - 1]}
    )
    times = world.dt * np.arange(hold + 1)
    return Falls(friction, times, (height[0] - height).numpy(), contacts.forces.sum(-1).numpy() / 2)


def critical_friction(world: World, rounds: int = 4, at_once: int = 16) -> float:
    """The coefficient below which the cube is lost, by ever finer scales: to 5e-5 of itself after four, 8e-4 after three."""
    low, high = 0.3 * CRITICAL, 4.0 * CRITICAL
    for _ in range(rounds):
        friction = np.geomspace(low, high, at_once)
        lost = try_frictions(world, friction).lost
        if not lost[0] or lost[-1] or (np.diff(lost.astype(int)) > 0).any():
            raise RuntimeError(f"no threshold between {low:.3g} and {high:.3g}: lost is {lost.tolist()}")
        last = int(np.flatnonzero(lost)[-1])
        low, high = friction[last], friction[last + 1]
    return float(np.sqrt(low * high))
