"""A run: workers of all peers are alive together, and every case is measured in turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.peers import subject
from benchmarks.peers.plan import ONCE, Case, Plan
from benchmarks.peers.process import PeerError, Process
from benchmarks.peers.results import Result, Results
from benchmarks.peers.venvs import Environment

SUBJECTS: dict[str, Callable[[Path], subject.Subject]] = {
    "arm": subject.arm,
    "quadruped": subject.quadruped,
    "standing": subject.standing,
}
HELLO = 120.0
"""Seconds a worker has to import its library."""
SLOW = 10.0
"""Seconds of a call from which on a single round must do."""


@dataclass
class Runner:
    """Measures a plan with all environments. say: takes a line of progress."""

    plan: Plan
    environments: list[Environment]
    results: Results
    say: Callable[[str], None]
    processor_time: bool = False
    """Count processor time instead of time: what else runs on a busy machine then matters less."""
    _workers: dict[tuple[str, int], Process] = field(default_factory=dict)
    _offers: dict[str, list[str]] = field(default_factory=dict)

    def run(self) -> Results:
        """An interrupt ends the run; what was measured stays."""
        with tempfile.TemporaryDirectory(prefix="costate-bench-") as folder:
            subjects = {name: make(Path(folder)) for name, make in SUBJECTS.items()}
            try:
                if self.plan.cases:
                    self._greet()
                for number, case in enumerate(self.plan.cases, 1):
                    self.say(f"[{number}/{len(self.plan.cases)}] {subjects[case.subject].name}: {case.label}")
                    self._measure(case, subjects[case.subject])
            except KeyboardInterrupt:
                self.results.interrupted = True
                self.say("interrupted; here is what was measured until now")
            finally:
                for worker in self._workers.values():
                    worker.stop()
                self.results.save()
        return self.results

    # --- peers --------------------------------------------------------------------------------------------------------

    def _greet(self) -> None:
        """Start all workers and ask what they can do."""
        for e in self.environments:
            if e.python is None:
                self.results.absent[e.peer.name] = e.reason
                continue
            try:
                hello = self._worker(e).ask(max(HELLO, self.plan.limit), do="hello")
            except PeerError as error:
                self.results.absent[e.peer.name] = str(error)
                self.say(f"{e.peer.title}: {error}")
                continue
            self.results.absent.pop(e.peer.name, None)  # of an earlier run
            self.results.versions[e.peer.name] = hello["versions"]
            self.results.precision[e.peer.name] = hello["precision"]
            self._offers[e.peer.name] = hello["quantities"]

    def _worker(self, e: Environment, threads: int = 1) -> Process:
        assert e.python is not None
        return self._workers.setdefault((e.peer.name, threads), Process(e.peer, e.python, threads=threads))

    def _able(self, case: Case, of: subject.Subject) -> list[Environment]:
        """Peers that offer it, and whose result is not there from an earlier run."""
        quantity = case.gradient or case.quantity
        able = [e for e in self.environments if quantity in self._offers.get(e.peer.name, ())]
        like = Result("", case.quantity, of.name, case.batch, case.steps, case.threads)
        return [e for e in able if (case.threads == 1 or e.peer.threads) and not self.results.has(e.peer.name, like)]

    # --- measuring ----------------------------------------------------------------------------------------------------

    def _measure(self, case: Case, of: subject.Subject) -> None:
        able = self._able(case, of)
        if case.quantity in ONCE:
            for e in able:
                self._once(e, case, of)
            return
        made = {e.peer.name: self._make(e, case, of) for e in able}
        ready = [e for e in able if "samples" in made[e.peer.name]]
        times: dict[str, list[dict[str, float]]] = {e.peer.name: [] for e in ready}
        for _ in range(self.plan.rounds):
            for e in list(ready):
                name = e.peer.name
                if times[name] and times[name][-1]["seconds"] > SLOW:
                    continue
                try:
                    times[name].append(
                        self._worker(e, case.threads).ask(self.plan.limit, do="time", seconds=self.plan.slice)
                    )
                except PeerError as error:
                    made[name] = {"reason": str(error)}
                    ready.remove(e)
        for e in able:
            self._keep(e, case, of, made[e.peer.name], times.get(e.peer.name, []))

    def _make(self, e: Environment, case: Case, of: subject.Subject) -> dict[str, Any]:
        job = of.job(case.quantity, batch=case.batch, steps=case.steps, threads=case.threads)
        start = time.monotonic()
        try:
            answer = self._worker(e, case.threads).ask(self.plan.limit, do="make", job=job)
        except PeerError as error:
            self.say(f"    {e.peer.title}: {error}")
            return {"reason": str(error)}
        if time.monotonic() - start > SLOW:
            self.say(f"    {e.peer.title}: prepared in {time.monotonic() - start:.0f} s")
        return answer

    def _keep(self, e: Environment, case: Case, of: subject.Subject, made: dict[str, Any], times: list[Any]) -> None:
        row = Result(e.peer.name, case.quantity, of.name, case.batch, case.steps, case.threads)
        if "reason" in made:
            self.results.add(replace(row, reason=made["reason"]))
            return
        clock = "cpu" if self.processor_time else "seconds"
        best = min(times, key=lambda t: t[clock])
        value, cores = best[clock] / made["samples"], best["cpu"] / best["seconds"]
        self.results.add(replace(row, value=value, cores=cores, values=tuple(made["values"])))

    def _once(self, e: Environment, case: Case, of: subject.Subject) -> None:
        """Measure in a process of its own."""
        assert e.python is not None
        row = Result(e.peer.name, case.quantity, of.name, case.batch, case.steps)
        smaller = [r for r in self.results.find(case.quantity, peer=e.peer.name, subject=of.name) if r.reason]
        if case.quantity == "memory" and smaller:
            self.results.add(replace(row, reason="fewer steps were already too many"))
            return
        process = Process(e.peer, e.python, cold=case.quantity == "first_gradient")
        job = of.job(case.gradient, batch=case.batch, steps=case.steps)
        try:
            for found in {"first_gradient": _first_gradient, "memory": _memory}[case.quantity](
                process, job, self.plan.limit
            ):
                self.results.add(replace(row, **found))
        except PeerError as error:
            self.say(f"    {e.peer.title}: {error}")
            self.results.add(replace(row, reason=str(error)))
        finally:
            process.stop()


def _first_gradient(process: Process, job: dict[str, Any], limit: float) -> list[dict[str, Any]]:
    """Measure the time from the start of the interpreter to the result, with empty caches, and what a second call saves."""
    start = time.perf_counter()
    made = process.ask(limit, do="make", job=job)
    total = time.perf_counter() - start
    again = process.ask(limit, do="time", seconds=0.0)["seconds"]
    return [{"value": total}, {"quantity": "compile", "value": made["first"] - again}]


def _memory(process: Process, job: dict[str, Any], limit: float) -> list[dict[str, Any]]:
    """Beyond what the process has when everything is loaded and compiled."""
    return [{"value": float(process.ask(limit, do="peak", job=job)["bytes"])}]
