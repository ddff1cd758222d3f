"""Momentum, angular momentum and energy of particles, which should be conserved."""

from __future__ import annotations

import casadi as ca
import torch
from torch import Tensor

from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.state import MpmState
from costate.kernel import Kernel


def masses(model: MpmModel, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return the masses of all particles (particles) [kg; in 2D kg per metre of depth]."""
    return torch.cat([torch.full((b.count,), b.values()["density"] * b.volume, dtype=dtype) for b in model.bodies])


def momentum(model: MpmModel, state: MpmState) -> Tensor:
    """Return the momentum (..., dim) [kg m/s]."""
    return (masses(model, state.x.dtype)[:, None] * state.v).sum(-2)


def angular_momentum(model: MpmModel, state: MpmState) -> Tensor:
    """Return the angular momentum about the origin [kg m^2/s], (..., 1) in 2D and (..., 3) in 3D; particles spin, too."""
    m, dim = masses(model, state.x.dtype)[:, None], model.grid.dim
    C = state.C.unflatten(-1, (dim, dim))
    axes = [(0, 1)] if dim == 2 else [(1, 2), (2, 0), (0, 1)]
    spread = model.step.spline.moment * model.grid.dx**2
    rows = [
        state.x[..., i] * state.v[..., j] - state.x[..., j] * state.v[..., i] + spread * (C[..., j, i] - C[..., i, j])
        for i, j in axes
    ]
    return (m * torch.stack(rows, -1)).sum(-2)


def kinetic_energy(model: MpmModel, state: MpmState) -> Tensor:
    """Return the kinetic energy (...) [J], with that of the affine motion around particles."""
    spread = model.step.spline.moment * model.grid.dx**2
    each = state.v.square().sum(-1) + spread * state.C.square().sum(-1)
    return 0.5 * (masses(model, state.x.dtype) * each).sum(-1)


def elastic_energy(model: MpmModel, state: MpmState) -> Tensor:
    """Return the elastic energy (...) [J] of the materials that have one, with the parameters of the bodies."""
    total = torch.zeros((), dtype=state.x.dtype)
    for body, numbers in zip(model.bodies, state.laws, strict=True):
        energy = body.law.energy
        if energy is None:
            raise ValueError(f"the material of '{body.name}' has no energy")
        s = ca.SX.sym("s", len(body.rest))
        density = energy(s, body.dim, {name: ca.SX(v) for name, v in body.values().items()})
        total = total + body.volume * Kernel("energy", {"s": s}, {"e": density})(s=numbers).e.sum((-1, -2))
    return total


def height_energy(model: MpmModel, state: MpmState) -> Tensor:
    """Return the energy (...) [J] in the field of gravity."""
    g = torch.as_tensor(model.gravity, dtype=state.x.dtype)
    return -(masses(model, state.x.dtype) * (state.x @ g)).sum(-1)
