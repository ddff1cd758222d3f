"""The substep of a world whose contacts are solved pair by pair, and the choice of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import is_plain
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.tracing import Later
from costate.physics.kinematics import body_poses
from costate.sim.contact.newton.pairwise.kinds import Pairs
from costate.sim.contact.newton.pairwise.movers import Movers
from costate.sim.contact.newton.pairwise.onset import PairOnsets
from costate.sim.contact.newton.pairwise.places import Places, joined
from costate.sim.contact.newton.pairwise.solve import SMALL, PairSolver
from costate.sim.contact.newton.pairwise.stages import Pushes
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
    if any(w.row.owner == "contact" for w in setup.networks):
        return "a network acts on its contacts"
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
        movers = Movers.of(s.tree, [x for t in pairs.contacts for x in (t.link_a, t.link_b)])
        self.pairs, self.movers = pairs, movers
        self.solver = PairSolver(problem, Places(pairs), Pushes(pairs, movers), options)

    def numbers(self) -> list[SX]:
        """Return the numbers of the problem, as expressions of the step's symbols."""
        s, poses = self.s, body_poses(self.s.tree, self.s.q)
        middle = self.movers.middle(poses)
        axes = self.movers.axis_numbers(poses, middle)
        shapes = self.pairs.shape_numbers()
        own = self.pairs.own_numbers(), middle, self.movers.twists(axes, s.v)
        return [*self.small.flat(), axes, *shapes[:2], *own, shapes[2]]

    def acceleration(self) -> Program:
        """Build the program (x, u, parameters, wrenches) -> (accelerations (nv,), the problem's numbers, flags of
        pairs and contact points)."""
        b, s = ProgramBuilder("acceleration"), self.s
        args = b.inputs(*(x.numel() for x in s.inputs))
        numbers = s.call(b, "prepare", [*self.numbers(), self.small.depth, self.small.first], args)
        timed, numbers = numbers, numbers[:-2]
        tangent, adjoint = Later(self.solver.tangent), Later(self.solver.adjoint)
        a, *flags = b.custom(self.solver.program(), *numbers, tangent=tangent, adjoint=adjoint)
        if self.solver.options.event_times:
            onsets = PairOnsets(s, self.small, self.solver, self.numbers)
            a = onsets.timed(b, [a, *args, *timed, *flags])
        return b.program(a, *numbers, *flags)

    def forces(self, b: ProgramBuilder, numbers: list[Var], a: Var) -> Var:
        """Add the forces along all rows: contacts in the order of the pairs, then all others."""
        solver, p, (*data, pairs, each) = self.solver, self.problem, numbers
        axes, poses, sizes, own, middle, v, _ = data[SMALL:]
        on = solver.pushes.flags(b, each)
        points = joined(b, solver.places.points(b, solver.places.split(b, pairs), poses, sizes))
        rows = solver.pushes.rows(b, on, points, own, middle, v)
        found = solver.pushes.forces(b, on, rows, own, b.trace(self.movers.twists, axes, a))
        if not p.n:
            return found

        def of_joints(a: SX, *flat: SX) -> SX:
            d = p.data(*flat)
            return p.force(d, d.deviations(a))[list(p.order)]

        return b.concat(found, b.trace(of_joints, a, *data[:SMALL]))

    def residual(self, b: ProgramBuilder, numbers: list[Var], a: Var) -> Var:
        """Add the largest generalised force that is not balanced."""
        *data, pairs, each = numbers
        (pull,) = b.call(self.solver.balance(), *data, a, pairs, each)
        return b.trace(lambda x: ca.mmax(ca.fabs(x)), pull)
