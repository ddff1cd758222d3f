"""What a robot is: links, joints, inertias and shapes, read from URDF and MJCF, written to URDF, or built in."""

from costate.model.builtin import builtin_names
from costate.model.errors import ModelError, ModelWarning
from costate.model.load import load_model
from costate.model.mjcf.reader import read_mjcf
from costate.model.model import Actuator, Inertia, Joint, Link, Mimic, Model, Shape, Transform
from costate.model.urdf.reader import read_urdf
from costate.model.urdf.writer import write_urdf

__all__ = [
    "Actuator",
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
