"""Rotations of batches of tensors, as quaternions x, y, z, w."""

from __future__ import annotations

import torch
from torch import Tensor


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return the quaternion product (..., 4), which is the rotation b followed by a."""
    u, v, s, t = a[..., :3], b[..., :3], a[..., 3:], b[..., 3:]
    return torch.cat([s * v + t * u + torch.linalg.cross(u, v), s * t - (u * v).sum(-1, keepdim=True)], -1)


def conjugate(a: Tensor) -> Tensor:
    """Return the inverse rotation, (..., 4)."""
    return torch.cat([-a[..., :3], a[..., 3:]], -1)


def rotated(a: Tensor, x: Tensor) -> Tensor:
    """Return vectors x (..., 3), turned by a."""
    u = a[..., :3]
    once = 2 * torch.linalg.cross(u, x)
    return x + a[..., 3:] * once + torch.linalg.cross(u, once)


def turn_between(a: Tensor, b: Tensor) -> Tensor:
    """Return the rotation vector (..., 3) [rad], in the axes of a, that leads from a to b; differentiable below half a turn."""
    d = product(conjugate(a), b)
    d = torch.where(d[..., 3:] < 0, -d, d)
    sine = (d[..., :3].square().sum(-1, keepdim=True) + 1e-30).sqrt()  # a root at 0 has no derivative
    return d[..., :3] * (2 * torch.atan2(sine, d[..., 3:]) / sine)


def turned(a: Tensor, x: Tensor) -> Tensor:
    """Return a, turned further by the rotation vector x (..., 3) [rad] in its own axes."""
    angle = (x.square().sum(-1, keepdim=True) + 1e-30).sqrt()
    return product(a, torch.cat([x * ((angle / 2).sin() / angle), (angle / 2).cos()], -1))
