"""Options of the tasks of a hand, and their variants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import radians

from costate.tasks.manipulation.execute import Servos

Range = tuple[float, float]


@dataclass(frozen=True)
class ManipulationOptions:
    """Options of the tasks; the defaults are those of Ruppel, Hendrich and Zhang (2021)."""

    steps: int = 20
    """Control steps of an episode."""
    dt: float = 0.01
    """Control period [s]."""
    mass: float = 0.01
    """Mass of the object [kg]."""
    friction: float = 2.0
    """Friction coefficient."""
    trusted: float = 1.0
    """Part of the friction that proposals may count on."""
    force: float = 0.1
    """Size of one unit of a proposed force [N]."""
    gravity: float = 9.81
    """Gravity [m/s^2]."""
    hand_speed: float = 20.0
    """Fastest joint of the hand [rad/s]."""
    smooth: bool = False
    """True if slip is the velocity times each component of a force, which is smooth; else times its size. The loss is the same."""
    rest: bool = False
    """True if the object has to come to rest at its goal."""
    calm: bool = False
    """True if proposals must not pull, must not throw the object, and must not accelerate the arm more than servos can follow."""
    carried: bool = False
    """True if the hinge of an object carries forces that do not turn it; else proposals have to cancel them."""
    drag: float = 0.0
    """Distance at which links of the fingers must not slide along the object any more, in the model [m]; 0: they may."""
    further: float = 1.0
    """Angle that proposals aim for, as a factor on the angle asked for."""
    place: float = 0.01
    """Largest distance of objects from their usual place along x and y [m]."""
    wide: bool = False
    """True if the hand begins further open and higher; it does so, too, if objects may be larger than usual."""
    scales: Range = (1.0, 1.0)
    """Range of sizes, as factors."""
    masses: Range = (1.0, 1.0)
    """Range of masses, as factors on top of those of the volumes."""
    frictions: Range = (1.0, 1.0)
    """Range of friction coefficients, as factors."""
    noise: float = 0.0
    """Standard deviation of the measured position of the object [m]."""
    turn_noise: float = 0.0
    """Standard deviation of the measured orientation of the object, about each axis [rad]."""
    servos: Servos = Servos()  # noqa: RUF009  (frozen)
    """Servos of the full world."""

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.dt > 0:
            raise ValueError(f"steps={self.steps}, dt={self.dt}; expected at least one step, and a length above 0 s")
        for name in ("scales", "masses", "frictions"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise ValueError(f"{name}={(low, high)}; expected two factors above 0, the smaller one first")


def honest(options: ManipulationOptions) -> ManipulationOptions:
    """Return options of a task as it is in reality: an object of 100 g, usual friction, half a second, and rest in the end."""
    return replace(
        options, steps=25, dt=0.02, mass=0.1, friction=0.8, trusted=0.6, force=1.0, gravity=9.81, hand_speed=6.0, rest=True,
        smooth=False,
    )  # fmt: skip


def honest_lift(options: ManipulationOptions) -> ManipulationOptions:
    """Return options of a cube that is lifted as it is in reality. Proposals have to be calm: else some trainings end with cubes
    that are thrown."""
    return replace(honest(options), calm=True)


def honest_hinge(options: ManipulationOptions) -> ManipulationOptions:
    """Return options of an object on a hinge as it is in reality: the hinge carries what does not turn it. It turns freely, so that
    small forces do, and need not be at rest in the end."""
    return replace(honest(options), force=0.1, rest=False, carried=True, drag=0.004, further=1.25)


def varied(options: ManipulationOptions) -> ManipulationOptions:
    """Return options in which objects differ in size, mass and friction, and are measured with noise of 1 mm and 1 degree.

    Where they have to come to rest, proposals have to be calm: else the training ends with cubes that are thrown, or pulled up by
    their tops."""
    wide = {"scales": (0.8, 1.2), "masses": (0.5, 2.0), "frictions": (0.75, 1.25)}
    return replace(options, **wide, calm=options.rest, noise=1e-3, turn_noise=radians(1.0))
