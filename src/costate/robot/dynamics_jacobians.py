"""Jacobians of dynamics, as named tuples."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class ForwardDynamicsJacobians(NamedTuple):
    """Accelerations of a robot, and their changes: a' = a + da_dq dq + da_dv dv + da_dtau dtau."""

    a: Tensor
    """Accelerations [rad/s^2 or m/s^2], shape (..., nv)."""
    da_dq: Tensor
    """Derivative in the configuration, along each velocity (tangent space), shape (..., nv, nv)."""
    da_dv: Tensor
    """Derivative in v, shape (..., nv, nv)."""
    da_dtau: Tensor
    """Derivative in tau, the inverse of the mass matrix, shape (..., nv, nv)."""


class InverseDynamicsJacobians(NamedTuple):
    """Changes of a robot's torques: tau' = tau + dtau_dq dq + dtau_dv dv + dtau_da da."""

    dtau_dq: Tensor
    """Derivative in the configuration, along each velocity (tangent space), shape (..., nv, nv)."""
    dtau_dv: Tensor
    """Derivative in v, shape (..., nv, nv)."""
    dtau_da: Tensor
    """Derivative in a, the mass matrix, shape (..., nv, nv)."""
