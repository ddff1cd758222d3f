"""The end of a substep: from accelerations to the next state, implicit in damping, and where asked for in Coriolis forces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.model import Model
from costate.physics.algebra.ltl import factor
from costate.physics.algebra.lu import lu_solve
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.passive import armature
from costate.physics.dynamics.rnea import rnea
from costate.sim.contact.newton.problem import Problem, nonzeros
from costate.sim.forces.surroundings import drag_damping
from costate.sim.forces.tendons import resistance
from costate.sim.forces.torques import actuator_damping
from costate.sim.integrate.advance import advance, turning
from costate.sim.integrate.bias import drift
from costate.sim.integrate.free import per_velocity
from costate.sim.setup import Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton


def turning_force(s: Symbols, M: SX) -> SX:
    """Return what the turning of the axes adds to forces, (nv,). The armature of a floating joint does not turn with it."""
    model = s.setup.scene.model
    rate = turning(model, s.v)
    return M @ rate - armature(model, s.params) * rate


def finish(b: ProgramBuilder, s: Symbols, problem: Problem, options: Newton, args: list[Var], m: Var, a: Var) -> Var:
    """Add the next state. At the solution M a is the sum of all forces; damping acts on the velocity after the step.

    m: entries of the mass matrix; a: accelerations (nv,).
    """
    setup = s.setup
    symbols = {m: SX.sym("m", m.size), a: SX.sym("a", a.size)}
    damping, coriolis = _damping(s, options), _coriolis(s, options)
    if damping is not None or coriolis is not None:
        M = problem.mass(symbols[m])
        heavier = M if damping is None else M + setup.dt * damping
        if coriolis is None:
            lower = ca.tril(heavier)
            a = solved(b, lower.sparsity(), *s.call(b, "damped", [nonzeros(lower), M @ symbols[a]], args, symbols))
        else:
            slower = lu_solve(heavier + setup.dt * coriolis, M @ symbols[a])
            (a,) = s.call(b, "damped", [slower], args, symbols)
    acceleration = SX.sym("a", setup.nv)
    after = s.v + setup.dt * acceleration
    x = advance(setup, s.q, after + drift(s), after, setup.dt)
    return s.call(b, "finish", [x], args, {a: acceleration})[0]


def solved(b: ProgramBuilder, lower: ca.Sparsity, entries: Var, force: Var) -> Var:
    """Add the solution x of A x = force (n,) for a symmetric matrix given by the entries of its lower triangle. Derivatives solve
    with A once more, A dx = d force - dA x: they do not go through its factors."""

    def matrix(given: SX) -> SX:
        below = SX(lower, given)
        return below + ca.tril(below, False).T

    def solve(entries: SX, force: SX) -> SX:
        return factor(SX(lower, entries)).solve(force)

    def tangent(entries: SX, force: SX, x: SX, d_entries: SX, d_force: SX) -> SX:
        return solve(entries, d_force - matrix(d_entries) @ x)

    def adjoint(entries: SX, force: SX, x: SX, seed: SX) -> tuple[SX, SX]:
        y = solve(entries, seed)
        rows, columns = lower.get_triplet()
        pairs = zip(rows, columns, strict=True)
        grads = [-y[i] * x[j] - (y[j] * x[i] if i != j else 0) for i, j in pairs]
        return ca.vertcat(*grads), y

    return b.custom(solve, entries, force, tangent=tangent, adjoint=adjoint)[0]


def _damping(s: Symbols, options: Newton) -> SX | None:
    """Return the damping that the step is implicit in, (nv, nv): Euler's method in that of joints; "implicit" also in that of
    tendons, actuators and fluids."""
    setup = s.setup
    own = per_velocity(s, "damping")
    none = own.is_constant() and ca.norm_inf(ca.DM(own)) == 0
    total = SX(setup.nv, setup.nv) if none else ca.diag(own)
    if setup.method.implicit:
        total = total + resistance(s, s.q)[0] + actuator_damping(s, s.q, s.v, s.u)
        total = total + drag_damping(s, s.q, s.v)
        total = ca.project(total, _pattern(s)) if total.nnz() else total
    elif not options.implicit_damping:
        return None
    return total if total.nnz() else None


def _pattern(s: Symbols) -> ca.Sparsity:
    """Return the pattern (nv, nv) of coordinates of which one moves the other: MuJoCo's implicit steps leave out what tendons and
    actuators couple besides."""
    nv = s.setup.nv
    here, chain = s.at(s.q), np.zeros((nv, nv), bool)
    for body in s.tree.bodies:
        own = slice(body.v_start, body.v_start + body.kind.nv)
        chain[own, sorted(here.chain_of(body.parent)) + list(range(own.start, own.stop))] = True
    return ca.sparsify(ca.DM((chain | chain.T).astype(float))).sparsity() if nv else ca.Sparsity(0, 0)


def _coriolis(s: Symbols, options: Newton) -> SX | None:
    """Return how Coriolis and gyroscopic forces change with velocities where "implicit" is implicit in them, (nv, nv): everywhere,
    or as in MuJoCo's implicitfast for single free bodies."""
    model = s.setup.scene.model
    chosen = list(range(model.nv)) if options.implicit_coriolis else _single_bodies(model)
    if not s.setup.method.implicit or s.setup.coasts or not chosen:
        return None
    bias = rnea(model, s.params, s.q, s.v, SX(model.nv, 1), passive=None)
    bias = bias - turning_force(s, crba(model, s.params, s.q))
    total = SX(model.nv, model.nv)
    total[chosen, chosen] = ca.jacobian(bias, s.v)[chosen, chosen]
    return ca.sparsify(total)


def _single_bodies(model: Model) -> list[int]:
    """Return the velocity coordinates of floating joints on whose links no other joint moves anything."""
    base = {model.links[0].name: ""}
    for j in model.joints:
        base[j.child] = base[j.parent] if j.kind == "fixed" else j.name
    carrying = {base[j.parent] for j in model.joints if j.kind != "fixed"}
    single = [j.kind == "floating" and j.name not in carrying for j in model.joints]
    return [k for i, own in zip(model.v_index, single, strict=True) if own for k in range(i, i + 6)]
