"""Shape of a network, and where its numbers lie in one vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.train.dense.parts import ACTIVATIONS, padded


@dataclass(frozen=True)
class Shape:
    """Inputs, hidden layers of `Linear`, activation and `LayerNorm`, and a `Linear` layer."""

    inputs: int
    hidden: tuple[int, ...]
    activation: type[nn.Module]
    epsilon: float
    """That of the layer norms."""
    outputs: int = 1

    @staticmethod
    def of(network: nn.Sequential) -> Shape:
        """Return the shape of a network; raise an error if it is of another kind."""
        layers = list(network)[:-1]
        kind = type(layers[1]) if len(layers) > 1 else None
        expected = [nn.Linear, kind, nn.LayerNorm] * (len(layers) // 3) + [nn.Linear]
        linears = [x for x in network if isinstance(x, nn.Linear)]
        norms = [x for x in network if isinstance(x, nn.LayerNorm)]
        known = [type(x) for x in network] == expected and kind in ACTIVATIONS
        if kind is None or not known or getattr(layers[1], "alpha", 1.0) != 1.0:
            names = " or ".join(k.__name__ for k in ACTIVATIONS)
            raise ValueError(
                f"{network} has no compiled code; expected layers of Linear, {names}, LayerNorm, then a Linear layer"
            )
        units = tuple(x.out_features for x in linears)
        return Shape(linears[0].in_features, units[:-1], kind, norms[0].eps, units[-1])

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and units of each hidden layer."""
        return list(zip((self.inputs, *self.hidden), self.hidden, strict=False))

    @cached_property
    def places(self) -> dict[str, tuple[int, int, int]]:
        """Name as torch's `Sequential` has it -> (offset, rows, numbers of a row without padding)."""
        found, at = {}, 0
        sizes = []
        for k, (n, m) in enumerate(self.layers):
            sizes += [(f"{3 * k}.weight", m, n), (f"{3 * k}.bias", 1, m)]
            sizes += [(f"{3 * k + 2}.weight", 1, m), (f"{3 * k + 2}.bias", 1, m)]
        last = 3 * len(self.hidden)
        sizes += [(f"{last}.weight", self.outputs, self.hidden[-1]), (f"{last}.bias", 1, self.outputs)]
        for name, rows, n in sizes:
            found[name] = (at, rows, n)
            at += rows * padded(n)
        return found

    def at(self, base: str, name: str) -> tuple[str, int]:
        """Return a pointer to all weights, and the offset of those of a name."""
        return base, self.places[name][0]

    @cached_property
    def size(self) -> int:
        """Numbers of all weights with their padding."""
        offset, rows, n = list(self.places.values())[-1]
        return offset + rows * padded(n)

    def views(self, flat: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Yield each weight's name and its part of a vector of all, (rows, n)."""
        for name, (at, rows, n) in self.places.items():
            yield name, flat[at : at + rows * padded(n)].view(rows, padded(n))[:, :n]

    def pack(self, network: nn.Sequential, flat: Tensor) -> None:
        """Copy the weights of a network into a vector."""
        given = network.state_dict()
        for name, view in self.views(flat):
            view.copy_(given[name].view_as(view))

    def unpack(self, flat: Tensor, network: nn.Sequential) -> None:
        """Copy a vector's weights into a network."""
        with torch.no_grad():
            for (_, view), weight in zip(self.views(flat), network.parameters(), strict=True):
                weight.copy_(view.reshape(weight.shape))
