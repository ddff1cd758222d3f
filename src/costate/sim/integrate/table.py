"""The integrators of a step. A new one is a row here; contact models say which of them they can be used with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Integrator:
    """A rule for how one substep advances velocities and positions."""

    stages: int = 1
    """Number of times the accelerations of a substep are found."""
    travels_before: bool = False
    """True if positions move with the velocity of the substep's start; else with that of its end."""
    implicit: bool = False
    """True if damping and springs act on the velocity and position of the substep's end."""
    coasts: bool = True
    """True if forces of inertia are those of the middle of the substep (bias.py); else those at its start, or of every stage."""


INTEGRATORS: dict[str, Integrator] = {
    "semi_implicit": Integrator(),
    "euler": Integrator(coasts=False),
    "explicit": Integrator(travels_before=True),
    "implicit": Integrator(implicit=True),
    "rk4": Integrator(stages=4, coasts=False),
}
"""Name -> what it does."""
