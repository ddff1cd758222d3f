"""A rollout under examination: its states, and what its contacts do in every step."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.kernel import Kernel, ProgramBuilder
from costate.physics.kinematics import body_poses
from costate.robot import Robot
from costate.sim import World
from costate.sim.contact.rows import relative_jacobian
from costate.sim.contacts import Contacts
from costate.sim.forces.actuators import Servo
from costate.sim.forces.lengths import Sum
from costate.sim.inputs import Params
from costate.sim.integrate.free import free_motion
from costate.sim.rollout import given_inputs
from costate.sim.setup import Setup, Symbols

TOUCH = 1e-9
"""Normal force above which shapes count as touching [N]."""


@dataclass(frozen=True, eq=False)
class Motion:
    """States, controls and derivatives of a rollout. There are T steps and n contact points."""

    world: World
    x: Tensor
    """States, (T + 1, nx)."""
    u: Tensor
    """Controls, (T, nu)."""
    params: Params
    A: Tensor
    """Derivatives of steps by their states in the tangent space, (T, ndx, ndx)."""
    B: Tensor
    """Derivatives of steps by their controls, (T, ndx, nu)."""

    @property
    def has_contacts(self) -> bool:
        """True if there are shapes that may touch, and a contact model that acts."""
        return bool(self.world.setup.scene.pairs) and self.world.setup.contact.acts

    @cached_property
    def contacts(self) -> Contacts:
        """Contact points and forces of the first substep of every step."""
        return self.world.contacts(self.x[:-1], self.u, self.params)

    @cached_property
    def touching(self) -> Tensor:
        """True where shapes push each other, (T, n)."""
        return self.contacts.forces > TOUCH

    @cached_property
    def _kernel(self) -> tuple[Kernel, ca.Sparsity]:
        return _frames(self.world._inputs.setup_for(None))

    def _frames_at(self, x: Tensor) -> list[Tensor]:
        return list(self._kernel[0].apply([x, *self.world._inputs.values(x, self.params, self.world.coordinates)]))

    @cached_property
    def _before(self) -> list[Tensor]:
        return self._frames_at(self.x[:-1])

    @cached_property
    def velocities(self) -> Tensor:
        """Velocities of the first surface against the second at the start of every step, world axes [m/s], (T, n, 3)."""
        return self._before[0].unflatten(-1, (-1, 3))

    @cached_property
    def approach(self) -> Tensor:
        """Speeds of approach along the normals at the start of every step [m/s], (T, n)."""
        return -(self.velocities * self.contacts.normals).sum(-1)

    @cached_property
    def sliding(self) -> Tensor:
        """Sliding speeds at the start of every step [m/s], (T, n)."""
        return self._across(self.velocities, self.contacts.normals).norm(dim=-1)

    @cached_property
    def sliding_after(self) -> Tensor:
        """Sliding speeds at the end of every step [m/s], (T, n)."""
        after = self._frames_at(self.x[1:])[0].unflatten(-1, (-1, 3))
        return self._across(after, self.contacts.normals).norm(dim=-1)

    @staticmethod
    def _across(v: Tensor, normal: Tensor) -> Tensor:
        return v - normal * (v * normal).sum(-1, keepdim=True)

    @property
    def friction(self) -> Tensor:
        """Coefficients of friction, (T, n)."""
        return self._before[1]

    @cached_property
    def mobility(self) -> tuple[Tensor, Tensor]:
        """Inverse masses that contacts feel along the normal, and across it at most [1/kg], (T, n) each."""
        pattern = self._kernel[1]
        rows, columns = (torch.tensor(k) for k in pattern.get_triplet())
        J = torch.zeros(len(self.u), *pattern.shape, dtype=self.x.dtype)
        J[:, rows, columns] = self._before[2]
        J = J.unflatten(1, (-1, 3))  # (T, n, 3, nv)
        W = J @ torch.linalg.solve(self._inertia[:, None], J.mT)
        n = self.contacts.normals.unsqueeze(-1)
        along = (n.mT @ W @ n)[..., 0, 0]
        P = torch.eye(3, dtype=self.x.dtype) - n @ n.mT
        return along, torch.linalg.eigvalsh(P @ W @ P)[..., -1]

    @cached_property
    def _inertia(self) -> Tensor:
        """Mass matrices that contact forces act on, with what servos and an implicit integrator add, (T, nv, nv)."""
        setup, dt = self.world.setup, self.world.setup.dt
        M = Robot(setup.scene.model).mass_matrix(self.x[:-1, : self.world.nq])
        for k, d in enumerate(setup.drives):
            if isinstance(d.actuator, Servo) and isinstance(d.length, Sum):
                J = torch.zeros(self.world.nv, dtype=M.dtype)
                J[[iv for _, iv, _ in d.length.terms]] = torch.tensor([c for *_, c in d.length.terms], dtype=M.dtype)
                acts = self.B[..., k].any(-1)[:, None, None]  # at its limit it adds nothing
                M = M + acts * dt * (d.damping + dt * d.stiffness) * torch.outer(J, J)
        if setup.method.implicit:
            for j, at in zip(setup.scene.model.joints, setup.scene.model.v_index, strict=True):
                own = range(at, at + (0 if j.mimic else j.nv))
                M[:, own, own] += dt * j.damping + dt**2 * j.stiffness
        return M

    @cached_property
    def torques(self) -> Tensor:
        """Generalised forces of all actuators in the first substep of every step, (T, nv)."""
        given = self.world._inputs.values(self.x, self.params, self.world.coordinates)
        return _torques(self.world._inputs.setup_for(None)).apply([self.x[:-1], self.u, *given])[0]

    @cached_property
    def growth(self) -> Tensor:
        """Largest singular values of the derivatives of steps by their states, (T,)."""
        return torch.linalg.matrix_norm(self.A, 2) if self.A.numel() else torch.zeros(len(self.u), dtype=self.x.dtype)

    def name(self, k: int) -> str:
        """Return the shapes of a contact point, in words."""
        a, b = self.contacts.shapes[k]
        return f"{a} on {b}"


def _frames(setup: Setup) -> tuple[Kernel, ca.Sparsity]:
    """Build the kernel that gives velocities, friction coefficients and Jacobians of all contact points at a state, and the
    pattern (3n, nv) of the Jacobians, of which it gives the entries that are not zero."""
    s = Symbols(setup)
    bodies = body_poses(s.tree, s.q)
    found = s.contacts()
    J = ca.sparsify(ca.vertcat(*(relative_jacobian(s, bodies, t) for t in found)))
    b = ProgramBuilder("audit.frames")
    x, given = b.input("state", setup.nx), given_inputs(b, setup)
    wanted = [J @ s.v, ca.vertcat(*(ca.SX(t.friction) for t in found)), ca.vec(ca.SX(J.nz[:]))]
    outputs = s.call(b, "frames", [ca.densify(y) for y in wanted], [x, b.zeros(setup.nu), *given])
    for name, y in zip(("velocities", "friction", "jacobian"), outputs, strict=True):
        b.output(name, y)
    return b.kernel(), J.sparsity()


def _torques(setup: Setup) -> Kernel:
    """Build the kernel that gives the generalised forces of all actuators at a state and a control, (nv,)."""
    s = Symbols(setup)
    b = ProgramBuilder("audit.torques")
    args = [b.input("state", setup.nx), b.input("control", setup.nu), *given_inputs(b, setup)]
    (torque,) = s.call(b, "torques", [ca.densify(free_motion(s, s.q, s.v, s.u).torque)], args)
    b.output("torque", torque)
    return b.kernel()
