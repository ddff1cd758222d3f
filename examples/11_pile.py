"""Let 64 boxes fall into a pile: 2,080 pairs may touch, but a step solves only those that are near each other.

    python examples/11_pile.py

With COSTATE_QUICK=1 in the environment there are eight boxes.
"""

import os
import time

import torch
from rich.progress import track

import costate as cs
from costate.report import Report

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
SIDE, LAYERS = (2, 2) if QUICK else (4, 4)
SECONDS = 1.5 if QUICK else 3.0
EDGE = 0.2
DT = 0.01


def make_world() -> cs.World:
    """Make a world of boxes and a floor; friction holds together the heap into which the boxes fall."""
    boxes = [cs.Body(f"box{k}", [cs.shapes.box((EDGE, EDGE, EDGE))], 1.0) for k in range(SIDE**2 * LAYERS)]
    # Hundreds of boxes meet at the same time and none of them bounces: no impact needs a time of its own.
    contact = cs.PGS(sweeps=50, friction=0.6, correction="split", warm_start=True, impacts=0)
    floor = cs.Static("floor", cs.shapes.plane())
    return cs.World(bodies=boxes, scenery=[floor], contact=contact, dt=DT, substeps=4)


def scattered(world: cs.World, seed: int = 0) -> torch.Tensor:
    """Stack the boxes in layers, each moved and turned a little, so that the tower falls into a heap."""
    random = torch.Generator().manual_seed(seed)
    state = world.initial_state()
    for k in range(SIDE**2 * LAYERS):
        place = torch.tensor([k % SIDE, k // SIDE % SIDE, k // SIDE**2])
        noise = torch.randn(6, generator=random)
        q, _ = world.coordinates(f"box{k}")
        state[q][:3] = (place + torch.tensor([0, 0, 0.9])) * EDGE * torch.tensor([1.1, 1.1, 1.6]) + 0.02 * noise[:3]
        turn = torch.cat([0.3 * noise[3:], torch.ones(1)])
        state[q][3:] = turn / turn.norm()
    return state


def lowest(world: cs.World, state: torch.Tensor) -> float:
    """Return the height of the lowest corner of all boxes [m]."""
    q = state[: world.nq].reshape(-1, 7)
    x, y, z, w = q[:, 3:].T
    up = torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)
    return float((q[:, 2] - EDGE / 2 * up.abs().sum(-1)).min())


def simulate(world: cs.World, state: torch.Tensor, seconds: float = SECONDS) -> torch.Tensor:
    """Return the states of a roll-out without controls, (steps + 1, nx)."""
    states = [state[None]]
    for _ in track(range(max(round(seconds / DT / 10), 1)), "falling"):
        states.append(world.rollout(states[-1][-1], steps=10)[1:])
    return torch.cat(states)


def main() -> None:
    world = make_world()
    pairs = len(world.setup.scene.pairs)
    state = scattered(world)
    start = time.perf_counter()
    simulate(world, state, DT)
    print(f"{SIDE**2 * LAYERS} boxes, {pairs} pairs; compiled in {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    states = simulate(world, state)
    took = time.perf_counter() - start
    print(f"{SECONDS:g} s simulated in {took:.1f} s, {1e3 * took / (len(states) - 1):.1f} ms per step")

    energy = world.energy(states)
    speed = states[-1, world.nq :].reshape(-1, 6)[:, :3].norm(dim=-1)
    heights = [lowest(world, x) for x in states[::5]] + [lowest(world, states[-1])]
    print(
        f"energy {float(energy[0]):.1f} J -> {float(energy[-1]):.1f} J; fastest box at the end {float(speed.max()):.4f} m/s"
    )
    print(f"lowest corner {1e3 * min(heights):.2f} mm while they fall, {1e3 * heights[-1]:.2f} mm at the end")
    print("wrote", cs.render(world, states, "out/11_pile.png", size=(640, 400)))
    page = Report("A pile", f"{SIDE**2 * LAYERS} boxes, {pairs} pairs")
    page.replay(world, states[::3], dt=3 * DT)
    print("wrote", page.save("out/11_pile.html"))
    assert energy.diff().max() < 1e-3 * energy[0], "the energy should decay"
    assert speed.max() < 0.02, "the pile should come to rest"
    assert min(heights) > -0.002, "no box should sink into the floor"


if __name__ == "__main__":
    main()
