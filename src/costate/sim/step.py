"""The step of a world, and everything that is built from it.

substep:  free motion -> contact rows -> sweeps -> positions and velocities      (pgs.py; smooth worlds: compliant.py)
step:     a scan of substeps under one control
rollout:  a scan of steps; its states are its output, and all its adjoint needs
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.program import DYNAMIC, Program, Var
from costate.physics.energy import kinetic_energy, potential_energy
from costate.physics.integrate import difference, integrate
from costate.sim.compliant import smooth_step
from costate.sim.contact_models import PGS
from costate.sim.pgs import pgs_step
from costate.sim.setup import Setup, Symbols


def substep_program(setup: Setup) -> Program:
    return pgs_step(setup) if isinstance(setup.contact, PGS) else smooth_step(setup)


def step_program(setup: Setup) -> Program:
    """(x, u, parameters, wrenches) -> x' after all substeps."""
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


def step_kernel(setup: Setup) -> Kernel:
    b = ProgramBuilder("world.step")
    args = _inputs(b, setup)
    b.output("state", b.call(step_program(setup), *args)[0])
    return b.kernel()


def rollout_kernel(setup: Setup, steps: int = DYNAMIC) -> Kernel:
    """(state, controls (steps, nu), parameters, wrenches) -> states (steps + 1, nx)."""
    b = ProgramBuilder("world.rollout")
    x = b.input("state", setup.nx)
    u = b.input("controls", (steps, setup.nu))
    _, _, (states,) = b.scan(step_program(setup), steps, x, [u], _parameters(b, setup), keep=True)
    b.output("states", states, (steps + 1, setup.nx))
    return b.kernel()


def linearization_kernel(setup: Setup) -> Kernel:
    """The step around a point, in the tangent space: (state, control, next, delta (2 nv + nu), ...) -> change of the next state."""
    s = Symbols(setup)
    model, nq, nv = setup.scene.model, setup.nq, setup.nv
    b = ProgramBuilder("world.linearize")
    x = b.input("state", setup.nx)
    u = b.input("control", setup.nu)
    nominal = b.input("next", setup.nx)
    delta = b.input("delta", 2 * nv + setup.nu)
    shared = _parameters(b, setup)
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
    """Where shapes may touch: points, normals, gaps, and the forces of one substep."""
    s = Symbols(setup)
    touches = s.contacts(s.q)
    b = ProgramBuilder("world.contacts")
    args = _inputs(b, setup)
    columns = [ca.horzcat(*x).T for x in zip(*((t.candidate.point, t.candidate.normal) for t in touches), strict=True)]
    gaps = ca.vertcat(*(t.candidate.gap for t in touches))
    flat = [ca.vec(columns[0].T), ca.vec(columns[1].T), gaps]
    points, normals, gap = b.call(ca.Function("where", s.inputs, [ca.densify(f) for f in flat]), *args)
    n = len(touches)
    b.output("points", points, (n, 3))
    b.output("normals", normals, (n, 3))
    b.output("gaps", gap)
    b.output("impulses", b.call(substep_program(setup), *args)[1])
    return b.kernel()


def energy_kernel(setup: Setup) -> Kernel:
    s = Symbols(setup)
    model = setup.scene.model
    total = kinetic_energy(model, s.params, s.q, s.v) + potential_energy(model, s.params, s.q)
    return Kernel("world.energy", {"state": s.x, **s.given}, {"energy": total})


def _inputs(b: ProgramBuilder, setup: Setup) -> list[Var]:
    return [b.input("state", setup.nx), b.input("control", setup.nu), *_parameters(b, setup)]


def _parameters(b: ProgramBuilder, setup: Setup) -> list[Var]:
    given = [b.input(p, setup.default(p).size) for p in setup.parameters]
    return given + [b.input(f"wrench:{link}", 6) for link in setup.wrenches]
