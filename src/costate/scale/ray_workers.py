"""Workers that are actors of Ray, on any machine of a cluster. Nodes need the same versions; no code is sent to them.

Ray's own restarts are not used: the pool gives a shard to somebody else sooner than Ray notices that a machine is gone.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from costate.core.extras import needs
from costate.scale.desk import Desk
from costate.scale.message import Message
from costate.scale.pool import LostError, MachineLostError, Pool, Worker

HERE = "127.0.0.1"
T = TypeVar("T")
STARTS = 5
"""Number of times that Ray is started before it is given up."""
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Variable that, set to 0, keeps Ray to this machine, on Linux too; otherwise it takes 127.0.0.1 for an address of the network."""


def connect(address: str, workers: int = 0, tune: bool = False) -> int:
    """Join a cluster, and return the number of its processors. "auto": the one of this machine; if there is none, it is started.
    "local": a new one. tune: Ray Tune is needed, too."""
    found = {"auto": _running(), "local": None}.get(address, address)
    if found and not _answers(found):
        if address != "auto":
            raise ConnectionError(
                f"no Ray cluster answers at {address}; start one with `ray start --head`, or take --cluster auto"
            )
        found = None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if found is None or _host(found) in (HERE, "localhost"):
        os.environ.setdefault(LOOPBACK, "0")
    try:
        import ray

        if tune:
            import ray.tune
    except ImportError:
        raise ImportError(needs("a cluster", "ray", "scale")) from None
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not ray.is_initialized() and found:
        ray.init(address=found, **quiet)
    elif not ray.is_initialized():
        new = {"num_cpus": workers or None, "include_dashboard": False, "_node_ip_address": HERE}
        patiently(lambda: ray.init(address="local", **quiet, **new))
    _end_in_order()
    return int(ray.cluster_resources().get("CPU", 0))


def _end_in_order() -> None:
    """Let SIGTERM end this process as an error does, so that what it has started ends first; Ray would abort it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def patiently(start: Callable[[], T]) -> T:
    """Start Ray; again if its processes were not there in half a minute, which is all that Ray gives them on a busy machine."""
    for _ in range(STARTS):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    raise TimeoutError(
        f"Ray did not start in {STARTS} tries of 30 s; this machine may be too busy. --workers alone needs no Ray"
    )


def _running() -> str | None:
    """Return the address of the cluster of this machine, as Ray notes it."""
    note = Path(tempfile.gettempdir()) / "ray" / "ray_current_cluster"
    return os.environ.get("RAY_ADDRESS") or (note.read_text().strip() if note.is_file() else None) or None


def _host(address: str) -> str:
    return address.rpartition("://")[2].rpartition(":")[0]


def _answers(address: str) -> bool:
    """Tell whether somebody listens: Ray itself would try for minutes."""
    try:
        with socket.create_connection((_host(address), int(address.rpartition(":")[2])), timeout=5):
            return True
    except (OSError, ValueError):
        return False


class RayPool(Pool):
    """A pool of actors, spread over the nodes of the cluster that this process has joined."""

    def __init__(self, given: Message, number: int):
        super().__init__(given, number, RayWorker)

    def broadcast(self, shared: bytes) -> Any:
        """Put it into the object store, from where each node fetches it once."""
        import ray

        return ray.put(shared)


class RayWorker(Worker):
    """An actor of Ray."""

    def __init__(self) -> None:
        import ray

        desk: Any = ray.remote(Desk)
        self.actor = desk.options(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD").remote()

    def start(self, given: bytes) -> Future[bytes]:
        return _answer(self.actor.start.remote(given))

    def shard(self, number: int, shared: Any, shard: bytes) -> Future[bytes]:
        return _answer(self.actor.shard.remote(number, shared, shard))

    def close(self) -> None:
        import ray

        if ray.is_initialized():
            ray.kill(self.actor)


def _answer(reference: Any) -> Future[bytes]:
    """Return the future of a call, which says what became of a worker that is lost."""
    from ray.exceptions import RayError

    made: Future[bytes] = Future()

    def pass_on(done: Future[bytes]) -> None:
        try:
            made.set_result(done.result())
        except RayError as error:
            made.set_exception(_end(error))

    reference.future().add_done_callback(pass_on)
    return made


def _end(error: Exception) -> LostError:
    """Return what became of a worker: its memory ran out, its machine is gone, or it alone is."""
    from ray.exceptions import NodeDiedError, OutOfMemoryError

    text = " ".join(str(error).split())
    if isinstance(error, OutOfMemoryError) or "low on memory" in text:
        return LostError(f"ran out of memory: {text[:300]}")
    gone = isinstance(error, NodeDiedError) or "node has died" in text or "node was terminated" in text
    return (MachineLostError if gone else LostError)(f"is lost: {text[:300]}")
