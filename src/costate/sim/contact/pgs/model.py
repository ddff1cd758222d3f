"""Hard contact as a contact model: its options, and the choice between the two storages of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.detect import Contact
from costate.sim.contact.model import ContactModel
from costate.sim.contact.pgs.dense import dense_substep
from costate.sim.contact.pgs.pairwise.choice import is_pairwise, pairwise_gaps, pairwise_seen, pairwise_substep
from costate.sim.contact.rows import constraint_rows
from costate.sim.setup import Setup, Symbols

CONES = ("cone", "box", "pyramid")
IMPACTS = 16
"""Number of impacts in a substep where none is given."""
CORRECTIONS = ("baumgarte", "split", "none")


@dataclass(frozen=True)
class PGS(ContactModel):
    """Hard contact at the level of velocities, by projected Gauss-Seidel. Its adjoint is the reversed sweeps. `Hard` solves the
    same contact to tolerance; this is the method by name, and the one for piles of many bodies.

    Impacts faster than `restitution_speed` happen at their time within the step, at the configuration and with the velocities of
    that time (pieces.py), so that derivatives are those of the motion. What approaches more slowly may come as near as touching
    within a step (Stewart and Trinkle, 1996).
    """

    sweeps: int = 50
    """Number of sweeps over all rows."""
    friction: float = 0.8
    """Coefficient where shapes do not say their own; of two shapes the larger one counts."""
    restitution: float = 0.0
    """Restitution of all contacts between shapes; 1 is elastic. Limits of joints do not bounce."""
    restitution_speed: float = 0.05
    """Speed below which shapes that meet do not bounce, and their time of impact is not looked for [m/s or rad/s]."""
    impacts: int | None = None
    """Number of impacts in a substep that are found at their time, one after the other. What meets after them does not bounce.
    None: 16, but 0 in worlds that are solved pair by pair by themselves (see `mapped`) and have no restitution: piles have too
    many."""
    cone: str = "cone"
    """Friction bound: "cone" (round) or "box" (each direction by itself; "pyramid" is an older name of it)."""
    correction: str = "baumgarte"
    """Way to undo overlap: "baumgarte" (as velocity), "split" (as position only: adds no energy) or "none"."""
    erp: float = 0.2
    """Part of the overlap undone per step."""
    slop: float = 1e-4
    """Overlap that is left alone [m or rad]."""
    max_correction: float = 2.0
    """Speed at which overlap is undone at most [m/s or rad/s]."""
    cfm: float = 1e-8
    """Regularisation, relative to each row's own inverse mass."""
    joint_limits: bool = True
    """True to enforce position limits of joints: one row per limited joint, which stops it without a bounce."""
    joint_friction: bool = True
    """True if Coulomb friction of joints is a bound (one row per joint that has some); else it is smooth."""
    warm_start: bool = False
    """True to start a substep from the impulses of the one before. The first substep of a step starts from zero: a state does not
    hold impulses."""
    mapped: bool | None = None
    """True to solve contacts pair by pair, by one program for all pairs of a kind, instead of by rows of one system: for
    worlds with many pairs. The impulses are the same. None: for free bodies without robots, from 25 pairs on."""

    integrators: ClassVar[tuple[str, ...]] = ("semi_implicit", "euler", "explicit", "implicit")
    parameters: ClassVar[tuple[str, ...]] = ("friction", "restitution")
    learns: ClassVar[tuple[str, ...]] = ("restitution",)
    hard: ClassVar[bool] = True

    def check(self, integrator: str) -> None:
        if integrator == "rk4":
            raise ValueError(
                "rk4 needs smooth forces: use contact=Compliant(), Newton() or None with it, or another integrator with PGS"
            )
        super().check(integrator)
        for name, value, allowed in (("cone", self.cone, CONES), ("correction", self.correction, CORRECTIONS)):
            if value not in allowed:
                raise ValueError(f"unknown {name} '{value}' of PGS: use one of {', '.join(allowed)}")
        if self.impacts is not None and self.impacts < 0:
            raise ValueError(f"PGS(impacts={self.impacts}): expected 0 or more impacts in a substep, or None")

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        if is_pairwise(self, s.setup):
            joints = [row.kind for row in constraint_rows(s, s.q, [], s.setup.dt)]
            return ["normal", "tangent", "tangent"] * len(contacts) + joints
        return super().row_kinds(s, contacts)

    def substep(self, setup: Setup) -> Program:
        return pairwise_substep(self, setup) if is_pairwise(self, setup) else dense_substep(self, setup)

    def gaps(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var]) -> Var:
        return pairwise_gaps(self, setup, b, args) if is_pairwise(self, setup) else super().gaps(b, setup, args)

    def seen(self, b: ProgramBuilder, setup: Setup, args: Sequence[Var], impulses: Var) -> list[Var]:
        if is_pairwise(self, setup):
            return pairwise_seen(self, setup, b, args, impulses)
        return super().seen(b, setup, args, impulses)

    def impacts_of(self, setup: Setup) -> int:
        """Return the number of impacts in a substep that are found at their time."""
        if self.impacts is not None:
            return self.impacts
        bounces = self.restitution > 0 or any(w.quantity == "restitution" for w in setup.networks)
        bounces = bounces or "restitution" in setup.parameters
        return 0 if self.mapped is None and not bounces and is_pairwise(self, setup) else IMPACTS

    def warms(self, setup: Setup) -> bool:
        """Return whether substeps hand on impulses: their carry."""
        return self.warm_start and setup.substeps > 1
