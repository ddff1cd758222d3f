"""The substep of a world whose contacts are solved pair by pair, and the choice of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import is_plain
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.kinematics import body_poses
from costate.sim.contact.newton.pairwise.contact import PairContact
from costate.sim.contact.newton.pairwise.kinds import Pairs
from costate.sim.contact.newton.pairwise.movers import Movers
from costate.sim.contact.newton.pairwise.solve import ROWS, PairSolver
from costate.sim.contact.newton.pairwise.stages import Contacts
from costate.sim.contact.newton.problem import Data, Problem
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

MANY = 96
"""Number of pairs of shapes from which contacts are solved pair by pair by themselves."""


def is_pairwise(options: Newton, setup: Setup) -> bool:
    """Return whether a world is solved pair by pair. Raises an error where that is asked for and not possible."""
    if options.mapped is False or (options.mapped is None and len(setup.scene.pairs) < MANY):
        return False
    reason = why_not(setup)
    if options.mapped and reason:
        raise ValueError(f"this world cannot be solved pair by pair: {reason}. Leave Newton(mapped=None)")
    return reason is None


def why_not(setup: Setup) -> str | None:
    """Return what keeps a world from being solved pair by pair, or None."""
    scene = setup.scene
    if not scene.pairs:
        return "nothing in it can touch"
    used = sorted({k for pair in scene.pairs for k in pair})
    composed = [scene.colliders[k].name for k in used if not is_plain(scene.colliders[k].solid)]
    if composed:
        return f"{', '.join(composed)} is a composition of shapes"
    following = [j.name for j in scene.model.joints if j.mimic]
    return f"the joint {following[0]} follows another one" if following else None


class PairStep:
    """The parts of a substep that the two storages of contacts do not share."""

    def __init__(self, s: Symbols, options: Newton, data: Data, problem: Problem):
        self.s, self.small, self.problem = s, data, problem
        pairs = Pairs(s, options)
        links = [x for t in pairs.contacts for x in (t.link_a, t.link_b)]
        movers = Movers.of(s.tree, links)
        kinds = tuple(PairContact(kind, options, s.setup.dt) for kind in pairs.kinds)
        self.contacts = Contacts(pairs, movers, kinds)
        self.solver = PairSolver(problem, self.contacts, options)

    def numbers(self) -> list[SX]:
        """Return the numbers of the problem, as expressions of the step's symbols."""
        s, c = self.s, self.contacts
        poses = body_poses(s.tree, s.q)
        middle = c.movers.middle(poses)
        axes = c.movers.axis_numbers(poses, middle)
        velocities = c.movers.twists(axes, s.v)
        return [*self.small.flat(), axes, c.pairs.shape_numbers(), c.pairs.own_numbers(), middle, velocities]

    def acceleration(self) -> Program:
        """Build the program (x, u, parameters, wrenches) -> (accelerations (nv,), flags of pairs that touch, the problem's
        numbers)."""
        b, s = ProgramBuilder("acceleration"), self.s
        args = b.inputs(*(x.numel() for x in s.inputs))
        numbers = s.call(b, "prepare", self.numbers(), args)
        tangent, adjoint = self.solver.tangent(), self.solver.adjoint()
        a, flags = b.custom(self.solver.program(), *numbers, tangent=tangent, adjoint=adjoint)
        return b.program(a, flags, *numbers)

    def forces(self, b: ProgramBuilder, numbers: list[Var], a: Var, flags: Var) -> Var:
        """Add the forces along all rows: contacts in the order of the pairs, then all others."""
        c, p = self.contacts, self.problem
        split = c.split(b, flags)
        _, rows = c.rows(b, split, *numbers[ROWS + 1 :])
        found = c.forces(b, split, rows, numbers[ROWS + 2], b.trace(c.movers.twists, numbers[ROWS], a))
        if not p.n:
            return found

        def of_joints(a: SX, *flat: SX) -> SX:
            d = p.data(*flat)
            return p.force(d, d.deviations(a))[list(p.order)]

        return b.concat(found, b.trace(of_joints, a, *numbers[:ROWS]))

    def residual(self, b: ProgramBuilder, numbers: list[Var], a: Var, flags: Var) -> Var:
        """Add the largest generalised force that is not balanced."""
        (pull,) = b.call(self.solver.balance(), *numbers, a, flags)
        return b.trace(lambda x: ca.mmax(ca.fabs(x)), pull)
