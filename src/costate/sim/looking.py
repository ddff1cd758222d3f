"""Looking at a world: kernels of contacts, gaps and energy, and a description in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from costate.core.names import listed
from costate.kernel import Kernel, ProgramBuilder
from costate.physics.dynamics.energy import kinetic_energy, potential_energy
from costate.physics.kinematics import link_poses
from costate.sim.contact.detect import Contact
from costate.sim.files.parts import Parts
from costate.sim.forces.equality import equations
from costate.sim.forces.tendons import tendon_energy
from costate.sim.setup import Setup, Symbols
from costate.sim.step import first_substep, given_inputs, step_inputs


def contact_kernel(setup: Setup) -> Kernel:
    """Build the kernel of contact points, normals, gaps, and of the forces of the first substep: normal forces, friction, torques;
    then what its solver left."""
    b = ProgramBuilder("world.contacts")
    args = step_inputs(b, setup)
    _, impulses, residual = first_substep(b, setup, args)
    found = setup.contact.seen(b, setup, args, impulses)
    n = found[2].size
    shapes = {"points": (n, 3), "normals": (n, 3), "gaps": n, "forces": n, "friction": (n, 3), "torques": (n, 3)}
    for (name, shape), value in zip(shapes.items(), found, strict=True):
        b.output(name, value, shape)
    b.output("residual", residual)
    return b.kernel()


def gap_kernel(setup: Setup) -> Kernel:
    """Build (state, parameters) -> distances of all contact points."""
    b = ProgramBuilder("world.gaps")
    x, given = b.input("state", setup.nx), given_inputs(b, setup)
    b.output("gaps", setup.contact.gaps(b, replace(setup, wrenches=()), [x, b.zeros(setup.nu), *given]))
    return b.kernel()


def described(setup: Setup, contacts: list[Contact]) -> str:
    """Return what a world is made of, in words."""
    s = Symbols(setup)
    kinds = setup.contact.row_kinds(s, contacts)
    kinds += ["equality" for e in equations(s, s.q) for _ in range(e.dim)]
    counts = ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)) or "none"
    bodies = len([j for j in setup.scene.model.joints if j.nv])
    acts = f", {setup.na} activations" if setup.na else ""
    return (
        f"world: {bodies} joints, {setup.nq} coordinates, {setup.nv} velocities, {setup.nu} controls{acts}\n"
        f"  {len(setup.scene.pairs)} pairs of shapes may touch, at {len(contacts)} contact points\n"
        f"  {len(kinds)} constraint rows: {counts}\n"
        f"  {setup.substeps} substeps of {1e3 * setup.dt:g} ms, {setup.integrator}, {setup.contact.described(setup)}"
    )


def summary(setup: Setup, robots: Iterable[str], parts: Parts) -> str:
    """Return what a world holds, in a line or a few."""
    kinds = {
        "robots": list(robots),
        "bodies": [b.name for b in parts.bodies],
        "scenery": [s.name for s in parts.scenery],
    }
    held = [f"{kind}: {listed(names)}" for kind, names in kinds.items() if names]
    acts = f", na={setup.na}" if setup.na else ""
    steps = f"{setup.substeps} substeps of " if setup.substeps > 1 else ""
    held += [
        f"nq={setup.nq}, nv={setup.nv}, nu={setup.nu}{acts}",
        f"{len(setup.scene.pairs)} pairs may touch",
        f"{setup.contact.name}, {setup.integrator}, dt = {steps}{setup.dt:g} s",
    ]
    return f"World({'; '.join(held)})"


def pose_kernel(setup: Setup, link: str) -> Kernel:
    """Build (state, parameters) -> position [m] and rotation of a link in the world."""
    s = Symbols(setup)
    R, p = link_poses(setup.scene.model, s.params, s.q, [link])[link]
    return Kernel("world.link_pose", {"state": s.x, **s.given}, {"position": p, "rotation": R})


def energy_kernel(setup: Setup) -> Kernel:
    """Build (state, parameters) -> kinetic and potential energy [J]."""
    s = Symbols(setup)
    model = setup.scene.model
    total = kinetic_energy(model, s.params, s.q, s.v) + potential_energy(model, s.params, s.q) + tendon_energy(s, s.q)
    return Kernel("world.energy", {"state": s.x, **s.given}, {"energy": total})
