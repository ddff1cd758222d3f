"""Draws docs/figures/smoothness.png: `cs.diagnose` of a ball that bounces and then rolls."""

from __future__ import annotations

from pathlib import Path

import torch

import costate as cs
from costate.audit.smoothness import Smoothness


def main() -> Smoothness:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
    ground = cs.Static("ground", cs.shapes.plane())
    world = cs.World(bodies=[ball], scenery=[ground], contact=cs.Hard(friction=0.3, restitution=0.6), dt=0.01)
    state = world.initial_state()
    state[2], state[7] = 0.4, 1.0
    found = cs.diagnose(world, world.rollout(state, torch.zeros(120, 0, dtype=torch.float64)))
    print(found)
    return found


if __name__ == "__main__":
    main().figure().savefig(Path(__file__).parent / "smoothness.png", dpi=110)
