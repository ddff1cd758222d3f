"""Study of cloth that touches itself: random drops onto a floor and onto each other, and how many pass through anything.

python -m benchmarks.study_drops [--drops 10000] [--first 0] [--minutes 60] [--folder out/drops]

A drop is two sheets of 4 x 4 points, turned and shifted at random, one thrown onto the other above a floor, 40 steps of 1/100 s. In
every step edges that pass through triangles are counted, points below the floor, and points that are lost. Drops are computed in
parts of 100; with a folder, parts that it has are not computed again, and what is printed in the end is the sum of all in it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

import costate as cs
from costate.continuum import Cloth, ClothModel, Collider, Solver, sheet
from costate.continuum.cloth.measures import crossings, gaps

STEPS = 40
PART = 100
"""Drops of a part."""


@dataclass
class Found:
    """Counts of what happened in some drops."""

    drops: int = 0
    touching: int = 0
    """Drops in which the sheets came nearer to each other than their thickness."""
    crossed: int = 0
    """Drops in which an edge passed through a triangle."""
    below: int = 0
    """Drops in which a point was below the floor."""
    lost: int = 0
    """Drops with positions that are not finite, or farther away than 2 m."""
    unsolved: int = 0
    """Drops that ended since a step did not converge."""
    least: float = float("inf")
    """Least distance of a point from the floor [m]."""
    seconds: float = 0.0

    def __add__(self, other: Found) -> Found:
        """Return the counts of both."""
        sums = {k: v + asdict(other)[k] for k, v in asdict(self).items()}
        return Found(**{**sums, "least": min(self.least, other.least)})


def scene() -> ClothModel:
    """Return the two sheets and the floor."""
    flat = sheet((4, 4), (0.15, 0.15))
    pieces = [Cloth(flat.points, flat.triangles, name=n) for n in ("first", "second")]
    return ClothModel(
        pieces, dt=1 / 100, colliders=[Collider(cs.shapes.plane(), 0.4)], self_contact=True, solver=Solver(1e-5)
    )


def thrown(model: ClothModel, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return positions and velocities at the beginning of a drop."""
    rng = np.random.default_rng(seed)
    flat = model.bodies[0].points
    R = np.linalg.qr(rng.normal(size=(2, 3, 3)))[0]
    x = np.concatenate([flat @ R[0].T + [0, 0, 0.12], flat @ R[1].T + [*0.03 * rng.normal(size=2), 0.36]])
    v = np.zeros((32, 3))
    v[16:] = [0, 0, -rng.uniform(1, 3)] + 0.3 * rng.normal(size=3)
    return torch.as_tensor(x), torch.as_tensor(v)


def drop(model: ClothModel, seed: int, found: Found) -> None:
    """Compute a drop, and count what happened."""
    begun = time.process_time()
    x, v = thrown(model, seed)
    found.drops += 1
    try:
        history = model.run(STEPS, model.start(x, v))
    except FloatingPointError:
        found.unsolved += 1
    else:
        floor = float(gaps(model, history.x).min())
        found.least = min(found.least, floor)
        found.below += floor < 0
        found.crossed += any(crossings(model, frame) for frame in history.x)
        found.touching += any(_touching(model, frame.numpy()) for frame in history.x[::4])
        found.lost += not bool((history.x.abs() < 2).all())
    found.seconds += time.process_time() - begun


def _touching(model: ClothModel, x: np.ndarray) -> bool:
    pairs, _ = model.surfaces.near_pairs(x, model.thickness)
    return bool(((pairs.min(1) < 16) & (pairs.max(1) >= 16)).any())


def part(model: ClothModel, seeds: range) -> Found:
    """Compute some drops."""
    found = Found()
    for seed in seeds:
        drop(model, seed, found)
    return found


def kept(folder: Path) -> Iterable[Found]:
    """Return all parts of a folder."""
    return (Found(**json.loads(p.read_text(encoding="utf-8"))) for p in sorted(folder.glob("*.json")))


def main() -> None:
    """Compute drops and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drops", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first drop")
    parser.add_argument("--minutes", type=float, default=1e9, help="processor time after which no part begins")
    parser.add_argument("--folder", type=Path, help="folder of parts, one file each")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    model, total = scene(), Found()
    if chosen.folder:
        chosen.folder.mkdir(parents=True, exist_ok=True)
    for first in range(chosen.first, chosen.first + chosen.drops, PART):
        path = chosen.folder / f"{first:06}.json" if chosen.folder else None
        if (path and path.exists()) or time.process_time() > 60 * chosen.minutes:
            continue
        found = part(model, range(first, min(first + PART, chosen.first + chosen.drops)))
        total += found
        print(f"{first}: {asdict(found)}", flush=True)
        if path:
            path.write_text(json.dumps(asdict(found)) + "\n", encoding="utf-8")
    print(asdict(sum(kept(chosen.folder), Found()) if chosen.folder else total))


if __name__ == "__main__":
    main()
