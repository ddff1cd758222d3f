"""Sensors of a trial: the state that the planner receives has noise, and is late.

A planner that is told late knows what it has sent to the servos since, and predicts the present from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.tasks.inhand.predict import Prediction


@dataclass(frozen=True)
class Sensing:
    """Errors of sensors; by default none."""

    position: float = 0.0
    """Standard deviation of the object's position, along each axis [m]."""
    turn: float = 0.0
    """Standard deviation of the object's orientation, about each axis [degrees]."""
    joints: float = 0.0
    """Standard deviation of the joints [rad]."""
    delay: int = 0
    """Steps by which states are late."""

    def present(
        self,
        prediction: Prediction,
        states: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        thing: np.ndarray,
        random: np.random.Generator,
    ) -> np.ndarray:
        """Return the state that the planner takes for the present one, (nx,).

        Args:
            prediction: Model that bridges the delay.
            states: All states up to now, each (nx,).
            targets: Targets of the joints sent after each of the states but the last [rad], each (nu,).
            thing: The object as the planner knows it, (5,).
            random: Source of the noise.
        """
        late = min(self.delay, len(targets))
        scale = np.repeat([self.position, np.radians(self.turn), self.joints], [3, 3, prediction.nu])
        error = scale * random.normal(size=prediction.n)
        x = np.array(ca.evalf(prediction.moved(SX(states[-1 - late]), SX(error)))).ravel()
        for target in targets[len(targets) - late :]:
            x = prediction.step.numpy(state=x, command=target - x[7:], object=thing).after
        return x
