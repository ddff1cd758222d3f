"""Contact of pairs of convex solids: distances beside MuJoCo, coal and certificates, gradients beside differences, cost.

    python -m benchmarks.study_pairs --markdown docs/contact.md [--poses 10000] [--pairs box-hull ...] [--smoke]

Poses of every pair: six in ten random, from coincident centres to apart; two with one or both solids thin, tiny or large; two
degenerate: turned by multiples of right angles with faces touching, flush or centred, parallel edges, coincident centres, random
ones moved until they touch. Ends with exit code 1 where a distance is off by more than a micrometre.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from benchmarks.measure.harness import Report, Table, machine, options, publish, threads
from benchmarks.measure.share import add_cluster, cluster_of, shared
from benchmarks.pairs.cases import BODIES, PAIRS, Array, cases, compare, kernel, places, random_poses, solid
from costate.collision.pairs import by_program
from costate.collision.shapes import sizes

COMMAND = "python -m benchmarks.study_pairs --markdown docs/contact.md"
EXACT = 1e-6
"""Largest error of distances and depths [m]: MuJoCo ends its search for round shapes there, its meshes have single precision."""
STEP = 1e-6
"""Step of differences [m, or of a quaternion's components]."""


def distances(a: str, b: str, count: int) -> tuple[float, float, float, float]:
    """Largest error and its 99th percentile [m]; share of overlapping poses with the least depth; how much deeper at most [m]."""
    found = [compare(*case[1:]) for case in cases(a, b, count)]
    errors, deeper = np.concatenate([f.error for f in found]), np.concatenate([f.deeper for f in found])
    return errors.max(), float(np.quantile(errors, 0.99)), float(np.mean(deeper <= EXACT)), deeper.max()


def gradient_errors(a: str, b: str, count: int, dtype: torch.dtype) -> Array:
    """Compute the error of the derivatives of the nearest contact point (gap, point and normal) against central differences.

    Directions of both poses are random. Errors are relative to the derivative where that is above one, at the poses where
    differences of two steps agree.
    """
    bodies = BODIES[a], BODIES[b]
    random = np.random.default_rng(5)
    x, y = (torch.tensor(p) for p in random_poses(random, *bodies, count))
    ways = [torch.tensor(random.normal(size=p.shape)) for p in (x, y)]
    first = places(*bodies, x, y)[..., 0].argmin(-1)

    def nearest(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return places(*bodies, u, v)[torch.arange(count), first.to(u.device)]

    def difference(h: float) -> torch.Tensor:
        return (nearest(x + h * ways[0], y + h * ways[1]) - nearest(x - h * ways[0], y - h * ways[1])) / (2 * h)

    given = [[t.to(dtype) for t in ts] for ts in ((x, y), ways)]
    exact = torch.func.jvp(nearest, tuple(given[0]), tuple(given[1]))[1].double()
    one, two = difference(STEP), difference(2 * STEP)
    scale = exact.abs().amax(-1).clamp(min=1)
    smooth = (one - two).abs().amax(-1) < 1e-5 * scale
    return ((exact - one).abs().amax(-1) / scale)[smooth].numpy()


def single_precision(a: str, b: str, count: int) -> float:
    """Compute how far distances in float32 are from those in float64, in 99 % of random poses [m]."""
    bodies = BODIES[a], BODIES[b]
    poses = [torch.tensor(p) for p in random_poses(np.random.default_rng(7), *bodies, count)]
    fine, rough = (
        places(*bodies, *(p.to(kind) for p in poses))[..., 0].amin(-1) for kind in (torch.float64, torch.float32)
    )
    return float((fine - rough).abs().quantile(0.99))


def seconds(a: str, b: str, smoke: bool) -> dict[str, float]:
    """Measure the processor time of a pair, apart and overlapping, in batches of 256: the best of several rounds [s]."""
    bodies = BODIES[a], BODIES[b]
    x, y = (torch.tensor(p) for p in random_poses(np.random.default_rng(6), *bodies, 2048))
    gap = places(*bodies, x, y)[..., 0].amin(-1)
    own = {f"s{k}": torch.tensor(sizes(solid(body)), dtype=torch.float64) for k, body in zip("ab", bodies, strict=True)}
    best = {}
    for name, chosen in (("apart", gap > 0), ("overlapping", gap < 0)):
        poses = {"x": x[chosen][:256], "y": y[chosen][:256]}
        best[name] = np.inf
        for _ in range(5 if smoke else 50):
            start = time.process_time()
            kernel(a, b)(**poses, **own)
            best[name] = min(best[name], (time.process_time() - start) / len(poses["x"]))
    return best


def row(a: str, b: str, count: int, smoke: bool) -> tuple[str | float, ...]:
    worst, most, least, deeper = distances(a, b, count)
    gradients = [gradient_errors(a, b, 20 if smoke else 500, kind) for kind in (torch.float64, torch.float32)]
    took = seconds(a, b, smoke)
    how = "program" if by_program(solid(BODIES[a]), solid(BODIES[b])) else "formula"
    return (
        f"{a} - {b}",
        how,
        *(f"{v:.1e}" for v in (worst, most)),
        f"{100 * least:.2f}",
        f"{1e3 * deeper:.2g}",
        f"{np.quantile(gradients[0], 0.99):.1e}",
        f"{single_precision(a, b, 2000):.1e}",
        f"{np.quantile(gradients[1], 0.99):.1e}",
        round(1e9 * took["apart"]),
        round(1e9 * took["overlapping"]),
    )


COLUMNS = (
    "pair",
    "by",
    "distance, worst [m]",
    "99 % within [m]",
    "least depth [%]",
    "else deeper by at most [mm]",
    "gradient, 99 % within",
    "float32: distance [m]",
    "gradient",
    "apart [ns]",
    "overlapping [ns]",
)


def main() -> None:
    names = [f"{a}-{b}" for a, b in PAIRS]
    chosen = options(
        __doc__ or "",
        ["pairs"],
        lambda p: (
            p.add_argument("--poses", type=int, default=10_000),
            p.add_argument("--pairs", nargs="+", choices=names, default=names),
            add_cluster(p),
        ),
    )
    count = 100 if chosen.smoke else chosen.rest.poses
    rows = []
    with threads(1):
        cases = [(*name.split("-"), count, chosen.smoke) for name in chosen.rest.pairs]
        for found in shared(row, cases, cluster_of(chosen.rest)):
            rows.append(tuple(found))
            print(" | ".join(map(str, rows[-1])), flush=True)
    note = (
        f"{count:,} poses of each pair. Distances of solids that are apart: to the nearer of MuJoCo's and coal's, and to what "
        "the normal itself proves. Least depth: share of overlapping poses where no direction with less is known, within a "
        "micrometre. Gradients: of gap, point and normal of the nearest place, against differences. In float32: "
        "99 % are within. Cost: processor time per pair, batch 256, float64."
    )
    table = Table("Every pair", COLUMNS, tuple(rows), note)
    publish(Report("Pairs of shapes", COMMAND, machine(), (table,)), chosen)
    sys.exit(1 if any(float(r[2]) > EXACT for r in rows) else 0)


if __name__ == "__main__":
    main()
