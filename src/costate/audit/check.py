"""The result of one comparison, and the report that collects all comparisons of a function."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

KINDS = {
    "value": "value",
    "primal": "value of a differentiated call",
    "finite_difference": "derivative",
    "duality": "duality",
    "second_order": "second order",
    "float32": "float32",
    "type": "types",
}
"""Titles of the kinds of comparison, as tables show them."""
RIGHT, WRONG, NOT_COMPARED = "right", "wrong", "not compared"
"""Verdicts on a comparison, and on several together: wrong if one is, else not compared if one is, or if there are none."""
FLAT = (
    "the outputs do not change with it here: they do not use it, or a clamp, maximum or comparison holds them; use a smooth bound "
    "(torch.tanh, torch.nn.functional.softplus), or choose a point within the bounds"
)


@dataclass(frozen=True)
class Tolerances:
    """Largest errors allowed. All are relative to the largest entry of the output, or of the gradient, that is compared."""

    value: float = 1e-12
    """Value against the reference, and value of a differentiated call against that of a plain one: a few thousand roundings."""
    finite_difference: float = 1e-7
    """JVP against extrapolated central differences, whose own error is near 1e-10 for smooth functions of order one."""
    noise: float = 1e-9
    """Rounding noise in a derivative that is zero, relative to the largest output: 1e-16 / h with steps h down to 1e-6."""
    duality: float = 1e-11
    """Difference of <u, J v> and <J^T u, v>, relative to |u| |J v| + |J^T u| |v|: both are exact up to rounding."""
    second_order: float = 1e-6
    """Derivative of the gradient by automatic differentiation against extrapolated differences of the gradient."""
    float32: float = 1e-4
    """Float32 against float64: a thousand roundings of 6e-8."""


@dataclass(frozen=True)
class Check:
    """One comparison."""

    kind: str
    """A key of KINDS."""
    what: str
    """Description, such as "d output 0 / d q"."""
    error: float
    """Relative error."""
    allowed: float
    """Largest relative error allowed."""
    note: str = ""
    """The numbers compared, or the reason why they cannot be."""
    wrt: str = ""
    """Name of the input with respect to which the derivative is taken; empty for values."""
    compared: bool = True
    """False if there is nothing to compare with: a kink or a jump is so near that no differences settle."""
    kink: bool = False
    """True if the point is on a kink, where a derivative is right that is one of the two slopes or between them."""

    @property
    def verdict(self) -> str:
        """One of RIGHT, WRONG and NOT_COMPARED."""
        if not self.compared:
            return NOT_COMPARED
        return RIGHT if self.error <= self.allowed else WRONG

    @property
    def ok(self) -> bool:
        """True if it was compared, and the error is within what is allowed."""
        return self.verdict == RIGHT

    def __str__(self) -> str:
        if not self.compared:
            return f"{self.what}: {self.note}"
        return f"{self.what}: {self.kind} error {self.error:.3g}, allowed {self.allowed:.3g}; {self.note}"


@dataclass(frozen=True)
class GradientReport:
    """All comparisons of one function."""

    checks: list[Check] = field(default_factory=list)
    """Comparisons in the order in which they were made."""
    zeros: dict[str, str] = field(default_factory=dict)
    """Inputs whose gradient is exactly zero, by automatic differentiation and by differences, with the reason where it is known."""

    @property
    def verdict(self) -> str:
        """One of RIGHT, WRONG and NOT_COMPARED. Right needs a derivative that was compared, and none that could not be."""
        slopes = [c for c in self.checks if c.kind == "finite_difference" and c.compared]
        return worst_of([c.verdict for c in self.checks] + ([] if slopes else [NOT_COMPARED]))

    @property
    def ok(self) -> bool:
        """True if all derivatives were compared, and no comparison is wrong."""
        return self.verdict == RIGHT

    @property
    def failures(self) -> list[Check]:
        """Comparisons that are wrong."""
        return [c for c in self.checks if c.verdict == WRONG]

    @property
    def not_compared(self) -> list[Check]:
        """Comparisons that a switch of contact, a limit or another kink prevented."""
        return [c for c in self.checks if not c.compared]

    @property
    def kinks(self) -> list[Check]:
        """Comparisons at a kink, where the derivative is right because it is one of two slopes or between them."""
        return [c for c in self.checks if c.kink and c.ok]

    def worst(self, kind: str, wrt: str | None = None) -> float | None:
        """Return the largest error of a kind of comparison (and of an input); None if there was no such comparison."""
        found = [c.error for c in self.checks if c.kind == kind and c.compared and wrt in (None, c.wrt)]
        return max(found, key=lambda e: math.inf if math.isnan(e) else e) if found else None

    def __str__(self) -> str:
        worst = {name: self.worst(kind) for kind, name in KINDS.items()}
        errors = ", ".join(f"{name} {error:.1e}" for name, error in worst.items() if error is not None)
        counts = f"{len(self.checks)} comparisons, {len(self.failures)} wrong, {len(self.not_compared)} not possible"
        lines = [f"{self.verdict}: {counts}; largest errors: {errors or 'none'}"]
        lines += [f"  wrong: {c}" for c in self.failures]
        lines += [f"  not compared: {c}" for c in self.not_compared]
        lines += [f"  on a kink: {c.what}: {c.note}" for c in self.kinks]
        lines += [
            f"  gradient of {name} is exactly zero{f': {why}' if why else ''}" for name, why in self.zeros.items()
        ]
        return "\n".join(lines)


def worst_of(verdicts: Iterable[str]) -> str:
    """Return the verdict on several comparisons: not compared where there are none."""
    found = set(verdicts) or {NOT_COMPARED}
    return next(v for v in (WRONG, NOT_COMPARED, RIGHT) if v in found)
