"""A worker that computes nothing: it sleeps, fails, hangs or dies as its job's quantity says."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from worker import Case, Job, serve  # pyright: ignore[reportMissingImports]


def sleep(job: Job) -> Case:
    """20 ms; notes who ran when."""

    def run() -> None:
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(f"{Path(__file__).stem.removesuffix('_worker')}\n")
        time.sleep(0.02)

    return Case(run, job.batch, lambda _: np.array([1.5, job.batch]))


def fail(job: Job) -> Case:
    raise ValueError("the fake cannot do this")


def hang(job: Job) -> Case:
    time.sleep(60)
    raise AssertionError


def die(job: Job) -> Case:
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)


def memory(job: Job) -> Case:
    """Fills 64 MB."""
    return Case(lambda: np.ones(1 << 23), 1, lambda _: np.zeros(1))


serve(
    ("numpy",),
    "float64",
    {
        "kinematics": sleep,
        "forward_dynamics": sleep,
        "inverse_dynamics": fail,
        "steps": hang,
        "kinematics_gradient": die,
        "rollout_gradient": memory,
    },
)
