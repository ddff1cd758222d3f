"""The worlds that can be solved pair by pair, the storage for each, and the door of `PGS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT, is_plain, point_program
from costate.collision.pairs import tangents
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.impulsive import without_rows
from costate.sim.contact.model import substep_inputs
from costate.sim.contact.pair_kinds import rows_of
from costate.sim.contact.pgs.bodies.step import BodyStep
from costate.sim.contact.pgs.trees.step import TreeStep
from costate.sim.contact.rows import constraint_rows
from costate.sim.setup import SHAPE_PARAMETERS, Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

MANY = 24
"""Number of pairs of shapes above which free bodies are many: building rows of one system costs the square of it."""
BODY_PARAMETERS = ("mass", "com", "inertia", "gravity")


def has_many(setup: Setup) -> bool:
    """Return whether a world holds many free bodies that may touch, and nothing else that moves."""
    return len(setup.scene.pairs) > MANY and only_bodies(setup)


def only_bodies(setup: Setup) -> bool:
    """Return whether free bodies and static geometry are all that a world holds: their storage is the shorter one."""
    scene = setup.scene
    jointed = any(j.kind != "floating" or j.mimic for j in scene.model.joints)
    if scene.robots or jointed or setup.drives or setup.constraints or setup.tendons or not scene.pairs:
        return False
    kinds = {p.partition(":")[0] for p in setup.parameters}
    of_joints = kinds - {*setup.contact.parameters, *SHAPE_PARAMETERS, *BODY_PARAMETERS} | (kinds & {"damping"})
    return setup.integrator == "semi_implicit" and not of_joints


def why_not(setup: Setup) -> str | None:
    """Return what keeps a world from being solved pair by pair, or None."""
    scene = setup.scene
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


def check_possible(setup: Setup, instead: str) -> None:
    """Raise an error where a world cannot be solved pair by pair. instead: what to do then."""
    reason = why_not(setup)
    if reason:
        raise ValueError(f"this world cannot be solved pair by pair: {reason}. {instead}")


def _step(options: PGS, setup: Setup) -> BodyStep | TreeStep:
    check_possible(setup, "Use contact=Hard(), which solves its rows as one system")
    return (BodyStep if only_bodies(setup) else TreeStep)(options, setup)


def swept_substep(options: PGS, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`. Its carry are the impulses to start from.

    residual: largest speed [m/s or rad/s] by which one more sweep would change a row, (1,).
    """
    b, s = ProgramBuilder("substep"), Symbols(setup)
    if not setup.scene.pairs and not constraint_rows(s, s.q, [], setup.dt):
        carry, args = substep_inputs(b, s)
        return without_rows(b, s, args, carry, options)
    step = _step(options, setup)
    carry, args = substep_inputs(b, step.symbols, step.size if options.warms(setup) else 0)
    x, impulses, residual, ready = step.substep(b, args, carry)
    return b.program(x, ready, impulses, residual)


def swept_gaps(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> Var:
    """Add the distances of all contact points, in the order of the pairs."""
    found = _all_points(options, setup, b, args)
    return b.map(lambda point: point[0], [(found, rows_of(found.size // POINT, POINT))], [None])[0]


def swept_seen(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var], impulses: Var) -> list[Var]:
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
