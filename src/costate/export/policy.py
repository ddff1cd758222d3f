"""Policies to be exported: networks as they are, and any module of usual layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from costate.train.network import Names, Network


def as_network(
    policy: Any, inputs: int | Names | None = None, outputs: Names | None = None, about: str = ""
) -> Network:
    """Return the network of a policy: itself, or that of a module (batch, n) -> (batch, m).

    Args:
        policy: A network, or any module of usual layers with any `forward`; see `Network.of` for modules with memory.
        inputs: Number of inputs, or a name and unit for each; None: as many as the first layer with weights takes.
        outputs: Name and unit of each output; None: "output 0", ...
        about: Line for the reader of the file.
    """
    if isinstance(policy, Network):
        return policy
    if not isinstance(policy, nn.Module):
        raise TypeError(f"a policy to be exported is a torch module or a network, not a {type(policy).__name__}")
    inputs = _first_size(policy) if inputs is None else inputs
    named = _numbered("input", inputs) if isinstance(inputs, int) else tuple(inputs)
    outputs = _numbered("output", _gives(policy, len(named))) if outputs is None else outputs
    size = len(outputs)
    return Network.of(policy, named, outputs, np.zeros(size), np.ones(size), about or f"A {type(policy).__name__}")


def _numbered(word: str, count: int) -> Names:
    return tuple((f"{word} {k}", "1") for k in range(count))


def _first_size(module: nn.Module) -> int:
    for layer in module.modules():
        for name in ("in_features", "input_size", "num_features"):
            if isinstance(size := getattr(layer, name, None), int):
                return size
        if isinstance(layer, nn.LayerNorm):
            return layer.normalized_shape[-1]
    raise ValueError(f"{type(module).__name__} does not say how many inputs it takes: give inputs=NUMBER")


def _gives(module: nn.Module, inputs: int) -> int:
    """Return the number of outputs: those of the first tensor that the module gives."""
    first = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(0))
    memory = module.memory() if hasattr(module, "memory") else ()  # type: ignore[operator]
    modes = [(m, m.training) for m in module.modules()]
    try:
        with torch.no_grad():
            found = module.eval()(torch.zeros(2, inputs, dtype=first.dtype), *(m.expand(2, -1) for m in memory))
    finally:
        for each, mode in modes:
            each.training = mode
    found = found if isinstance(found, torch.Tensor) else found[0]
    return found.shape[-1]
