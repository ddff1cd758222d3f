"""Random numbers of problems, and how a policy sees them."""

from __future__ import annotations

from typing import Any

import numpy as np


class Draws:
    """Random numbers that remember their names, each scaled to order one."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)
        self.seen: dict[str, float] = {}
        """Name with its unit and range -> number from -1 to 1 (least to greatest)."""

    def __call__(self, name: str, low: Any, high: Any) -> Any:
        """Return uniform numbers between bounds, with the shape of these."""
        value = self._random.uniform(low, high)
        share = 2 * (value - np.asarray(low)) / (np.asarray(high) - low) - 1
        ranges = [np.broadcast_to(each, np.shape(value)).ravel() for each in (share, low, high)]
        for k, (x, least, most) in enumerate(zip(*ranges, strict=True)):
            number = f" {k + 1}" if np.ndim(value) else ""
            self.seen[f"{name}{number}, {least:.3g} to {most:.3g}"] = float(x)
        return value

    def log(self, name: str, low: float, high: float) -> float:
        """Return a number between bounds whose logarithm is uniform."""
        return float(np.exp(self(f"logarithm of {name}", np.log(low), np.log(high))))

    def angle(self, name: str) -> float:
        """Return an angle from -pi to pi [rad]; its cosine and sine are seen."""
        value = self._random.uniform(-np.pi, np.pi)
        self.seen |= {f"cosine of {name}": float(np.cos(value)), f"sine of {name}": float(np.sin(value))}
        return value
