"""One value for a trained network, whatever runs it: made from torch, evaluated by NumPy, written as ONNX and C.

A network is a chain of layers (linear, normalisation, activations) between the scaling of its inputs and of its outputs, with the
name and unit of every number. Weights are those of the policy, float32; scaling and evaluation are float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from costate.train.network.formula import ACTIVATIONS, in_numpy

Floats = np.ndarray
Names = tuple[tuple[str, str], ...]
"""Name and unit of each number."""
SKIPPED = (nn.Identity, nn.Dropout, nn.Flatten)
"""Layers that do nothing to a vector after training."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer of a network."""

    kind: str
    """Kind: "linear", "norm", or one of the ACTIVATIONS."""
    name: str = ""
    """Name of its weights in a file."""
    weight: Floats | None = None
    """Weights: (outputs, inputs) of a linear layer, (n,) of a normalisation."""
    bias: Floats | None = None
    """Bias, (outputs,)."""
    number: float = 0.0
    """Slope of an activation, or the epsilon of a normalisation."""

    def function(self) -> Callable[[Floats], Floats]:
        """Return the layer as a function of NumPy; it may overwrite its argument, unless it is linear."""
        if self.kind in ACTIVATIONS:
            return in_numpy(ACTIVATIONS[self.kind].formula, self.number)
        weight, bias = (None if p is None else p.astype(float) for p in (self.weight, self.bias))
        assert weight is not None and bias is not None
        if self.kind == "linear":
            across = weight.T if len(bias) < weight.shape[1] else np.ascontiguousarray(weight.T)
            return lambda x: _affine(x, across, bias)
        return lambda x: _normalised(x, self.number) * weight + bias


def _affine(x: Floats, weight: Floats, bias: Floats) -> Floats:
    y = x @ weight
    y += bias
    return y


def _normalised(x: Floats, epsilon: float) -> Floats:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon)


@dataclass(frozen=True, eq=False)
class Scaling:
    """The scaling of inputs: (min(x, top) - middle) * gain."""

    middle: Floats
    """Middle of each input, in its unit, (inputs,)."""
    gain: Floats
    """Gain of each input, per unit; zero where an input is ignored, (inputs,)."""
    top: Floats
    """Highest value of each input that makes a difference, (inputs,)."""


@dataclass(frozen=True, eq=False)
class Network:
    """out = offset + scale * layers(scaled inputs)."""

    layers: tuple[Layer, ...]
    """Layers, in order."""
    inputs: Names
    """Name and unit of each input."""
    outputs: Names
    """Name and unit of each output."""
    offset: Floats
    """Offset of each output, (outputs,)."""
    scale: Floats
    """Scale of each output, (outputs,)."""
    scaling: Scaling | None = None
    """Scaling of the inputs; None: they are taken as they are."""
    about: str = ""
    """Line for the reader of a file."""

    @classmethod
    def of(cls, module: nn.Module, inputs: Names, outputs: Names, offset: Any, scale: Any, about: str = "") -> Network:
        """Return the network of a chain of layers: an `nn.Sequential`, or a module whose `layers()` gives one."""
        names = {id(m): name for name, m in module.named_modules()}
        layers = tuple(_layer(m, names.get(id(m), str(k))) for k, m in enumerate(chain(module)))
        return cls(layers, inputs, outputs, _array(offset), _array(scale), about=about)

    def measured(self, inputs: Names, scaling: Scaling, about: str) -> Network:
        """Return the network behind a scaling of its inputs: it takes measurements."""
        return replace(self, inputs=inputs, scaling=scaling, about=about)

    @cached_property
    def _functions(self) -> list[Callable[[Floats], Floats]]:
        return [layer.function() for layer in self.layers]

    def __call__(self, x: Floats) -> Floats:
        """Return outputs (..., m) of inputs (..., n), in float64."""
        if (z := self.scaling) is not None:
            x = (np.minimum(x, z.top) - z.middle) * z.gain
        elif self.layers[0].kind != "linear":
            x = np.array(x, float)  # activations work in place
        for function in self._functions:
            x = function(x)
        x *= self.scale
        x += self.offset
        return x

    @property
    def widest(self) -> int:
        """Largest number of values between two layers."""
        return max(len(self.inputs), *(len(p.bias) for p in self.layers if p.bias is not None))

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the weights by name, and the scaling of the outputs."""
        found = {"action.offset": self.offset, "action.scale": self.scale}
        for p in self.layers:
            if p.weight is not None and p.bias is not None:
                found |= {f"{p.name}.weight": p.weight, f"{p.name}.bias": p.bias}
        return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in found.items()}

    def note(self) -> dict[str, Any]:
        """Return what a reader needs beside the tensors, as JSON has it."""
        layers = [{"kind": p.kind, "name": p.name, "number": p.number} for p in self.layers]
        return {"layers": layers, "inputs": self.inputs, "outputs": self.outputs, "about": self.about}

    @classmethod
    def read(cls, tensors: Mapping[str, torch.Tensor], note: Mapping[str, Any]) -> Network:
        """Return the network that `tensors` and `note` describe."""
        arrays = {name: t.numpy() for name, t in tensors.items()}
        layers = [
            Layer(
                p["kind"],
                name := p["name"],
                arrays.get(f"{name}.weight"),
                arrays.get(f"{name}.bias"),
                float(p["number"]),
            )
            for p in note["layers"]
        ]
        if not layers:
            raise ValueError("it has no layers")
        for p in layers:
            if p.kind not in ACTIVATIONS and (p.kind not in ("linear", "norm") or p.weight is None or p.bias is None):
                raise ValueError(f"layer {p.name!r} of kind {p.kind!r} is not known, or has no weights")
        inputs, outputs = (tuple((name, unit) for name, unit in note[side]) for side in ("inputs", "outputs"))
        offset, scale = (arrays[f"action.{part}"].astype(float) for part in ("offset", "scale"))
        return cls(tuple(layers), inputs, outputs, offset, scale, about=note.get("about", ""))

    def module(self) -> nn.Sequential:
        """Return the layers as modules of torch: from scaled inputs to actions."""
        return nn.Sequential(*(_module(layer) for layer in self.layers))

    def samples(self, count: int, seed: int = 0) -> Floats:
        """Return random inputs (count, inputs) around those the policy was made for, float32 numbers."""
        z = 2 * np.random.default_rng(seed).uniform(-1, 1, (count, len(self.inputs)))
        if self.scaling is not None:
            middle, gain = self.scaling.middle, self.scaling.gain
            z = np.where(gain != 0, middle + z / np.where(gain != 0, gain, 1.0), z)
        return z.astype(np.float32).astype(float)


def chain(module: nn.Module) -> Iterator[nn.Module]:
    """Return the layers of a policy, one after the other."""
    given: Callable[[], Sequence[nn.Module]] | None = getattr(module, "layers", None)
    if given is None and not isinstance(module, nn.Sequential):
        raise ValueError(
            f"{type(module).__name__} is not a chain of layers: make it an nn.Sequential, or give it a method `layers()`"
        )
    for each in given() if given else module.children():
        if isinstance(each, nn.Sequential):
            yield from chain(each)
        elif not isinstance(each, SKIPPED):
            yield each


def _layer(module: nn.Module, name: str) -> Layer:
    if isinstance(module, nn.Linear):
        bias = torch.zeros(module.out_features) if module.bias is None else module.bias
        return Layer("linear", name, _single(module.weight), _single(bias))
    if isinstance(module, nn.LayerNorm) and len(module.normalized_shape) == 1:
        size = module.normalized_shape[0]
        weight = torch.ones(size) if module.weight is None else module.weight
        bias = torch.zeros(size) if module.bias is None else module.bias
        return Layer("norm", name, _single(weight), _single(bias), module.eps)
    for kind, row in ACTIVATIONS.items():
        if type(module) is row.module and all(getattr(module, k) == v for k, v in row.fixed):
            return Layer(kind, number=float(getattr(module, row.number)) if row.number else 0.0)
    raise ValueError(f"layer {module} has no NumPy, ONNX and C form; use Linear, LayerNorm, {', '.join(ACTIVATIONS)}")


def _module(layer: Layer) -> nn.Module:
    if layer.kind in ACTIVATIONS:
        row = ACTIVATIONS[layer.kind]
        return row.module(**({row.number: layer.number} if row.number else {}))
    assert layer.weight is not None and layer.bias is not None
    sizes = layer.weight.shape[::-1]
    kind = torch.float32  # of the weights
    linear = layer.kind == "linear"
    made = nn.Linear(*sizes, dtype=kind) if linear else nn.LayerNorm(sizes[0], eps=layer.number, dtype=kind)
    with torch.no_grad():
        for parameter, value in ((made.weight, layer.weight), (made.bias, layer.bias)):
            parameter.copy_(torch.from_numpy(value))
    return made


def _single(parameter: torch.Tensor) -> Floats:
    return parameter.detach().to(torch.float32, copy=True).numpy()  # a copy: the parameter may be trained on


def _array(value: Any) -> Floats:
    return np.array(value.detach().numpy() if hasattr(value, "detach") else value, float)
