"""Networks as plain data: steps from input vectors to output vectors, for one sample; a batch is whatever stands before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

Floats = np.ndarray
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Step:
    """One computation."""

    kind: str
    """Kind: a row of `primitives.PRIMITIVES`."""
    inputs: tuple[str, ...]
    """Names of what it takes: values or constants."""
    out: str
    """Name of the value that it gives."""
    shape: Shape
    """Shape of that value, for one sample."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its kind, as JSON has them."""


@dataclass(frozen=True, eq=False)
class Graph:
    """outputs = f(inputs), step by step."""

    inputs: tuple[tuple[str, int], ...]
    """Name and size of each input vector."""
    steps: tuple[Step, ...]
    """Steps, in order."""
    outputs: tuple[str, ...]
    """Names of the values that are outputs."""
    constants: Mapping[str, Floats]
    """Weights and other constants by name."""

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """Shape of each value for one sample, and of each constant."""
        given = {name: (size,) for name, size in self.inputs}
        return given | {n: c.shape for n, c in self.constants.items()} | {s.out: s.shape for s in self.steps}

    @cached_property
    def _functions(self) -> list[tuple[Any, tuple[str, ...], str]]:
        from costate.train.network.primitives import PRIMITIVES

        return [(PRIMITIVES[s.kind].numpy(s, self.shapes), s.inputs, s.out) for s in self.steps]

    def __call__(self, *inputs: Floats) -> list[Floats]:
        """Return the outputs (..., m) of inputs (..., n), in float64."""
        values: dict[str, Floats] = dict(self.constants)
        for (name, _), value in zip(self.inputs, inputs, strict=True):
            values[name] = value
        for function, names, out in self._functions:
            values[out] = function(*[values[name] for name in names])
        return [values[name] for name in self.outputs]

    def note(self) -> dict[str, Any]:
        """Return all but the constants, as JSON has it."""
        steps = [
            {"kind": s.kind, "inputs": s.inputs, "out": s.out, "shape": s.shape, "options": dict(s.options)}
            for s in self.steps
        ]
        return {"inputs": self.inputs, "steps": steps, "outputs": self.outputs}

    @classmethod
    def read(cls, constants: Mapping[str, Floats], note: Mapping[str, Any]) -> Graph:
        """Return the graph that `note` and its constants describe, checked."""
        steps = tuple(
            Step(_text(s["kind"]), _texts(s["inputs"]), _text(s["out"]), tuple(s["shape"]), dict(s["options"]))
            for s in note["steps"]
        )
        inputs = tuple((_text(name), size) for name, size in note["inputs"])
        graph = cls(inputs, steps, _texts(note["outputs"]), constants)
        graph.check()
        return graph

    def check(self) -> None:
        """Raise an error unless the graph is one that our layers make: see `rules`."""
        from costate.train.network.rules import check_graph

        check_graph(self)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:60]!r} is no name")
    return value


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(_text, values))
