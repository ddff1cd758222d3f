"""Soft constraints as in MuJoCo: the stiffness of contacts, joint limits and joint friction, and the friction of shapes.

The numbers are those of MJCF, with its defaults; `sim.Newton` computes with them, other contact models do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from costate.core.constants import Constants


@dataclass(frozen=True)
class Softness(Constants):
    """The reference and impedance of a constraint (MJCF solref, solimp)."""

    solref: tuple[float, float] = (0.02, 1.0)
    """Time constant [s] and damping ratio of the spring that undoes a violation; both negative: -stiffness, -damping, per unit of
    effective mass."""
    solimp: tuple[float, float, float, float, float] = (0.9, 0.95, 0.001, 0.5, 2.0)
    """Impedance at the bound and deep inside, the depth [m or rad] over which it changes, and the midpoint and power of the change.
    An impedance d yields the part d of the acceleration a hard constraint would cause."""

    def _instead(self) -> dict[str, str]:
        return {"solref": "solref", "solimp": "solimp"}


@dataclass(frozen=True)
class Surface(Constants):
    """The contact properties of a shape."""

    friction: tuple[float, float, float] = (1.0, 0.005, 0.0001)
    """Coefficients of sliding [1], torsion [m] and rolling [m]."""
    condim: int = 3
    """Dimension of the contact space. 1: no friction; 3: sliding; 4: and torsion; 6: and rolling."""
    softness: Softness = field(default_factory=Softness)
    margin: float = 0.0
    """Distance at which contacts begin to push [m]; those of two shapes add up."""
    gap: float = 0.0
    """Further distance at which contacts are found but do not push [m] (MuJoCo 4); the motion does not depend on it."""
    priority: int = 0
    """Priority: of two shapes the one of higher priority decides; else their numbers are mixed."""
    solmix: float = 1.0
    """Weight of this shape's softness in a mixture."""
    contype: int = 1
    conaffinity: int = 1
    """Bits of the shape: two shapes may touch if the contype of one meets the conaffinity of the other."""

    def meets(self, other: Surface) -> bool:
        """Return whether the bits of two shapes let them touch."""
        return bool(self.contype & other.conaffinity or other.contype & self.conaffinity)


@dataclass(frozen=True)
class Listed:
    """Two shapes that may touch whatever their bits say, with contact properties of their own (MJCF contact pair)."""

    shapes: tuple[str, str]
    """Names of the two shapes."""
    surface: Surface


@dataclass(frozen=True)
class Bounds(Constants):
    """The softness of the limits and of the Coulomb friction of a joint."""

    limit: Softness = field(default_factory=Softness)
    friction: Softness = field(default_factory=Softness)
    margin: float = 0.0
    """Distance from a limit at which it begins to push [m or rad]."""


@dataclass(frozen=True)
class Physics(Constants):
    """The settings with which a file wants its model simulated (MJCF option)."""

    cone: str = "pyramidal"
    """Friction cone: "pyramidal" or "elliptic"."""
    impratio: float = 1.0
    """Ratio of the impedance of friction to that of the normal direction."""
    timestep: float = 0.002
    """Time step [s]."""
    integrator: str = "Euler"
    """Integrator, by MuJoCo's name."""
    implicit_damping: bool = True
    """True if Euler's method is implicit in joint damping."""
    implicit_coriolis: bool = False
    """True if the implicit integrator is implicit in Coriolis forces."""
    neighbours_touch: bool = False
    """True if links that a joint connects may touch."""


def mix(a: Surface, b: Surface) -> Surface:
    """Return the contact properties of two surfaces that touch.

    The one of higher priority decides on friction, condim and softness; of equal ones the larger friction and condim, and the
    average softness count. Margins and gaps add up.
    """
    margin, gap = a.margin + b.margin, a.gap + b.gap
    if a.priority != b.priority:
        chosen = a if a.priority > b.priority else b
        return Surface(chosen.friction, chosen.condim, chosen.softness, margin, gap, chosen.priority)
    friction = tuple(max(x, y) for x, y in zip(a.friction, b.friction, strict=True))
    return Surface(friction, max(a.condim, b.condim), _mixed(a, b), margin, gap)  # type: ignore[arg-type]


def _mixed(a: Surface, b: Surface) -> Softness:
    part = mixing_part(a.solmix, b.solmix)
    pairs = zip(a.softness.solimp, b.softness.solimp, strict=True)
    solimp = tuple(part * x + (1 - part) * y for x, y in pairs)
    refs = list(zip(a.softness.solref, b.softness.solref, strict=True))
    if a.softness.solref[0] > 0 and b.softness.solref[0] > 0:
        solref = tuple(part * x + (1 - part) * y for x, y in refs)
    else:  # stiffnesses are not times: the harder one
        solref = tuple(min(x, y) for x, y in refs)
    return Softness(solref, solimp)  # type: ignore[arg-type]


def mixing_part(a: float, b: float) -> float:
    """Return the weight of the first of two surfaces in a mixture, by their solmix."""
    tiny = 1e-15
    if a >= tiny and b >= tiny:
        return a / (a + b)
    return 0.5 if a < tiny and b < tiny else float(a >= tiny)
