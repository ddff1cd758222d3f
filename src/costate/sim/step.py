"""The step of a world: what a newcomer to `sim` reads first.

A step is one or more substeps under one control. A substep has four parts:

    free      motion without contact: actuators, bias forces, the mass matrix    integrate/free.py, forces/
    detect    contact points of all pairs of shapes, and their rows              contact/detect.py, contact/rows.py
    solve     forces or impulses along the rows                                  contact/hard, contact/newton, contact/compliant.py
    advance   velocities and positions at the end of the substep                 integrate/advance.py, integrate/rk4.py

The contact model (contact/model.py) puts them together, because models differ in what they solve for: impulses (Hard, PGS),
accelerations (Newton) or nothing at all (smooth forces). It returns one program for all of them:

    (x, carry, u, parameters, wrenches) -> (x', carry', impulses, residual)

Kernels made of steps: rollout.py (a step, a roll-out), linearize.py, looking.py (contacts, gaps, energy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.integrate.activate import whole_substep
from costate.sim.setup import Setup


def step_program(setup: Setup, keep: bool = False) -> Program:
    """Build (x, u, parameters, wrenches) -> x after all substeps; with keep also all that substeps begin with, row by row, where
    there is more than one: a backward pass that is given those does not compute them again."""
    whole = whole_substep(setup)
    substep = Program(whole.inputs, whole.stages, whole.outputs[:2])
    b = ProgramBuilder("step")
    size_x, size_carry, *sizes = substep.in_sizes
    x, *rest = b.inputs(size_x, *sizes)
    if setup.substeps == 1:
        return b.program(b.call(substep, x, b.zeros(size_carry), *rest)[0])
    if keep and size_carry == 0:
        substep, begin = _without_carry(substep), [x]
    else:
        begin = [x, b.zeros(size_carry)]
    (final, *_), _, states = b.scan(substep, setup.substeps, begin, shared=rest, keep=keep)
    return b.program(final, *states)


def _without_carry(substep: Program) -> Program:
    """Return (x, u, ...) -> x of a substep that hands on nothing but its state."""
    b = ProgramBuilder("substep")
    x, *rest = b.inputs(substep.in_sizes[0], *substep.in_sizes[2:])
    return b.program(b.call(substep, x, b.zeros(0), *rest)[0])


def first_substep(b: ProgramBuilder, setup: Setup, args: Sequence[Var]) -> tuple[Var, Var, Var]:
    """Add the first substep of a step, which does not continue another: its state, impulses and residual."""
    substep = whole_substep(replace(setup, substeps=1))
    x, _, impulses, residual = b.call(substep, args[0], b.zeros(substep.in_sizes[1]), *args[1:])
    return x, impulses, residual


def step_inputs(b: ProgramBuilder, setup: Setup) -> list[Var]:
    """Declare the inputs of a step: state, control, parameters, wrenches."""
    x, u = b.inputs(state=setup.nx, control=setup.nu)
    return [x, u, *given_inputs(b, setup), *(b.input(f"wrench:{link}", 6) for link in setup.wrenches)]


def given_inputs(b: ProgramBuilder, setup: Setup) -> list[Var]:
    """Declare the parameters of a step as inputs."""
    return [b.input(p, setup.default(p).size) for p in setup.parameters]
