"""Parametrisations: modules that turn free numbers into physical parameters that make sense.

    robot.learn("forearm_link", "mass", cs.params.Positive())

A parametrisation starts from the robot's own value unless `init` gives another one. Its only parameter is `raw`, unconstrained,
so any optimiser may move it anywhere. Any other `nn.Module` whose `forward` returns a tensor will do as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import torch
from casadi import SX
from torch import nn

Tensor = torch.Tensor


class Inertial(NamedTuple):
    """Mass distribution of a link."""

    mass: Tensor
    """[kg], shape (1,)."""
    com: Tensor
    """Centre of mass in the link frame [m], shape (3,)."""
    inertia: Tensor
    """Rotational inertia about the centre of mass, link axes [kg m^2], shape (3, 3)."""


class Parametrisation(nn.Module):
    """value = f(raw). Subclasses say how to go there (`value`) and back (`inverse`)."""

    raw: nn.Parameter | None

    def __init__(self, init: Any = None):
        super().__init__()
        self.register_parameter("raw", None)
        if init is not None:
            self.set(init)

    def set(self, value: Any) -> None:
        """Make this the current value. The first call decides the shape."""
        raw = self.inverse(_tensor(value)).detach()
        if self.raw is None:
            self.raw = nn.Parameter(raw.clone())
        else:
            with torch.no_grad():
                self.raw.copy_(raw)

    def forward(self) -> Any:
        if self.raw is None:
            raise RuntimeError(
                f"{type(self).__name__} has no value yet; pass init=, or hand it to robot.learn, which sets it"
            )
        return self.value(self.raw)

    def value(self, raw: Tensor) -> Any:
        raise NotImplementedError

    def inverse(self, value: Any) -> Tensor:
        raise NotImplementedError

    def raws(self) -> tuple[Tensor]:
        """See `costate.robot.folding`; subclasses that can be folded into kernels have a method `symbolic` of raw."""
        assert self.raw is not None
        return (self.raw,)


class Unconstrained(Parametrisation):
    """The value itself, of any shape."""

    def value(self, raw: Tensor) -> Tensor:
        return raw.clone()

    def symbolic(self, raw: SX) -> SX:
        return raw

    def inverse(self, value: Tensor) -> Tensor:
        return value


class Positive(Parametrisation):
    """minimum + exp(raw): steps of an optimiser are relative, which suits masses."""

    def __init__(self, init: Any = None, minimum: float = 0.0):
        self.minimum = float(minimum)
        super().__init__(init)

    def value(self, raw: Tensor) -> Tensor:
        return self.minimum + raw.exp()

    def symbolic(self, raw: SX) -> SX:
        return self.minimum + ca.exp(raw)

    def inverse(self, value: Tensor) -> Tensor:
        if not bool((value > self.minimum).all()):
            raise ValueError(
                f"Positive cannot start at {_show(value)}: it must be above its minimum {self.minimum:g}; pass init="
            )
        return (value - self.minimum).log()


class Bounded(Parametrisation):
    """lower + (upper - lower) / (1 + exp(-raw)). Bounds are numbers, or tensors of the value's shape."""

    lower: Tensor
    upper: Tensor

    def __init__(self, lower: Any, upper: Any, init: Any = None):
        # Buffers, which move with the module, exist only after nn.Module's own set-up: so the value comes last.
        super().__init__()
        self.register_buffer("lower", _tensor(lower))
        self.register_buffer("upper", _tensor(upper))
        if not bool((self.lower < self.upper).all()):
            raise ValueError(f"Bounded needs lower < upper, but got {_show(self.lower)} and {_show(self.upper)}")
        if init is not None:
            self.set(init)

    def value(self, raw: Tensor) -> Tensor:
        return self.lower + (self.upper - self.lower) * torch.sigmoid(raw)

    def inverse(self, value: Tensor) -> Tensor:
        if not bool(((value > self.lower) & (value < self.upper)).all()):
            raise ValueError(
                f"Bounded cannot start at {_show(value)}: it must lie between {_show(self.lower)} and "
                f"{_show(self.upper)}; pass init="
            )
        return torch.logit((value - self.lower) / (self.upper - self.lower))


class PositiveDefinite(Parametrisation):
    """Symmetric positive definite matrix L L^T, L lower triangular with positive diagonal (log-Cholesky)."""

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
                f"PositiveDefinite cannot start at {_show(value)}: it is not positive definite; pass init="
            )
        return _flatten(L)


class PhysicalInertia(Parametrisation):
    """Mass, centre of mass and inertia together, of some distribution of positive mass whatever the numbers are.

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
        mass, com, inertia = (_tensor(x) for x in value)
        if float(mass) <= 0:
            raise ValueError(
                f"PhysicalInertia cannot start from mass {float(mass):g} kg; pass init=(mass, com, inertia)"
            )
        second = _possible(torch.trace(inertia) / 2 * torch.eye(3, dtype=inertia.dtype) - inertia) / mass
        # Upper triangular factor: Cholesky of the matrix read backwards.
        S = torch.linalg.cholesky(second.flip(0, 1)).flip(0, 1)
        shear = torch.stack([S[i, j] for i, j in self._UPPER])
        return torch.cat([mass.reshape(1).log() / 2, torch.diag(S).log(), shear, com.reshape(3)])


class Rotation(Parametrisation):
    """Rotation matrix start * exp([raw]x). `raw` is a rotation vector [rad], zero at the start; for a joint's "rotation"."""

    start: Tensor

    def __init__(self, init: Any = None):
        super().__init__()
        self.register_buffer("start", torch.eye(3, dtype=torch.float64))
        if init is not None:
            self.set(init)

    def value(self, raw: Tensor) -> Tensor:
        return self.start.to(raw.dtype) @ torch.linalg.matrix_exp(_cross(raw))

    def inverse(self, value: Tensor) -> Tensor:
        self.start = value.to(self.start.dtype).clone()
        return torch.zeros(3, dtype=value.dtype)


class RollPitchYaw(Parametrisation):
    """Rotation matrix Rz(yaw) Ry(pitch) Rx(roll), as URDF gives it; `raw` are the angles [rad]. Singular at pitch +-pi/2."""

    def value(self, raw: Tensor) -> Tensor:
        return rpy_matrix(raw)

    def symbolic(self, raw: SX) -> SX:
        return symbolic_rpy_matrix(raw)

    def inverse(self, value: Tensor) -> Tensor:
        R = value
        roll = torch.atan2(R[2, 1], R[2, 2])
        pitch = torch.atan2(-R[2, 0], torch.hypot(R[2, 1], R[2, 2]))
        return torch.stack([roll, pitch, torch.atan2(R[1, 0], R[0, 0])])


class OfState(nn.Module):
    """A parameter that a network computes from the state: net(cat(q, v)) (..., n), reshaped to (..., *shape).

    inputs: which of "q" and "v" the network sees. For example friction that depends on speed and position.
    """

    def __init__(self, net: nn.Module, inputs: Sequence[str] = ("q", "v"), shape: Sequence[int] = (1,)):
        super().__init__()
        self.net, self.inputs, self.shape = net, tuple(inputs), tuple(shape)

    def forward(self, q: Tensor, v: Tensor) -> Tensor:
        state = {"q": q, "v": v}
        batch = torch.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        x = torch.cat([state[name].expand(*batch, -1) for name in self.inputs], -1)
        weight = next(self.net.parameters(), None)
        y = self.net(x if weight is None else x.to(weight.dtype))
        return y.reshape(*batch, *self.shape)


def rpy_matrix(rpy: Tensor) -> Tensor:
    """Rz(yaw) Ry(pitch) Rx(roll) of angles (..., 3) [rad], shape (..., 3, 3)."""
    c, s = torch.cos(rpy), torch.sin(rpy)
    (cr, cp, cy), (sr, sp, sy) = c.unbind(-1), s.unbind(-1)
    rows = [
        torch.stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr], -1),
        torch.stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr], -1),
        torch.stack([-sp, cp * sr, cp * cr], -1),
    ]
    return torch.stack(rows, -2)


def symbolic_rpy_matrix(rpy: SX) -> SX:
    """The same, as an expression."""
    (cr, cp, cy), (sr, sp, sy) = ca.vertsplit(ca.cos(rpy)), ca.vertsplit(ca.sin(rpy))
    rows = [
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    ]
    return ca.vertcat(*[ca.horzcat(*row) for row in rows])


def _possible(second: Tensor) -> Tensor:
    """A positive definite second moment: the given one, or the nearest with a warning."""
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


def _tensor(value: Any) -> Any:
    """Float64, unless it is a tensor already. Tuples (Inertial) are left to the parametrisation."""
    if isinstance(value, tuple | list) and any(isinstance(x, Tensor) or hasattr(x, "__len__") for x in value):
        return value
    return value.detach() if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.float64)


def _triangle(raw: Tensor) -> Tensor:
    """Lower triangular matrix with diagonal exp(raw[:n]) and the rest row by row."""
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


def _cross(w: Tensor) -> Tensor:
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*w.shape[:-1], 3, 3)


def _show(x: Tensor) -> str:
    flat = [f"{float(v):.6g}" for v in x.reshape(-1)]
    return flat[0] if len(flat) == 1 else "[" + ", ".join(flat) + "]"
