"""Gradients of gradients in their seeds alone: a forward-mode pass.

A VJP kernel computes J^T u and is linear in the seeds u, so its own gradient in u, seeded with v, is J v: the JVP of the kernel it
was derived from. That is cheaper than the reverse of a reverse pass, and exists where that does not: for loops of dynamic length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from costate.kernel.recipe import Derived

if TYPE_CHECKING:
    from costate.kernel.kernel import Kernel


def is_vjp(kernel: Kernel) -> bool:
    return isinstance(kernel._recipe, Derived) and kernel._recipe.kind in ("vjp", "vjp_given", "vjp_states")


def is_derived(kernel: Kernel) -> bool:
    return isinstance(kernel._recipe, Derived)


def forgets_states(kernel: Kernel) -> bool:
    """Return whether a kernel has loops of dynamic length whose states are not among its outputs: they are computed again for its
    gradients."""
    return isinstance(kernel._recipe, Derived) and kernel._base is not None


def pushed_seeds(
    kernel: Kernel, wrt: Sequence[int], of: Sequence[int], tensors: Sequence[torch.Tensor], bars: Sequence[torch.Tensor]
) -> tuple[Kernel, list[torch.Tensor], list[int]] | None:
    """Return the JVP kernel for a VJP kernel of which only seeds (inputs wrt) are differentiated, its inputs, and which of its
    outputs are the gradients. None for any other kernel.

    bars: Seeds of the outputs in `of`; tensors: inputs of the kernel.
    """
    recipe = kernel._recipe
    if not isinstance(recipe, Derived) or not is_vjp(kernel):
        return None
    own = len(recipe.parent.signature.inputs)
    first_seed = own + len(recipe._given)
    if any(k < first_seed for k in wrt):
        return None
    push = _jvp_of_parent(kernel, recipe, tuple(recipe.wrt[k] for k in of))
    return push, [*tensors[:own], *bars], [recipe.of[k - first_seed] for k in wrt]


def _jvp_of_parent(kernel: Kernel, recipe: Derived, wrt: tuple[int, ...]) -> Kernel:
    base = kernel._base or kernel
    with base._lock:
        key = "jvp of parent", wrt
        if key not in base._derived:
            base._derived[key] = type(kernel).of_recipe(Derived(recipe.parent, "jvp", wrt, ()))
        return base._derived[key].sized(kernel.length)
