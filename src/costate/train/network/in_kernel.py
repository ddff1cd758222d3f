"""Networks as stages of a program: a policy that runs inside a compiled roll-out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
from casadi import SX
from torch import Tensor, nn

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var


def _sigmoid(x: SX) -> SX:
    return 1 / (1 + ca.exp(-x))


ACTIVATIONS: dict[type[nn.Module], Callable[[Any, SX], SX]] = {
    nn.ELU: lambda layer, x: ca.fmax(x, 0) + layer.alpha * (ca.exp(ca.fmin(x, 0)) - 1),
    nn.ReLU: lambda layer, x: ca.fmax(x, 0),
    nn.Sigmoid: lambda layer, x: _sigmoid(x),
    nn.SiLU: lambda layer, x: x * _sigmoid(x),
    nn.Softplus: lambda layer, x: (
        (ca.fmax(layer.beta * x, 0) + ca.log1p(ca.exp(-ca.fabs(layer.beta * x)))) / layer.beta
    ),
    nn.Tanh: lambda layer, x: ca.tanh(x),
}
"""Layer without weights -> its value, given the layer and the symbols before it."""


@dataclass(frozen=True)
class Stage:
    """A layer in a program."""

    module: nn.Module
    """Layer of torch, whose weights are read anew at every call."""
    name: str
    """Prefix of the names of its inputs."""

    @property
    def weights(self) -> dict[str, Tensor]:
        """Weights by name, (rows, n) or (n,), detached."""
        if not isinstance(self.module, nn.Linear | nn.LayerNorm):
            return {}
        return {f"{self.name}.{part}": getattr(self.module, part).detach() for part in ("weight", "bias")}

    def inputs(self, b: ProgramBuilder) -> list[Var]:
        """Declare the weights as inputs of a program, which all samples share; return them as `add` takes them."""
        found = [b.input(name, tuple(t.shape)) for name, t in self.weights.items()]
        return [b.common(found[0]), *found[1:]] if isinstance(self.module, nn.Linear) else found

    def add(self, b: ProgramBuilder, x: Var, weights: Sequence[Var]) -> Var:
        """Add the layer to a program; return its result."""
        module = self.module
        if isinstance(module, nn.Linear):
            return _linear(b, x, *weights)
        if isinstance(module, nn.LayerNorm):
            return b.trace(lambda v, w, c: _normalised(v, module.eps) * w + c, x, *weights)
        return b.trace(lambda v: ACTIVATIONS[type(module)](module, v), x)


def stages_of(policy: nn.Module, prefix: str = "layer") -> list[Stage]:
    """Return the layers of a chain, in order; raise an error for one that cannot run in a kernel."""
    stages = [Stage(module, f"{prefix}{k}") for k, module in enumerate(_chain(policy))]
    for stage in stages:
        if not isinstance(stage.module, (nn.Linear, nn.LayerNorm, *ACTIVATIONS)):
            known = ", ".join(kind.__name__ for kind in ACTIVATIONS)
            raise ValueError(f"layer {stage.module} cannot run in a kernel; use Linear, LayerNorm, {known}")
    return stages


def _chain(module: nn.Module) -> Iterator[nn.Module]:
    if isinstance(module, nn.Sequential):
        for each in module:
            yield from _chain(each)
    elif not isinstance(module, nn.Identity):
        yield module


def _linear(b: ProgramBuilder, x: Var, weight: Var, bias: Var) -> Var:
    """Add W x + b."""
    return b.add(b.dense(weight, x), bias)


def _normalised(v: SX, epsilon: float) -> SX:
    centred = v - ca.sum1(v) / v.numel()
    return centred / ca.sqrt(ca.sumsqr(centred) / v.numel() + epsilon)
