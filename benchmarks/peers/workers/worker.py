"""The worker of every peer: take jobs as lines of JSON on standard input, answer each with one line of JSON.

    python worker.py mujoco_worker.py   # with the interpreter of the peer

    {"do": "hello"}                     -> versions, precision, quantities
    {"do": "make", "job": {...}}        -> builds a case and calls it once: seconds, samples per call, values to compare
    {"do": "time", "seconds": 0.1}      -> calls the case for about so long: seconds and processor seconds per call
    {"do": "peak", "job": {...}}        -> bytes that building and calling a case needs at most (Linux)

An answer to what went wrong is {"error": reason}. A worker runs under the interpreter of its peer: this file and its neighbours
import nothing but the standard library, numpy and the peer.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import runpy
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
ANSWERS = "COSTATE_BENCH_ANSWERS"
"""Environment variable: the descriptor to which answers go."""
CHECKED = 4
"""Number of samples that are compared."""


@dataclass(frozen=True)
class Job:
    """A computation: quantity, robot, batch."""

    quantity: str
    urdf: str
    """The robot, a floating base with its joint to a link `world`."""
    free_urdf: str
    """The same for readers that hold a root called world, and let any other float."""
    mjcf: str
    """The robot; for steps the whole scene: ground, feet, springs, motors."""
    joints: list[str]
    """Joints of one coordinate, in the order of all arrays here."""
    floating: bool
    link: str
    """Link whose position is asked for: the last one that moves; in a scene the trunk."""
    rest: list[float]
    """Rest positions of the springs in a scene's joints, at which the joints start [rad]."""
    height: float
    """Height of the trunk at the start [m]."""
    feet: list[str]
    """Links that may touch the ground."""
    batch: int = 1
    steps: int = 1
    dt: float = 0.002
    """Time step [s]."""
    stiffness: float = 0.0
    """Stiffness of the springs [N m/rad]."""
    damping: float = 0.0
    """Damping of the joints [N m s/rad]."""
    friction: float = 0.8
    torque: float = 0.0
    """Standard deviation of the random torques [N m]."""
    threads: int = 1

    @property
    def nv(self) -> int:
        return len(self.joints) + 6 * self.floating

    def states(self) -> tuple[Array, Array, Array]:
        """q (batch, nq), v and a or tau (batch, nv). A base lies straight at the origin, without linear velocity and force: there
        all libraries mean the same by its velocity and acceleration. Quaternions are x, y, z, w."""
        random = np.random.default_rng(0)
        q, v, tau = (random.uniform(-1, 1, (self.batch, len(self.joints))) for _ in range(3))
        if self.floating:
            base = np.tile([0.0, 0, 0, 0, 0, 0, 1], (self.batch, 1))
            q = np.hstack([base, q])
            v = np.hstack([np.zeros((self.batch, 3)), random.uniform(-1, 1, (self.batch, 3)), v])
            tau = np.hstack([np.zeros((self.batch, 6)), tau])
        return q, v, tau

    def start(self) -> Array:
        """q of a scene, (nq,)."""
        return np.array([0.0, 0, self.height, 0, 0, 0, 1, *self.rest])

    def controls(self) -> Array:
        """Torques of the joints of a scene, (steps, batch, joints)."""
        shape = self.steps, self.batch, len(self.joints)
        return self.torque * np.random.default_rng(1).standard_normal(shape)


@dataclass(frozen=True)
class Case:
    """Something to be timed."""

    run: Callable[[], Any]
    """Returns when everything is computed."""
    samples: int
    """Number of the batch's samples, times steps, that a call computes: what loops over a batch in Python may take fewer."""
    values: Callable[[Any], Array]
    """Function of what run returned that gives numbers to compare, of the first CHECKED samples and in the job's order."""


Make = Callable[[Job], Case]


def serve(packages: tuple[str, ...], precision: str, cases: Mapping[str, Make], ahead: bool = False) -> None:
    """Answer requests until standard input ends. packages: whose versions count. ahead: building a case compiles it."""
    answers = os.fdopen(int(os.environ[ANSWERS]), "w")
    state = _State(packages, precision, cases, ahead)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(state, request.pop("do"))(**request)
        except KeyboardInterrupt:
            return
        except BaseException as error:
            answer = {"error": _reason(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _reason(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()[:200]}" if lines else type(error).__name__


class _State:
    """The case at hand."""

    def __init__(self, packages: tuple[str, ...], precision: str, cases: Mapping[str, Make], ahead: bool):
        self.packages, self.precision, self.cases, self.ahead = packages, precision, cases, ahead
        self.case: Case | None = None

    def hello(self) -> dict[str, Any]:
        versions = {name: _version(name) for name in self.packages}
        return {"versions": versions, "precision": self.precision, "quantities": list(self.cases)}

    def make(self, job: dict[str, Any]) -> dict[str, Any]:
        self.case = None
        gc.collect()
        start = time.perf_counter()
        case = self._build(job)
        result = case.run()
        first = time.perf_counter() - start
        self.case = case
        values = np.asarray(case.values(result), float).ravel().tolist()
        return {"samples": case.samples, "first": first, "values": values}

    def _build(self, job: dict[str, Any]) -> Case:
        return self.cases[job["quantity"]](Job(**job))

    def time(self, seconds: float) -> dict[str, float]:
        """Measure the time per call, on average over about so many seconds."""
        run = self._case.run
        calls, start, cpu = 0, time.perf_counter(), time.process_time()
        while True:
            run()
            calls += 1
            passed = time.perf_counter() - start
            if passed * (calls + 1) / calls > seconds:
                return {"seconds": passed / calls, "cpu": (time.process_time() - cpu) / calls}

    def peak(self, job: dict[str, Any]) -> dict[str, int]:
        """Measure by how much a job lets the memory of this process grow at most.

        All that does not depend on its length is loaded and compiled before.
        """
        if self.ahead:
            case = self._build(job)
        else:
            self._build(job | {"steps": 2}).run()
            case = None
        _release()
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        kept = (case or self._build(job)).run()
        answer = {"bytes": _status("VmHWM") - before, "process": _status("VmHWM")}
        del kept
        return answer

    @property
    def _case(self) -> Case:
        if self.case is None:
            raise RuntimeError("no case was made")
        return self.case


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _release() -> None:
    """Give free memory back to the system: a process that reuses it would seem to need less."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _status(key: str) -> int:
    """An entry of this process's status [bytes]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def reordered(ours: list[str], theirs: list[str]) -> list[int]:
    """Find for each of their joints where it stands in our order: x_theirs = x[..., index]."""
    return [ours.index(name) for name in theirs]


if __name__ == "__main__":
    # Libraries print, some as soon as they are imported; that must not mix with the answers.
    os.environ[ANSWERS] = str(os.dup(1))
    os.dup2(2, 1)
    runpy.run_path(sys.argv[1], run_name="__main__")
