"""Kernels of robot functions, from rows of the physics table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
from casadi import SX

from costate.augment.wired import Wired
from costate.augment.wiring import Wiring
from costate.core.fork import tracing
from costate.kernel import Kernel
from costate.model import Model
from costate.physics import FUNCTIONS, Parameters, build, build_vjp
from costate.physics.params import Key
from costate.robot.augmented import Pushed
from costate.robot.folding import fold
from costate.robot.large_mass_matrix import is_large, large_mass_matrix

if TYPE_CHECKING:
    from costate.robot.learnable import Learnable

Outputs = Callable[[dict[str, SX]], dict[str, SX]]


@tracing
def robot_kernel(
    model: Model, name: str, learnable: Sequence[Key] = (), networks: Sequence[Wiring] = (), **options: Any
) -> Kernel:
    """Return the kernel of a robot function.

    Its inputs are those of the function, then one for every learnable parameter that it depends on, then the weights of every
    network; whatever is not learnable is folded into the code.
    """
    params, symbols = Parameters.of(model).symbolic(learnable)
    return _compile(model, params, symbols, name, options, networks)


@tracing
def folded_kernel(
    model: Model,
    name: str,
    learnable: Iterable[Learnable],
    shape_outputs: Outputs | None = None,
    networks: Sequence[Wiring] = (),
    **options: Any,
) -> Kernel:
    """Return the kernel of a robot function with parametrisations inside.

    Its further inputs are the raw tensors of modules that can be folded in, and the values of others. shape_outputs: a change
    of the outputs, for functions without a gradient of their own.
    """
    params, symbols = fold(Parameters.of(model), learnable)
    return _compile(model, params, symbols, name, options, networks, shape_outputs)


def _compile(
    model: Model,
    params: Parameters,
    symbols: Mapping[str, SX],
    name: str,
    options: dict[str, Any],
    networks: Sequence[Wiring] = (),
    shape_outputs: Outputs | None = None,
) -> Kernel:
    vectors = {w.parameter: SX.sym(w.parameter, w.network.size) for w in networks}
    wired = Wired(networks, list(vectors.values()))
    params = wired.without_replaced(params)
    if name == "mass_matrix" and is_large(model):
        return large_mass_matrix(model, params, symbols)
    inputs, outputs = build(model, params, name, **options)
    pushed = Pushed.of(model, params, name, inputs, wired)
    if pushed is not None:
        outputs, symbols = pushed.outputs(outputs), {**symbols, **vectors}
    if shape_outputs is not None:
        outputs = shape_outputs(outputs)
    everything = ca.vertcat(*[ca.vec(x) for x in outputs.values()])
    symbols = {key: x for key, x in symbols.items() if ca.depends_on(everything, x)}
    adjoint = None
    if FUNCTIONS[name].vjp is not None:
        known, gradients = build_vjp(model, params, name, symbols, **options)
        if pushed is not None:
            gradients = pushed.gradients(known, gradients)
        adjoint = (list(known.values()), list(gradients.values()))
    return Kernel(f"{model.name}.{name}", {**inputs, **symbols}, outputs, adjoint=adjoint)
