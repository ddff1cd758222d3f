"""Small networks that are compiled into a step: their weights are one vector, an input of the kernel.

    y = scale * g(x / input_scales),   g = W_n a(... a(W_1 x + b_1) ...) + b_n

`forward` says it in torch, `symbolic` in the expressions that kernels are made of. With all weights at zero every network gives
zero, whatever its constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import torch
from casadi import SX
from torch import Tensor, nn

from costate.core.arrays import Array
from costate.core.names import unknown

MOST_LAYERS = 2
"""Number of hidden layers at most: networks are written out as straight-line code."""
START = 0.3
"""Size of the last layer's weights at the start, relative to Xavier's, of networks whose output is a square or a monotone
function: at zero these would have no gradient."""

Weights = Sequence[tuple[Any, Any]]
"""Matrix (outputs, inputs) and bias (outputs,) of every layer."""


@dataclass(frozen=True)
class Activation:
    """A function between layers, in torch and as an expression."""

    torch: Callable[[Tensor], Tensor]
    symbolic: Callable[[SX], SX]


def _elu(x: SX) -> SX:
    return ca.if_else(x > 0, x, ca.expm1(ca.fmin(x, 0)))


def _softplus(x: SX) -> SX:
    return ca.fmax(x, 0) + ca.log1p(ca.exp(-ca.fabs(x)))


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(torch.tanh, ca.tanh),
    "elu": Activation(nn.functional.elu, _elu),
    "softplus": Activation(lambda x: torch.logaddexp(x, x.new_zeros(())), _softplus),
}
"""Name -> function. All of them grow with their argument, which monotone networks rely on."""


@dataclass(frozen=True)
class Constraint:
    """A property that a network has by construction."""

    what: str
    with_: tuple[str, ...] = ()
    """Constraints that it may stand beside."""
    starts_small: bool = True
    """True if the network starts at small random numbers, False if at zero."""


CONSTRAINTS: dict[str, Constraint] = {
    "odd": Constraint("f(-x) = -f(x)", ("monotone",), starts_small=False),
    "monotone": Constraint("f does not fall where an input grows: weights are squares", ("odd",)),
    "non_negative": Constraint("f(x) >= 0: the output is a square"),
    "dissipative": Constraint("f = -g(x)^2 * speed: the force takes energy out of the motion that it acts on"),
}
"""Name -> what it means."""


class Network(nn.Module):
    """A small fully connected network of named inputs.

    Args:
        inputs: Names of the inputs, one per number.
        outputs: Number of outputs.
        hidden: Sizes of the one or two hidden layers.
        activation: Name in ACTIVATIONS.
        constraints: Names in CONSTRAINTS.
        scale: Unit of the outputs: what a weight of 1 gives.
        input_scales: Units of the inputs, by name: what an input is divided by; 1 where not given.
        seed: Seed of the weights at the start.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        outputs: int = 1,
        hidden: Sequence[int] | int = (8,),
        activation: str = "tanh",
        constraints: str | Iterable[str] = (),
        scale: float = 1.0,
        input_scales: Mapping[str, float] | None = None,
        seed: int = 0,
    ):
        super().__init__()
        self.inputs, self.outputs = tuple(inputs), int(outputs)
        self.hidden = (hidden,) if isinstance(hidden, int) else tuple(int(n) for n in hidden)
        self.activation = activation
        self.constraints = (constraints,) if isinstance(constraints, str) else tuple(constraints)
        self.scale = float(scale)
        self.input_scales = tuple(_scale(input_scales or {}, name) for name in self.inputs)
        self._check(input_scales or {})
        sizes = [len(self.inputs), *self.hidden, self.outputs]
        self.shapes = tuple((n, m) for m, n in pairwise(sizes))
        self.weights = nn.ParameterList(torch.zeros(shape) for shape in self.shapes)
        self.biases = nn.ParameterList(torch.zeros(shape[0]) for shape in self.shapes)
        self.set_vector(self.starts(1, seed)[0])

    # --- weights as one vector ------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of weights and biases."""
        return sum(n * m + n for n, m in self.shapes)

    def vector(self) -> Tensor:
        """Return all weights and biases, layer after layer, (size,)."""
        parts = [x.flatten() for pair in zip(self.weights, self.biases, strict=True) for x in pair]
        return torch.cat(parts)

    def numbers(self) -> Array:
        """Return the present weights and biases as numbers, (size,): inside of transforms of `torch.func`, too."""
        pairs = zip(self.weights, self.biases, strict=True)
        return np.concatenate([np.ravel(x.tolist()) for pair in pairs for x in pair])

    @torch.no_grad()
    def set_vector(self, vector: Tensor) -> None:
        """Take over weights and biases, (size,)."""
        if vector.shape != (self.size,):
            raise ValueError(f"weights have shape {tuple(vector.shape)}; expected ({self.size},)")
        for (W, b), own in zip(self.layers(vector), zip(self.weights, self.biases, strict=True), strict=True):
            own[0].copy_(W)
            own[1].copy_(b)

    def layers(self, vector: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return matrix (..., outputs, inputs) and bias (..., outputs) of every layer of vectors (..., size)."""
        found, at = [], 0
        for n, m in self.shapes:
            W, b = vector[..., at : at + n * m], vector[..., at + n * m : at + n * m + n]
            found.append((W.unflatten(-1, (n, m)), b))
            at += n * m + n
        return found

    def starts(self, count: int, seed: int = 0) -> Tensor:
        """Return weights to start from, (count, size): Xavier's, with a last layer of zeros where the constraints allow it, so that
        the network is silent at first."""
        random = torch.Generator().manual_seed(seed)
        small = any(CONSTRAINTS[c].starts_small for c in self.constraints)
        parts = []
        for k, (n, m) in enumerate(self.shapes):
            last = k == len(self.shapes) - 1
            size = (6 / (n + m)) ** 0.5 * ((START if small else 0.0) if last else 1.0)
            W = size * (2 * torch.rand(count, n * m, generator=random, dtype=torch.float64) - 1)
            b = (0.0 if last else 0.5) * (2 * torch.rand(count, n, generator=random, dtype=torch.float64) - 1)
            parts += [W, b]
        return torch.cat(parts, -1)

    # --- values ---------------------------------------------------------------------------------------------------

    def forward(self, x: Tensor, speed: Tensor | None = None, vector: Tensor | None = None) -> Tensor:
        """Return the outputs (..., outputs) of inputs (..., inputs), in torch.

        speed: (..., outputs), which dissipative networks oppose. vector: other weights, (..., size).
        """
        layers = self.layers(self.vector() if vector is None else vector)
        x = x / torch.tensor(self.input_scales, dtype=x.dtype)
        act = ACTIVATIONS[self.activation].torch

        def apply(x: Tensor, layers: Weights) -> Tensor:
            for k, (W, b) in enumerate(layers):
                x = (W @ x[..., None])[..., 0] + b
                x = act(x) if k < len(layers) - 1 else x
            return x

        return self._constrained(apply, layers, x, speed)

    def symbolic(self, vector: SX, x: SX, speed: SX | None = None) -> SX:
        """Return the outputs (outputs,) as an expression of weights (size,) and inputs (inputs,)."""
        layers, at = [], 0
        for n, m in self.shapes:
            layers.append((ca.reshape(vector[at : at + n * m], m, n).T, vector[at + n * m : at + n * m + n]))
            at += n * m + n
        act = ACTIVATIONS[self.activation].symbolic

        def apply(x: SX, layers: Weights) -> SX:
            for k, (W, b) in enumerate(layers):
                x = W @ x + b
                x = act(x) if k < len(layers) - 1 else x
            return x

        units = ca.DM([1 / s for s in self.input_scales])
        return self._constrained(apply, layers, x * units, speed)

    def _constrained(self, apply: Callable, layers: Weights, x: Any, speed: Any) -> Any:
        if "monotone" in self.constraints:
            layers = [(W**2, b) for W, b in layers]
        y = (apply(x, layers) - apply(-x, layers)) / 2 if "odd" in self.constraints else apply(x, layers)
        if "non_negative" in self.constraints:
            y = y**2
        if "dissipative" in self.constraints:
            if speed is None:
                raise ValueError("a dissipative network needs the speed that it opposes: pass speed=")
            y = -(y**2) * speed
        return self.scale * y

    # --- what it uses ---------------------------------------------------------------------------------------------

    def importance(self, vector: Tensor | None = None) -> dict[str, float]:
        """Return how much each input counts: the length of its column in the first layer. 0: the network does not see it."""
        W = self.layers(self.vector() if vector is None else vector)[0][0]
        return dict(zip(self.inputs, W.detach().norm(dim=-2).tolist(), strict=True))

    def _check(self, given: Mapping[str, float]) -> None:
        if not 1 <= len(self.hidden) <= MOST_LAYERS or min(self.hidden) < 1:
            raise ValueError(f"hidden is {self.hidden}; expected the sizes of one or two hidden layers, such as (8,)")
        if not self.inputs:
            raise ValueError("a network needs at least one input")
        if self.activation not in ACTIVATIONS:
            raise ValueError(unknown("activation", self.activation, ACTIVATIONS))
        for one in self.constraints:
            if one not in CONSTRAINTS:
                raise ValueError(unknown("constraint", one, CONSTRAINTS))
            for other in self.constraints:
                if other != one and other not in CONSTRAINTS[one].with_:
                    raise ValueError(f"a network cannot be '{one}' and '{other}' at once: choose one of them")
        bad = [name for name, s in {**given, "scale": self.scale}.items() if not (abs(s) < float("inf") and s != 0)]
        if bad:
            raise ValueError(f"the scale of {', '.join(bad)} must be a finite number that is not zero")
        used = {key for name in self.inputs for key in _keys(name)}
        strange = [name for name in given if name not in used]
        if strange:
            raise ValueError(unknown("input in input_scales", strange[0], self.inputs))

    def extra_repr(self) -> str:
        kind = f", {', '.join(self.constraints)}" if self.constraints else ""
        return f"{' '.join(self.inputs)} -> {' '.join(map(str, (*self.hidden, self.outputs)))}, {self.activation}{kind}"


def _keys(name: str) -> list[str]:
    """Return the names that the unit of an input goes by, most special first: "velocity.x:leg", "velocity:leg", "velocity.x",
    "velocity"."""
    kind, colon, owner = name.partition(":")
    whole = kind.partition(".")[0]
    return [name, f"{whole}{colon}{owner}", kind, whole]


def _scale(given: Mapping[str, float], name: str) -> float:
    return float(next((given[key] for key in _keys(name) if key in given), 1.0))
