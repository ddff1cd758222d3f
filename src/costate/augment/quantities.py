"""Quantities of a step that networks may change, by name. A new one is a row here, and a `Wired.change` where it is formed."""

from __future__ import annotations

from dataclasses import dataclass

from costate.augment.inputs import AXES


@dataclass(frozen=True)
class Quantity:
    """A row of QUANTITIES."""

    owner: str
    """Kind of thing that has it: joint, link, actuator or contact."""
    what: str
    inputs: tuple[str, ...]
    """Inputs where none are given."""
    along: tuple[str, ...] = ()
    """Inputs that a dissipative network opposes, one per component; none: it cannot be dissipative."""
    components: tuple[str, ...] = ("",)
    least: float | None = None
    most: float | None = None
    """Bounds that the sum of the quantity and a network keeps."""
    of_robots: bool = False
    """True if the functions of a robot know it, not only the step of a world."""


QUANTITIES: dict[str, Quantity] = {
    "joint_torque": Quantity(
        "joint",
        "torque or force on a joint, positive along its speed [N m or N]; in place of it: of damping, friction and spring",
        ("position", "speed"),
        ("speed",),
        of_robots=True,
    ),
    "drag": Quantity(
        "link",
        "force on a link at its centre of mass, in its axes [N]; in place of it: of the fluid's force and torque",
        ("velocity",),
        tuple(f"velocity.{x}" for x in AXES),
        AXES,
        of_robots=True,
    ),
    "drag_torque": Quantity(
        "link",
        "torque on a link, in its axes [N m]",
        ("spin",),
        tuple(f"spin.{x}" for x in AXES),
        AXES,
        of_robots=True,
    ),
    "actuator_force": Quantity(
        "actuator",
        "force of an actuator along what it acts on [N m or N]",
        ("control", "position", "speed"),
        ("speed",),
    ),
    "normal_force": Quantity("contact", "force of a contact along its normal [N]", ("depth", "approach"), least=0.0),
    "friction_force": Quantity("contact", "force of a contact against its sliding [N]", ("slip",)),
    "friction_coefficient": Quantity("contact", "coefficient of sliding friction", ("slip",), least=0.0),
    "contact_stiffness": Quantity("contact", "stiffness of contacts, of Compliant() [N/m]", ("depth",), least=0.0),
    "restitution": Quantity(
        "contact", "restitution of impacts, of Hard() and PGS()", ("approach",), least=0.0, most=1.0
    ),
}
"""Name -> what it is."""
