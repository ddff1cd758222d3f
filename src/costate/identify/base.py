"""Base parameters: the combinations of inertial parameters that torques depend on, and those that nothing can tell apart.

Columns of the regressor that depend on others can be left out: if W_d = W_i K, then W pi = W_i (pi_i + K pi_d). The numbers
beta = pi_i + K pi_d are all that data can tell (Gautier & Khalil, 1990).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array

RANK_TOLERANCE = 1e-8
"""Length that a column of unit length may keep after projection if it depends on others; rounding gives 1e-13."""
NO_EFFECT = 1e-11
"""Length, relative to the longest column, below which a column holds rounding errors only."""
_TERMS = 5
"""Number of terms of a combination that are written out."""


@dataclass(frozen=True, eq=False)
class Base:
    """The parameters that are independent, and how the others add to them."""

    names: list[str]
    independent: Array
    """Indices of the independent parameters, ascending, shape (r,)."""
    dependent: Array
    """Indices of those that only act through others, shape (n - r,)."""
    K: Array
    """Matrix K of beta = pi[independent] + K pi[dependent], shape (r, n - r)."""

    @staticmethod
    def of(W: Array, names: list[str], tolerance: float = RANK_TOLERANCE) -> Base:
        """Find the base of a regressor (rows, n) or its triangular factor; the longest remaining column is taken each time."""
        W = np.where(np.linalg.norm(W, axis=0) > NO_EFFECT * np.linalg.norm(W, axis=0).max(initial=0.0), W, 0.0)
        norms = np.linalg.norm(W, axis=0)
        rest = W / np.where(norms > 0, norms, 1.0)
        chosen: list[int] = []
        while len(chosen) < W.shape[1]:
            lengths = np.linalg.norm(rest, axis=0)
            lengths[chosen] = 0.0
            k = int(lengths.argmax())
            if lengths[k] < tolerance:
                break
            direction = rest[:, k] / lengths[k]
            rest = rest - np.outer(direction, direction @ rest)
            rest = rest - np.outer(direction, direction @ rest)  # twice is enough (Kahan): rounding of the first
            chosen.append(k)
        independent: Array = np.array(sorted(chosen), int)
        dependent: Array = np.array([k for k in range(W.shape[1]) if k not in set(chosen)], int)
        K = np.linalg.lstsq(W[:, independent], W[:, dependent], rcond=None)[0]
        K[np.abs(K) < 1e-7 * max(1.0, float(np.abs(K).max(initial=0.0)))] = 0.0
        return Base(names, independent, dependent, K)

    @property
    def rank(self) -> int:
        return len(self.independent)

    def project(self, pi: Array) -> Array:
        """Return the base parameters beta of a full set, shape (r,)."""
        return pi[self.independent] + self.K @ pi[self.dependent]

    def expression(self, k: int) -> str:
        """Return beta[k] in terms of the parameters: "Izz:arm + 0.36 m:forearm"."""
        order = np.argsort(-np.abs(self.K[k]))
        terms = [(self.K[k, d], self.names[int(self.dependent[d])]) for d in order if self.K[k, d]]
        text = self.names[int(self.independent[k])]
        text += "".join(f" {'-' if c < 0 else '+'} {abs(c):.4g} {name}" for c, name in terms[:_TERMS])
        return text + (f" + {len(terms) - _TERMS} more" if len(terms) > _TERMS else "")

    def indistinct(self) -> list[str]:
        """Return one line per parameter that the data cannot tell from others."""
        lines = []
        for d, index in enumerate(self.dependent):
            partners = np.argsort(-np.abs(self.K[:, d]))
            named = [self.names[int(self.independent[k])] for k in partners if self.K[k, d]]
            if not named:
                lines.append(f"{self.names[int(index)]} has no effect on any torque")
            else:
                more = f" and {len(named) - _TERMS} more" if len(named) > _TERMS else ""
                lines.append(f"{self.names[int(index)]} acts only together with {', '.join(named[:_TERMS])}{more}")
        return lines
