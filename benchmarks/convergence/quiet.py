"""Defects that must not show at rest and in a jam: derivatives that jump from step to step, and energy out of nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

import costate as cs
from benchmarks.convergence.robots import GROUND, D, laikago, normal
from benchmarks.convergence.singular import gains
from costate.model import Transform

DT = 0.002
LANDED = 1.0
"""Time that feet have to come to rest [s]."""


def change_of_derivative(contact: cs.ContactModel, seconds: float) -> tuple[float, float]:
    """Return the largest change of the derivative of a standing Laikago's step from one step to the next, by its size; and the
    residual that the solver reports at most."""
    scene = laikago(contact, DT)
    world = scene.world
    x = world.initial_state(dtype=D)
    hold = x[7:19].clone()
    landed, steps = round(LANDED / DT), round(seconds / DT)
    with torch.no_grad():
        states = world.rollout(x, hold.expand(landed + steps, -1))[landed:]
        residual = float(world.contacts(states, hold.expand(len(states), -1)).residual.max())
    largest, last = 0.0, None
    for part in states.split(500):
        A, _ = world.linearize(part, hold.expand(len(part), -1))
        A = A if last is None else torch.cat([last, A])
        change = (A[1:] - A[:-1]).flatten(1).norm(dim=1) / A[1:].flatten(1).norm(dim=1)
        largest, last = max(largest, float(change.max())), A[-1:]
    return largest, residual


@dataclass(frozen=True)
class Jam:
    """A mechanism that could gain energy, and where it starts."""

    world: Callable[[cs.ContactModel | None], cs.World]
    states: torch.Tensor
    """(b, nx)."""

    def gain(self, contact: cs.ContactModel, steps: int) -> tuple[float, float]:
        """Return the largest energy that contact adds in a step [J], and how much energy the motions lose at most [J].

        With `Hard` without restitution: what corrections add beyond what impulses take (singular.py). Else what a step has at its
        end beyond what it began with, what it has without contact, and the difference of these two, which is what the integrator
        adds to a body that flies: for bodies that do not turn about each other.
        """
        world, loose = self.world(contact), self.world(None)
        with torch.no_grad():
            states = world.rollout(self.states, steps=steps)
            energy = world.energy(states)
            lost = float((energy[0] - energy[-1]).max())
            if isinstance(contact, cs.Hard) and not contact.restitution:
                return float(gains(self.world, states[:-1].flatten(0, 1), contact).gained.max()), lost
            free = loose.energy(loose.step(states[:-1]))
        gain = energy[1:] - torch.maximum(energy[:-1], free) - (free - energy[:-1]).abs()
        return float(gain.nan_to_num(nan=math.inf).max()), lost


def straight_leg(count: int) -> Jam:
    """Return legs of two links, almost straight, whose feet are up to 1 mm inside the floor."""
    random = torch.Generator().manual_seed(0)

    def world(contact: cs.ContactModel | None) -> cs.World:
        return cs.World(
            {"leg": cs.load_robot("pendulum2")}, scenery=[GROUND], contact=contact, dt=DT, check=False,
            poses={"leg": Transform(np.eye(3), np.array([0, 0, 2.0]))}, collide=[("leg/link_2", "ground")],
        )  # fmt: skip

    return Jam(world, torch.cat([0.03 * normal(random, count, 2), 0.3 * normal(random, count, 2)], 1))


def jammed_pegs(count: int) -> Jam:
    """Return pegs that lean between two walls which are closer than they are long, and are thrown into them."""
    random = torch.Generator().manual_seed(1)
    walls = [cs.Static(f"wall{s:+d}", cs.shapes.box((0.1, 1.0, 2.0), (0.15 * s, 0, 0))) for s in (-1, 1)]
    peg = cs.Body("peg", [cs.shapes.capsule(0.01, 0.3)], 0.5)

    def world(contact: cs.ContactModel | None) -> cs.World:
        return cs.World([], [peg], walls, contact=contact, dt=DT, check=False)

    x = world(None).initial_state(count, dtype=D)
    # The axis of a capsule is z: turned by the angle at which its ends touch both walls, or a little less.
    reach = (0.1 - 0.01) / 0.15 * (1 - 1e-3 * torch.rand(count, dtype=D, generator=random))
    lean = torch.asin(reach)
    x[:, 4], x[:, 6] = torch.sin(lean / 2), torch.cos(lean / 2)
    x[:, 7:] = normal(random, count, 6) * torch.tensor([1, 0, 1, 0, 5, 0], dtype=D)
    return Jam(world, x)


def joint_stops(count: int) -> Jam:
    """Return arms that fall into the stops of their joints, without anything that damps them."""
    random = torch.Generator().manual_seed(2)

    def world(contact: cs.ContactModel | None) -> cs.World:
        return cs.World([cs.load_robot("ur5")], contact=contact, dt=DT, check=False)

    joints = world(None).setup.scene.model.joints
    low, high = (
        torch.tensor([float(getattr(j, end)[0]) for j in joints if j.nv == 1], dtype=D) for end in ("lower", "upper")
    )
    q = torch.where(torch.rand(count, 6, dtype=D, generator=random) < 0.5, low, high)
    q = q.clamp(-math.pi, math.pi) * (1 - 0.02 * torch.rand(count, 6, dtype=D, generator=random))
    return Jam(world, torch.cat([q, 2 * normal(random, count, 6)], 1))


JAMS: dict[str, Callable[[int], Jam]] = {
    "a straight leg": straight_leg,
    "jammed pegs": jammed_pegs,
    "joint stops": joint_stops,
}
FLIES = ("jammed pegs",)
"""Jams of single bodies, whose energy can be judged without knowing the solver."""
