"""Chains of layers, as files of earlier versions describe networks: read, no longer written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from costate.train.network.builder import Builder, Value
from costate.train.network.formula import Formula
from costate.train.network.graph import Graph
from costate.train.network.operations.elementwise import FORMULAS, LEAKY, elu
from costate.train.network.operations.layers import layer_norm


def chain(layers: Sequence[Mapping[str, Any]], arrays: Mapping[str, np.ndarray], inputs: int) -> Graph:
    """Return the graph of layers. arrays: "NAME.weight" and "NAME.bias" of those that have them."""
    if not layers:
        raise ValueError("it has no layers")
    b = Builder()
    x = first = Value("x0", (inputs,))
    for layer in layers:
        kind, name = layer["kind"], layer["name"]
        if (formula := _activation(kind, float(layer["number"]))) is not None:
            x = b.pointwise(formula, x)
            continue
        weight, bias = (arrays.get(f"{name}.{part}") for part in ("weight", "bias"))
        if kind not in ("linear", "norm") or weight is None or bias is None:
            raise ValueError(f"layer {name!r} of kind {kind!r} is not known, or has no weights")
        w, c = torch.from_numpy(weight), torch.from_numpy(bias)
        x = b.linear(x, w, c) if kind == "linear" else layer_norm(b, x, w.shape, w, c, layer["number"])
    return b.graph([first], [x])


def _activation(kind: str, number: float) -> Formula | None:
    known: dict[str, Formula] = {kind: FORMULAS[kind] for kind in ("tanh", "relu", "sigmoid", "silu")}
    known |= {
        "elu": elu(number),
        "leaky_relu": _with(LEAKY, number),
        "softplus": ("add", ("max", "x", 0.0), ("log", ("add", 1.0, ("exp", ("neg", ("abs", "x")))))),
        "softsign": ("div", "x", ("add", 1.0, ("abs", "x"))),
    }
    return known.get(kind)


def _with(formula: Formula, y: float) -> Formula:
    """Return a formula with a number in the place of y."""
    if formula == "y":
        return y
    return tuple(_with(part, y) for part in formula) if isinstance(formula, tuple) else formula
