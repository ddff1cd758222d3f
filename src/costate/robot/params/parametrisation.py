"""Parametrisations by one formula: any value, positive values, values between bounds, and values of a network of the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import torch
from casadi import SX
from torch import Tensor, nn

from costate.core.constants import constant
from costate.core.numbers import number_type


class Parametrisation(nn.Module):
    """A map value = f(raw). Subclasses compute it (`value`) and its inverse (`inverse`)."""

    raw: nn.Parameter | None

    def __init__(self, init: Any = None):
        super().__init__()
        self.register_parameter("raw", None)
        if init is not None:
            self.set(init)

    def set(self, value: Any, dtype: torch.dtype | None = None) -> None:
        """Make this the current value. The first call decides the shape and the number type.

        dtype: Number type; None: that of the tensors in the value, or torch's default.
        """
        raw = self.inverse(as_tensor(value)).detach()
        if self.raw is None:
            parts = value if isinstance(value, tuple | list) else (value,)
            kind = dtype or number_type([x for x in parts if not isinstance(x, tuple | list)])
            self.raw = nn.Parameter(raw.to(kind, copy=True))
            self.to(kind)  # bounds, too
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
        """Return f(raw)."""
        raise NotImplementedError

    def inverse(self, value: Any) -> Tensor:
        """Return raw with f(raw) = value."""
        raise NotImplementedError

    def raws(self) -> tuple[Tensor]:
        """Return raw. Subclasses that can be folded into kernels have a method `symbolic` of it, see `costate.robot.folding`."""
        assert self.raw is not None
        return (self.raw,)


class Unconstrained(Parametrisation):
    """A value of any shape, which is raw itself."""

    def value(self, raw: Tensor) -> Tensor:
        return raw.clone()

    def symbolic(self, raw: SX) -> SX:
        return raw

    def inverse(self, value: Tensor) -> Tensor:
        return value


class Positive(Parametrisation):
    """A value minimum + exp(raw): steps of an optimiser are relative, which suits masses."""

    def __init__(self, init: Any = None, minimum: float = 0.0):
        self.minimum = float(constant(minimum, "minimum of a positive parameter"))
        super().__init__(init)

    def value(self, raw: Tensor) -> Tensor:
        return self.minimum + raw.exp()

    def symbolic(self, raw: SX) -> SX:
        return self.minimum + ca.exp(raw)

    def inverse(self, value: Tensor) -> Tensor:
        if not bool((value > self.minimum).all()):
            raise ValueError(
                f"Positive cannot start at {shown(value)}: it must be above its minimum {self.minimum:g}; pass init="
            )
        return (value - self.minimum).log()


class Bounded(Parametrisation):
    """A value lower + (upper - lower) / (1 + exp(-raw)). Bounds are numbers, or tensors of the value's shape."""

    lower: Tensor
    upper: Tensor

    def __init__(self, lower: Any, upper: Any, init: Any = None):
        # Buffers, which move with the module, exist only after nn.Module's own set-up: so the value comes last.
        super().__init__()
        self.register_buffer("lower", as_tensor(constant(lower, "lower bound of a parameter")))
        self.register_buffer("upper", as_tensor(constant(upper, "upper bound of a parameter")))
        if not bool((self.lower < self.upper).all()):
            raise ValueError(f"Bounded needs lower < upper, but got {shown(self.lower)} and {shown(self.upper)}")
        if init is not None:
            self.set(init)

    def value(self, raw: Tensor) -> Tensor:
        lower, upper = self.lower.to(raw.dtype), self.upper.to(raw.dtype)
        return lower + (upper - lower) * torch.sigmoid(raw)

    def inverse(self, value: Tensor) -> Tensor:
        if not bool(((value > self.lower) & (value < self.upper)).all()):
            raise ValueError(
                f"Bounded cannot start at {shown(value)}: it must lie between {shown(self.lower)} and "
                f"{shown(self.upper)}; pass init="
            )
        return torch.logit((value - self.lower) / (self.upper - self.lower))


class OfState(nn.Module):
    """A parameter that a network computes from the state: net(cat(q, v)) (..., n), reshaped to (..., *shape).

    inputs: those of "q" and "v" that the network sees. An example is friction that depends on speed and position.
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


def as_tensor(value: Any) -> Any:
    """Return a tensor, float64 unless it is one already. Tuples (Inertial) are left to the parametrisation."""
    if isinstance(value, tuple | list) and any(isinstance(x, Tensor) or hasattr(x, "__len__") for x in value):
        return value
    return value.detach() if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.float64)


def shown(x: Tensor) -> str:
    """Return the numbers of a tensor as text for messages."""
    flat = [f"{float(v):.6g}" for v in x.reshape(-1)]
    return flat[0] if len(flat) == 1 else "[" + ", ".join(flat) + "]"
