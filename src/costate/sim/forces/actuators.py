"""Actuators: what a control means for the joints and tendons of a robot."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

Compensation = bool | Literal["nominal"]
"""Whether a servo carries the robot's weight: as it is, also where masses are inputs of the world or learnt; or, "nominal", as the
model says, as a real controller does that was not told of another payload."""


@dataclass(frozen=True)
class Torque:
    """The control is the torque [N m or N], clamped to the effort limit."""

    limit: float | None = None
    """Effort limit; None: that of the joint."""


@dataclass(frozen=True)
class VelocityServo:
    """The control is a velocity [rad/s or m/s]; torque = gain (control - v) + gravity compensation, clamped to the effort limit.

    Solved implicitly as (M + dt gain): stiff gains are stable at long steps.
    """

    gain: float | None = None
    """[N m s/rad or N s/m]; None: M_ii / time_constant at the home configuration."""
    time_constant: float = 0.02
    """[s]."""
    gravity_compensation: Compensation = True
    limit: float | None = None


@dataclass(frozen=True)
class PositionServo:
    """The control is a position [rad or m]; torque = stiffness (control - q) - damping v + gravity compensation, clamped.

    Solved implicitly as (M + dt damping + dt^2 stiffness).
    """

    stiffness: float | None = None
    """[N m/rad or N/m]; None: M_ii / time_constant^2 at the home configuration."""
    damping: float | None = None
    """[N m s/rad or N s/m]; None: critical, 2 M_ii / time_constant."""
    time_constant: float = 0.05
    """[s]."""
    gravity_compensation: Compensation = True
    limit: float | None = None


@dataclass(frozen=True)
class Motor:
    """A geared motor: torque = gear * control, clamped to the effort limit."""

    gear: float = 1.0
    """[N m or N per unit of control]."""
    armature: float = 0.0
    """Inertia of the rotor [kg m^2]; the joint carries gear^2 times as much."""
    limit: float | None = None


@dataclass(frozen=True)
class DCMotor:
    """A motor under voltage: at its shaft, torque = stall_torque (control - speed / no_load_speed), control in [-1, 1] (clamped).

    The torque at the joint is clamped to the effort limit, and solved implicitly as that of a velocity servo.
    """

    stall_torque: float
    """At full voltage and standstill [N m]."""
    no_load_speed: float
    """At full voltage without load [rad/s]."""
    gear: float = 1.0
    """Turns of the motor per turn of the joint."""
    armature: float = 0.0
    """Inertia of the rotor [kg m^2]; the joint carries gear^2 times as much."""
    limit: float | None = None

    gravity_compensation: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.stall_torque > 0 and self.no_load_speed > 0 and self.gear > 0):
            raise ValueError(f"a DC motor needs a positive stall torque, no-load speed and gear, not {self}")


@dataclass(frozen=True)
class Affine:
    """Torque = gain * control + offset - stiffness * q - damping * v, of the state at the start of the step: MuJoCo's motor,
    position and velocity actuators."""

    gain: float = 1.0
    """[N m or N per unit of control]."""
    offset: float = 0.0
    """[N m or N]."""
    stiffness: float = 0.0
    """[N m/rad or N/m]."""
    damping: float = 0.0
    """[N m s/rad or N s/m]."""
    controls: tuple[float, float] = (-inf, inf)
    """Range the control is clamped to."""
    torques: tuple[float, float] = (-inf, inf)
    """Range of the torque [N m or N]."""
    limit: float | None = None


Explicit = Torque | Motor | Affine
"""Those whose torque follows from the state at the start of the step."""
Actuator = Torque | Motor | Affine | DCMotor | VelocityServo | PositionServo
