"""From a row of the physics table to a compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from costate.kernel import Kernel
from costate.model import Model
from costate.physics import FUNCTIONS, Parameters, build, build_vjp
from costate.physics.params import Key


def robot_kernel(model: Model, name: str, learnable: Sequence[Key] = (), **options: Any) -> Kernel:
    """Kernel of a robot function. Its inputs are those of the function, then one for every learnable parameter that it depends
    on; whatever is not learnable is folded into the code."""
    params, symbols = Parameters.of(model).symbolic(learnable)
    inputs, outputs = build(model, params, name, **options)
    everything = ca.vertcat(*[ca.vec(x) for x in outputs.values()])
    symbols = {key: x for key, x in symbols.items() if ca.depends_on(everything, x)}
    adjoint = None
    if FUNCTIONS[name].vjp is not None:
        known, gradients = build_vjp(model, params, name, symbols, **options)
        adjoint = (list(known.values()), list(gradients.values()))
    return Kernel(f"{model.name}.{name}", {**inputs, **symbols}, outputs, adjoint=adjoint)
