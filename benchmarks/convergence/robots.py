"""Random states of robots, hands and stacks that touch things, on the way of random motions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

import costate as cs
from costate.model import Transform

D = torch.float64
GROUND = cs.Static("ground", cs.shapes.plane())
WARM, EVERY = 25, 5
"""Steps before the first state that counts, and from one to the next."""


@dataclass(frozen=True)
class Scene:
    """A world and how its motions begin."""

    world: cs.World
    start: Callable[[int, torch.Generator], torch.Tensor]
    """Number of motions -> states, (b, nx)."""
    drive: Callable[[int, int, torch.Generator], torch.Tensor]
    """(steps, motions) -> controls, (steps, b, nu)."""

    def states(self, count: int, motions: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Return states (count, nx) on the way of random motions, and their controls (count, nu)."""
        random = torch.Generator().manual_seed(seed)
        motions = min(motions, count)
        steps = WARM + EVERY * -(-count // motions)
        with torch.no_grad():
            controls = self.drive(steps, motions, random)
            found = self.world.rollout(self.start(motions, random), controls)[:-1]
        states, controls = (x[WARM::EVERY].flatten(0, 1)[:count] for x in (found, controls))
        good = states.isfinite().all(-1)
        if not good.all():
            raise RuntimeError(f"{int((~good).sum())} of {len(good)} states are not finite")
        return states, controls


def normal(random: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=D, generator=random)


def held(
    steps: int, motions: int, nu: int, middle: torch.Tensor, spread: float, random: torch.Generator
) -> torch.Tensor:
    """Return targets of servos that jump every 20 steps."""
    jumps = middle + spread * normal(random, -(-steps // 20), motions, nu)
    return jumps.repeat_interleave(20, 0)[:steps]


def laikago(contact: cs.ContactModel, dt: float = 0.002) -> Scene:
    """Return a Laikago that is kicked, and whose servos follow random targets."""
    world = cs.World(
        [cs.load_robot("laikago")], scenery=[GROUND], actuators=cs.PositionServo(300, 10), dt=dt, contact=contact,
        collide=lambda a, b: "toe" in a or "toe" in b, check=False,
    )  # fmt: skip
    home = world.initial_state(dtype=D)

    def start(count: int, random: torch.Generator) -> torch.Tensor:
        x = home.expand(count, -1).clone()
        x[:, 7:19] += 0.2 * normal(random, count, 12)
        x[:, 19:] = 0.5 * normal(random, count, 18)
        return x

    return Scene(world, start, lambda t, b, random: held(t, b, 12, home[7:19], 0.4, random))


def arm(contact: cs.ContactModel) -> Scene:
    """Return a UR5 that thrusts its wrist at the ground and at a box that lies there."""
    box = cs.Body("box", [cs.shapes.box((0.2, 0.2, 0.2))], 2.0, pose=Transform(translation=np.array([0.5, 0.1, 0.1])))
    world = cs.World(
        {"arm": cs.load_robot("ur5")}, [box], [GROUND], cs.PositionServo(2000, 100), dt=0.002, contact=contact,
        collide=lambda a, b: ("box" in a + b and "ground" in a + b) or "wrist" in a + b or "forearm" in a + b, check=False,
    )  # fmt: skip
    home = world.initial_state(dtype=D)
    reach = torch.tensor([0.1, -0.4, 1.0, -0.6, -1.5, 0.0], dtype=D)

    def start(count: int, random: torch.Generator) -> torch.Tensor:
        x = home.expand(count, -1).clone()
        q, v = world.coordinates("arm")
        x[:, q] = reach - torch.tensor([0, 0.7, 0, 0, 0, 0], dtype=D) + 0.1 * normal(random, count, 6)
        x[:, v] = 0.5 * normal(random, count, 6)
        return x

    return Scene(world, start, lambda t, b, random: held(t, b, 6, reach, 0.4, random))


def hand(contact: cs.ContactModel) -> Scene:
    """Return an Allegro hand whose finger tips and palm hold a cube; gravity presses it into the palm."""
    cube = cs.Body("cube", [cs.shapes.box((0.05,) * 3)], 0.1, pose=Transform(translation=np.array([0.04, 0.0, 0.02])))
    world = cs.World(
        {"hand": cs.load_robot("allegro_hand")}, [cube], [], cs.PositionServo(3, 0.1), dt=0.002, contact=contact,
        collide=lambda a, b: "cube" in a + b and ("tip" in a + b or "palm" in a + b), gravity=(-9.81, 0, 0), check=False,
    )  # fmt: skip
    home = world.initial_state(dtype=D)
    joints = [j for j in world.setup.scene.model.joints if j.nv == 1]
    top = torch.tensor([float(j.upper[0]) for j in joints], dtype=D)
    q, _ = world.coordinates("hand")

    def start(count: int, random: torch.Generator) -> torch.Tensor:
        x = home.expand(count, -1).clone()
        x[:, q] = (0.2 + 0.3 * torch.rand(count, 16, dtype=D, generator=random)) * top
        cube_q, cube_v = world.coordinates("cube")
        x[:, cube_q][:, :3] += 0.003 * normal(random, count, 3)
        x[:, cube_v] = 0.1 * normal(random, count, 6)
        return x

    return Scene(world, start, lambda t, b, random: held(t, b, 16, 0.7 * top, 0.2, random))


def stacks(contact: cs.ContactModel, boxes: int = 4) -> Scene:
    """Return a stack of unlike boxes that is knocked over: some motions hardly, some wholly."""
    names = [f"box{k}" for k in range(boxes)]
    edges = [0.2 - 0.02 * k for k in range(boxes)]
    bodies = [
        cs.Body(n, [cs.shapes.box((e,) * 3)], m)
        for n, e, m in zip(names, edges, [1.0, 30.0, 0.3, 10.0][:boxes], strict=True)
    ]
    world = cs.World(
        bodies=bodies, scenery=[GROUND], dt=0.002, contact=contact, check=False,
        collide=[*(("ground", n) for n in names), *pairwise(names)],
    )  # fmt: skip
    home = world.initial_state(dtype=D)
    heights = torch.tensor([sum(edges[:k]) + edges[k] / 2 for k in range(boxes)], dtype=D)

    def start(count: int, random: torch.Generator) -> torch.Tensor:
        x = home.expand(count, -1).clone()
        blow = 10 ** torch.linspace(-3, 0.3, count, dtype=D)[:, None]
        for k, name in enumerate(names):
            q, v = world.coordinates(name)
            x[:, q][:, :2] += 0.01 * normal(random, count, 2)
            x[:, q.start + 2] = heights[k]
            x[:, v] = blow * normal(random, count, 6)
        return x

    return Scene(world, start, lambda t, b, random: torch.zeros(t, b, 0, dtype=D))


SCENES: dict[str, tuple[Callable[[cs.ContactModel], Scene], int]] = {
    "Laikago, kicked and driven": (laikago, 60_000),
    "UR5 at the ground and a box": (arm, 15_000),
    "Allegro hand with a cube": (hand, 10_000),
    "four boxes knocked over": (stacks, 15_000),
}
"""Name -> scene, and how many of its states are looked at."""
