"""Simulation: worlds of robots, bodies and scenery, stepped and rolled out with an adjoint."""

from costate.model.constraint import Connect, Couple, Distance, Weld
from costate.model.tendon import FixedTendon
from costate.sim.actuators import Affine, DCMotor, Motor, PositionServo, Torque, VelocityServo
from costate.sim.contact_models import PGS, Compliant, Newton
from costate.sim.delays import Lag, Latency
from costate.sim.scene import Body, Static
from costate.sim.world import Contacts, SimulationError, World

__all__ = [
    "PGS",
    "Affine",
    "Body",
    "Compliant",
    "Connect",
    "Contacts",
    "Couple",
    "DCMotor",
    "Distance",
    "FixedTendon",
    "Lag",
    "Latency",
    "Motor",
    "Newton",
    "PositionServo",
    "SimulationError",
    "Static",
    "Torque",
    "VelocityServo",
    "Weld",
    "World",
]
