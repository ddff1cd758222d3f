"""MuJoCo's actuators with all that they may have: gains and biases that depend on length and velocity, and activations.

    force = gain(x, dx/dt) * signal + bias(x, dx/dt),   x: length of the transmission

The signal is the control, or an activation that follows it, which is part of the state of the world (docs/conventions.md). The
force is that of the state at the start of a step, clamped to its range. Its numbers may be symbols, where they are parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
class General(Explicit):
    """An actuator of MuJoCo: force = gain * signal + bias; the signal is the control, or an activation that follows it.

    gain and bias are one number, or three: constant + by_length * x + by_velocity * dx/dt.
    """

    gain: float | tuple[float, float, float] = 1.0
    """Force per unit of signal [N or N m]."""
    bias: float | tuple[float, float, float] = 0.0
    """Force at a signal of zero [N or N m]."""
    activation: str = "none"
    """Kind of activation: none (the control itself acts) | integrator (d act/dt = u) | filter (d act/dt = (u - act) / time, by
    Euler's method) | filterexact (the same, exactly) | muscle."""
    times: float | tuple[float, ...] = 1.0
    """Time constant of the activation [s]; of a muscle those of rising and falling [s], and the range of u - act over which one
    turns into the other."""
    activations: Span = ALL
    """Range the activation is clamped to after every step."""
    early: bool = False
    """True if the force follows from the activation after the step."""
    controls: Span = ALL
    """Range the control is clamped to."""
    forces: Span = ALL
    """Range of the force [N or N m]."""
    muscle: Muscle | None = None
    """Muscle whose active force takes the place of the gain."""
    passive: Muscle | None = None
    """Muscle whose passive force takes the place of the bias."""
    is_off: bool = False
    """True if it neither pulls nor changes its activation."""
    limit: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation not in ("none", *RATES):
            raise ValueError(
                f"the activation of an actuator is none, {', '.join(RATES)}, not '{self.activation}': choose one"
            )

    @property
    def is_activated(self) -> bool:
        return self.activation != "none"

    # --- activation -----------------------------------------------------------------------------------------------

    def rate(self, u: SX, act: SX) -> SX:
        """Return d act / dt."""
        return SX(0) if self.is_off else RATES[self.activation](clamped(u, self.controls), act, _several(self.times))

    def after(self, act: SX, rate: SX, dt: float) -> SX:
        """Return the activation after a step."""
        if self.activation == "filterexact":
            time = ca.fmax(_several(self.times)[0], TINY)
            return clamped(act + rate * time * (1 - ca.exp(-dt / time)), self.activations)
        return clamped(act + rate * dt, self.activations)

    def signal(self, u: SX, act: SX, dt: float) -> SX:
        """Return what the gain acts on."""
        if not self.is_activated:
            return clamped(u, self.controls)
        return self.after(act, self.rate(u, act), dt) if self.early else act

    # --- force ----------------------------------------------------------------------------------------------------

    def unclamped(self, signal: SX, x: SX, speed: SX) -> SX:
        """Return the force before it is clamped to its range."""
        gain = _affine(self.gain, x, speed) if self.muscle is None else self.muscle.gain(x, speed)
        bias = _affine(self.bias, x, speed) if self.passive is None else self.passive.bias(x)
        return gain * signal + bias

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
        low, high = self.forces
        slope = slope if _is_infinite(low) else slope * (force > low)
        return -slope if _is_infinite(high) else -slope * (force < high)


def _several(x: float | tuple[float, ...]) -> tuple[float, ...]:
    return x if isinstance(x, tuple) else (x,)


def _is_infinite(x: float | SX) -> bool:
    return not isinstance(x, SX) and not np.isfinite(x)


def _affine(numbers: float | tuple[float, ...], x: SX, speed: SX) -> SX:
    """Return constant + by_length * x + by_velocity * dx/dt, without what is known to be zero."""
    total = SX(0)
    for k, factor in zip(_several(numbers), (SX(1), x, speed), strict=False):
        if isinstance(k, SX) or k:
            total = total + k * factor
    return total


# --- activations ------------------------------------------------------------------------------------------------------


def _integrator(u: SX, act: SX, times: Sequence[float]) -> SX:
    return u


def _filter(u: SX, act: SX, times: Sequence[float]) -> SX:
    return (u - act) / ca.fmax(times[0], TINY)


def _muscle(u: SX, act: SX, times: Sequence[float]) -> SX:
    return excitation_rate(u, act, times[0], times[1], times[2])


RATES = {"integrator": _integrator, "filter": _filter, "filterexact": _filter, "muscle": _muscle}
"""Kind of activation -> its rate by control, activation and times."""


def activated(setup: Setup) -> Iterator[tuple[int, General]]:
    """Yield number of the control and actuator of all drives with an activation, in the order of the state."""
    for k, d in enumerate(setup.drives):
        if isinstance(d.actuator, General) and d.actuator.is_activated:
            yield k, d.actuator


def rates(setup: Setup, act: SX, u: SX) -> SX:
    """Return the rates of all activations, (na,)."""
    return ca.vertcat(*(actuator.rate(u[k], act[n]) for n, (k, actuator) in enumerate(activated(setup))))
