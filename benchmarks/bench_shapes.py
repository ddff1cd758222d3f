"""Benchmark of contact between shapes: what a pair costs, near and far, and how the cost grows with the number of pairs.

    python -m benchmarks.bench_shapes [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...]

One thread, float64. Worlds of boxes, all of which may touch each other, are stepped beside MuJoCo. In the table of pairs, a pair
of two boxes (or of a box and a hull) has four places; far pairs are those whose bounding spheres are further apart than the smaller
radius. The samples of a batch differ in which pairs are near.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import mujoco
import numpy as np
import torch
from casadi import SX

from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish, threads
from benchmarks.sim.box_scene import SPACING, Peer, positions, states, world
from costate.collision.bounds import BOUND, pruned
from costate.collision.mesh.hull import hull_of
from costate.collision.narrow import POSE, pair_program
from costate.collision.shapes import Box, Solid, sizes
from costate.kernel import Kernel, ProgramBuilder

COMMAND = "python -m benchmarks.bench_shapes --markdown docs/benchmarks.md"
CUBE = Box(SX([0.2, 0.2, 0.2]))
HULL = hull_of(np.random.default_rng(0).normal(size=(12, 3)) * 0.08)
SPHERE = [0.0, 0.0, 0.0, float(np.sqrt(3) / 10)]
NEAR = (0.0, 0.1, 1.0)
"""Shares of pairs that are near."""


def kernel(a: Solid, b: Solid, pairs: int, prune: bool) -> Kernel:
    """Places of some pairs of bodies 2 k and 2 k + 1, from all poses."""
    program = pair_program(a, b)
    p = ProgramBuilder("narrow")
    poses = p.input("poses", 2 * pairs * POSE)
    given = [p.input(name, n) for name, n in (("sa", len(sizes(a))), ("sb", len(sizes(b))), ("bound", BOUND))]
    rows = np.arange(pairs)[:, None]
    tables = [(poses, (2 * rows + side) * POSE + np.arange(POSE)) for side in (0, 1)]
    shared = [given[0], given[1], *([given[2], given[2]] if prune else [])]
    tables += [(v, np.tile(np.arange(v.size), (pairs, 1))) for v in shared]
    p.output("places", p.map(pruned(program) if prune else program, tables, [None])[0])
    return p.kernel()


def poses(pairs: int, batch: int, near: float) -> torch.Tensor:
    """Upright bodies in pairs, some of which touch."""
    random = np.random.default_rng(0)
    x = np.zeros((batch, pairs, 2, POSE))
    x[..., [0, 4, 8]] = 1
    close = np.arange(pairs) < round(near * pairs)
    x[:, :, 1, 9:] = (
        np.where(close[:, None], 0.19, 1.0) * np.array([0, 0, 1]) + random.normal(size=(batch, pairs, 3)) * 0.01
    )
    return torch.tensor(x.reshape(batch, -1))


def pair_table(chosen: Options) -> Table:
    counts = (10, 100) if chosen.smoke else (10, 100, 1000)
    batch = 64
    rows = []
    for name, other in (("box - box", CUBE), ("box - hull of 12", HULL)):
        given = {"sa": sizes(CUBE), "sb": sizes(other), "bound": SPHERE}
        values = {k: torch.tensor(v, dtype=torch.float64) for k, v in given.items()}
        for n in counts:
            fast, plain = kernel(CUBE, other, n, True), kernel(CUBE, other, n, False)
            data = {share: poses(n, batch, share) for share in NEAR}
            cases = {f"{share:g}": partial(fast, poses=x, **values) for share, x in data.items()}
            cases["all"] = partial(plain, poses=data[0.0], **values)
            took = interleaved(cases, rounds=3 if chosen.smoke else 10)
            rows.append((name, n, *(1e6 * took[c] / batch for c in cases)))
    columns = ("pair", "pairs", *(f"{round(100 * s)} % near [us]" for s in NEAR), "far, not pruned [us]")
    return Table("Contact: cost of candidate pairs", columns, tuple(rows), "Per sample, all pairs together; batch 64.")


BOXES = {5: "10", 15: "105", 45: "990"}
"""Boxes of a world: its pairs."""


def step_table(chosen: Options) -> Table:
    """A step of boxes that are all far apart, and of a block of them."""
    batch = 8
    rows: list[tuple[str | float, ...]] = []
    for count, pairs in list(BOXES.items())[: 2 if chosen.smoke else None]:
        w = world(count)
        for name, spacing in SPACING.items():
            places = positions(count, spacing, batch)
            peer = Peer(places)
            cases: dict[str, Callable[[], object]] = {"ours": partial(w.step, states(w, places)), "mujoco": peer.step}
            took = interleaved(cases, rounds=3 if chosen.smoke else 10)
            costs = [1e6 * t / batch for t in took.values()]
            rows.append((f"{count} boxes, {name}", pairs, peer.contacts, *costs, costs[1] / costs[0]))
    columns = ("scene", "pairs", "contacts in MuJoCo", "Costate, 50 sweeps [us]", "MuJoCo, Newton [us]", "ratio")
    note = "A step of free boxes without gravity, per sample, batch 8. Far: 1 m apart; near: a block whose faces overlap by 0.1 mm."
    return Table("Contact: a step with 10, 100 and 1,000 candidate pairs", columns, tuple(rows), note)


TABLES = {"pairs": pair_table, "steps": step_table}


def main() -> None:
    chosen = options(__doc__ or "", list(TABLES))
    with threads(1), torch.no_grad():
        tables = tuple(TABLES[name](chosen) for name in chosen.only)
    publish(
        Report("Shapes", COMMAND, machine(mujoco=mujoco.__version__, load=f"{os.getloadavg()[0]:.1f}"), tables), chosen
    )


if __name__ == "__main__":
    main()
