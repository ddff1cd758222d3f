"""Motions of least time."""

from __future__ import annotations

from dataclasses import replace

import torch

from costate.optimise.direct import Direct, DirectOptions
from costate.optimise.solution import Solution
from costate.train.solve.problems import Timed


def least_times(timed: Timed, options: DirectOptions) -> list[Solution]:
    """Solve problems of least time, one after the other; they are written down once."""
    wanted = replace(
        options, minimum_time=True, phases=timed.phases, duration=timed.duration, duration_bounds=timed.durations,
        bounds=timed.controls, state_bounds=timed.state_bounds,
    )  # fmt: skip
    if options.method == "inverse":
        wanted = replace(wanted, acceleration_limit=timed.rates[0], jerk_limit=timed.rates[1])
    sizes = {name: value.shape[-1] for name, value in timed.inputs.items()}
    program = Direct(timed.world, None, sum(timed.phases), wanted, timed.limits, sizes)
    idle = torch.zeros(sum(timed.phases), timed.world.nu, dtype=torch.float64)
    return [
        program.solve(start, idle, states0=timed.states0[:, k], inputs={n: v[k] for n, v in timed.inputs.items()})
        for k, start in enumerate(timed.state0)
    ]
