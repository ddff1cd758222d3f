"""Parametrisations of inertias: positive definite matrices, and mass distributions that some body has."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.robot.params.parametrisation import Parametrisation, as_tensor, shown


class Inertial(NamedTuple):
    """The mass distribution of a link."""

    mass: Tensor
    """Mass [kg], shape (1,)."""
    com: Tensor
    """Centre of mass in the link frame [m], shape (3,)."""
    inertia: Tensor
    """Rotational inertia about the centre of mass, link axes [kg m^2], shape (3, 3)."""


class PositiveDefinite(Parametrisation):
    """A symmetric positive definite matrix L L^T, L lower triangular with positive diagonal (log-Cholesky)."""

    def value(self, raw: Tensor) -> Tensor:
        L = _triangle(raw)
        return L @ L.mT

    def symbolic(self, raw: SX) -> SX:
        L = _symbolic_triangle(raw)
        return L @ L.T

    def inverse(self, value: Tensor) -> Tensor:
        L, info = torch.linalg.cholesky_ex((value + value.mT) / 2)
        if int(info) != 0:
            raise ValueError(
                f"PositiveDefinite cannot start at {shown(value)}: it is not positive definite; pass init="
            )
        return _flatten(L)


class PhysicalInertia(Parametrisation):
    """Mass, centre of mass and inertia together: those of some distribution of positive mass, whatever raw is.

    Log-Cholesky factors of the 4 x 4 pseudo-inertia (Rucker & Wensing, 2022): ten numbers (alpha, d1, d2, d3, s12, s13, s23, t)
    with mass = exp(2 alpha), centre of mass t, and second moment about it mass * S S^T, S upper triangular with diagonal
    exp(d). For the parameter "inertial" of a link.
    """

    _UPPER = ((0, 1), (0, 2), (1, 2))

    def value(self, raw: Tensor) -> Inertial:
        mass = (2 * raw[:1]).exp()
        S = torch.diag(raw[1:4].exp())
        for k, (i, j) in enumerate(self._UPPER):
            S = S + raw[4 + k] * _unit(i, j, raw)
        second = mass * (S @ S.T)
        return Inertial(mass, raw[7:].clone(), torch.trace(second) * torch.eye(3, dtype=raw.dtype) - second)

    def symbolic(self, raw: SX) -> tuple[SX, SX, SX]:
        mass = ca.exp(2 * raw[0])
        S = ca.diag(ca.exp(raw[1:4]))
        for k, (i, j) in enumerate(self._UPPER):
            S[i, j] = raw[4 + k]
        second = mass * (S @ S.T)
        return mass, raw[7:], ca.trace(second) * SX.eye(3) - second

    def inverse(self, value: Inertial) -> Tensor:
        mass, com, inertia = (as_tensor(x) for x in value)
        if float(mass) <= 0:
            raise ValueError(
                f"PhysicalInertia cannot start from mass {float(mass):g} kg; pass init=(mass, com, inertia)"
            )
        second = _possible(torch.trace(inertia) / 2 * torch.eye(3, dtype=inertia.dtype) - inertia) / mass
        # Upper triangular factor: Cholesky of the matrix read backwards.
        S = torch.linalg.cholesky(second.flip(0, 1)).flip(0, 1)
        shear = torch.stack([S[i, j] for i, j in self._UPPER])
        return torch.cat([mass.reshape(1).log() / 2, torch.diag(S).log(), shear, com.reshape(3)])


def _possible(second: Tensor) -> Tensor:
    """Return a positive definite second moment: the given one, or the nearest with a warning."""
    values, vectors = torch.linalg.eigh(second)
    least = 1e-6 * float(values.abs().max())
    if float(values.min()) >= least:
        return second
    if float(values.min()) < -least:
        warnings.warn(
            "the inertia given is impossible for any distribution of mass (its principal moments violate the triangle "
            "inequality); PhysicalInertia starts from the nearest possible one",
            stacklevel=4,
        )
    return vectors @ torch.diag(values.clamp(min=max(least, 1e-12))) @ vectors.T


def _triangle(raw: Tensor) -> Tensor:
    """Return the lower triangular matrix with diagonal exp(raw[:n]) and the rest row by row."""
    n = int(((8 * raw.shape[-1] + 1) ** 0.5 - 1) / 2)
    rows, columns = torch.tril_indices(n, n, -1)
    below = torch.zeros(n, n, dtype=raw.dtype).index_put((rows, columns), raw[n:])
    return torch.diag(raw[:n].exp()) + below


def _symbolic_triangle(raw: SX) -> SX:
    n = int(((8 * raw.numel() + 1) ** 0.5 - 1) / 2)
    L = ca.diag(ca.exp(raw[:n]))
    below = [(i, j) for i in range(n) for j in range(i)]
    for k, (i, j) in enumerate(below):
        L[i, j] = raw[n + k]
    return L


def _flatten(L: Tensor) -> Tensor:
    n = L.shape[-1]
    rows, columns = torch.tril_indices(n, n, -1)
    return torch.cat([torch.diag(L).log(), L[rows, columns]])


def _unit(i: int, j: int, like: Tensor) -> Tensor:
    E = torch.zeros(3, 3, dtype=like.dtype)
    E[i, j] = 1
    return E
