"""The result of one comparison, and the report that collects all comparisons of a function."""

from __future__ import annotations

import math
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
    switch: bool = False
    """True if the function has a kink or a jump within the step of the differences, so that there is nothing to compare with."""

    @property
    def ok(self) -> bool:
        """True unless it is wrong: the error is within what is allowed, or there is nothing to compare with."""
        return self.switch or self.error <= self.allowed

    def __str__(self) -> str:
        if self.switch:
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
    def ok(self) -> bool:
        """True if no comparison is wrong."""
        return not self.failures

    @property
    def failures(self) -> list[Check]:
        """Comparisons that are wrong."""
        return [c for c in self.checks if not c.ok]

    @property
    def switches(self) -> list[Check]:
        """Comparisons that a switch of contact, a limit or another kink prevented."""
        return [c for c in self.checks if c.switch]

    def worst(self, kind: str, wrt: str | None = None) -> float | None:
        """Return the largest error of a kind of comparison (and of an input); None if there was no such comparison."""
        found = [c.error for c in self.checks if c.kind == kind and not c.switch and wrt in (None, c.wrt)]
        return max(found, key=lambda e: math.inf if math.isnan(e) else e) if found else None

    def __str__(self) -> str:
        worst = {name: self.worst(kind) for kind, name in KINDS.items()}
        errors = ", ".join(f"{name} {error:.1e}" for name, error in worst.items() if error is not None)
        lines = [f"{len(self.checks)} comparisons, {len(self.failures)} wrong; largest errors: {errors or 'none'}"]
        lines += [f"  wrong: {c}" for c in self.failures]
        lines += [f"  not comparable: {c}" for c in self.switches]
        lines += [
            f"  gradient of {name} is exactly zero{f': {why}' if why else ''}" for name, why in self.zeros.items()
        ]
        return "\n".join(lines)
