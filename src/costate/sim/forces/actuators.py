"""Actuators: what a control means for the joints and tendons of a robot.

Every kind is one class with its law. There are two families:

    Explicit    torque = f(control, position, velocity) at the start of a step
    Servo       torque = pull(control, position) - damping * v', where v' is the velocity after the step

A servo is solved together with the motion it causes (see torques.py), so stiff gains are stable at long steps. A kind of your own
is a frozen dataclass that derives from one of the two and says its law; worlds take it like those below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Literal

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.constants import Constants

PREFIX = "actuator_"
"""Start of the names of inputs that are numbers of actuators: see tuning.py."""
HIDDEN = ("time_constant",)
"""Fields that only say how gains are chosen where none are given."""

Compensation = bool | Literal["nominal"]
"""Choice of the weight that a servo carries: none, that of the robot as it is (also where masses are inputs of the world or
learnt), or "nominal": that of the model, as a real controller does that does not know about another payload."""

Gains = tuple[float, float]
"""Stiffness [N m/rad or N/m] and damping [N m s/rad or N s/m]."""


class Actuator(Constants, ABC):
    """A kind of motor or servo on a joint or tendon."""

    limit: float | None = None
    """Largest torque [N m] or force [N]; None: that of the joint."""

    def _instead(self) -> Mapping[str, str]:
        return {f.name: f"{PREFIX}{f.name}" for f in fields(self) if f.name not in HIDDEN}  # type: ignore[arg-type]

    @property
    def rotor(self) -> float:
        """Inertia that it adds to its joint [kg m^2 or kg]."""
        return 0.0

    @abstractmethod
    def gains(self, inertia: Callable[[], float]) -> Gains:
        """Return its stiffness and damping. inertia: gives what it moves at the home configuration [kg m^2 or kg]."""


class Explicit(Actuator):
    """An actuator whose torque follows from the state at the start of the step."""

    @abstractmethod
    def torque(self, u: SX, x: SX, speed: SX) -> SX:
        """Return the torque before it is clamped to the limit. x, speed: position and velocity of what it acts on."""

    def resistance(self, u: SX, x: SX, speed: SX) -> SX | float:
        """Return the damping -d torque / d speed that an implicit integrator takes into account; 0 for none."""
        return 0.0

    def gains(self, inertia: Callable[[], float]) -> Gains:
        return 0.0, 0.0


class Servo(Actuator):
    """An actuator whose torque follows from the velocity that it brings about."""

    gravity_compensation: Compensation = False

    def pull(self, u: SX, x: SX, stiffness: float, damping: float) -> SX:
        """Return the torque at position x and zero velocity, from the gains it has."""
        return damping * u if is_zero(stiffness) else stiffness * (u - x)


@dataclass(frozen=True)
class Torque(Explicit):
    """The control is the torque [N m or N], clamped to the effort limit."""

    limit: float | None = None
    """Effort limit; None: that of the joint."""

    def torque(self, u: SX, x: SX, speed: SX) -> SX:
        return u


@dataclass(frozen=True)
class VelocityServo(Servo):
    """The control is a velocity [rad/s or m/s]; torque = gain (control - v) + gravity compensation, clamped to the effort limit.

    Solved implicitly as (M + dt gain): stiff gains are stable at long steps.
    """

    gain: float | None = None
    """Gain [N m s/rad or N s/m]; None: M_ii / time_constant at the home configuration."""
    time_constant: float = 0.02
    """Time constant of the velocity [s], where no gain is given."""
    gravity_compensation: Compensation = True
    limit: float | None = None

    def gains(self, inertia: Callable[[], float]) -> Gains:
        return 0.0, inertia() / self.time_constant if self.gain is None else self.gain


@dataclass(frozen=True)
class PositionServo(Servo):
    """The control is a position [rad or m]; torque = stiffness (control - q) - damping v + gravity compensation, clamped.

    Solved implicitly as (M + dt damping + dt^2 stiffness).
    """

    stiffness: float | None = None
    """Stiffness [N m/rad or N/m]; None: M_ii / time_constant^2 at the home configuration."""
    damping: float | None = None
    """Damping [N m s/rad or N s/m]; None: critical, 2 M_ii / time_constant."""
    time_constant: float = 0.05
    """Time constant of the position [s], where gains are not given."""
    gravity_compensation: Compensation = True
    limit: float | None = None

    def gains(self, inertia: Callable[[], float]) -> Gains:
        t = self.time_constant
        k = inertia() / t**2 if self.stiffness is None else self.stiffness
        return k, 2 * inertia() / t if self.damping is None else self.damping


@dataclass(frozen=True)
class Motor(Explicit):
    """A geared motor: torque = gear * control, clamped to the effort limit."""

    gear: float = 1.0
    """Torque per unit of control [N m or N]."""
    armature: float = 0.0
    """Inertia of the rotor [kg m^2]; the joint carries gear^2 times as much."""
    limit: float | None = None

    @property
    def rotor(self) -> float:
        return self.gear**2 * self.armature

    def torque(self, u: SX, x: SX, speed: SX) -> SX:
        return self.gear * u


@dataclass(frozen=True)
class DCMotor(Servo):
    """A motor under voltage: at its shaft, torque = stall_torque (control - speed / no_load_speed), control in [-1, 1] (clamped).

    The torque at the joint is clamped to the effort limit, and solved implicitly as that of a velocity servo.
    """

    stall_torque: float
    """Torque at full voltage and standstill [N m]."""
    no_load_speed: float
    """Speed at full voltage without load [rad/s]."""
    gear: float = 1.0
    """Turns of the motor per turn of the joint."""
    armature: float = 0.0
    """Inertia of the rotor [kg m^2]; the joint carries gear^2 times as much."""
    limit: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.stall_torque > 0 and self.no_load_speed > 0 and self.gear > 0):
            raise ValueError(f"a DC motor needs a positive stall torque, no-load speed and gear, not {self}")

    @property
    def rotor(self) -> float:
        return self.gear**2 * self.armature

    def gains(self, inertia: Callable[[], float]) -> Gains:
        return 0.0, self.gear**2 * self.stall_torque / self.no_load_speed

    def pull(self, u: SX, x: SX, stiffness: float, damping: float) -> SX:
        return self.gear * self.stall_torque * clamped(u, (-1.0, 1.0))


@dataclass(frozen=True)
class Affine(Explicit):
    """Torque = gain * control + offset - stiffness * q - damping * v, of the state at the start of the step: MuJoCo's motor,
    position and velocity actuators."""

    gain: float = 1.0
    """Torque per unit of control [N m or N]."""
    offset: float = 0.0
    """Constant torque [N m or N]."""
    stiffness: float = 0.0
    """Stiffness [N m/rad or N/m]."""
    damping: float = 0.0
    """Damping [N m s/rad or N s/m]."""
    controls: tuple[float, float] = (-inf, inf)
    """Range the control is clamped to."""
    torques: tuple[float, float] = (-inf, inf)
    """Range of the torque [N m or N]."""
    limit: float | None = None

    def _unclamped(self, u: SX, x: SX, speed: SX) -> SX:
        return self.gain * clamped(u, self.controls) + self.offset - self.stiffness * x - self.damping * speed

    def torque(self, u: SX, x: SX, speed: SX) -> SX:
        return clamped(self._unclamped(u, x, speed), self.torques)

    def resistance(self, u: SX, x: SX, speed: SX) -> SX | float:
        """Return the damping where the torque is not at an end of its range."""
        if is_zero(self.damping) or all(map(is_endless, self.torques)):
            return self.damping
        force = self._unclamped(u, x, speed)
        return self.damping * ca.logic_and(force > self.torques[0], force < self.torques[1])


def clamped(x: SX, span: tuple[float, float]) -> SX:
    """Clamp a value to a range, either end of which may be infinite."""
    low, high = span
    x = x if is_endless(low) else ca.fmax(x, low)
    return x if is_endless(high) else ca.fmin(x, high)


def is_endless(end: float | SX) -> bool:
    """Return whether an end of a range is known to be infinite. The numbers of an actuator may be symbols: see tuning.py."""
    return not isinstance(end, SX) and not np.isfinite(end)


def is_zero(x: float | SX) -> bool:
    """Return whether a number is known to be zero."""
    return bool(x.is_zero()) if isinstance(x, SX) else not x
