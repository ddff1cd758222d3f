"""Soft contact as MuJoCo defines it, as a contact model: its options, and what it takes from robot files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from casadi import SX

from costate.collision.pairs import ContactPoint, Placed
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.model import Shape
from costate.model.surface import Physics, Softness, Surface, mix
from costate.sim.contact.detect import Contact
from costate.sim.contact.model import Axes, ContactModel
from costate.sim.contact.newton.pairwise.seen import pairwise_gaps, pairwise_seen
from costate.sim.contact.newton.pairwise.step import is_pairwise
from costate.sim.contact.newton.points import own_points, points
from costate.sim.contact.newton.rows import friction_axes, row_kinds
from costate.sim.contact.newton.softness import OF_JOINT, OF_SHAPE, Soft, own_number, usual_number
from costate.sim.contact.newton.step import newton_substep
from costate.sim.scene.scene import Collider, Scene
from costate.sim.setup import Setup, Symbols

FROM_MUJOCO = {"RK4": "rk4", "implicit": "implicit", "implicitfast": "implicit"}
"""MuJoCo's name of an integrator -> ours; euler for all others (said when a file is read)."""

USUAL = {name: getattr(Physics(), name) for name in ("cone", "impratio", "implicit_damping")}
"""Values that hold where neither the options nor a file say anything."""


@dataclass(frozen=True)
class Newton(ContactModel):
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
    """Dimension of contacts. 1: no friction; 3: sliding; 4: and torsion; 6: and rolling."""
    torsion: float = 0.005
    """Coefficient of torsion [m]."""
    rolling: float = 0.0001
    """Coefficient of rolling [m]."""
    softness: Softness = field(default_factory=Softness)
    """Softness of contacts, joint limits and joint friction."""
    margin: float = 0.0
    """Distance at which contacts begin to push [m]."""
    iterations: int = 50
    """Newton steps at most."""
    tolerance: float = 1e-22
    """Tolerance of the decrease of the cost that a step promises, relative to the cost without constraint forces: about the square
    of the accelerations' relative error. Float32 stops at 1e-12."""
    line_search: int = 20
    """Steps of the line search at most."""
    joint_limits: bool = True
    """True to enforce position limits of joints."""
    joint_friction: bool = True
    """True if Coulomb friction of joints is a bound; else it is smooth."""
    implicit_damping: bool | None = None
    """True to advance velocities implicitly in joint damping, as MuJoCo's Euler method does; None: what the robots' MJCF says, else
    True."""
    implicit_coriolis: bool | None = None
    """True if the integrator "implicit" is implicit in Coriolis forces, too (MuJoCo's implicit); False: only in those of single
    free bodies (its implicitfast); None: what the robots' MJCF says, else neither: they are those of the middle of the step."""
    mapped: bool | None = None
    """True to solve contacts pair by pair, by one program for all pairs of a kind, instead of by rows of one system: for worlds
    with many pairs. Accelerations are the same, but for rounding. None: from 96 pairs on."""

    event_times: bool = True
    """True if derivatives know that the time at which a contact or limit begins or ends depends on the motion: they are the
    motion's. False: they are those of the step as it is computed, which knows only whether a contact acts. Values are the same."""

    integrators: ClassVar[tuple[str, ...]] = ("semi_implicit", "euler", "implicit", "rk4")
    parameters: ClassVar[tuple[str, ...]] = ("friction", *OF_SHAPE)
    own_parameters: ClassVar[tuple[str, ...]] = (*OF_SHAPE, *OF_JOINT)

    def check(self, integrator: str) -> None:
        if self.cone not in (None, "pyramidal", "elliptic"):
            raise ValueError(f"unknown cone '{self.cone}': use 'pyramidal' or 'elliptic'")
        if self.condim not in (1, 3, 4, 6):
            raise ValueError(f"condim must be 1, 3, 4 or 6, not {self.condim}")
        if integrator == "explicit":
            raise ValueError("Newton has no explicit integrator: use 'semi_implicit', 'implicit' or 'rk4' with it")
        super().check(integrator)

    def default_timestep(self, files: Sequence[Physics]) -> float | None:
        return _agreed({f.timestep for f in files}, "time steps", "World(dt=...)")

    def default_integrator(self, files: Sequence[Physics]) -> str | None:
        told = _agreed({f.integrator for f in files}, "integrators", "World(integrator=...)")
        return None if told is None else FROM_MUJOCO.get(told, "euler")

    def coasts(self, setup: Setup) -> bool:
        as_mujoco = setup.method.implicit and self.resolved(setup).implicit_coriolis is not None
        return super().coasts(setup) and not as_mujoco

    def number(self, setup: Setup, parameter: str) -> np.ndarray:
        if parameter in OF_SHAPE:
            return usual_number(setup, self.softness, parameter)
        return super().number(setup, parameter)

    def own_number(self, setup: Setup, kind: str, owner: str) -> np.ndarray:
        return own_number(setup, self.softness, kind, owner)

    def notes(self, scene: Scene) -> list[str]:
        both = [(scene.colliders[i], scene.colliders[j]) for i, j in scene.pairs]
        of_files = [(a.shape, b.shape) for a, b in both if a.surface and b.surface]
        kinds = [(a.kind, b.kind) for a, b in of_files if isinstance(a, Shape) and isinstance(b, Shape)]
        own = own_points(kinds)
        said = "where these shapes of MJCF files touch, contact points and so the motion may differ from MuJoCo's"
        return [f"{said}: {own}"] if own else []

    def contact_points(self, a: Placed, b: Placed) -> list[tuple[ContactPoint, SX | None]]:
        return points(a, b)

    def surface_between(self, a: Collider, b: Collider) -> Surface:
        return mix(*(c.surface or self._surface(c.friction) for c in (a, b)))

    def _surface(self, friction: float | None) -> Surface:
        """Return the surface of a shape that has none of its own."""
        sliding = self.friction if friction is None else friction
        return Surface((sliding, self.torsion, self.rolling), self.condim, self.softness, self.margin)

    def friction_axes(self, s: Symbols, contact: Contact) -> tuple[Axes, Axes]:
        return friction_axes(contact, self.resolved(s.setup).cone)

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        return row_kinds(self, s, contacts)

    def swing(self, setup: Setup, owner: tuple[str, str] | str) -> float:
        if isinstance(owner, str):
            bounds = next(j.bounds for j in setup.scene.model.joints if j.name == owner)
            softness = self.softness if bounds is None else bounds.limit
        else:
            i, j = sorted(k for k, c in enumerate(setup.scene.colliders) if c.name in owner)
            both = setup.scene.colliders[i], setup.scene.colliders[j]
            softness = (setup.scene.listed.get((i, j)) or self.surface_between(*both)).softness
        return float(Soft.of(softness).reference(SX(0), setup.dt)[1]) ** 0.5

    def as_computed(self) -> Newton:
        return replace(self, event_times=False) if self.event_times else self

    def substep(self, setup: Setup) -> Program:
        return newton_substep(self.resolved(setup), setup)

    def gaps(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var]) -> Var:
        if is_pairwise(self, setup):
            return pairwise_gaps(self.resolved(setup), setup, b, args)
        return super().gaps(b, setup, args)

    def seen(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var], impulses: Var) -> list[Var]:
        if is_pairwise(self, setup):
            return pairwise_seen(self.resolved(setup), setup, b, args, impulses)
        return super().seen(b, setup, args, impulses)

    def resolved(self, setup: Setup) -> Newton:
        """Return the model with what was left open taken from the robots' files."""
        told = [r.model.physics for r in setup.scene.robots.values() if r.model.physics is not None]
        own: dict[str, Any] = {}
        for name in ("cone", "impratio", "implicit_damping", "implicit_coriolis"):
            if getattr(self, name) is None:
                found = _agreed({getattr(t, name) for t in told}, name, f"Newton({name}=...)")
                own[name] = USUAL.get(name) if found is None else found
        return replace(self, **own)


def _agreed(told: set[Any], what: str, choose: str) -> Any:
    """Return what all files say, or None where no file says anything."""
    if len(told) > 1:
        raise ValueError(f"the robots' files have {what} {sorted(told)}: choose one with {choose}")
    return next(iter(told), None)
