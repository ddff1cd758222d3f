"""Simulation: worlds of robots, bodies and scenery, stepped and rolled out with an adjoint."""

from costate.model.constraint import Connect, Couple, Distance, Weld
from costate.model.tendon import FixedTendon
from costate.sim.contact.builtin import PGS, Compliant, ContactModel, Newton, SmoothContact
from costate.sim.forces.actuators import Affine, DCMotor, Motor, PositionServo, Torque, VelocityServo
from costate.sim.forces.delays import Lag, Latency
from costate.sim.longest_substep import longest_substep
from costate.sim.scene import shapes
from costate.sim.scene.scene import Body, Static
from costate.sim.world import Contacts, SimulationError, World

__all__ = [
    "PGS",
    "Affine",
    "Body",
    "Compliant",
    "Connect",
    "ContactModel",
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
    "SmoothContact",
    "Static",
    "Torque",
    "VelocityServo",
    "Weld",
    "World",
    "longest_substep",
    "shapes",
]
