"""The longest substep with which a world whose contact forces are springs resolves what touches, levers and inertias included."""

from __future__ import annotations

import casadi as ca
import torch
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder
from costate.physics.dynamics.crba import crba
from costate.sim.arguments import as_numbers
from costate.sim.inputs import Params
from costate.sim.setup import Setup, Symbols
from costate.sim.step import given_inputs
from costate.sim.world import World


def longest_substep(world: World, state: Tensor, params: Params = None) -> Tensor:
    """Return the longest substep [s], shape (...), that resolves the contacts and joint limits at a state of a world with
    `Compliant`: a fifth of sqrt(m / k) in the stiffest direction, and 1 / damping rate in the most damped one; very long where
    nothing touches. Forces that are much larger later, as in an impact, ask for shorter ones.
    """
    rates = world._kernel("rates", world._inputs.setup_for(None), _rate_kernel)
    (state,) = as_numbers({"state": state}, world)
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
    s, nv = Symbols(setup), setup.nv
    matrices = [ca.vec(ca.densify(x)) for x in (crba(setup.scene.model, s.params, s.q), *setup.contact.rates(s))]
    b = ProgramBuilder("world.rates")
    args = [b.input("state", setup.nx), b.zeros(setup.nu), *given_inputs(b, setup)]
    for name, value in zip(("mass", "stiffness", "damping"), s.call(b, "rates", matrices, args), strict=True):
        b.output(name, value, (nv, nv))  # symmetric
    return b.kernel()
