"""The choice of an executor: this process, processes of this machine, or a cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costate.scale.executor import Executor
    from costate.scale.message import Message

MOST = 10_000
"""Largest number of workers that somebody can have meant."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Options of a command whose work can be shared."""

    cluster: str = ""
    """Place of the workers: "local", processes of this machine; "auto", the Ray cluster that runs here, or a new one; or the
    address of a Ray cluster. Default: local, if workers are asked for. Results have the same bits everywhere."""
    workers: int = 0
    """Number of workers; 0: one per core of the cluster if one is named, else this process works alone."""

    @property
    def alone(self) -> bool:
        """True if this process works without others."""
        return not self.cluster and not self.workers


def executor(given: Message, where: Cluster) -> Executor:
    """Return an executor for work that a message describes."""
    if not 0 <= where.workers <= MOST:
        raise ValueError(f"workers is {where.workers}; expected 0 to {MOST}")
    if where.alone:
        from costate.scale.executor import InProcess

        return InProcess(given)
    if where.cluster in ("", "local"):
        from costate.scale.local import LocalWorker
        from costate.scale.pool import Pool

        return Pool(given, where.workers or len(os.sched_getaffinity(0)), LocalWorker)
    from costate.scale.ray_workers import RayPool, connect

    cores = connect(where.cluster, where.workers)
    return RayPool(given, where.workers or cores)
