"""MuJoCo's actuators with all that they may have: gains and biases that depend on length and velocity, and activations.

    force = gain(x, dx/dt) * signal + bias(x, dx/dt),   x: length of the transmission

The signal is the control, or an activation that follows it, which is part of the state of the world (docs/conventions.md). The
force is that of the state at the start of a step, clamped to its range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.sim.forces.actuators import Explicit, clamped
from costate.sim.forces.muscle import TINY, Muscle, excitation_rate

if TYPE_CHECKING:
    from costate.sim.setup import Setup

Span = tuple[float, float]
ALL: Span = (-inf, inf)


@dataclass(frozen=True)
class Activation:
    """An activation: how it follows a control."""

    kind: str = "filter"
    """Kind: integrator (d act/dt = u) | filter (d act/dt = (u - act) / time, by Euler's method) | filterexact (the same, exactly) |
    muscle."""
    numbers: tuple[float, ...] = (1.0,)
    """Time constant [s]; of a muscle those of rising and falling, and the range over which one turns into the other."""
    range: Span = ALL
    """Range that it is clamped to after every step."""
    early: bool = False
    """True if the force follows from the activation after the step."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"an activation is of kind {', '.join(KINDS)}, not '{self.kind}'")

    def rate(self, u: SX, act: SX) -> SX:
        """Return d act / dt."""
        return KINDS[self.kind](u, act, self.numbers)

    def after(self, act: SX, rate: SX, dt: float) -> SX:
        """Return the activation after a step."""
        if self.kind == "filterexact":
            time = max(TINY, self.numbers[0])
            return clamped(act + rate * time * float(1 - np.exp(-dt / time)), self.range)
        return clamped(act + rate * dt, self.range)


def _filter(u: SX, act: SX, numbers: Sequence[float]) -> SX:
    return (u - act) / max(TINY, numbers[0])


def _muscle(u: SX, act: SX, numbers: Sequence[float]) -> SX:
    return excitation_rate(u, act, numbers[0], numbers[1], numbers[2])


KINDS = {
    "integrator": lambda u, act, numbers: u,
    "filter": _filter,
    "filterexact": _filter,
    "muscle": _muscle,
}
"""Kind of activation -> its rate by control, activation and numbers."""


@dataclass(frozen=True)
class Curve:
    """A gain or bias by length and velocity: affine = constant + by_length * x + by_velocity * dx/dt, or that of a muscle."""

    constant: float = 0.0
    by_length: float = 0.0
    by_velocity: float = 0.0
    muscle: Muscle | None = None
    lengths: Span = (0.0, 1.0)
    """Range of the length, for a muscle."""
    ease: float = 1.0
    """Size of the acceleration by a unit force, for a muscle."""

    def affine(self, x: SX, speed: SX) -> SX:
        total = SX(self.constant)
        total = total + self.by_length * x if self.by_length else total
        return total + self.by_velocity * speed if self.by_velocity else total

    def gain(self, x: SX, speed: SX) -> SX:
        if self.muscle is None:
            return self.affine(x, speed)
        return self.muscle.gain(x, speed, self.lengths, self.ease)

    def bias(self, x: SX, speed: SX) -> SX:
        return self.affine(x, speed) if self.muscle is None else self.muscle.bias(x, self.lengths, self.ease)


@dataclass(frozen=True)
class General(Explicit):
    """An actuator of MuJoCo: force = gain * signal + bias; the signal is the control, or an activation."""

    gain: Curve = field(default_factory=lambda: Curve(1.0))
    bias: Curve = field(default_factory=Curve)
    activation: Activation | None = None
    """Activation that follows the control; None: the control itself acts."""
    controls: Span = ALL
    """Range the control is clamped to."""
    forces: Span = ALL
    """Range of the force [N or N m]."""
    is_off: bool = False
    """True if it neither pulls nor changes its activation."""
    limit: float | None = None

    def signal(self, u: SX, act: SX, dt: float) -> SX:
        """Return what the gain acts on."""
        if self.activation is None:
            return clamped(u, self.controls)
        return self.activation.after(act, self.rate(u, act), dt) if self.activation.early else act

    def rate(self, u: SX, act: SX) -> SX:
        """Return d act / dt."""
        assert self.activation is not None
        return SX(0) if self.is_off else self.activation.rate(clamped(u, self.controls), act)

    def unclamped(self, signal: SX, x: SX, speed: SX) -> SX:
        return self.gain.gain(x, speed) * signal + self.bias.bias(x, speed)

    def torque(self, u: SX, x: SX, speed: SX) -> SX:
        return SX(0) if self.is_off else clamped(self.unclamped(u, x, speed), self.forces)

    def resistance(self, u: SX, x: SX, speed: SX, part: SX | None = None) -> SX | float:
        """Return the damping where the force is not at an end of its range. part: share of the force that acts."""
        if self.is_off:
            return 0.0
        rate = SX.sym("rate")
        force = self.unclamped(u, x, rate)
        slope = ca.jacobian(force, rate)
        if not slope.nnz():
            return 0.0
        force, slope = ca.substitute([force, slope], [rate], [speed])
        if part is not None:
            force, slope = part * force, slope * (part == 1)
        for bound, inside in zip(self.forces, (force > self.forces[0], force < self.forces[1]), strict=True):
            slope = slope * inside if np.isfinite(bound) else slope
        return -slope


def activated(setup: Setup) -> Iterator[tuple[int, General, Activation]]:
    """Yield number of the control, actuator and activation of all drives that have one, in the order of the state."""
    for k, d in enumerate(setup.drives):
        if isinstance(d.actuator, General) and d.actuator.activation is not None:
            yield k, d.actuator, d.actuator.activation


def rates(setup: Setup, act: SX, u: SX) -> SX:
    """Return the rates of all activations, (na,)."""
    return ca.vertcat(*(actuator.rate(u[k], act[n]) for n, (k, actuator, _) in enumerate(activated(setup))))
