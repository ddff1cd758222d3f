"""Residual models: networks that add torques which the analytic dynamics lacks.

    robot.augment(cs.residual.JointFriction(robot.nv))
    robot.augment(cs.residual.TorqueNetwork(robot.nq, robot.nv))

A residual is a module whose forward takes any of q, v and a by these names and returns torques (..., nv) that the joints need
on top: tau = M a + h + residual, positive along v like damping. These networks start at zero, so that a robot with a new one
moves as before.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

ARGUMENTS = ("q", "v", "a")


class JointFriction(nn.Module):
    """A small network per joint, from that joint's own velocity and position to its torque.

    Coulomb, viscous and Stribeck friction: `hidden` units tanh(w v + b) per joint, with sharp and gentle slopes to start with.
    Ripple of motors and gears: a Fourier series in the joint's position with `harmonics` terms.
    """

    scale: Tensor

    def __init__(self, nv: int, hidden: int = 16, harmonics: int = 0, scale: float | Tensor = 1.0, speed: float = 1.0):
        """Make a network that returns zero.

        scale: typical friction [N m or N], a number or (nv,); speed: typical joint speed [rad/s or m/s].
        Ripple is for robots whose q and v have the same length.
        """
        super().__init__()
        slopes = torch.logspace(-0.3, 1.7, hidden).expand(nv, hidden) / speed
        self.register_buffer("scale", torch.as_tensor(scale, dtype=slopes.dtype).expand(nv).clone())
        self.slope = nn.Parameter(slopes.clone())
        self.shift = nn.Parameter(torch.zeros(nv, hidden))
        self.weight = nn.Parameter(torch.zeros(nv, hidden))
        self.viscous = nn.Parameter(torch.zeros(nv))
        self.ripple = nn.Parameter(torch.zeros(nv, 2 * harmonics))

    def forward(self, q: Tensor, v: Tensor) -> Tensor:
        x = v.to(self.weight.dtype)
        units = torch.tanh(self.slope * x[..., None] + self.shift) - torch.tanh(self.shift)
        torque = (self.weight * units).sum(-1) + self.viscous * x
        if n := self.ripple.shape[-1] // 2:
            angle = q.to(x.dtype)[..., None] * torch.arange(1, n + 1, dtype=x.dtype)
            torque = torque + (self.ripple * torch.cat([angle.sin(), angle.cos()], -1)).sum(-1)
        return self.scale.to(x.dtype) * torque


class TorqueNetwork(nn.Module):
    """A network of the whole state: (sin q, cos q, v), and the accelerations if asked for, to torques."""

    def __init__(
        self, nq: int, nv: int, hidden: Sequence[int] = (64, 64), scale: float | Tensor = 1.0, speed: float = 1.0
    ):
        """Make a network that returns zero.

        scale: typical torque [N m or N], a number or (nv,); speed: typical joint speed [rad/s or m/s].
        """
        super().__init__()
        self.speed = float(speed)
        self.net = mlp(2 * nq + nv, hidden, nv)
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.get_default_dtype()).expand(nv).clone())
        nn.init.zeros_(self.net[-1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(self.net[-1].bias)  # type: ignore[arg-type]

    def forward(self, q: Tensor, v: Tensor) -> Tensor:
        torque = self.net(torch.cat([torch.sin(q), torch.cos(q), v / self.speed], -1).to(self.net[0].weight.dtype))  # type: ignore[arg-type]
        return self.scale.to(torque.dtype) * torque


def mlp(n_in: int, hidden: Sequence[int], n_out: int) -> nn.Sequential:
    """Return fully connected layers with tanh between them."""
    sizes = [n_in, *hidden]
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], n_out))


class Residuals(nn.ModuleList):
    """The residuals of one robot, added up."""

    def add(self, module: nn.Module) -> nn.Module:
        """Add a residual and return it."""
        if not isinstance(module, nn.Module):
            raise TypeError(f"a residual is an nn.Module, an object and not a class; {module!r} given")
        names = inspect.signature(module.forward).parameters
        unknown = [n for n, p in names.items() if n not in ARGUMENTS and p.default is p.empty]
        if unknown or not names:
            raise ValueError(
                f"a residual's forward takes any of q, v, a by these names, but {type(module).__name__} takes "
                f"({', '.join(names)})"
            )
        self.append(module)
        return module

    def torque(self, nv: int, q: Tensor, v: Tensor, a: Tensor | None) -> Tensor:
        """Return the sum of all residuals (..., nv); a is None where accelerations are not known yet."""
        total: Tensor | None = None
        state = {"q": q, "v": v, "a": a}
        for module in self:
            wanted = [n for n in ARGUMENTS if n in inspect.signature(module.forward).parameters]
            if a is None and "a" in wanted:
                raise ValueError(
                    f"residual {type(module).__name__} depends on accelerations, which forward dynamics is to find; "
                    "let it depend on q and v only"
                )
            out = module(**{n: state[n] for n in wanted})
            if out.shape[-1:] != (nv,):
                raise ValueError(
                    f"residual {type(module).__name__} gave shape {tuple(out.shape)}, expected (..., {nv})"
                )
            total = out if total is None else total + out
        assert total is not None
        return total
