"""Ten Laikagos in one scene stand on a raft that glides along x, and move the raft by moving themselves.

All of them form one world with one contact problem, and gradient descent through it finds controls that bring the raft to a target.
No external force acts along x, so the total momentum of raft and robots along x stays zero, which is checked."""

import os
import time

import torch
import tyro
from rich.progress import track

import costate as cs

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
ROBOTS, STEPS, ITERATIONS = (2, 40, 3) if QUICK else (10, 100, 15)


def make_world() -> cs.World:
    """Make a world in which only feet touch the raft: 4 spheres per robot and one box."""
    raft = cs.Body(
        "raft",
        [cs.shapes.box((8, 3, 0.2), position=(0, 0, -0.1))],
        mass=20.0 * ROBOTS,
        joint="prismatic",
        axis=(1, 0, 0),
    )
    laikago = cs.load_robot("laikago")
    return cs.World(
        robots={f"dog{k}": laikago for k in range(ROBOTS)},
        bodies=[raft],
        poses={f"dog{k}": (k % 5 - 2.0, k // 5 - 0.5, 0.0) for k in range(ROBOTS)},
        actuators={f"dog{k}": cs.PositionServo(stiffness=150.0, damping=4.0) for k in range(ROBOTS)},
        contact=cs.Hard(joint_limits=False),
        collide=lambda a, b: "toe" in a and b == "raft/body",
        dt=5e-3,
    )


def momentum(world: cs.World, states: torch.Tensor) -> torch.Tensor:
    """Return the momentum of robots and raft along x [kg m/s]."""
    robot = cs.load_robot("laikago")
    q, v = world.coordinates("raft")
    total = 20.0 * ROBOTS * states[..., v].squeeze(-1)
    for k in range(ROBOTS):
        q, v = world.coordinates(f"dog{k}")
        total = total + robot.momentum(states[..., q], states[..., v])[..., 0]
    return total


def main(out: str = "out") -> None:
    world = make_world()
    start = world.initial_state()
    legs = torch.cat([start[world.coordinates(f"dog{k}")[0]][7:] for k in range(ROBOTS)])
    bend = torch.zeros(STEPS, world.nu, requires_grad=True)
    optimizer = torch.optim.Adam([bend], lr=0.02)
    place = world.coordinates("raft")[0].start
    losses = []
    for _ in track(range(ITERATIONS), "descending"):
        began = time.perf_counter()
        states = world.rollout(start, legs + bend)
        forward = time.perf_counter() - began
        loss = (states[-1, place] - 0.05).square() + 1e-4 * bend.square().mean()
        optimizer.zero_grad()
        loss.backward()
        backward = time.perf_counter() - began - forward
        optimizer.step()
        losses.append(loss.item())
    print(f"{ROBOTS} robots, {world.nx} numbers per state, {len(world.setup.scene.pairs)} contacts")
    print(f"per step: {1e6 * forward / STEPS:.0f} us forward, {1e6 * backward / STEPS:.0f} us backward")
    print(f"loss {losses[0]:.2e} -> {losses[-1]:.2e}; the raft is at {100 * states[-1, place]:.2f} cm (target: 5 cm)")
    drift = momentum(world, states.detach()).abs().max()
    print(f"largest momentum along x: {drift:.1e} kg m/s")
    print("wrote", cs.render(world, states[-1].detach(), f"{out}/07_ten_laikagos.png", size=(720, 400)))
    assert losses[-1] < (0.98 if QUICK else 0.5) * losses[0], "the raft should come closer to its target"
    assert drift < 0.01 * ROBOTS, "no external force acts along x"


if __name__ == "__main__":
    tyro.cli(main)
