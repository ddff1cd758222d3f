"""A policy as one value: torch makes it, NumPy evaluates it, and it is written as ONNX and C.

A network is a graph of steps between the scaling of its inputs and of its outputs, with the name and unit of every number. It has
the weights of the policy; evaluation is in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from costate.train.network.graph import Graph

Floats = np.ndarray
Names = tuple[tuple[str, str], ...]
"""Name and unit of each number."""


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
    """out = offset + scale * graph(scaled inputs)."""

    graph: Graph
    """Steps from scaled inputs, and the memory if there is one, to actions and the next memory."""
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
    memory: Floats = field(default_factory=lambda: np.zeros(0))
    """Memory at the start of an episode, all parts in one vector; empty: the network has none."""

    @classmethod
    def of(cls, module: nn.Module, inputs: Names, outputs: Names, offset: Any, scale: Any, about: str = "") -> Network:
        """Return the network of any module of usual layers: (batch, inputs) -> (batch, outputs).

        A module with memory has a method `memory()` that returns the tensors (n,) an episode begins with; its forward takes them
        behind the observation, as (batch, n) each, and returns the action and the next ones.
        """
        from costate.train.network.trace import traced

        start = [m.detach().double().reshape(-1) for m in module.memory()] if hasattr(module, "memory") else []  # type: ignore[operator]
        graph = traced(module, [len(inputs), *(len(m) for m in start)])
        _check_sizes(module, graph, len(outputs), [len(m) for m in start])
        memory = torch.cat(start).numpy() if start else np.zeros(0)
        return cls(graph, inputs, outputs, _array(offset), _array(scale), about=about, memory=memory)

    def measured(self, inputs: Names, scaling: Scaling, about: str) -> Network:
        """Return the network behind a scaling of its inputs: it takes measurements."""
        return replace(self, inputs=inputs, scaling=scaling, about=about)

    def __call__(self, x: Floats) -> Floats:
        """Return outputs (..., m) of inputs (..., n), in float64; of a network with memory those at the start of an episode."""
        return self.step(x, self.memory)[0]

    def step(self, x: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """Return outputs (..., m) and the next memory of inputs (..., n) and the memory (..., k)."""
        if (z := self.scaling) is not None:
            x = (np.minimum(x, z.top) - z.middle) * z.gain
        parts = []
        if memory.shape[-1]:
            whole = np.broadcast_to(memory, (*x.shape[:-1], memory.shape[-1]))
            parts = np.split(whole, np.cumsum(self.parts)[:-1], axis=-1)
        with np.errstate(over="ignore"):  # exp(1000) is inf in torch, too, and in sigmoid as it should be
            action, *after = self.graph(x, *parts)
        return action * self.scale + self.offset, np.concatenate(after, -1) if after else memory

    @property
    def parts(self) -> list[int]:
        """Sizes of the parts of the memory."""
        return [size for _, size in self.graph.inputs[1:]]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the weights by name, and the scaling of the outputs."""
        found = {"action.offset": self.offset, "action.scale": self.scale} | (
            {"memory": self.memory} if self.memory.size else {}
        )
        found |= {f"network.{name}": _short(value) for name, value in self.graph.constants.items()}
        return {
            name: torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape)) for name, value in found.items()
        }

    def note(self) -> dict[str, Any]:
        """Return what a reader needs beside the tensors, as JSON has it."""
        return {"graph": self.graph.note(), "inputs": self.inputs, "outputs": self.outputs, "about": self.about}

    @classmethod
    def read(cls, tensors: Mapping[str, torch.Tensor], note: Mapping[str, Any]) -> Network:
        """Return the network that `tensors` and `note` describe."""
        arrays = {name: t.double().numpy() for name, t in tensors.items()}
        own = {name.removeprefix("network."): a for name, a in arrays.items() if name.startswith("network.")}
        found = cls(
            Graph.read(own, note["graph"]),
            _named(note["inputs"]),
            _named(note["outputs"]),
            arrays["action.offset"],
            arrays["action.scale"],
            about=str(note.get("about", "")),
            memory=arrays.get("memory", np.zeros(0)),
        )
        found.check()
        return found

    def check(self) -> None:
        """Raise an error if the sizes of the parts do not fit each other."""
        graph, n, m = self.graph, len(self.inputs), len(self.outputs)
        found = {
            "inputs": ([size for _, size in graph.inputs], [n, *self.parts]),
            "outputs": ([graph.shapes[name] for name in graph.outputs], [(m,), *((size,) for size in self.parts)]),
            "offset and scale": ([self.offset.shape, self.scale.shape], [(m,), (m,)]),
            "memory": (self.memory.shape, (sum(self.parts),)),
        }
        for name, (given, expected) in found.items():
            if given != expected:
                raise ValueError(f"{name} of the sizes {given}; expected {expected}")

    def samples(self, count: int, seed: int = 0) -> Floats:
        """Return random inputs (count, inputs) around those the policy was made for, float32 numbers."""
        z = 2 * np.random.default_rng(seed).uniform(-1, 1, (count, len(self.inputs)))
        if self.scaling is not None:
            middle, gain = self.scaling.middle, self.scaling.gain
            z = np.where(gain != 0, middle + z / np.where(gain != 0, gain, 1.0), z)
        return z.astype(np.float32).astype(float)


def _check_sizes(module: nn.Module, graph: Graph, outputs: int, memory: list[int]) -> None:
    found = [graph.shapes[name][-1] for name in graph.outputs]
    if found != [outputs, *memory]:
        wanted = f"{outputs} numbers" + (f", and memory of {' and '.join(map(str, memory))}" if memory else "")
        raise ValueError(
            f"{type(module).__name__} gives {' and '.join(map(str, found))} numbers; expected {wanted}. Wrap a module that gives "
            "more than the action in one that gives the action; one with memory has a method `memory()`"
        )


def _named(pairs: Any) -> Names:
    """Return names with their units, which are texts."""
    named = tuple((name, unit) for name, unit in pairs)
    if not all(isinstance(text, str) for pair in named for text in pair):
        raise ValueError("a name or unit of an input or output is no text")
    return named


def _short(value: Floats) -> Floats:
    """Return float32 numbers where they are all of them, as those of a policy are."""
    single = value.astype(np.float32)
    return single if np.array_equal(single, value) else value


def _array(value: Any) -> Floats:
    return np.array(value.detach().numpy() if hasattr(value, "detach") else value, float)
