"""What a robot is: links, joints, inertias and shapes, read from URDF and MJCF, written to URDF, or built in."""

from costate.model.errors import ModelError, ModelWarning
from costate.model.model import Actuator, Inertia, Joint, Link, Mimic, Model, Shape, Transform
from costate.model.urdf import read_urdf

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
    "read_urdf",
]
