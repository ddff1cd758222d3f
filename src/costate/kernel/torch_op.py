"""The PyTorch op: one autograd function for all kernels.

Its backward and forward-mode rules call derivative kernels through the same function, so every order of every mode works:
backward, double backward, torch.func.jvp, vjp, vmap, jacrev, jacfwd, hessian.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch._C._functorch import is_legacy_batchedtensor, unwrap_if_dead
from torch.autograd import forward_ad

from costate.core.eager import eager
from costate.kernel.calls.plan import Plan
from costate.kernel.transpose import forgets_states, is_derived, is_vjp, pushed_seeds

if TYPE_CHECKING:
    from costate.kernel.kernel import Kernel

_peek = torch._C._functorch.peek_interpreter_stack  # pyright: ignore  (None outside of torch.func transforms)

_unbatched, _batched = torch._VF._remove_batch_dim, torch._VF._add_batch_dim  # pyright: ignore

Batches = tuple[tuple[int, ...] | None, ...]
"""Leading dimensions that every output is summed to; None for those of the call."""


def apply(kernel: Kernel, tensors: Sequence[torch.Tensor], batches: Batches | None = None) -> tuple[torch.Tensor, ...]:
    """Evaluate with gradients and under any transform."""
    if _peek() is None:
        if any(map(is_grads_batched, tensors)):
            return tuple(run_batched(kernel, tensors, batches))
        return _record(kernel, batches, *unwrapped(tensors))
    return _KernelOp.apply(kernel, batches, *kernel.signature.with_numbers(tensors))


def is_grads_batched(given: Any) -> bool:
    """Tell whether this is a tensor of a backward pass with `is_grads_batched=True`; what is no tensor is refused elsewhere."""
    return isinstance(given, torch.Tensor) and is_legacy_batchedtensor(given)


def unwrapped(tensors: Sequence[Any]) -> list[Any]:
    """Return tensors without what a transform that is over has left around them."""
    return [unwrap_if_dead(t) if isinstance(t, torch.Tensor) else t for t in tensors]


def recorded(kernel: Kernel, plan: Plan, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Evaluate by a plan, outside of all transforms, and record what a backward pass needs."""
    return _record_planned(kernel, plan, *tensors)


def run_batched(kernel: Kernel, tensors: Sequence[torch.Tensor], batches: Batches | None) -> list[torch.Tensor]:
    """Evaluate in a backward pass of `torch.autograd.grad(..., is_grads_batched=True)`, which has a vmap of its own."""
    level = torch._C._vmapmode_increment_nesting() - 1  # pyright: ignore[reportAttributeAccessIssue]
    torch._C._vmapmode_decrement_nesting()  # pyright: ignore[reportAttributeAccessIssue]
    inside = [_unbatched(t, level, 1, 0) if is_grads_batched(t) else t for t in tensors]
    dims = tuple(0 if is_grads_batched(t) else None for t in tensors)
    size = next(t.shape[0] for t, d in zip(inside, dims, strict=True) if d is not None)
    outs, _ = _KernelOp.vmap(SimpleNamespace(batch_size=size), (None, None, *dims), kernel, batches, *inside)
    return [_batched(o, 0, level) for o in outs]


def in_transform() -> bool:
    """Return whether a torch.func transform or forward-mode differentiation is active."""
    return _peek() is not None or forward_ad._current_level >= 0


@eager
class _KernelOp(torch.autograd.Function):
    @staticmethod
    def forward(kernel: Kernel, batches: Batches | None, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        return tuple(kernel.run(tensors, batches))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        kernel, batches, *tensors = inputs
        given = [output[k] for k in kernel.given]
        ctx.kernel, ctx.batches = kernel, batches
        ctx.n_given = len(given)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *given)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor | None) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        n = len(saved) - ctx.n_given
        return None, None, *_pulled(ctx, ctx.kernel, saved[:n], saved[n:], bars)

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        kernel: Kernel = ctx.kernel
        tensors = ctx.saved_tensors[: len(tangents) - 2]
        wrt = tuple(k for k, t in enumerate(tangents[2:]) if t is not None)
        dots = [t for t in tangents[2:] if t is not None]
        return apply(kernel.derivative("jvp", wrt, ()), [*tensors, *dots], ctx.batches)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], kernel: Kernel, batches: Batches | None, *tensors: torch.Tensor
    ) -> Any:
        dims = in_dims[2:]
        logical = [
            t.dim() - len(s.shape) - (d is not None)
            for t, s, d in zip(tensors, kernel.signature.inputs, dims, strict=True)
        ]
        depth = max(logical)
        moved = [
            t if d is None else _with_lead(t.movedim(d, 0), depth - n)
            for t, d, n in zip(tensors, dims, logical, strict=True)
        ]
        lined_up = None
        if batches is not None:
            v = info.batch_size
            lined_up = tuple(None if b is None else (v, *(1,) * (depth - len(b)), *b) for b in batches)
        outs = apply(kernel, moved, lined_up)
        if batches is not None:
            specs = kernel.signature.outputs
            outs = tuple(
                o if b is None else o.reshape(info.batch_size, *b, *s.shape)
                for o, b, s in zip(outs, batches, specs, strict=True)
            )
        return outs, (0,) * len(outs)


@eager
class _PlannedOp(torch.autograd.Function):
    """The same with a plan, for backward passes alone: less is noted, and a backward pass remembers what it did the last time."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, plan: Plan, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        outputs = plan.run(tensors)
        ctx.kernel, ctx.plan = kernel, plan
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *[outputs[k] for k in kernel.given])
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor | None) -> tuple[Any, ...]:
        saved, kernel, plan = ctx.saved_tensors, ctx.kernel, ctx.plan
        if torch.is_grad_enabled() or in_transform() or is_derived(kernel):
            n = len(plan.shapes)
            return None, None, *_pulled(ctx, kernel, saved[:n], saved[n:], bars)
        key = ctx.needs_input_grad, tuple([bar is None for bar in bars])
        pull = plan.pulls.get(key)
        if pull is None:
            pull = plan.pulls[key] = _Pull.of(kernel, key[0][2:], bars, saved)
        if pull.kernel is None:
            return (None,) * len(key[0])
        found = pull.kernel.run([*saved, *[b for b in bars if b is not None]], pull.batches)
        if pull.every:
            return None, None, *found
        grads: list[torch.Tensor | None] = [None] * len(key[0])
        for k, g in zip(pull.wrt, found, strict=True):
            grads[2 + k] = g
        return tuple(grads)


class _Pull(NamedTuple):
    """A backward pass that was asked for certain gradients: what to call for them."""

    kernel: Kernel | None
    batches: Batches
    """Leading dimensions of the gradients."""
    wrt: tuple[int, ...]
    """Inputs that they belong to."""
    every: bool
    """True if these are all inputs."""

    @staticmethod
    def of(kernel: Kernel, needed: Sequence[bool], bars: Sequence[Any], tensors: Sequence[torch.Tensor]) -> _Pull:
        wrt = tuple(k for k, needs in enumerate(needed) if needs)
        of = tuple(k for k, bar in enumerate(bars) if bar is not None)
        if not (wrt and of):
            return _Pull(None, (), (), False)
        batches = tuple([_lead(kernel, k, tensors[k]) for k in wrt])
        return _Pull(kernel.derivative("vjp_given", wrt, of), batches, wrt, len(wrt) == len(needed))


def _pulled(
    ctx: Any, kernel: Kernel, tensors: Sequence[Any], given: Sequence[Any], bars: Sequence[Any]
) -> list[torch.Tensor | None]:
    """Return the gradients of all inputs, in any mode."""
    wrt = tuple(k for k, needed in enumerate(ctx.needs_input_grad[2:]) if needed)
    if is_vjp(kernel) and _peek() is None:
        wrt = tuple(k for k in wrt if _asked_for(ctx, k))
    of = tuple(k for k, bar in enumerate(bars) if bar is not None)
    grads: list[torch.Tensor | None] = [None] * len(tensors)
    if wrt and of:
        seeds = [b for b in bars if b is not None]
        batches = tuple([_lead(kernel, k, tensors[k]) for k in wrt])
        run = apply if torch.is_grad_enabled() or in_transform() else type(kernel).run
        if pushed := pushed_seeds(kernel, wrt, of, tensors, seeds):
            push, inputs, which = pushed
            leads = dict(zip(which, batches, strict=True))
            every = run(push, inputs, tuple(leads.get(k) for k in range(len(push.signature.outputs))))
            found = [every[k] for k in which]
        else:
            kind = "vjp_given"
            if forgets_states(kernel):
                kind, given = "vjp_states", run(kernel.derivative("states", (), ()), tensors)
            found = run(kernel.derivative(kind, wrt, of), [*tensors, *given, *seeds], batches)
        for k, g in zip(wrt, found, strict=True):
            grads[k] = g
    return grads


# What Function.apply comes down to outside of torch.func: it would inspect the signature of forward at every call, which takes
# longer than a small kernel.
_record = super(torch.autograd.Function, _KernelOp).apply  # pyright: ignore[reportAttributeAccessIssue]
_record_planned = super(torch.autograd.Function, _PlannedOp).apply  # pyright: ignore[reportAttributeAccessIssue]


def _asked_for(ctx: Any, k: int) -> bool:
    """Return whether the running backward pass goes on to input k: `torch.autograd.grad` may be asked for the gradients of seeds
    alone."""
    node = ctx.next_functions[k][0]
    try:
        return node is not None and torch._C._will_engine_execute_node(node)  # pyright: ignore[reportAttributeAccessIssue]
    except RuntimeError:  # it is a leaf that autograd.grad was asked for
        return True


def _lead(kernel: Kernel, k: int, t: torch.Tensor) -> tuple[int, ...]:
    return t.shape[: max(t.dim() - len(kernel.signature.inputs[k].shape), 0)]


def _with_lead(t: torch.Tensor, ones: int) -> torch.Tensor:
    return t.reshape(t.shape[0], *(1,) * ones, *t.shape[1:])
