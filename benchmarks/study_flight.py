"""Free flight: what bodies and robots on which no force acts keep of their energy, by integrator and step.

python -m benchmarks.study_flight
"""

from __future__ import annotations

import torch
from torch import Tensor

import costate as cs
from benchmarks.measure.harness import Report, Table, machine, options, publish

INTEGRATORS = ("semi_implicit", "euler", "rk4")
SPINS = (1.0, 10.0, 20.0, 40.0, 60.0)
"""Speeds of the box about its middle axis [rad/s]."""


def box(integrator: str, dt: float, time: float) -> list[str]:
    """Return the largest change of a tumbling box's energy, for every speed."""
    body = cs.Body("box", [cs.shapes.box((0.1, 0.2, 0.3))], 1.0)
    world = cs.World([], [body], contact=None, integrator=integrator, gravity=(0, 0, 0), dt=dt, check=False)
    state = world.initial_state(len(SPINS))
    state[:, 10:13] = torch.tensor([[0.02, spin, 0.02] for spin in SPINS])
    energy = world.energy(world.rollout(state, steps=round(time / dt)))
    return [_written(x) for x in (energy / energy[0] - 1).abs().amax(0)]


def laikago(integrator: str, dt: float, time: float) -> list[str]:
    """Return the median and largest energy of tumbling Laikagos by that of the start, and how many are lost."""
    world = cs.World(
        [cs.load_robot("laikago")], contact=None, integrator=integrator, gravity=(0, 0, 0), dt=dt, check=False
    )
    state = world.initial_state(16)
    v = torch.randn(16, world.nv, generator=torch.Generator().manual_seed(0))
    state[:, world.nq :] = v * torch.tensor([0.0] * 3 + [8.0] * 3 + [2.0] * 12)
    energy = world.energy(world.rollout(state, steps=round(time / dt)))
    part = (energy / energy[0]).nan_to_num(nan=torch.inf)
    return [_written(part[-1].median()), _written(part[-1].max()), str(int(part[-1].isinf().sum()))]


def arm(integrator: str, dt: float, time: float) -> list[str]:
    """Return the change of the mean energy of a pendulum of three links in its last second, by its energy above hanging."""
    world = cs.World([cs.load_robot("pendulum3")], contact=None, integrator=integrator, dt=dt, check=False)
    state = world.initial_state()
    state[: world.nq] = 1.0
    energy = world.energy(world.rollout(state, steps=round(time / dt)))
    above = energy[0] - world.energy(torch.zeros(world.nx))
    return [_written((energy[-round(1 / dt) :].mean() - energy[0]) / above)]


def _written(x: Tensor) -> str:
    return f"{float(x):.2g}"


def main() -> None:
    chosen = options(__doc__ or "", ("box", "laikago", "arm"))
    torch.set_default_dtype(torch.float64)
    part = 0.1 if chosen.smoke else 1.0
    steps = [(name, dt) for name in INTEGRATORS for dt in (0.01, 0.002)]
    tables = {
        "box": lambda: Table(
            "box about its middle axis, 60 s: largest change of the energy",
            ("integrator", "step [ms]", *(f"{spin:g} rad/s" for spin in SPINS)),
            tuple((name, 1e3 * dt, *box(name, dt, 60 * part)) for name, dt in steps),
        ),
        "laikago": lambda: Table(
            "16 tumbling Laikagos (base 8, joints 2 rad/s), 3 s: energy by that of the start",
            ("integrator", "step [ms]", "median", "largest", "lost"),
            tuple((name, 1e3 * dt, *laikago(name, dt, 3 * part)) for name, dt in steps),
        ),
        "arm": lambda: Table(
            "pendulum of three links that swings for 20 s: change of the energy, by that above hanging",
            ("integrator", "step [ms]", "change"),
            tuple((name, 1e3 * dt, *arm(name, dt, 20 * part)) for name, dt in steps),
        ),
    }
    found = tuple(tables[name]() for name in chosen.only)
    publish(Report("Free flight", "python -m benchmarks.study_flight", machine(), found), chosen)


if __name__ == "__main__":
    main()
