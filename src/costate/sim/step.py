"""The step of a world, and everything that is built from it.

substep:  free motion -> contact rows -> sweeps -> positions and velocities      (pgs.py; smooth worlds: compliant.py)
step:     a scan of substeps under one control
rollout:  a scan of steps; its states are its output, and all its adjoint needs
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT
from costate.collision.pairs import tangents
from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import DYNAMIC, Program, Var
from costate.physics.dynamics.energy import kinetic_energy, potential_energy
from costate.physics.integrate import difference, integrate
from costate.sim.contact.compliant import smooth_step
from costate.sim.contact.newton.rows import friction_axes, resolved
from costate.sim.contact.newton.step import newton_step
from costate.sim.contact.options import PGS, Newton
from costate.sim.contact.pgs.dense import pgs_step
from costate.sim.contact.pgs.mappable import is_mapped
from costate.sim.contact.pgs.pairwise import mapped_places
from costate.sim.forces.tendons import tendon_energy
from costate.sim.setup import Contact, Setup, Symbols


def substep_program(setup: Setup) -> Program:
    if isinstance(setup.contact, Newton):
        return newton_step(setup)
    return pgs_step(setup) if isinstance(setup.contact, PGS) else smooth_step(setup)


def step_program(setup: Setup) -> Program:
    """(x, u, parameters, wrenches) -> x' after all substeps."""
    if isinstance(setup.contact, PGS) and setup.contact.warm_start and setup.substeps > 1:
        return _warm_steps(setup)
    substep = substep_program(setup)
    b = ProgramBuilder("step")
    x, *rest = (b.input(f"i{k}", n) for k, n in enumerate(substep.in_sizes))
    if setup.substeps == 1:
        b.output("x", b.call(substep, x, *rest)[0])
        return b.program()
    only_x = Program(substep.inputs, substep.stages, substep.outputs[:1])
    (final,), _, _ = b.scan(only_x, setup.substeps, x, shared=rest)
    b.output("x", final)
    return b.program()


def _warm_steps(setup: Setup) -> Program:
    """Substeps that hand their impulses on."""
    whole = pgs_step(setup, warm=True)
    substep = Program(whole.inputs, whole.stages, whole.outputs[:2])
    b = ProgramBuilder("step")
    x, *rest = (b.input(f"i{k}", n) for k, n in enumerate(n for k, n in enumerate(substep.in_sizes) if k != 1))
    (start,) = b.call(ca.Function("zeros", [], [SX.zeros(substep.in_sizes[1])]))
    (final, _), _, _ = b.scan(substep, setup.substeps, [x, start], shared=rest)
    b.output("x", final)
    return b.program()


def step_kernel(setup: Setup) -> Kernel:
    b = ProgramBuilder("world.step")
    args = _inputs(b, setup)
    b.output("state", b.call(step_program(setup), *args)[0])
    return b.kernel()


def rollout_kernel(setup: Setup, every: int = 1) -> Kernel:
    """(state, controls (steps, every nu), parameters, wrenches (steps, every 6)) -> states (steps + 1, nx).

    every: Steps between states that are kept. The backward pass runs each such stretch again, from the state before it.
    """
    b = ProgramBuilder("world.rollout")
    x = b.input("state", setup.nx)
    u = b.input("controls", (DYNAMIC, every * setup.nu))
    given = _given(b, setup)
    pushes = [b.input(f"wrench:{link}", (DYNAMIC, every * 6)) for link in setup.wrenches]
    body = _stretch(setup, every)
    _, _, (states,) = b.scan(body, DYNAMIC, x, [u, *pushes], given, keep=True)
    b.output("states", states, (DYNAMIC + 1, setup.nx))
    return b.kernel()


def _stretch(setup: Setup, every: int) -> Program:
    """(x, u, wrenches, parameters) -> x after some steps; controls and wrenches one step after the other."""
    step = step_program(setup)
    given = len(setup.parameters)
    x, u, *rest = step.inputs
    ordered = Program((x, u, *rest[given:], *rest[:given]), step.stages, step.outputs)
    if every == 1:
        return ordered
    b = ProgramBuilder("stretch")
    sequences = 1 + len(setup.wrenches)
    sizes = [
        n if k in (0, *range(1 + sequences, len(ordered.inputs))) else every * n for k, n in enumerate(ordered.in_sizes)
    ]
    state, *args = (b.input(f"i{k}", n) for k, n in enumerate(sizes))
    (final,), _, _ = b.scan(ordered, every, state, args[:sequences], args[sequences:])
    b.output("x", final)
    return b.program()


def linearization_kernel(setup: Setup) -> Kernel:
    """The step around a point, in the tangent space: (state, control, next, delta (2 nv + nu), ...) -> change of the next state."""
    s = Symbols(setup)
    model, nq, nv = setup.scene.model, setup.nq, setup.nv
    b = ProgramBuilder("world.linearize")
    x, u, *shared = _inputs(b, setup)
    nominal = b.input("next", setup.nx)
    delta = b.input("delta", 2 * nv + setup.nu)
    d, control = SX.sym("d", 2 * nv + setup.nu), SX.sym("u", setup.nu)
    moved = ca.vertcat(integrate(model, s.q, d[:nv]), s.v + d[nv : 2 * nv])
    pushed = control + d[2 * nv :]
    start, pushed_u = b.call(ca.Function("perturb", [s.x, control, d], [moved, ca.densify(pushed)]), x, u, delta)
    (after,) = b.call(step_program(setup), start, pushed_u, *shared)
    y = SX.sym("y", setup.nx)
    change = ca.vertcat(difference(model, s.x[:nq], y[:nq]), y[nq:] - s.x[nq:])
    b.output("change", b.call(ca.Function("deviation", [s.x, y], [change]), nominal, after)[0])
    return b.kernel()


def contact_kernel(setup: Setup) -> Kernel:
    """Where shapes may touch: points, normals, gaps, and the forces of one substep: normal, of friction, torques; then what its
    solver left."""
    if is_mapped(setup):
        return _mapped_contact_kernel(setup)
    s = Symbols(setup)
    touches = s.contacts()
    b = ProgramBuilder("world.contacts")
    args = _inputs(b, setup)
    _, impulses, *left = b.call(substep_program(setup), *args)
    impulse = SX.sym("impulse", impulses.size)
    row_forces = impulse / setup.dt
    columns: list[list[SX]] = [[] for _ in range(6)]
    at = 0
    for t in touches:
        c = t.geometry
        slides, turns = _axes(s, t)
        force, rub, twist = SX(0), SX.zeros(3), SX.zeros(3)
        if setup.contact is not None:
            force = row_forces[at]
            rub = sum((d * row_forces[at + 1 + k] for k, d in enumerate(slides)), rub)
            twist = sum((d * row_forces[at + 1 + len(slides) + k] for k, d in enumerate(turns)), twist)
        for column, value in zip(columns, (c.point, c.normal, c.gap, force, rub, twist), strict=True):
            column.append(value)
        at += 1 + len(slides) + len(turns)
    results = s.call(b, "where", [ca.vertcat(*x) for x in columns], args, {impulses: impulse})
    n = len(touches)
    shapes = {"points": (n, 3), "normals": (n, 3), "gaps": n, "forces": n, "friction": (n, 3), "torques": (n, 3)}
    for (name, shape), value in zip(shapes.items(), results, strict=True):
        b.output(name, value, shape)
    b.output("residual", left[0] if left else b.call(ca.Function("none", [], [SX.zeros(1)]))[0])
    return b.kernel()


def _mapped_contact_kernel(setup: Setup) -> Kernel:
    b = ProgramBuilder("world.contacts")
    args = _inputs(b, setup)
    places = mapped_places(setup, b, args)
    _, impulses, left = b.call(substep_program(setup), *args)
    n = places.size // POINT
    place, impulse = SX.sym("place", POINT), SX.sym("impulse", 3)
    gap, point, normal = ca.vertsplit(place, [0, 1, 4, POINT])
    force = impulse / setup.dt
    rub = sum((d * force[1 + k] for k, d in enumerate(tangents(normal))), SX.zeros(3))
    body = ca.Function("where", [place, impulse], [point, normal, gap, force[0], rub, SX.zeros(3)])
    tables = [(v, np.arange(v.size).reshape(n, -1)) for v in (places, impulses)]
    shapes = {"points": (n, 3), "normals": (n, 3), "gaps": n, "forces": n, "friction": (n, 3), "torques": (n, 3)}
    for (name, shape), value in zip(shapes.items(), b.map(body, tables, [None] * 6), strict=True):
        b.output(name, value, shape)
    b.output("residual", left)
    return b.kernel()


def _axes(s: Symbols, t: Contact) -> tuple[tuple[SX, ...], tuple[SX, ...]]:
    """Axes along which friction acts, and about which torques do, world axes."""
    if isinstance(s.setup.contact, Newton):
        return friction_axes(t, resolved(s).cone)
    rubs = t.rubs and s.setup.contact is not None
    return (tangents(t.geometry.normal) if rubs else ()), ()


def gap_kernel(setup: Setup) -> Kernel:
    """Distances of all contact points, of the state alone."""
    s = Symbols(replace(setup, wrenches=()))
    b = ProgramBuilder("world.gaps")
    x, given = b.input("state", setup.nx), _given(b, setup)
    still = b.call(ca.Function("still", [], [SX.zeros(setup.nu)]))
    if is_mapped(setup):
        places = mapped_places(replace(setup, wrenches=()), b, [x, *still, *given])
        place = SX.sym("place", POINT)
        table = np.arange(places.size).reshape(-1, POINT)
        b.output("gaps", b.map(ca.Function("gap", [place], [place[0]]), [(places, table)], [None])[0])
        return b.kernel()
    gaps = ca.vertcat(*(t.geometry.gap for t in s.contacts()))
    b.output("gaps", s.call(b, "gaps", [gaps], [x, *still, *given], prune=False)[0])
    return b.kernel()


def energy_kernel(setup: Setup) -> Kernel:
    s = Symbols(setup)
    model = setup.scene.model
    total = kinetic_energy(model, s.params, s.q, s.v) + potential_energy(model, s.params, s.q) + tendon_energy(s, s.q)
    return Kernel("world.energy", {"state": s.x, **s.given}, {"energy": total})


def _inputs(b: ProgramBuilder, setup: Setup) -> list[Var]:
    pushes = [(f"wrench:{link}", 6) for link in setup.wrenches]
    return [b.input("state", setup.nx), b.input("control", setup.nu), *_given(b, setup), *(b.input(*p) for p in pushes)]


def _given(b: ProgramBuilder, setup: Setup) -> list[Var]:
    return [b.input(p, setup.default(p).size) for p in setup.parameters]
