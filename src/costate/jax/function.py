"""Kernels as functions of JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from costate.jax.primitive import call
from costate.kernel import Kernel
from costate.kernel.signature import Signature


def function(kernel: Kernel) -> Callable[..., Any]:
    """Return a kernel as a function of JAX arrays (..., n), in the order of its inputs or by name; leading dimensions broadcast.

    It returns an array, or a named tuple of several. Works under jit, grad, jvp, vmap, hessian, scan and checkpoint, on the CPU.
    """
    s = kernel.signature

    def run(*arrays: Any, **named: Any) -> Any:
        if len(arrays) > len(s.inputs):
            raise TypeError(f"'{s.name}' was given {len(arrays)} arrays; it takes {s}")
        given = s.pick({**{spec.name: a for spec, a in zip(s.inputs, arrays, strict=False)}, **named})
        outs = call(kernel, as_arrays(s, given))
        return outs[0] if len(outs) == 1 else kernel._result(*outs)

    run.__name__ = run.__qualname__ = kernel.name
    run.__doc__ = f"Compute {s}."
    return run


def as_arrays(signature: Signature, values: Sequence[Any]) -> list[Any]:
    """Return JAX arrays of one number type, or say what does not fit."""
    if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        wide = [s.name for s, x in zip(signature.inputs, values, strict=True) if _is_wide(x)]
        if wide:
            raise ValueError(
                f"'{signature.name}': {', '.join(wide)} is float64, but JAX has 32 bits only here and would round it: call "
                "jax.config.update('jax_enable_x64', True) first, or pass float32"
            )
    arrays = [jnp.asarray(x) for x in values]
    kind = jnp.result_type(*arrays) if arrays else jnp.zeros(()).dtype
    if not jnp.issubdtype(kind, jnp.floating):
        kind = jnp.zeros(()).dtype
    if kind.itemsize not in (4, 8):
        raise TypeError(f"'{signature.name}' was given {kind}; expected float64 or float32")
    arrays = [a.astype(kind) for a in arrays]
    for k, (spec, a) in enumerate(zip(signature.inputs, arrays, strict=True)):
        n = len(spec.shape)
        if spec.shape == (1,) and not a.ndim:
            a = arrays[k] = a.reshape(1)
        if a.ndim < n or a.shape[a.ndim - n :] != spec.shape:
            raise ValueError(
                f"'{signature.name}': {spec.name} has shape {a.shape}; expected {spec}, with any leading batch dimensions"
            )
    leads = [a.shape[: a.ndim - len(s.shape)] for a, s in zip(arrays, signature.inputs, strict=True)]
    try:
        np.broadcast_shapes(*leads)
    except ValueError:
        given = ", ".join(f"{s.name} {lead}" for s, lead in zip(signature.inputs, leads, strict=True))
        raise ValueError(
            f"'{signature.name}': the leading batch dimensions don't broadcast: {given}; make them equal, or 1"
        ) from None
    return arrays


def _is_wide(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.float64 or "float64" in str(getattr(x, "dtype", ""))
