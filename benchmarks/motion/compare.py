"""Derivatives of roll-outs against derivatives of the motion: scene by scene, at three step lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

import costate as cs
from benchmarks.motion.events import UnresolvedError
from benchmarks.motion.identities import errors
from benchmarks.motion.ours import D, Pair, run, slopes, world_of
from benchmarks.motion.reference import truth
from benchmarks.motion.scenes import Kind

STEPS = (1e-2, 1e-3, 1e-4)
"""Step lengths [s]."""
FINE = (STEPS[-1] / 32, STEPS[-1] / 64)
"""Step lengths of the fine reference, which are extrapolated to zero [s]."""
SPREAD = 0.02
"""Largest of its differences, in units of a direction: positions move by 2 mm, 400 times as far as in one of these steps."""
UNSURE = 0.1
"""Relative uncertainty beyond which differences of the fine reference have not settled."""
ALLOWED = 0.02
"""Largest relative error of a derivative at the shortest step."""
SMALL = 1e-3
"""Error at the longest step below which it need not fall."""
APART = 1e-2
"""Error of the end of a motion at the shortest step beyond which the motion itself is not resolved [m or m/s]."""
LOCAL = 1e-6
"""Size of the differences of the program itself, in units of a direction: far less than a step's way."""
EVENTS, DIFFERENCES = "events", "differences of shorter steps"


@dataclass(frozen=True)
class Scene:
    """The result of one scene."""

    kind: str
    seed: int
    reference: str
    """Name of what its derivative was compared with; empty if there is nothing to compare with."""
    reason: str = ""
    """Reason why the reference of events does not know it."""
    impacts: int = 0
    errors: list[float] = field(default_factory=list)
    """Relative error of the derivative at each step length."""
    values: list[float] = field(default_factory=list)
    """Error of the end of the motion at each step length [m or m/s]."""
    uncertain: float = 0.0
    """Relative uncertainty of the reference."""
    kink: float = 0.0
    """Relative difference of the derivatives from one side and from the other. Where it is beyond UNSURE, the motion has a kink at
    the start, and errors are those from the nearer side."""
    local: float = 0.0
    """Relative difference of the derivative at the shortest step from differences of the program over LOCAL."""
    laws: list[dict[str, float]] = field(default_factory=list)
    """Errors of the derivatives of energy and momentum at each step length, where they are kept."""

    @property
    def compared(self) -> bool:
        return bool(self.reference)

    @property
    def falls(self) -> bool:
        """True if the error at the shortest step is small, and less than half of that at the longest."""
        first, last = self.errors[0], self.errors[-1]
        return last <= ALLOWED + self.uncertain and (last <= 0.5 * first or last <= SMALL or last <= self.uncertain)

    @property
    def cause(self) -> str:
        """Return why the derivative does not converge, as far as is known."""
        if self.values[-1] > APART:
            return "the motion itself is not resolved yet"
        if self.errors[-1] <= 0.5 * self.errors[-2]:
            return "falls with the step, but is not small yet"
        if self.kink > UNSURE:
            return "a kink of the motion; the error is that from the nearer side"
        if self.local > ALLOWED:
            return "a kink of the program within a step's way"
        return (
            "the program's own derivative: an event between steps (slip, or contact that is lost) counts by whole steps"
        )


def compare(kind: Kind, seeds: Sequence[int], fine: bool = True, steps: Sequence[float] = STEPS) -> list[Scene]:
    """Compare scenes of a kind. fine: whether to use the fine reference where that of events does not know a motion."""
    world = world_of(kind)
    starts = {seed: kind.start(seed) for seed in seeds}
    known: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}
    why: dict[int, str] = {}
    for seed, start in starts.items():
        try:
            found = truth(kind, *start)
            known[seed] = found.value, found.slope, found.impacts
        except UnresolvedError as reason:
            why[seed] = str(reason)
    rest = [seed for seed in seeds if seed in why]
    scenes = _judged(kind, world, steps, known, starts)
    return scenes + (
        _by_differences(kind, world, steps, rest, starts, why) if fine and rest else _none(kind, rest, why)
    )


def _none(kind: Kind, seeds: Sequence[int], why: dict[int, str]) -> list[Scene]:
    return [Scene(kind.name, seed, "", why[seed]) for seed in seeds]


def _judged(kind: Kind, world: cs.World, steps: Sequence[float], known, starts: dict[int, Pair]) -> list[Scene]:
    if not known:
        return []
    ours = [slopes(kind, world, dt, [starts[seed] for seed in known]) for dt in steps]
    return [
        Scene(
            kind.name,
            seed,
            EVENTS,
            "",
            impacts,
            [relative(slope[k], exact) for _, slope in ours],
            [float(np.abs(end[k] - value).max()) for end, _ in ours],
            laws=[errors(kind, *starts[seed], end[k], slope[k]) for end, slope in ours],
        )
        for k, (seed, (value, exact, impacts)) in enumerate(known.items())
    ]


def relative(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error of an entry, relative to the largest entry."""
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def _by_differences(
    kind: Kind, world: cs.World, steps, seeds, starts: dict[int, Pair], why: dict[int, str]
) -> list[Scene]:
    """Compare with differences of the world's own motion at much shorter steps, extrapolated in the step and in the difference."""
    pairs = [starts[seed] for seed in seeds]
    value, exact, uncertain, sides = extrapolated(kind, world, pairs)
    ours = [slopes(kind, world, dt, pairs) for dt in steps]
    near = differences(kind, world, steps[-1], pairs)
    found = []
    for k, seed in enumerate(seeds):
        if not uncertain[k] <= UNSURE:
            found.append(Scene(kind.name, seed, "", "differences do not settle"))
            continue
        kink, local = relative(sides[0][k], sides[1][k]), relative(near[k], ours[-1][1][k])
        of = [x[k] for x in sides] if kink > UNSURE else [exact[k]]
        errors = [min(relative(slope[k], x) for x in of) for _, slope in ours]
        values = [float(np.abs(end[k] - value[k]).max()) for end, _ in ours]
        known = float(uncertain[k]) if kink <= UNSURE else 0.0
        found.append(Scene(kind.name, seed, DIFFERENCES, why[seed], 0, errors, values, known, kink, local))
    return found


def differences(kind: Kind, world: cs.World, dt: float, pairs: Sequence[Pair]) -> np.ndarray:
    """Return derivatives (B, n) by central differences of the program at a step length."""
    t = torch.tensor([LOCAL, -LOCAL], dtype=D).repeat(len(pairs))
    with torch.no_grad():
        y = run(kind, world, dt, [pair for pair in pairs for _ in range(2)], t).reshape(len(pairs), 2, -1).numpy()
    return (y[:, 0] - y[:, 1]) / (2 * LOCAL)


def extrapolated(
    kind: Kind, world: cs.World, pairs: Sequence[Pair]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return ends and derivatives (B, n) by differences of the fine reference, their relative uncertainty (B,), and the derivatives
    from either side.

    Differences of two sizes are extrapolated to zero, and so are two step lengths. The uncertainty is the distance of central
    differences from those that are not extrapolated in their size.
    """
    sizes = (0.0, SPREAD, -SPREAD, SPREAD / 2, -SPREAD / 2)
    many = [pair for pair in pairs for _ in sizes]
    t = torch.tensor(sizes, dtype=D).repeat(len(pairs))
    ends, wide, near, left, right = [], [], [], [], []
    for dt in FINE:
        with torch.no_grad():
            y = run(kind, world, dt, many, t).reshape(len(pairs), len(sizes), -1).numpy()
        ends.append(y[:, 0])
        wide.append((y[:, 1] - y[:, 2]) / (2 * SPREAD))
        near.append((y[:, 3] - y[:, 4]) / SPREAD)
        left.append((4 * (y[:, 0] - y[:, 4]) - (y[:, 0] - y[:, 2])) / SPREAD)
        right.append((4 * (y[:, 3] - y[:, 0]) - (y[:, 1] - y[:, 0])) / SPREAD)
    end, far, close, *sides = (2 * b - a for a, b in (ends, wide, near, left, right))
    exact = (4 * close - far) / 3
    return end, exact, np.abs(exact - close).max(1) / np.abs(exact).max(1), sides
