"""Hard contact as a contact model: its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.detect import Contact
from costate.sim.contact.hard.step import hard_substep
from costate.sim.contact.impulsive import IMPACTS, Impulsive
from costate.sim.contact.pgs.choice import check_possible, has_many, why_not
from costate.sim.contact.pgs.model import PGS
from costate.sim.setup import Setup, Symbols


@dataclass(frozen=True)
class Hard(Impulsive):
    """Hard contact solved to tolerance by Newton's method: the model that worlds have by default. Gradients follow from the
    solution, whatever the number of iterations.

    Where many free bodies may touch (from 25 pairs of shapes on, without robots, joints and constraints), rows of one system would
    be too many: such worlds are solved pair by pair by the sweeps of `PGS`, with these options, as far as 50 sweeps go.
    `world.report()` says so, `mapped` decides it.

    impacts=None: 1, but 16 with restitution. What meets after them comes as near as touching, and strikes in the next substep.
    Overlap is undone in positions alone.
    """

    iterations: int = 8
    """Newton steps at most, before the rounds of the rescue."""
    tolerance: float = 1e-9
    """Speed by which a row may miss its law for iterations to stop [m/s or rad/s]; in float32 2e-7 at least. Differences of values,
    as those of `gradcheck`, need 1e-12; gradients do not."""
    rounds: int = 100
    """Rounds of the rescue at most (hard/rescue.py), where Newton's method does not converge: heaps that are thrown together."""
    mapped: bool | None = None
    """True to solve contacts pair by pair, by the sweeps of `PGS`; False: never. None: where many free bodies may touch."""

    learns: ClassVar[tuple[str, ...]] = ("restitution",)

    def check(self, integrator: str) -> None:
        super().check(integrator)
        if self.iterations < 1 or self.rounds < 0 or self.tolerance <= 0:
            given = f"iterations={self.iterations}, rounds={self.rounds}, tolerance={self.tolerance}"
            raise ValueError(
                f"Hard({given}): expected 1 or more Newton steps, 0 or more rounds, and a tolerance above 0"
            )

    def swept(self, setup: Setup) -> PGS | None:
        """Return the same contact by sweeps where a world is solved pair by pair, else None. Raises an error where that is asked
        for and not possible."""
        if self.mapped:
            check_possible(setup, "Leave Hard(mapped=None)")
        elif self.mapped is False or not has_many(setup) or why_not(setup):
            return None
        return PGS(**{f.name: getattr(self, f.name) for f in fields(Impulsive)})

    def described(self, setup: Setup) -> str:
        return f"{self.name}, pair by pair by the sweeps of PGS" if self.swept(setup) else self.name

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        swept = self.swept(s.setup)
        return swept.row_kinds(s, contacts) if swept else super().row_kinds(s, contacts)

    def substep(self, setup: Setup) -> Program:
        swept = self.swept(setup)
        return swept.substep(setup) if swept else hard_substep(self, setup)

    def gaps(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var]) -> Var:
        swept = self.swept(setup)
        return swept.gaps(b, setup, args) if swept else super().gaps(b, setup, args)

    def seen(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var], impulses: Var) -> list[Var]:
        swept = self.swept(setup)
        return swept.seen(b, setup, args, impulses) if swept else super().seen(b, setup, args, impulses)

    def impacts_of(self, setup: Setup) -> int:
        """Return the number of impacts in a substep that are found at their time."""
        if self.impacts is not None:
            return self.impacts
        return IMPACTS if self.bounces(setup) else 1
