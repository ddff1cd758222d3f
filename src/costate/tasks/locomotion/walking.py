"""Robots on floors: the floor they learn on, the quantities that may vary, and other floors that they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from costate.core.fork import cached_property
from costate.model.builtin.parts import GREY
from costate.model.shape import Shape
from costate.model.surface import Surface
from costate.robot import Robot
from costate.sim import Compliant, ContactModel, Hard, Newton, Static, World
from costate.train.episode import Stepper
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.trainable import Variant

Range = tuple[float, float]
"""Smallest and largest factor."""
SAME: Range = (1.0, 1.0)
"""Range of what does not vary."""


@dataclass(frozen=True)
class WalkOptions:
    """Options of robots that walk: the contact that they learn with, and what differs from robot to robot.

    Ranges are of factors, drawn for every episode evenly on a logarithmic scale; 1 1 leaves a quantity as it is.
    """

    contact: Literal["compliant", "newton", "hard"] = "compliant"
    """Contact model of the world to learn in."""
    stiffness: Range = SAME
    """Range of the stiffness of compliant contact."""
    damping: Range = SAME
    """Range of the damping of compliant contact, by which impacts lose more energy."""
    limits: Range = SAME
    """Range of the stiffness of joint limits, with compliant contact."""
    friction: Range = SAME
    """Range of the friction of the floor."""
    mass: Range = SAME
    """Range of the mass of every link."""
    steps: int = 1000
    """Control steps of an episode at most, 60 a second."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be at least 1")
        for name in ("stiffness", "damping", "limits", "friction", "mass"):
            low, high = getattr(self, name)
            if not 0 < low <= high < float("inf"):
                raise ValueError(f"{name} is {low} {high}; expected the smallest and the largest factor, above 0")
        if self.contact != "compliant" and (self.stiffness, self.damping, self.limits) != (SAME, SAME, SAME):
            raise ValueError(
                f"stiffness, damping and limits can vary with compliant contact alone, not with {self.contact}"
            )


@dataclass(frozen=True)
class Floor:
    """A floor, and how time is divided on it."""

    contact: ContactModel
    substeps: int
    """Substeps of a control step."""
    friction: float
    """Coefficient of friction, whatever the robot's file says."""

    def changed(self, substeps: int = 1, friction: float = 1.0, **factors: float) -> Floor:
        """Return another floor. Every number is a factor; those with names are of numbers of the contact model."""
        contact = replace(self.contact, **{k: getattr(self.contact, k) * factor for k, factor in factors.items()})  # type: ignore[type-var]
        return Floor(contact, self.substeps * substeps, self.friction * friction)

    def shape(self) -> Shape:
        """Return its plane, whose friction counts alone."""
        surface = Surface((self.friction, 0.005, 0.0001), priority=1)
        return Shape("plane", np.zeros(0), color=GREY, friction=self.friction, surface=surface)


FRACTION = 8
"""Substeps of a control step with contact that is solved: it needs fewer than springs do."""


class Walking(RewardedTask):
    """A robot on a floor. A class of your own gives its `robot`, its `soft` contact and `friction`, and the formulas."""

    options: Any = WalkOptions()
    soft: ClassVar[Compliant]
    """Contact that it learns with unless told otherwise."""
    friction: ClassVar[float]
    """Coefficient of friction of the floor."""
    substeps: ClassVar[int] = 16
    """Substeps of a control step with that contact."""
    touching: ClassVar[tuple[str, ...]] = ()
    """Links that can touch the floor before an episode ends; none: any can."""
    actuators: Any = "file"
    """Actuators of the robot, as `World` takes them."""

    @property
    def length(self) -> int:  # type: ignore[override]
        return self.options.steps

    @cached_property
    def robot(self) -> Robot:
        """Robot that walks."""
        raise NotImplementedError

    @property
    def floors(self) -> dict[str, Floor]:
        """Floors to learn on, by the name of their contact."""
        return {
            "compliant": Floor(self.soft, self.substeps, self.friction),
            "newton": Floor(Newton(friction=self.friction), FRACTION, self.friction),
            "hard": Floor(Hard(friction=self.friction), FRACTION, self.friction),
        }

    @cached_property
    def varied(self) -> Mapping[str, Range]:  # type: ignore[override]
        o, own = self.options, self.robot.model
        masses = {f"mass:{own.name}/{link.name}": o.mass for link in own.links if float(link.inertia.mass) > 0}
        ranges = {"stiffness": o.stiffness, "damping": o.damping, "limit_stiffness": o.limits}
        ranges |= {"friction:floor": o.friction, **masses}
        return {name: told for name, told in ranges.items() if tuple(told) != SAME}

    @cached_property
    def world(self) -> World:
        return self.world_on(self.floors[self.options.contact], *self.varied)

    def world_on(self, floor: Floor, *parameters: str) -> World:
        """Return the world of the robot on a floor. parameters: inputs of its step, as `World` takes them."""
        drawn = not self.robot.model.links[0].collisions  # a file may have a floor, too
        pairs = [(f"{self.robot.model.name}/{name}", "floor") for name in self.touching]
        return World(
            [self.robot],
            scenery=[Static("floor", floor.shape(), visible=drawn)],
            actuators=self.actuators,
            contact=floor.contact,
            integrator="semi_implicit",
            dt=1 / 60,
            substeps=floor.substeps,
            collide=pairs or None,
            parameters=parameters,
            check=False,
        )

    def worlds(self) -> Mapping[str, Callable[[], Stepper]]:
        floors = self.floors
        soft = floors["compliant"]
        tried = {
            "compliant contact": soft,
            "substeps a quarter as long": soft.changed(substeps=4),
            "contact four times as stiff": soft.changed(substeps=2, stiffness=4),
            "contact ten times as damped": soft.changed(substeps=2, damping=10),
            "joint limits 30 times as stiff": soft.changed(substeps=2, limit_stiffness=30),
            "a fifth of the smoothing": soft.changed(substeps=4, smoothing=0.2, friction_speed=0.2),
            "friction 30 % lower": soft.changed(friction=0.7),
            "friction 30 % higher": soft.changed(friction=1.3),
            "Newton contact": floors["newton"],
            "hard contact": floors["hard"],
        }
        return {name: partial(self.world_on, floor) for name, floor in tried.items()}

    variants: ClassVar[Mapping[str, Variant]] = {
        "randomise": Variant(
            "Robots differ: stiffness and damping of contact by factors of 1 to 8, stiffness of joint limits 1 to 50, friction "
            "0.7 to 1.3, masses 0.9 to 1.1.",
            lambda options: replace(options, **RANDOMISED | ({} if options.contact == "compliant" else KEPT)),
        ),
        "long": Variant("Let episodes last 20 s: 1,200 steps.", lambda options: replace(options, steps=1200)),
    }


RANDOMISED: dict[str, Range] = {
    "stiffness": (1.0, 8.0),
    "damping": (1.0, 8.0),
    "limits": (1.0, 50.0),
    "friction": (0.7, 1.3),
    "mass": (0.9, 1.1),
}
"""Ranges of factors that make a policy fit for other contact than that it learns with."""
KEPT: dict[str, Range] = {"stiffness": SAME, "damping": SAME, "limits": SAME}
"""Ranges of what only compliant contact has."""
