"""Contact models whose forces are smooth functions of positions and velocities, and the substep they share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program
from costate.sim.contact.detect import Contact
from costate.sim.contact.model import Axes, ContactModel, substep_inputs
from costate.sim.integrate.advance import advance, turning
from costate.sim.integrate.free import Free, free_motion
from costate.sim.integrate.rk4 import runge_kutta
from costate.sim.setup import Setup, Symbols


class SmoothContact(ContactModel):
    """A contact model that is nothing but forces: it works with every integrator, and its steps may be one expression.

    A subclass implements `forces`. This one pushes shapes apart by linear springs, without friction:

        @dataclass(frozen=True)
        class Springs(cs.SmoothContact):
            stiffness: float = 1e4
            parameters = ("stiffness",)

            def forces(self, s):
                rows = constraint_rows(s, s.q, s.contacts(), s.setup.dt)
                push = [s.contact_value("stiffness") * ca.fmax(-row.gap, 0) for row in rows]
                return sum(row.J.T * f for row, f in zip(rows, push)), ca.vertcat(*push)
    """

    smooth: ClassVar[bool] = True

    @abstractmethod
    def forces(self, s: Symbols) -> tuple[SX, SX]:
        """Return generalised forces (nv,), and forces along all rows [N or N m] in the order that model.py describes."""

    def substep(self, setup: Setup) -> Program:
        s = Symbols(setup)
        total, along_rows = self.forces(s)
        free = free_motion(s, s.q, s.v, s.u, total)
        b = ProgramBuilder("substep")
        carry, args = substep_inputs(b, s)
        impulses = setup.dt * along_rows
        if setup.method.stages > 1:
            x = runge_kutta(b, setup, _acceleration(s, free), args)
            (found,) = s.call(b, "impulses", [impulses], args)
        else:
            after = advance(setup, s.q, free.travelled(s, free.velocity), free.velocity, setup.dt)
            x, found = s.call(b, "step", [after, impulses], args)
        return b.program(x, carry, found, b.zeros(1))


def _acceleration(s: Symbols, free: Free) -> Program:
    """Build the program (x, u, parameters, wrenches) -> acceleration (nv,) in axes that stand still."""
    b = ProgramBuilder("acceleration")
    args = b.inputs(*(x.numel() for x in s.inputs))
    a = free.acceleration + turning(s.setup.scene.model, s.v)
    return b.program(*s.call(b, "acceleration", [a], args))


@dataclass(frozen=True)
class NoContact(SmoothContact):
    """The contact model of worlds without contact and joint limits: World(contact=None)."""

    acts: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "no contact"

    def forces(self, s: Symbols) -> tuple[SX, SX]:
        return SX(s.setup.nv, 1), SX.zeros(1)

    def friction_axes(self, s: Symbols, contact: Contact) -> tuple[Axes, Axes]:
        return (), ()

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        return []
