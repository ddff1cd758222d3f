"""Actuators of robot files: what they act along, and the laws of their forces."""

from costate.model.actuation.actuator import Actuator, GeneralActuator
from costate.model.actuation.transmission import Crank, OnBody, OnJoint, OnSite, OnTendon, Site, Transmission

__all__ = [
    "Actuator",
    "Crank",
    "GeneralActuator",
    "OnBody",
    "OnJoint",
    "OnSite",
    "OnTendon",
    "Site",
    "Transmission",
]
