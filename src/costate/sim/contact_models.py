"""Contact models: how shapes that touch push each other."""

from __future__ import annotations

from dataclasses import dataclass


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


ContactModel = PGS | Compliant
