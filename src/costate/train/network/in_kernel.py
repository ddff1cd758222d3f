"""Networks as stages of a program: a policy that runs inside a compiled roll-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from torch import Tensor, nn

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.train.network.formula import ACTIVATIONS, Formula
from costate.train.network.network import chain, layer_of

SYMBOLIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "max": ca.fmax,
    "min": ca.fmin,
    "exp": ca.exp,
    "log": ca.log,
    "tanh": ca.tanh,
}
"""Operation of a formula -> its function of symbols."""


@dataclass(frozen=True)
class Stage:
    """A layer in a program."""

    module: nn.Module
    """Layer of torch, whose weights are read anew at every call."""
    name: str
    """Prefix of the names of its inputs."""

    @property
    def weights(self) -> dict[str, Tensor]:
        """Weights by name, (rows, n) or (n,); detached."""
        if not isinstance(self.module, (nn.Linear, nn.LayerNorm)):
            return {}
        weight, bias = self.module.weight, self.module.bias
        return {f"{self.name}.weight": weight.detach(), f"{self.name}.bias": bias.detach()}

    def add(self, b: ProgramBuilder, x: Var, weights: Sequence[Var]) -> Var:
        """Add the layer to a program; return its result."""
        if isinstance(self.module, nn.Linear):
            return _linear(b, x, *weights)
        if isinstance(self.module, nn.LayerNorm):
            epsilon = self.module.eps
            return b.trace(lambda v, w, c: _normalised(v, epsilon) * w + c, x, *weights)
        layer = layer_of(self.module, self.name)
        return b.trace(lambda v: _value(ACTIVATIONS[layer.kind].formula, v, layer.number), x)


def stages_of(policy: nn.Module, prefix: str = "layer") -> list[Stage]:
    """Return the layers of a chain, in order."""
    return [Stage(module, f"{prefix}{k}") for k, module in enumerate(chain(policy))]


def _linear(b: ProgramBuilder, x: Var, weight: Var, bias: Var) -> Var:
    """Add W x + b: an instance for every row of W."""
    n, m = x.size, bias.size
    rows, same = np.arange(m * n).reshape(m, n), np.tile(np.arange(n), (m, 1))
    inputs = [(weight, rows), (x, same), (bias, np.arange(m)[:, None])]
    return b.map(lambda w, v, c: ca.dot(w, v) + c, inputs, [None])[0]


def _normalised(v: ca.SX, epsilon: float) -> ca.SX:
    centred = v - ca.sum1(v) / v.numel()
    return centred / ca.sqrt(ca.sumsqr(centred) / v.numel() + epsilon)


def _value(part: Formula, x: ca.SX, a: float) -> Any:
    if isinstance(part, tuple):
        return SYMBOLIC[part[0]](*(_value(p, x, a) for p in part[1:]))
    return x if part == "x" else a if part == "a" else part
