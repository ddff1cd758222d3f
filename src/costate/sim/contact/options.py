"""Contact models: how shapes that touch push each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from costate.model.surface import Softness, Surface


@dataclass(frozen=True)
class PGS:
    """Hard contact at the level of velocities, by projected Gauss-Seidel. Its adjoint is the reversed sweeps.

    Bounces happen at their time within the step: what their impulse changes counts for the rest of the step only. This gives
    elastic impacts the right gradient. Without a bounce a shape may come as near as touching within a step, and stops in the
    next (Stewart and Trinkle, 1996).
    """

    sweeps: int = 50
    friction: float = 0.8
    """Coefficient where shapes do not say their own; of two shapes the larger one counts."""
    restitution: float = 0.0
    """Of all contacts; 1 is elastic."""
    restitution_speed: float = 0.05
    """Slower impacts do not bounce [m/s]."""
    cone: str = "pyramid"
    """Friction bound: "pyramid" (each direction by itself) or "cone" (round)."""
    correction: str = "baumgarte"
    """How overlap is undone: "baumgarte" (as velocity), "split" (as position only: adds no energy) or "none"."""
    erp: float = 0.2
    """Part of the overlap undone per step."""
    slop: float = 1e-4
    """Overlap that is left alone [m or rad]."""
    max_correction: float = 2.0
    """Speed at which overlap is undone at most [m/s or rad/s]."""
    cfm: float = 1e-8
    """Regularisation, relative to each row's own inverse mass."""
    joint_limits: bool = True
    """Whether position limits of joints are enforced: one row per limited joint."""
    joint_friction: bool = True
    """Whether Coulomb friction of joints is a bound (one row per joint that has some); else it is smooth."""
    warm_start: bool = False
    """Whether a substep starts from the impulses of the one before. The first substep of a step starts from zero: a state does not
    hold impulses."""
    mapped: bool | None = None
    """Whether contacts are solved pair by pair, by one program for all pairs of a kind, instead of by rows of one system: for many
    free bodies, without robots. The impulses are the same. None: where that is possible and there are more than 24 pairs."""


@dataclass(frozen=True)
class Compliant:
    """Soft contact: a smooth normal force with damping (Hunt-Crossley) and smoothed Coulomb friction. Forces, and so gradients,
    fade in before shapes touch."""

    stiffness: float = 1e4
    """[N/m]."""
    damping: float = 1.0
    """[s/m]: force = stiffness * depth * (1 - damping * speed of separation), never pulling."""
    smoothing: float = 1e-3
    """Length over which the force fades in [m]."""
    friction: float = 0.8
    friction_speed: float = 1e-2
    """Sliding speed at which friction reaches 71 % of its bound [m/s]."""
    joint_limits: bool = True
    limit_stiffness: float = 1e3
    """Of joint limits [N m/rad or N/m]."""
    limit_damping: float = 1.0
    """[s/rad or s/m]."""


@dataclass(frozen=True)
class Newton:
    """Soft contact as MuJoCo defines it: the accelerations that minimise a convex cost, solved to tolerance by Newton's method with
    exact line search. Gradients follow from the optimality conditions, whatever the number of iterations.

    Shapes and joints read from MJCF bring their own numbers (solref, solimp, friction, condim, margin, ...); these here are for all
    others.
    """

    cone: str | None = None
    """Friction cone: "pyramidal" or "elliptic"; None: what the robots' MJCF says, else pyramidal."""
    impratio: float | None = None
    """Impedance of friction by that of the normal direction; None: what the robots' MJCF says, else 1."""
    friction: float = 1.0
    """Sliding coefficient where shapes do not say their own; of two shapes the larger one counts."""
    condim: int = 3
    """1: no friction; 3: sliding; 4: and torsion; 6: and rolling."""
    torsion: float = 0.005
    """Coefficient of torsion [m]."""
    rolling: float = 0.0001
    """Coefficient of rolling [m]."""
    softness: Softness = field(default_factory=Softness)
    """Of contacts, joint limits and joint friction."""
    margin: float = 0.0
    """Distance at which contacts begin to push [m]."""
    iterations: int = 50
    """Newton steps at most."""
    tolerance: float = 1e-22
    """Of the decrease of the cost that a step promises, relative to the cost without constraint forces: about the square of the
    accelerations' relative error. Float32 stops at 1e-12."""
    line_search: int = 20
    """Steps of the line search at most."""
    joint_limits: bool = True
    joint_friction: bool = True
    implicit_damping: bool = True
    """Whether velocities are advanced implicitly in joint damping, as MuJoCo's Euler method does."""

    def surface(self, friction: float | None) -> Surface:
        """Of a shape that has none of its own."""
        sliding = self.friction if friction is None else friction
        return Surface((sliding, self.torsion, self.rolling), self.condim, self.softness, self.margin)


ContactModel = PGS | Compliant | Newton
