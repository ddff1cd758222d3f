"""Kernels as operations of JAX: two primitives, with rules for jit, jvp, grad, vmap and any nesting of them.

kernel    outputs of a kernel
tangent   tangents of its outputs, linear in those of its inputs. It takes the outputs that a backward pass needs as well (states
          of a roll-out, solutions of solves), so that its transpose does not compute them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, xla

from costate.jax.handler import target
from costate.kernel import Kernel
from costate.kernel.signature import Spec
from costate.kernel.transpose import forgets_states, is_vjp, pushed_seeds

NAMES = {8: "f64", 4: "f32"}

kernel_p = Primitive("costate_kernel")
tangent_p = Primitive("costate_tangent")
for _primitive in (kernel_p, tangent_p):
    _primitive.multiple_results = True
    _primitive.def_impl(partial(xla.apply_primitive, _primitive))


def call(kernel: Kernel, arrays: Sequence[Any], checked: str = "") -> list[Any]:
    """Return the outputs of a kernel. checked: error if one of them is not finite; "": none."""
    return kernel_p.bind(*_aligned(kernel.signature.inputs, arrays), kernel=kernel, checked=checked)


def _lead(shape: Sequence[int], spec: Spec) -> tuple[int, ...]:
    return tuple(shape[: len(shape) - len(spec.shape)])


def _aligned(specs: Sequence[Spec], arrays: Sequence[Any]) -> list[Any]:
    """Return arrays that have the whole batch each, or one sample for all: what a handler knows."""
    leads = [_lead(a.shape, s) for a, s in zip(arrays, specs, strict=True)]
    batch = np.broadcast_shapes(*leads)
    return [
        a if lead == batch or prod(lead) == 1 else jnp.broadcast_to(a, (*batch, *s.shape))
        for a, s, lead in zip(arrays, specs, leads, strict=True)
    ]


# --- shapes and machine code -----------------------------------------------------------------------------------------


@kernel_p.def_abstract_eval
def _(*avals: Any, kernel: Kernel, checked: str) -> list[Any]:
    return _shapes(avals, kernel.signature.inputs, kernel)


@tangent_p.def_abstract_eval
def _(*avals: Any, kernel: Kernel, wrt: tuple[int, ...]) -> list[Any]:
    return _shapes(avals, _tangent_specs(kernel, wrt), kernel)


def _tangent_specs(kernel: Kernel, wrt: tuple[int, ...]) -> list[Spec]:
    """Return what a tangent takes: inputs, outputs that are given, tangents of some inputs."""
    s = kernel.signature
    return [*s.inputs, *(s.outputs[k] for k in kernel.given), *(s.inputs[k] for k in wrt)]


def _shapes(avals: Sequence[Any], specs: Sequence[Spec], kernel: Kernel) -> list[Any]:
    batch = np.broadcast_shapes(*(_lead(a.shape, i) for a, i in zip(avals, specs, strict=True)))
    return [ShapedArray((*batch, *o.shape), avals[0].dtype) for o in kernel.signature.outputs]


def _lowered(ctx: Any, *args: Any, kernel: Kernel, checked: str = "") -> Any:
    name = target(kernel, NAMES[ctx.avals_in[0].dtype.itemsize], checked)
    return jax.ffi.ffi_lowering(name)(ctx, *args)


mlir.register_lowering(kernel_p, _lowered, platform="cpu")
mlir.register_lowering(
    tangent_p,
    mlir.lower_fun(lambda *args, kernel, wrt: call(*_pushed(kernel, wrt, args)), multiple_results=True),
    platform="cpu",
)


def _pushed(kernel: Kernel, wrt: tuple[int, ...], args: Sequence[Any]) -> tuple[Kernel, list[Any]]:
    """Return the kernel that computes tangents, and its inputs."""
    n = len(kernel.signature.inputs)
    inputs, dots = list(args[:n]), args[n + len(kernel.given) :]
    if _is_linear(kernel, wrt):
        return kernel, _with_seeds(kernel, wrt, inputs, dots)
    return kernel.derivative("jvp", wrt, ()), [*inputs, *dots]


def _is_linear(kernel: Kernel, wrt: tuple[int, ...]) -> bool:
    """Return whether a kernel is one of gradients, and only its seeds change: it is linear in them."""
    return is_vjp(kernel) and min(wrt) >= _first_seed(kernel)


def _first_seed(kernel: Kernel) -> int:
    recipe: Any = kernel._recipe
    return len(recipe.parent.signature.inputs) + len(recipe._given)


def _with_seeds(kernel: Kernel, wrt: tuple[int, ...], inputs: list[Any], dots: Sequence[Any]) -> list[Any]:
    given = dict(zip(wrt, dots, strict=True))
    first = _first_seed(kernel)
    return [given.get(k, x if k < first else jnp.zeros_like(x)) for k, x in enumerate(inputs)]


# --- derivatives -----------------------------------------------------------------------------------------------------


def _kernel_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, kernel: Kernel, checked: str) -> tuple[Any, Any]:
    outs = kernel_p.bind(*primals, kernel=kernel, checked=checked)
    return outs, _tangents(kernel, primals, tangents, [outs[k] for k in kernel.given])


def _tangents(kernel: Kernel, primals: Sequence[Any], tangents: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    wrt = tuple(k for k, t in enumerate(tangents) if type(t) is not ad.Zero)
    dots = [tangents[k] for k in wrt]
    return tangent_p.bind(*primals, *given, *dots, kernel=kernel, wrt=wrt)


def _tangent_jvp(args: Sequence[Any], tangents: Sequence[Any], *, kernel: Kernel, wrt: tuple[int, ...]) -> Any:
    """Differentiate tangents: as outputs of the kernel that computes them."""
    n, skipped = len(kernel.signature.inputs), len(kernel.given)
    outs = tangent_p.bind(*args, kernel=kernel, wrt=wrt)
    changes = [*tangents[:n], *tangents[n + skipped :]]
    if all(type(t) is ad.Zero for t in changes):
        return outs, [jnp.zeros_like(o) for o in outs]
    if all(type(t) is ad.Zero for t in tangents[:n]):  # linear in the others
        dots = [ad.instantiate_zeros(t) for t in tangents[n + skipped :]]
        return outs, tangent_p.bind(*args[: n + skipped], *dots, kernel=kernel, wrt=wrt)
    push = kernel.derivative("jvp", wrt, ())
    return outs, _tangents(push, [*args[:n], *args[n + skipped :]], changes, [])


def _transpose(cotangents: Sequence[Any], *args: Any, kernel: Kernel, wrt: tuple[int, ...]) -> list[Any]:
    n = len(kernel.signature.inputs)
    inputs, given, dots = args[:n], args[n : n + len(kernel.given)], args[n + len(kernel.given) :]
    of = tuple(k for k, c in enumerate(cotangents) if type(c) is not ad.Zero)
    seeds = [cotangents[k] for k in of]
    if pushed := pushed_seeds(kernel, wrt, of, inputs, seeds):
        push, arrays, which = pushed
        every = call(push, arrays)
        bars = [every[k] for k in which]
    else:
        kind = "vjp_given"
        if forgets_states(kernel):
            kind, given = "vjp_states", call(kernel.derivative("states", (), ()), inputs)
        bars = call(kernel.derivative(kind, wrt, of), [*inputs, *given, *seeds])
    found = [
        _summed(bar, dot.aval.shape) if ad.is_undefined_primal(dot) else None
        for bar, dot in zip(bars, dots, strict=True)
    ]
    return [None] * (len(args) - len(dots)) + found


def _summed(x: Any, shape: Sequence[int]) -> Any:
    """Sum leading dimensions down to a shape that was broadcast."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(k for k, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if a != b), keepdims=True)


ad.primitive_jvps[kernel_p] = _kernel_jvp
ad.primitive_jvps[tangent_p] = _tangent_jvp
ad.primitive_transposes[tangent_p] = _transpose


# --- batches ---------------------------------------------------------------------------------------------------------


def _kernel_batch(args: Sequence[Any], dims: Sequence[Any], *, kernel: Kernel, checked: str) -> Any:
    outs = call(kernel, _lined_up(kernel.signature.inputs, args, dims), checked)
    return outs, [0] * len(outs)


def _tangent_batch(args: Sequence[Any], dims: Sequence[Any], *, kernel: Kernel, wrt: tuple[int, ...]) -> Any:
    specs = _tangent_specs(kernel, wrt)
    arrays = _aligned(specs, _lined_up(specs, args, dims))
    outs = tangent_p.bind(*arrays, kernel=kernel, wrt=wrt)
    return outs, [0] * len(outs)


def _lined_up(specs: Sequence[Spec], args: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """Return arrays whose new batch dimension comes first, all with as many leading dimensions."""
    logical = [a.ndim - len(s.shape) - (d is not None) for a, s, d in zip(args, specs, dims, strict=True)]
    depth, moved = max(logical), []
    for a, d, n in zip(args, dims, logical, strict=True):
        if d is not None:
            a = jnp.moveaxis(a, d, 0)
            a = a.reshape(a.shape[0], *(1,) * (depth - n), *a.shape[1:])
        moved.append(a)
    return moved


batching.primitive_batchers[kernel_p] = _kernel_batch
batching.primitive_batchers[tangent_p] = _tangent_batch
