"""The cases of a run, in the order in which they are measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.measure.table import cores

FUNCTIONS = {
    "kinematics": "poses of all links",
    "inverse_dynamics": "inverse dynamics",
    "forward_dynamics": "forward dynamics",
    "kinematics_gradient": "gradient of a link's position",
    "inverse_dynamics_gradient": "inverse dynamics and its gradient",
    "forward_dynamics_gradient": "forward dynamics and its gradient",
}
SIMULATION = {"steps": "steps with contact", "rollout_gradient": "roll-out with contact and its gradient"}
ONCE = {"first_gradient": "first gradient from a cold start", "memory": "peak memory of a roll-out's gradient"}
QUANTITIES = FUNCTIONS | SIMULATION | ONCE
"""Name -> title. `roofline` is chosen by the same option."""


@dataclass(frozen=True)
class Case:
    """One thing to measure with every peer that can."""

    quantity: str
    subject: str
    """arm, quadruped or standing: see subject.py."""
    batch: int = 1
    steps: int = 1
    threads: int = 1
    gradient: str = ""
    """Quantity whose first call, or whose memory, is measured (for ONCE)."""

    @property
    def label(self) -> str:
        parts = [QUANTITIES[self.quantity], f"batch {self.batch:,}"]
        parts += [f"{self.steps:,} steps"] if self.steps > 1 else []
        parts += [f"{self.threads} threads"] if self.threads > 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Plan:
    """Cases, and how long each is measured."""

    cases: tuple[Case, ...]
    rounds: int = 5
    slice: float = 0.1
    """Seconds per round and peer."""
    limit: float = 150.0
    """Seconds that a peer has to build a case and to call it once."""

    def only(self, quantities: tuple[str, ...]) -> Plan:
        unknown = [q for q in quantities if q not in QUANTITIES and q != "roofline"]
        if unknown:
            names = ", ".join((*QUANTITIES, "roofline"))
            raise ValueError(f"unknown quantity {unknown[0]!r}; the quantities are {names}")
        return replace(self, cases=tuple(c for c in self.cases if not quantities or c.quantity in quantities))


def by_processor_time(plan: Plan) -> Plan:
    """Leave out what processor time does not measure: several threads, and cold starts, which spread over processes."""
    kept = (c for c in plan.cases if c.threads == 1 and c.quantity != "first_gradient")
    return replace(plan, cases=tuple(kept))


TABLE_BATCH = 1024
BATCHES = (1, 32, TABLE_BATCH)
"""Batches of the curves of throughput. They are few: what JAX compiles, it compiles anew for every batch."""
MEMORY_STEPS = (100, 1000, 10_000)
ROLLOUT = 1000


def full() -> Plan:
    """Everything the page shows."""
    functions = [Case(q, "arm", TABLE_BATCH) for q in FUNCTIONS]
    functions += [Case(q, "quadruped", TABLE_BATCH) for q in FUNCTIONS if "kinematics" not in q]
    curve = [Case("forward_dynamics", "arm", b) for b in BATCHES[:-1]]
    steps = [Case("steps", "standing", b, 100) for b in BATCHES]
    if cores() > 1:
        steps.append(Case("steps", "standing", BATCHES[-1], 100, threads=cores()))
    rollouts = [Case("rollout_gradient", "standing", b, ROLLOUT) for b in (1, 64)]
    cold = [Case("first_gradient", "arm", gradient="forward_dynamics_gradient")]
    cold += [Case("first_gradient", "standing", steps=ROLLOUT, gradient="rollout_gradient")]
    memory = [Case("memory", "standing", steps=n, gradient="rollout_gradient") for n in MEMORY_STEPS]
    return Plan((*functions, *curve, *steps, *rollouts, *cold, *memory))


def quick() -> Plan:
    """Does it run? Small, and rough."""
    cases = [Case(q, "arm", 64) for q in ("kinematics", "forward_dynamics", "forward_dynamics_gradient")]
    cases += [Case("steps", "standing", 4, 20), Case("rollout_gradient", "standing", 1, 20)]
    return Plan(tuple(cases), rounds=2, slice=0.02)


def gate() -> Plan:
    """Return the cases of the gate."""
    cases = [Case(q, "arm", TABLE_BATCH) for q in ("inverse_dynamics", "forward_dynamics", "forward_dynamics_gradient")]
    cases += [Case("steps", "standing", 256, 100), Case("rollout_gradient", "standing", 1, 100)]
    return Plan(tuple(cases), rounds=7)
