"""Hard contact by sweeps as a contact model: its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.detect import Contact
from costate.sim.contact.impulsive import IMPACTS, Impulsive
from costate.sim.contact.pgs.choice import has_many, swept_gaps, swept_seen, swept_substep
from costate.sim.contact.rows import constraint_rows
from costate.sim.setup import Setup, Symbols

CONES = ("cone", "box", "pyramid")
CORRECTIONS = ("baumgarte", "split", "none")


@dataclass(frozen=True)
class PGS(Impulsive):
    """Hard contact by projected Gauss-Seidel, pair by pair: by one program for all pairs of a kind, so that code does not grow with
    the number of pairs. Its adjoint is the reversed sweeps. `Hard` solves the same contact to tolerance, and uses these sweeps for
    many bodies; this is the method by name.

    There are no compositions of shapes with it, and no networks on contacts: use `Hard`. impacts=None: 16, but 0 where many free
    bodies may touch and nothing bounces, as piles have too many. What meets after them does not bounce.
    """

    sweeps: int = 50
    """Number of sweeps over all rows."""
    cone: str = "cone"
    """Friction bound: "cone" (round) or "box" (each direction by itself; "pyramid" is an older name of it)."""
    correction: str = "baumgarte"
    """Way to undo overlap: "baumgarte" (as velocity), "split" (as position only: adds no energy) or "none"."""
    cfm: float = 1e-8
    """Regularisation, relative to each row's own inverse mass."""
    warm_start: bool = False
    """True to start a substep from the impulses of the one before. The first substep of a step starts from zero: a state does not
    hold impulses."""

    learns: ClassVar[tuple[str, ...]] = ()

    def check(self, integrator: str) -> None:
        super().check(integrator)
        for name, value, allowed in (("cone", self.cone, CONES), ("correction", self.correction, CORRECTIONS)):
            if value not in allowed:
                raise ValueError(f"unknown {name} '{value}' of PGS: use one of {', '.join(allowed)}")

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        joints = [row.kind for row in constraint_rows(s, s.q, [], s.setup.dt)]
        return ["normal", "tangent", "tangent"] * len(contacts) + joints

    def substep(self, setup: Setup) -> Program:
        return swept_substep(self, setup)

    def gaps(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var]) -> Var:
        return swept_gaps(self, setup, b, args)

    def seen(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var], impulses: Var) -> list[Var]:
        return swept_seen(self, setup, b, args, impulses)

    def impacts_of(self, setup: Setup) -> int:
        """Return the number of impacts in a substep that are found at their time."""
        if self.impacts is not None:
            return self.impacts
        return 0 if has_many(setup) and not self.bounces(setup) else IMPACTS

    def warms(self, setup: Setup) -> bool:
        """Return whether substeps hand on impulses: their carry."""
        return self.warm_start and setup.substeps > 1
