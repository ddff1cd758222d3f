"""The longest substep with which a world with `Compliant` contact resolves what touches, levers and inertias included."""

from __future__ import annotations

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder
from costate.physics.dynamics.crba import crba
from costate.sim.contact.builtin import Compliant
from costate.sim.contact.rows import constraint_rows
from costate.sim.inputs import Params
from costate.sim.setup import Setup, Symbols
from costate.sim.step import given_inputs
from costate.sim.world import World


def longest_substep(world: World, state: Tensor, params: Params = None) -> Tensor:
    """Return the longest substep [s], shape (...), that resolves the contacts and joint limits at a state of a world with
    `Compliant`: a fifth of sqrt(m / k) in the stiffest direction, and 1 / damping rate in the most damped one; very long where
    nothing touches. Forces that are much larger later, as in an impact, ask for shorter ones.
    """
    if not isinstance(world.setup.contact, Compliant):
        raise ValueError(f"longest_substep is for worlds with Compliant(), not with {world.setup.contact.name}")
    rates = world._kernel("rates", world._inputs.setup_for(None), _rate_kernel)
    values = world._inputs.values(state, params, world.coordinates)
    M, K, C = rates.apply([state, *values])
    L = torch.linalg.cholesky(M)
    stiff, damped = (_fastest(L, x) for x in (K, C))
    return torch.minimum(0.2 / stiff.sqrt(), 1 / damped)


def _fastest(L: Tensor, X: Tensor) -> Tensor:
    """Return the largest eigenvalue of M^-1 X, M = L L^T."""
    half = torch.linalg.solve_triangular(L, X, upper=False)
    scaled = torch.linalg.solve_triangular(L, half.mT, upper=False)
    return torch.linalg.eigvalsh(scaled)[..., -1].clamp(min=0)


def _rate_kernel(setup: Setup) -> Kernel:
    """Build (state, parameters) -> mass matrix, stiffness and damping of all contact forces, (nv, nv) each."""
    s, model = Symbols(setup), setup.contact
    assert isinstance(model, Compliant)
    rows = constraint_rows(s, s.q, s.contacts(), setup.dt)
    nv = setup.nv
    K, C = SX(nv, nv), SX(nv, nv)
    pushes: dict[int, SX] = {}
    for n, row in enumerate(rows):
        along = row.J.T @ row.J
        if row.kind == "tangent":
            assert row.bound is not None
            C = C + row.bound * pushes[row.contact] / model.friction_speed * along
            continue
        stiffness, damping = model.numbers(s, row)
        pushes[n] = stiffness * model.depth(row)
        K = K + stiffness / (1 + ca.exp(row.gap / model.smoothing)) * along
        C = C + pushes[n] * damping * along
    b = ProgramBuilder("world.rates")
    args = [b.input("state", setup.nx), b.zeros(setup.nu), *given_inputs(b, setup)]
    matrices = [ca.vec(ca.densify(x)) for x in (crba(setup.scene.model, s.params, s.q), K, C)]  # symmetric
    for name, value in zip(("mass", "stiffness", "damping"), s.call(b, "rates", matrices, args), strict=True):
        b.output(name, value, (nv, nv))
    return b.kernel()
