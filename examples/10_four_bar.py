"""A four-bar linkage: a tree of three bars, closed to a loop by a constraint and driven by a DC motor."""

import numpy as np
import torch

import costate as cs
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.report import Report

torch.set_default_dtype(torch.float64)
CRANK, COUPLER, ROCKER, GROUND = 0.1, 0.4, 0.3, 0.35  # [m]
Y = np.array([0.0, 1.0, 0.0])


def bar(name: str, length: float) -> Link:
    look = cs.shapes.capsule(0.012, length, position=(length / 2, 0, 0), rpy=(0, np.pi / 2, 0))
    inertia = Inertia(1.0, np.array([length / 2, 0, 0]), np.diag([1e-4, 1.0, 1.0]) * length**2 / 12)
    return Link(name, inertia, visuals=(look,))


def hinge(name: str, parent: str, child: str, x: float) -> Joint:
    return Joint(name, "revolute", parent, child, Transform(translation=np.array([x, 0.0, 0.0])), Y)


bars = (Link("base"), bar("crank", CRANK), bar("coupler", COUPLER), bar("rocker", ROCKER))
hinges = (hinge("a", "base", "crank", 0), hinge("b", "crank", "coupler", CRANK), hinge("c", "base", "rocker", GROUND))
world = cs.World(
    {"bars": cs.Robot(Model("bars", bars, hinges))},
    constraints=[cs.Connect("bars/coupler", "bars/rocker", (COUPLER, 0, 0), (ROCKER, 0, 0))],
    actuators={"bars/a": cs.DCMotor(stall_torque=0.5, no_load_speed=60.0, gear=10.0)},
    dt=0.01,
    substeps=5,
)

# Start with the crank along x. The other two angles follow from the intersection of two circles.
reach = GROUND - CRANK
bend = np.arccos((COUPLER**2 + reach**2 - ROCKER**2) / (2 * COUPLER * reach))
rocker = np.arctan2(COUPLER * np.sin(bend), CRANK + COUPLER * np.cos(bend) - GROUND)
state = world.initial_state()
state[:3] = torch.tensor([0.0, -bend, -rocker])

states = world.rollout(state, torch.ones(300, 1))
a, ab, c = states[:, 0], states[:, 0] + states[:, 1], states[:, 2]
x = CRANK * torch.cos(a) + COUPLER * torch.cos(ab) - ROCKER * torch.cos(c) - GROUND
z = CRANK * torch.sin(a) + COUPLER * torch.sin(ab) - ROCKER * torch.sin(c)
gap = float(torch.hypot(x, z).max())
turns = float(a[-1] - a[0]) / (2 * np.pi)
print(
    f"{turns:.2f} turns in 3 s; the rocker swings {float(c.max() - c.min()):.2f} rad; the loop opens {1e3 * gap:.3f} mm at most"
)
cs.render(world, states, "out/10_four_bar.png", size=(640, 400), trails=["bars/coupler"], ground=False)
page = Report("A four-bar linkage", "driven by a DC motor")
page.replay(world, states[::2], trails=["bars/coupler"], dt=0.02)
print("wrote", page.save("out/10_four_bar.html"))
assert turns > 1, "the motor should turn the crank"
assert gap < 1e-3, "the loop should stay closed"
