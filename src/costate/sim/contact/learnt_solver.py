"""A network in place of a solver: contact impulses in one go, from what the solver would see.

    u        speeds of the contact points without contact, less what they may have (targets.py of PGS)
    p        = network(u, joint positions, direction of gravity), one normal and two tangential impulses per contact
    p_n >= 0,  |p_t| <= friction p_n       by projection: p_n is cut at zero, p_t shortened to the cone
    v'       = v_free + M^-1 J^T p

Nothing is solved for but one system with the mass matrix, where PGS needs one per row and then its sweeps. Axes of friction lie
along the heading of the first floating link, so that impulses do not depend on where the robot looks to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np
from casadi import SX

from costate.augment.network import ACTIVATIONS, Network
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra import quaternion
from costate.physics.algebra.ltl import Factor
from costate.physics.algebra.spatial import cross
from costate.physics.kinematics import body_poses
from costate.sim.contact.detect import Contact
from costate.sim.contact.hard.solve import nonzeros
from costate.sim.contact.model import Axes, ContactModel, substep_inputs
from costate.sim.contact.rows import relative_jacobian
from costate.sim.forces.equality import Tied
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import free_motion
from costate.sim.setup import Setup, Symbols

FASTEST = 1.0
"""Speed beyond which a contact that opens looks the same to the network [m/s]."""
STILL = 1e-12
"""Square of an impulse below which friction has no direction."""


@dataclass(frozen=True)
class LearntSolver(ContactModel):
    """Contact impulses by a network, for robots with a floating base on flat ground.

    World(parameters=["weights"]) makes the weights an input of the step: params={"weights": network.vector()} trains and changes
    them without compiling. `inputs_of(world.setup)` names the inputs of the network.
    """

    network: Network | None = None
    """Network of `inputs_of` with three outputs per contact; None: one without contact forces, to look at."""
    friction: float = 0.8
    """Coefficient where shapes do not say their own; of two shapes the larger one counts."""
    erp: float = 0.2
    """Part of the overlap undone per step."""
    slop: float = 1e-4
    """Overlap that is left alone [m]."""
    max_correction: float = 2.0
    """Speed at which overlap is undone at most [m/s]."""

    integrators: ClassVar[tuple[str, ...]] = ("semi_implicit", "euler", "implicit")
    parameters: ClassVar[tuple[str, ...]] = ("friction", "weights")
    hard: ClassVar[bool] = True

    def number(self, setup: Setup, parameter: str) -> np.ndarray:
        if parameter == "weights":
            return np.zeros(1) if self.network is None else self.network.numbers()
        return super().number(setup, parameter)

    def friction_axes(self, s: Symbols, contact: Contact) -> tuple[Axes, Axes]:
        ahead = _heading(s, contact.geometry.normal)
        return (ahead, cross(contact.geometry.normal, ahead)), ()

    def row_kinds(self, s: Symbols, contacts: list[Contact]) -> list[str]:
        return ["normal", "tangent", "tangent"] * len(contacts)

    def substep(self, setup: Setup) -> Program:
        s = Symbols(setup)
        contacts = s.contacts()
        free = free_motion(s, s.q, s.v, s.u)
        if isinstance(free.factor, Tied):
            raise ValueError("LearntSolver has no equality constraints: use contact=Hard() in worlds with some")
        J = ca.sparsify(ca.vertcat(*(row for t in contacts for row in self._rows(s, t))))
        shape, factor = J.sparsity(), free.factor
        b = ProgramBuilder("substep")
        carry, args = substep_inputs(b, s)
        frictions = ca.vertcat(*(t.friction for t in contacts))
        seen = self._seen(s, contacts, J @ free.velocity)
        values = s.call(b, "seen", [seen, frictions, free.velocity, free.drift, nonzeros(J), _flat(factor)], args)
        impulses = b.trace(_projected, self._answer(b, setup, args, values[0]), values[1])

        def moved(x: SX, v: SX, drift: SX, j: SX, m: SX, p: SX) -> SX:
            after = v + _like(factor, m).solve(SX(shape, j).T @ p)
            return advance(setup, x[: setup.nq], after + drift, after, setup.dt)

        x = b.trace(moved, args[0], *values[2:], impulses)
        return b.program(x, carry, impulses, b.zeros(1))

    def _rows(self, s: Symbols, t: Contact) -> list[SX]:
        J = relative_jacobian(s, body_poses(s.tree, s.q), t)
        return [d.T @ J for d in (t.geometry.normal, *self.friction_axes(s, t)[0])]

    def _seen(self, s: Symbols, contacts: Sequence[Contact], speeds: SX) -> SX:
        """Return the inputs of the network."""
        found, dt = [], s.setup.dt
        for k, t in enumerate(contacts):
            gap, (normal, *tangents) = t.geometry.gap, ca.vertsplit(speeds[3 * k : 3 * k + 3])
            undo = ca.fmin(self.erp / dt * ca.fmax(-gap - self.slop, 0), self.max_correction)
            found += [ca.fmin(normal + ca.fmax(gap, 0) / dt - undo, FASTEST), *tangents]
        model = s.setup.scene.model
        found += [s.q[iq] for j, iq in zip(model.joints, model.q_index, strict=True) if j.nv == 1 and not j.mimic]
        return ca.vertcat(*found, quaternion.to_rotation(s.q[_floating(s)]).T[:, 2])

    def _answer(self, b: ProgramBuilder, setup: Setup, args: list[Var], seen: Var) -> Var:
        """Add the layers of the network."""
        count, network = len(Symbols(setup).contacts()), self.network
        if network is None:
            return b.zeros(3 * count)
        if (len(network.inputs), network.outputs) != (seen.size, 3 * count):
            given = f"{len(network.inputs)} inputs and {network.outputs} outputs"
            raise ValueError(
                f"the network of LearntSolver has {given}; expected {seen.size} and {3 * count}: see inputs_of"
            )
        places = {p: 2 + k for k, p in enumerate(setup.parameters)}
        whole = args[places["weights"]] if "weights" in places else b.constant(self.number(setup, "weights"))
        act, at = ACTIVATIONS[network.activation].symbolic, 0
        x = b.trace(lambda x: x / ca.DM(network.input_scales), seen)
        for n, m in network.shapes:
            product, bias = b.dense(b.common(b.slice(whole, at, n * m)), x), b.slice(whole, at + n * m, n)
            at += n * m + n
            last = at == network.size
            x = b.trace(lambda y, c: network.scale * (y + c) if last else act(y + c), product, bias)  # noqa: B023
        return x


def inputs_of(setup: Setup) -> list[str]:
    """Return the names of what a `LearntSolver` shows its network in a world: world.setup."""
    names = [f"{kind}.{k}" for k in range(len(Symbols(setup).contacts())) for kind in ("opening", "ahead", "aside")]
    model = setup.scene.model
    names += [f"position:{j.name}" for j in model.joints if j.nv == 1 and not j.mimic]
    return [*names, "up.x", "up.y", "up.z"]


def _flat(factor: Factor) -> SX:
    """Return the numbers of a factor of the mass matrix, one after the other."""
    return ca.vertcat(*(x for row in factor.rows for x in row.values()), *factor.inverse_pivots)


def _like(factor: Factor, numbers: SX) -> Factor:
    """Return a factor with the zeros of another one and other numbers."""
    given = iter(ca.vertsplit(numbers))
    rows = tuple({j: next(given) for j in row} for row in factor.rows)
    return Factor(rows, tuple(given))


def _projected(p: SX, mu: SX) -> SX:
    """Return impulses that push and stay in the cone of friction, contact after contact."""
    found = []
    for k in range(mu.numel()):
        normal, sliding = ca.fmax(p[3 * k], 0), p[3 * k + 1 : 3 * k + 3]
        square, bound = ca.sumsqr(sliding), mu[k] * normal
        beyond = square > bound**2
        root = ca.sqrt(ca.if_else(square > STILL, square, 1))
        found += [normal, ca.if_else(beyond, bound / root, 1) * sliding]
    return ca.vertcat(*found)


def _floating(s: Symbols) -> slice:
    """Return where the quaternion of the first floating joint is."""
    model = s.setup.scene.model
    for j, iq in zip(model.joints, model.q_index, strict=True):
        if j.kind == "floating":
            return slice(iq + 3, iq + 7)
    raise ValueError("LearntSolver is for robots with a floating base: load the robot with floating_base=True")


def _heading(s: Symbols, normal: SX) -> SX:
    """Return the direction (3,) along the ground in which the floating link looks."""
    ahead = quaternion.to_rotation(s.q[_floating(s)])[:, 0]
    along = ahead - ca.dot(ahead, normal) * normal
    return along / ca.sqrt(ca.sumsqr(along) + 1e-9)
