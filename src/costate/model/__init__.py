"""Robots as plain data: links, joints, inertias and shapes, read from URDF and MJCF, written to URDF, or built in."""

from costate.model.actuation import Actuator, GeneralActuator
from costate.model.builtin import builtin_names
from costate.model.errors import ModelError, ModelWarning
from costate.model.joint import Joint, Mimic
from costate.model.load import load_model
from costate.model.mjcf import read_mjcf
from costate.model.model import Inertia, Link, Model
from costate.model.shape import Shape
from costate.model.transform import Transform
from costate.model.urdf import read_urdf, write_urdf

__all__ = [
    "Actuator",
    "GeneralActuator",
    "Inertia",
    "Joint",
    "Link",
    "Mimic",
    "Model",
    "ModelError",
    "ModelWarning",
    "Shape",
    "Transform",
    "builtin_names",
    "load_model",
    "read_mjcf",
    "read_urdf",
    "write_urdf",
]
