"""Common parts of models of hard contact: the options of their law, and pieces of their substeps.

Such a model solves for impulses at the level of velocities. Impacts faster than `restitution_speed` happen at their time within the
step, at the configuration and with the velocities of that time, so that derivatives are those of the motion. What approaches more
slowly may come as near as touching within a step (Stewart and Trinkle, 1996).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.model import ContactModel
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import free_motion
from costate.sim.setup import Setup, Symbols

IMPACTS = 16
"""Number of impacts in a substep with restitution, where none is given."""
ROUNDS = 60
"""Number of rounds of an impact with restitution at most."""


@dataclass(frozen=True)
class Impulsive(ContactModel):
    """Hard contact with Coulomb friction at the level of velocities."""

    friction: float = 0.8
    """Coefficient where shapes do not say their own; of two shapes the larger one counts."""
    restitution: float = 0.0
    """Restitution of all contacts between shapes; 1 is elastic. Limits of joints do not bounce."""
    restitution_speed: float = 0.05
    """Speed below which shapes that meet do not bounce, and their time of impact is not looked for [m/s or rad/s]."""
    impacts: int | None = None
    """Number of impacts in a substep that are found at their time, one after the other. None: see `impacts_of`."""
    erp: float = 0.2
    """Part of the overlap undone per step."""
    slop: float = 1e-4
    """Overlap that is left alone [m or rad]."""
    max_correction: float = 2.0
    """Speed at which overlap is undone at most [m/s or rad/s]."""
    joint_limits: bool = True
    """True to enforce position limits of joints: one row per limited joint, which stops it without a bounce."""
    joint_friction: bool = True
    """True if Coulomb friction of joints is a bound (one row per joint that has some); else it is smooth."""

    integrators: ClassVar[tuple[str, ...]] = ("semi_implicit", "euler", "explicit", "implicit")
    parameters: ClassVar[tuple[str, ...]] = ("friction", "restitution")
    hard: ClassVar[bool] = True

    def check(self, integrator: str) -> None:
        if integrator == "rk4":
            raise ValueError(
                "rk4 needs smooth forces: use contact=Compliant(), Newton() or None with it, or another integrator with "
                f"{self.name}"
            )
        super().check(integrator)
        if self.impacts is not None and self.impacts < 0:
            raise ValueError(f"{self.name}(impacts={self.impacts}): expected 0 or more impacts in a substep, or None")

    def bounces(self, setup: Setup) -> bool:
        """Return whether any contact may have restitution."""
        learnt = any(w.quantity == "restitution" for w in setup.networks)
        return self.restitution > 0 or learnt or "restitution" in setup.parameters


def without_rows(b: ProgramBuilder, s: Symbols, args: list[Var], carry: Var, options: Impulsive) -> Program:
    """Build the substep of a world in which nothing can touch, and no joint has a limit or friction."""
    free = free_motion(s, s.q, s.v, s.u, joint_friction=not options.joint_friction)
    after = advance(s.setup, s.q, free.travelled(s, free.velocity), free.velocity, s.setup.dt)
    (x,) = s.call(b, "free", [after], args)
    return b.program(x, carry, b.zeros(1), b.zeros(1))


def lossless_part(work: SX, twice: SX) -> SX:
    """Return the part of some impulses that gains no energy. work: impulses . speeds before; twice: impulses . their changes."""
    gains = work + twice / 2 > 0
    return ca.if_else(gains, ca.fmax(-2 * work, 0) / ca.if_else(gains, twice, 1), 1)


def least(values: list[SX]) -> SX:
    """Return the least of some values, compared in pairs: a short chain of dependent operations."""
    while len(values) > 1:
        values = [ca.fmin(*values[i : i + 2]) if values[i + 1 :] else values[i] for i in range(0, len(values), 2)]
    return values[0]
