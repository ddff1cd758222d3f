"""Newton's cradle: five pendulums, elastic impacts, and their gradient.

The last ball swings as high as the first one was lifted, so the derivative of its highest angle is one."""

import os

import numpy as np
import torch
import tyro

import costate as cs
from costate.report import Report

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
BALLS, RADIUS, LENGTH, GAP = 5, 0.05, 0.5, 1e-3  # m; with a gap between the balls, impacts happen one after the other
SECONDS, DT = (1.2 if QUICK else 6.0), 2e-3


def pendulum(k: int) -> cs.Body:
    """Make a ball on a massless rod that swings about y."""
    pivot = (k * (2 * RADIUS + GAP), 0, LENGTH)
    ball = cs.shapes.sphere(RADIUS, position=(0, 0, -LENGTH), color=(0.7, 0.7, 0.75, 1.0))
    inertia = 0.4 * RADIUS**2 * np.eye(3)
    return cs.Body(f"ball{k}", [ball], 1.0, inertia, (0, 0, -LENGTH), "revolute", (0, 1, 0), position=pivot)


def main(out: str = "out") -> None:
    world = cs.World(
        bodies=[pendulum(k) for k in range(BALLS)],
        contact=cs.Hard(friction=0.0, restitution=1.0),
        collide=[(f"ball{k}", f"ball{k + 1}") for k in range(BALLS - 1)],
        dt=DT,
        substeps=5,
    )
    angle = torch.tensor(0.4, requires_grad=True)
    start = torch.cat([angle[None], torch.zeros(world.nx - 1)])
    states = world.rollout(start, steps=round(SECONDS / DT))
    swing = states[:, BALLS - 1]
    highest = swing[: round(1.2 / DT)].min()  # the last ball's first swing, with a negative angle
    (slope,) = torch.autograd.grad(highest, angle)
    energy = world.energy(states).detach()
    lost = float((energy[0] - energy[-1]) / (energy[0] - world.energy(world.initial_state())))
    print(f"the first ball starts at {angle:.3f} rad, the last one reaches {-highest:.3f} rad; derivative {slope:.3f}")
    print(f"energy lost in {SECONDS} s: {lost:.2%}")

    cs.render(world, start.detach(), f"{out}/08_newtons_cradle.png", size=(640, 400), ground=False)
    page = Report("Newton's cradle", f"{BALLS} balls, {SECONDS} s")
    scene = page.replay(world, states[::10].detach(), dt=10 * DT)
    angles = {f"ball {k + 1}": states[::5, k].detach() for k in range(BALLS)}
    page.plot(angles, torch.arange(0, len(states), 5) * DT, title="Angle [rad]", x_label="s", follow=scene)
    print("wrote", page.save(f"{out}/08_newtons_cradle.html"))

    assert abs(highest + angle) < 0.01, "the last ball should swing as high as the first"
    assert states[: round(1.2 / DT), 1 : BALLS - 1].abs().max() < 0.03, "the balls between should hang still"
    assert abs(slope + 1) < 0.05, "the last ball's swing should follow the first ball's angle one to one"
    assert abs(lost) < 0.02, "elastic impacts should keep the energy"


if __name__ == "__main__":
    tyro.cli(main)
