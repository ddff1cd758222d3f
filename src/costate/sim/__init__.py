"""Simulation: worlds of robots, bodies and scenery, stepped and rolled out with an adjoint."""

from costate.model.constraint import Connect, Couple, Distance, Weld
from costate.model.tendon import FixedTendon, Pulley, SpatialTendon, Via, Wrap
from costate.sim.contact.builtin import PGS, Compliant, ContactModel, Hard, Newton, SmoothContact
from costate.sim.forces.actuators import Affine, DCMotor, Motor, PositionServo, Torque, VelocityServo
from costate.sim.forces.delays import Lag, Latency
from costate.sim.forces.general import General
from costate.sim.forces.muscle import Muscle
from costate.sim.longest_substep import longest_substep
from costate.sim.scene import shapes
from costate.sim.scene.parts import Body, Static
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
    "General",
    "Hard",
    "Lag",
    "Latency",
    "Motor",
    "Muscle",
    "Newton",
    "PositionServo",
    "Pulley",
    "SimulationError",
    "SmoothContact",
    "SpatialTendon",
    "Static",
    "Torque",
    "VelocityServo",
    "Via",
    "Weld",
    "World",
    "Wrap",
    "longest_substep",
    "shapes",
]
