"""Hard contact as a contact model: its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.detect import Contact
from costate.sim.contact.hard.step import hard_substep
from costate.sim.contact.model import ContactModel
from costate.sim.contact.pgs.model import PGS
from costate.sim.contact.pgs.pairwise.choice import is_pairwise, pairwise_gaps, pairwise_seen, pairwise_substep
from costate.sim.forces.equality import equations
from costate.sim.setup import Setup, Symbols

IMPACTS = 16
"""Number of impacts in a substep with restitution, where none is given."""


@dataclass(frozen=True)
class Hard(ContactModel):
    """Hard contact with Coulomb friction at the level of velocities, solved to tolerance by Newton's method. Gradients follow from
    the solution, whatever the number of iterations. `PGS` solves the same contact by sweeps.

    Impacts faster than `restitution_speed` happen at their time within the step, at the configuration and with the velocities of
    that time (hard/step.py), so that derivatives are those of the motion. What approaches more slowly may come as near as touching
    within a step (Stewart and Trinkle, 1996).
    """

    friction: float = 0.8
    """Coefficient where shapes do not say their own; of two shapes the larger one counts."""
    restitution: float = 0.0
    """Restitution of all contacts; 1 is elastic. Limits of joints do not bounce."""
    restitution_speed: float = 0.05
    """Speed below which shapes that meet do not bounce, and their time of impact is not looked for [m/s or rad/s]."""
    impacts: int | None = None
    """Number of impacts in a substep that are found at their time, one after the other. What meets after them comes as near as
    touching, and strikes in the next substep. None: 1, but 16 with restitution."""
    erp: float = 0.2
    """Part of the overlap undone per step, in positions alone."""
    slop: float = 1e-4
    """Overlap that is left alone [m or rad]."""
    max_correction: float = 2.0
    """Speed at which overlap is undone at most [m/s or rad/s]."""
    iterations: int = 8
    """Newton steps at most, before the rounds of the rescue."""
    tolerance: float = 1e-9
    """Speed by which a row may miss its law for iterations to stop [m/s or rad/s]; in float32 2e-7 at least. Differences of values,
    as those of `gradcheck`, need 1e-12; gradients do not."""
    rounds: int = 100
    """Rounds of the rescue at most (hard/rescue.py), where Newton's method does not converge: heaps that are thrown together."""
    mapped: bool | None = None
    """True to solve contacts pair by pair, by one program for all pairs of a kind, for worlds with many bodies: by the sweeps of
    `PGS`, which have that storage. None: for free bodies without robots, from 25 pairs on."""
    joint_limits: bool = True
    """True to enforce position limits of joints: one row per limited joint."""
    joint_friction: bool = True
    """True if Coulomb friction of joints is a bound (one row per joint that has some); else it is smooth."""

    integrators: ClassVar[tuple[str, ...]] = ("semi_implicit", "euler", "explicit", "implicit")
    parameters: ClassVar[tuple[str, ...]] = ("friction", "restitution")
    learns: ClassVar[tuple[str, ...]] = ("restitution",)
    hard: ClassVar[bool] = True

    def check(self, integrator: str) -> None:
        if integrator == "rk4":
            raise ValueError(
                "rk4 needs smooth forces: use contact=Compliant(), Newton() or None with it, or another integrator with Hard"
            )
        super().check(integrator)
        if self.impacts is not None and self.impacts < 0:
            raise ValueError(f"Hard(impacts={self.impacts}): expected 0 or more impacts in a substep, or None")
        if self.iterations < 1 or self.rounds < 0 or self.tolerance <= 0:
            raise ValueError(
                f"Hard(iterations={self.iterations}, rounds={self.rounds}, tolerance={self.tolerance}): expected 1 or more Newton steps, 0 "
                "or more rounds, and a tolerance above 0"
            )

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        if is_pairwise(self, s.setup):
            return self.swept.row_kinds(s, contacts)
        held = sum(e.dim for e in equations(s, s.q))
        return [*super().row_kinds(s, contacts), *["equality"] * held]

    def substep(self, setup: Setup) -> Program:
        return pairwise_substep(self.swept, setup) if is_pairwise(self, setup) else hard_substep(self, setup)

    def gaps(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var]) -> Var:
        return pairwise_gaps(self.swept, setup, b, args) if is_pairwise(self, setup) else super().gaps(b, setup, args)

    def seen(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var], impulses: Var) -> list[Var]:
        if is_pairwise(self, setup):
            return pairwise_seen(self.swept, setup, b, args, impulses)
        return super().seen(b, setup, args, impulses)

    @property
    def swept(self) -> PGS:
        """The same contact by sweeps, for worlds that are solved pair by pair."""
        same = ("friction", "restitution", "restitution_speed", "impacts", "erp", "slop", "max_correction", "mapped")
        return PGS(**{name: getattr(self, name) for name in (*same, "joint_limits", "joint_friction")})

    def bounces(self, setup: Setup) -> bool:
        """Return whether any contact may have restitution."""
        learnt = any(w.quantity == "restitution" for w in setup.networks)
        return self.restitution > 0 or learnt or "restitution" in setup.parameters

    def impacts_of(self, setup: Setup) -> int:
        """Return the number of impacts in a substep that are found at their time."""
        if self.impacts is not None:
            return self.impacts
        return IMPACTS if self.bounces(setup) else 1
