"""The classes that worlds are made of, by their names in files. A new one is a row here; a name, once used, keeps its meaning."""

from __future__ import annotations

from typing import Any

from costate.collision import shapes as solids
from costate.collision.mesh.fields import Grid, Heights
from costate.collision.mesh.hull import Hull
from costate.model import Actuator, GeneralActuator, Inertia, Joint, Link, Mimic, Model, Shape, Transform, actuation
from costate.model.constraint import Connect, Constraint, Couple, Distance, Weld
from costate.model.drag import Drag
from costate.model.model import Keyframe
from costate.model.surface import Bounds, Listed, Physics, Softness, Surface
from costate.model.tendon import FixedTendon, Pulley, SpatialTendon, Tendon, Via, Wrap
from costate.sim.contact.builtin import PGS, Compliant, Hard, Newton, NoContact
from costate.sim.forces import actuators
from costate.sim.forces.general import General
from costate.sim.forces.muscle import Muscle
from costate.sim.scene.parts import Body, Static

_MODEL = (
    Bounds,
    Drag,
    Inertia,
    Joint,
    Keyframe,
    Link,
    Listed,
    Mimic,
    Model,
    Physics,
    Shape,
    Softness,
    Surface,
    Transform,
)
_TIES = (Connect, Couple, Distance, FixedTendon, Pulley, SpatialTendon, Via, Weld, Wrap)
_ACTUATION = (
    *(GeneralActuator, actuation.Crank, actuation.OnBody, actuation.OnJoint, actuation.OnSite, actuation.OnTendon),
    *(actuation.Site, General, Muscle, actuators.Affine, actuators.DCMotor, actuators.Motor, actuators.PositionServo),
    *(actuators.Torque, actuators.VelocityServo),
)
_CONTACT = (Hard, PGS, Compliant, Newton, NoContact)
_SOLIDS = (
    *(solids.Box, solids.Capsule, solids.Cylinder, solids.Ellipsoid, solids.Plane, solids.Socket, solids.Sphere),
    *(solids.Difference, solids.Intersection, solids.Moved, solids.Offset, solids.Union, Grid, Heights, Hull),
)

CLASSES: dict[str, type] = {
    **{kind.__name__: kind for kind in (*_MODEL, *_TIES, *_ACTUATION, *_CONTACT, *_SOLIDS, Body, Static)},
    "FileActuator": Actuator,
}
"""Name -> class."""

NAMES: dict[str, Any] = {"Constraint": Constraint, "Tendon": Tendon}
"""Types that annotations name and their modules import for type checkers only."""
