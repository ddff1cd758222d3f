"""Numbers from expressions with CasADi's own evaluator: no compiler between the physics and its test."""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX

from costate.model.model import Model
from costate.physics import Parameters, build


def evaluate(inputs: list[SX], outputs: list[SX], *values) -> list[np.ndarray]:
    """Return the values of the outputs; columns become vectors."""
    results = ca.Function("f", inputs, outputs).call([ca.DM(np.asarray(x, float)) for x in values])
    return [np.array(r)[:, 0] if r.shape[1] == 1 else np.array(r) for r in results]


def call(model: Model, name: str, values: dict[str, np.ndarray], params: Parameters | None = None, **options):
    """Return the outputs of a robot function by name."""
    inputs, outputs = build(model, params or Parameters.of(model), name, **options)
    numbers = evaluate(list(inputs.values()), list(outputs.values()), *[values[key] for key in inputs])
    return dict(zip(outputs, numbers, strict=True))


def relative_error(x: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference over the largest expected entry; 0 for two empty arrays."""
    if np.size(expected) == 0:
        return 0.0
    scale = np.abs(expected).max()
    return float(np.abs(x - expected).max() / (scale if scale > 0 else 1.0))
