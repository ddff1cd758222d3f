"""The choice between solving contact pair by pair and by rows of one system (dense.py), and the pairwise door of PGS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT, is_plain, point_program
from costate.collision.pairs import tangents
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.model import substep_inputs
from costate.sim.contact.pgs.pairwise.body_step import BodyStep
from costate.sim.contact.pgs.pairwise.step import PairwiseStep, rows_of
from costate.sim.contact.pgs.pairwise.tree_step import TreeStep
from costate.sim.setup import SHAPE_PARAMETERS, Setup

if TYPE_CHECKING:
    from costate.sim.contact.hard.model import Hard
    from costate.sim.contact.pgs.model import PGS

MANY = 24
"""Number of pairs of shapes above which free bodies are solved pair by pair by themselves: building rows costs the square of it."""
BODY_PARAMETERS = ("mass", "com", "inertia", "gravity")


def is_pairwise(options: PGS | Hard, setup: Setup) -> bool:
    """Return whether a world is solved pair by pair. Raises an error where that is asked for and not possible."""
    if options.mapped is False:
        return False
    if options.mapped is None and (len(setup.scene.pairs) <= MANY or not only_bodies(setup)):
        return False
    reason = why_not(setup)
    if options.mapped and reason:
        raise ValueError(f"this world cannot be solved pair by pair: {reason}. Leave {options.name}(mapped=None)")
    return reason is None


def only_bodies(setup: Setup) -> bool:
    """Return whether free bodies and static geometry are all that a world holds: their storage is the shorter one."""
    scene = setup.scene
    jointed = any(j.kind != "floating" or j.mimic for j in scene.model.joints)
    if scene.robots or jointed or setup.drives or setup.constraints or setup.tendons:
        return False
    kinds = {p.partition(":")[0] for p in setup.parameters}
    of_joints = kinds - {*setup.contact.parameters, *SHAPE_PARAMETERS, *BODY_PARAMETERS} | (kinds & {"damping"})
    return setup.integrator == "semi_implicit" and not of_joints


def why_not(setup: Setup) -> str | None:
    """Return what keeps a world from being solved pair by pair, or None."""
    scene = setup.scene
    if not scene.pairs:
        return "nothing in it can touch"
    if any(w.row.owner == "contact" for w in setup.networks):
        return "a network acts on its contacts"
    solids = {k: scene.colliders[k].solid for pair in scene.pairs for k in pair}
    composed = [scene.colliders[k].name for k, solid in solids.items() if not is_plain(solid)]
    if composed:
        return f"{', '.join(composed)} is a composition of shapes"
    bare = [(i, j) for i, j in scene.pairs if not point_program(solids[i], solids[j]).out_sizes[0]]
    if bare:
        return f"{' and '.join(scene.colliders[k].name for k in bare[0])} have no points to touch each other by"
    return None


def _step(options: PGS, setup: Setup) -> PairwiseStep:
    return (BodyStep if only_bodies(setup) else TreeStep)(options, setup)


def pairwise_substep(options: PGS, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`. Its carry are the impulses to start from."""
    step = _step(options, setup)
    b = ProgramBuilder("substep")
    carry, args = substep_inputs(b, step.symbols, step.size if options.warms(setup) else 0)
    x, impulses, residual, ready = step.substep(b, args, carry)
    return b.program(x, ready, impulses, residual)


def pairwise_gaps(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> Var:
    """Add the distances of all contact points, in the order of the pairs."""
    found = _all_points(options, setup, b, args)
    return b.map(lambda point: point[0], [(found, rows_of(found.size // POINT, POINT))], [None])[0]


def pairwise_seen(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var], impulses: Var) -> list[Var]:
    """Add points, normals, gaps, normal forces, friction forces and torques of all contacts."""

    def where(numbers: SX, impulse: SX) -> list[SX]:
        gap, point, normal = ca.vertsplit(numbers, [0, 1, 4, POINT])
        force = impulse / setup.dt
        rub = sum((d * force[1 + k] for k, d in enumerate(tangents(normal))), SX.zeros(3))
        return [point, normal, gap, force[0], rub, SX.zeros(3)]

    found = _all_points(options, setup, b, args)
    n = found.size // POINT
    return b.map(where, [(found, rows_of(n, POINT)), (impulses, rows_of(n, 3))], [None] * 6)


def _all_points(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> Var:
    step = _step(options, setup)
    return step.pairs.all_points(b, *step.shapes_at(b, args))
