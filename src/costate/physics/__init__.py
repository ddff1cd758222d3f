"""Rigid body physics of one concrete robot as symbolic expressions: kinematics, dynamics, energy, integration.

Every algorithm is a plain function of a model, its parameters and CasADi expressions. `FUNCTIONS` lists those that a
robot offers, `build` gives their inputs and outputs. Frames, orders and signs: docs/conventions.md.
"""

from costate.physics.dynamics.passive import Passive
from costate.physics.functions import FUNCTIONS, build, build_vjp
from costate.physics.params import Parameters

__all__ = ["FUNCTIONS", "Parameters", "Passive", "build", "build_vjp"]
