"""The door for contact: what a world asks of a contact model.

A contact model says how shapes that touch push each other. `Hard`, `PGS`, `Newton` and `Compliant` are contact models; one of your
own is another subclass of `ContactModel`, given as World(contact=...). It must build the program of one substep:

    (x, carry, u, parameters, wrenches) -> (x', carry', impulses, residual)

x          state (nx): positions, velocities, activations of actuators
x'         positions and velocities after the substep (nq + nv); the world adds the activations (activate.py)
carry      what a substep hands on to the next one of the same step, such as impulses to start from; it is zero at the first
           substep, and may have size 0
u          controls (nu); parameters and wrenches follow, each as an input of its own, in the order of Symbols.inputs
impulses   impulses of the substep along all rows [N s or N m s], contact after contact in the order of Symbols.contacts(): along
           the normal, then along and about the axes of friction (see `friction_axes`); further rows may follow
residual   what the solver left (1), 0 for models that solve nothing

The models of the package build it in the same four words: look (where shapes are and how far apart), prepare (masses, forces,
rows), solve (for impulses, forces or accelerations) and finish (the next state).

Everything else has an answer that a model may override. A model whose forces are smooth functions of the state derives from
`SmoothContact` (smooth.py) instead, which builds the substep with any integrator: it gives the forces and nothing more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.pairs import ContactPoint, Placed, contact_points, tangents
from costate.core.constants import Constants
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.model.surface import Physics, Surface
from costate.sim.contact.detect import Contact
from costate.sim.contact.rows import constraint_rows
from costate.sim.integrate.table import INTEGRATORS
from costate.sim.scene.scene import Collider, Scene
from costate.sim.setup import Setup, Symbols

Axes = tuple[SX, ...]
"""Unit vectors in world axes, (3,) each."""


class ContactModel(Constants, ABC):
    """A rule for how shapes that touch push each other."""

    integrators: ClassVar[tuple[str, ...]] = tuple(INTEGRATORS)
    """Names of the integrators it can be used with."""
    parameters: ClassVar[tuple[str, ...]] = ()
    """Names of its fields that may be inputs of a step: World(parameters=[...])."""
    own_parameters: ClassVar[tuple[str, ...]] = ()
    """Kinds of numbers that shapes or joints have for this model alone, and that may be inputs of a step: "KIND:NAME"."""
    acts: ClassVar[bool] = True
    """True if shapes that touch push each other at all."""
    smooth: ClassVar[bool] = False
    """True if forces are smooth functions of the state, so that a step can be one expression."""
    learns: ClassVar[tuple[str, ...]] = ()
    """Quantities of contacts that the model itself hands to networks (learnt.py); forces that others add act beside it."""
    hard: ClassVar[bool] = False
    """True if shapes feel nothing of each other until they touch, and then do not overlap."""
    friction: float = 0.0
    """Friction coefficient of shapes that have none of their own."""
    joint_limits: bool = False
    """True if limits of joints and tendons are rows."""
    joint_friction: bool = False
    """True if Coulomb friction of joints and tendons is rows; else it is a smooth force."""

    def _instead(self) -> dict[str, str]:
        return {name: name for name in self.parameters}

    @property
    def name(self) -> str:
        """Return the name that reports and errors use."""
        return type(self).__name__

    def described(self, setup: Setup) -> str:
        """Return how it solves the contact of a world, for `World.report`."""
        return self.name

    # --- what a world asks for ------------------------------------------------------------------------------------

    def check(self, integrator: str) -> None:
        """Raise an error where the options, or the integrator with them, are not possible."""
        if integrator not in self.integrators:
            names = ", ".join(f"'{i}'" for i in self.integrators)
            raise ValueError(f"{self.name} has no integrator '{integrator}': use one of {names} with it")

    def coasts(self, setup: Setup) -> bool:
        """Return whether forces of inertia are those of the middle of a substep, as the integrator says, or at its start."""
        return setup.method.coasts

    def default_timestep(self, files: Sequence[Physics]) -> float | None:
        """Return the time step of a substep [s] that the robots' files ask for, if the model follows them."""
        return None

    def default_integrator(self, files: Sequence[Physics]) -> str | None:
        """Return the integrator that the robots' files ask for, if the model follows them."""
        return None

    def number(self, setup: Setup, parameter: str) -> np.ndarray:
        """Return the value of one of its `parameters`, flat."""
        return np.array([getattr(self, parameter)], float)

    def own_number(self, setup: Setup, kind: str, owner: str) -> np.ndarray:
        """Return the value of a shape's or joint's own number, flat. kind: one of `own_parameters`."""
        raise ValueError(f"{self.name} has no parameter '{kind}:{owner}'")

    def notes(self, scene: Scene) -> list[str]:
        """Return what the model does in another way than the robots' files ask for, as sentences of warnings."""
        return []

    # --- contact points -------------------------------------------------------------------------------------------

    def contact_points(self, a: Placed, b: Placed) -> list[tuple[ContactPoint, SX | None]]:
        """Return the contact points of a pair with a formula, normals from b to a, each with the direction that the first axis of
        friction should be near to (None: any)."""
        return [(c, None) for c in contact_points(a, b)]

    def surface_between(self, a: Collider, b: Collider) -> Surface | None:
        """Return MuJoCo's description of how two shapes touch, for models that use it."""
        return None

    def friction_axes(self, s: Symbols, contact: Contact) -> tuple[Axes, Axes]:
        """Return the axes along which a contact has rows of friction, and those about which it has rows of torque."""
        return (tangents(contact.geometry.normal) if contact.rubs else ()), ()

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        """Return the kind of every row, for reports."""
        return [row.kind for row in constraint_rows(s, s.q, contacts, s.setup.dt)]

    # --- motion ---------------------------------------------------------------------------------------------------

    def swing(self, setup: Setup, owner: tuple[str, str] | str) -> float:
        """Return how fast the spring of a contact of two shapes, or of a joint's limit, swings without damping, whatever the mass
        [rad/s]; 0 where the model has no such spring."""
        return 0.0

    def as_computed(self) -> ContactModel:
        """Return the model with the derivatives of the step as it is computed, where its own know more of the motion: those that
        tiny differences agree with. The same model where these are its own."""
        return self

    @abstractmethod
    def substep(self, setup: Setup) -> Program:
        """Build the program of one substep, with the inputs and outputs that the head of this file lists."""

    def forces(self, s: Symbols) -> tuple[SX, SX]:
        """Return generalised forces (nv,) and forces along all rows [N or N m] as expressions, for models that are smooth."""
        raise ValueError(f"{self.name} has no forces as expressions of the state: use a smooth contact model")

    def rates(self, s: Symbols) -> tuple[SX, SX]:
        """Return stiffness and damping (nv, nv) of all forces along rows, for models of springs, which a step must resolve."""
        raise ValueError(f"{self.name} has no springs that a step must resolve: longest_substep is for Compliant()")

    # --- looking --------------------------------------------------------------------------------------------------

    def gaps(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var]) -> Var:
        """Add the stages that find the distances of all contact points (n,). args: values of Symbols.inputs."""
        s = Symbols(setup)
        found = ca.vertcat(*(c.geometry.gap for c in s.contacts()))
        return s.call(b, "gaps", [found], args, prune=False)[0]

    def seen(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var], impulses: Var) -> list[Var]:
        """Add the stages that find points, normals, gaps, normal forces, friction forces and torques of all contacts, world axes.

        impulses: those of `substep`.
        """
        s = Symbols(setup)
        impulse = SX.sym("impulse", impulses.size)
        force = impulse / setup.dt
        columns: list[list[SX]] = [[] for _ in range(6)]
        at = 0
        for contact in s.contacts():
            c = contact.geometry
            slides, turns = self.friction_axes(s, contact)
            push, rub, twist = SX(0), SX.zeros(3), SX.zeros(3)
            if self.acts:
                push = force[at]
                rub = sum((d * force[at + 1 + k] for k, d in enumerate(slides)), rub)
                twist = sum((d * force[at + 1 + len(slides) + k] for k, d in enumerate(turns)), twist)
            for column, value in zip(columns, (c.point, c.normal, c.gap, push, rub, twist), strict=True):
                column.append(value)
            at += 1 + len(slides) + len(turns)
        return s.call(b, "where", [ca.vertcat(*x) for x in columns], args, {impulses: impulse})


def substep_inputs(b: ProgramBuilder, s: Symbols, carry: int = 0) -> tuple[Var, list[Var]]:
    """Declare the inputs of a substep program: return its carry, and the values of Symbols.inputs."""
    x, start, *rest = b.inputs(s.setup.nx, carry, *(v.numel() for v in s.inputs[1:]))
    return start, [x, *rest]
