"""Actuators of robot files: plain motors and servos, and those of MJCF with all that they may have."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from costate.core.constants import Constants
from costate.model.actuation.transmission import Rename, Transmission

Span = tuple[float, float]
ALL: Span = (-np.inf, np.inf)


@dataclass(frozen=True)
class Actuator(Constants):
    """A motor or servo on a joint or tendon: torque = gear * control + offset - stiffness * position - damping * velocity."""

    name: str
    joint: str
    """Name of its joint; empty for one on a tendon."""
    gear: float = 1.0
    """Torque or force per unit of control [N m or N]."""
    lower: float = -np.inf
    """Least control."""
    upper: float = np.inf
    """Greatest control."""
    tendon: str = ""
    offset: float = 0.0
    """Torque at zero control, position and velocity [N m or N]."""
    stiffness: float = 0.0
    """Decrease of the torque with the position [N m/rad or N/m]."""
    damping: float = 0.0
    """Decrease of the torque with the velocity [N m s/rad or N s/m]."""
    weakest: float = -np.inf
    """Least torque [N m or N]."""
    strongest: float = np.inf
    """Greatest torque [N m or N]."""

    def renamed(self, link: Rename, joint: Rename) -> Actuator:
        """Return the actuator with other names of its joint or tendon."""
        if self.tendon:
            return replace(self, name=joint(self.name), tendon=joint(self.tendon))
        return replace(self, name=joint(self.name), joint=joint(self.joint))


@dataclass(frozen=True, eq=False)
class GeneralActuator(Constants):
    """An actuator as MJCF describes it (`general`): force = gain * signal + bias, where gain and bias depend on the length of its
    transmission and on how fast it changes. The signal is the control, or an activation that follows it."""

    name: str
    on: Transmission
    gain: str = "fixed"
    """Kind of the gain: fixed | affine | muscle."""
    gain_numbers: tuple[float, ...] = (1.0,)
    """Numbers of the gain (MJCF gainprm): that per unit of signal; of an affine one its change with length and velocity."""
    bias: str = "none"
    """Kind of the bias: none | affine | muscle."""
    bias_numbers: tuple[float, ...] = ()
    """Numbers of the bias (MJCF biasprm): a constant, its change with length and velocity."""
    dynamics: str = "none"
    """Kind of the activation: none | integrator | filter | filterexact | muscle."""
    dynamics_numbers: tuple[float, ...] = ()
    """Numbers of the activation (MJCF dynprm): time constant [s]; of a muscle three."""
    acts_early: bool = False
    """True if the activation after the step acts (MJCF actearly)."""
    controls: Span = ALL
    """Range the control is clamped to."""
    activations: Span = ALL
    """Range the activation is clamped to after every step."""
    forces: Span = ALL
    """Range of the force [N or N m]."""
    lengths: Span = (0.0, 0.0)
    """Range of the length (MJCF lengthrange), with which muscles are scaled."""
    ease: float = 0.0
    """Size of the acceleration by a unit force in the reference configuration (MuJoCo's acc0), with which muscles are scaled."""
    is_off: bool = False
    """True if its group is switched off (MJCF option actuatorgroupdisable): it neither pulls nor changes its activation."""

    def renamed(self, link: Rename, joint: Rename) -> GeneralActuator:
        """Return the actuator with other names of what it acts on."""
        return replace(self, name=joint(self.name), on=self.on.renamed(link, joint))
