"""Rigid body physics of one concrete robot as symbolic expressions: kinematics, dynamics, energy, integration.

Every algorithm is a plain function of a model, its parameters and CasADi expressions. `FUNCTIONS` lists the functions
that a robot offers; `build` returns the inputs and outputs of one of them. See docs/conventions.md for frames, orders
and signs.
"""

from costate.physics.dynamics.passive import Passive
from costate.physics.functions import FUNCTIONS, build, build_vjp
from costate.physics.params import Parameters

__all__ = ["FUNCTIONS", "Parameters", "Passive", "build", "build_vjp"]
