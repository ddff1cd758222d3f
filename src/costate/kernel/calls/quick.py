"""The short way from tensors to compiled code, for the plain case."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from costate.core.numbers import alike
from costate.kernel.calls.native import NativeCode
from costate.kernel.calls.plan import BYTES, OWN_WORKSPACE, Plan, Totals, event, guard, template, words_of
from costate.kernel.codegen.driver import ONE_LEVEL
from costate.kernel.codegen.rows import GROUP
from costate.kernel.signature import DTYPE_NAMES, Signature

REMEMBERED = 16
"""Plans that are kept."""
_ONE = torch.Size([1])  # what a number () stands for


class QuickCall:
    """The short way for the plain case: contiguous tensors, each shared or with the same batch; outputs for every sample, or
    summed over all of them.

    What depends on shapes alone is a `Plan`, remembered: the last one first.
    """

    def __init__(self, signature: Signature, code: Callable[[str], NativeCode], length: int):
        self.length = length
        self.inputs = [event(s) for s in signature.inputs]
        self.outputs = [event(s) for s in signature.outputs]
        self.code = code
        self.plan: Plan | None = None
        """Plan of the last call."""
        self.plain: Plan | None = None
        """Plan of the last call without sums over the batch."""
        self.plans: dict[object, Plan] = {}

    def run(self, tensors: Sequence[Tensor], batches: Sequence | None = None) -> list[Tensor] | None:
        """Return the outputs, or None if the case is not plain. batches: see torch_op."""
        plan = self.plan_of(tensors, batches)
        return None if plan is None else plan.run(tensors)

    def plan_of(self, tensors: Sequence[Tensor], batches: Sequence | None = None) -> Plan | None:
        """Return the plan that these tensors can be computed by, or None if the case is not plain."""
        plan = self.plan
        if (
            plan is None
            or len(tensors) != len(plan.shapes)
            or (plan.batches is not batches and plan.batches != batches)
        ):
            return self._another(tensors, batches)
        return plan if plan.same(*tensors) else self._another(tensors, batches)

    def _another(self, tensors: Sequence[Tensor], batches: Sequence | None) -> Plan | None:
        """Return a plan from memory or a new one, and put it first."""
        if not tensors or not alike(tensors) or tensors[0].dtype not in BYTES:
            return None
        key = batches, tensors[0].dtype, *[(t.shape, t.requires_grad) for t in tensors]
        plan = self.plans.get(key)
        if plan is None or not plan.fits(tensors):
            plan = self._make_plan(tensors, batches)
            if plan is None or not plan.fits(tensors):
                return None
            while len(self.plans) >= REMEMBERED:
                self.plans.pop(next(iter(self.plans)), None)
            self.plans[key] = plan
        self.plan = plan
        if batches is None:
            self.plain = plan
        return plan

    def _make_plan(self, tensors: Sequence[Tensor], batches: Sequence | None) -> Plan | None:
        dtype = tensors[0].dtype
        width = BYTES[dtype]
        leads = [t.shape[: max(len(t.shape) - nd, 0)] for t, (_, nd, _, _) in zip(tensors, self.inputs, strict=True)]
        batch = max(leads, key=lambda lead: (len(lead), lead.numel()))
        n = batch.numel()
        words = words_of(self.length, n)
        for t, lead, (shape, _, size, row) in zip(tensors, leads, self.inputs, strict=True):
            if (t.shape[len(lead) :] or _ONE) != shape or (lead != batch and lead.numel() != 1):
                return None
            words += (0, ONE_LEVEL, 0, size * width if lead == batch else 0, row * width, 0)
        totals = None
        if batches is not None and any(b is not None and b != batch for b in batches):
            totals = Totals.of(self.outputs, batches, n)
            if totals is None:
                return None
            words += totals.words(width)
        else:
            for _, _, size, row in self.outputs:
                words += (0, ONE_LEVEL, 0, size * width, row * width, 0)
        templates = [template(batch + shape, dtype, n) for shape, _, _, _ in self.outputs]
        code = self.code(DTYPE_NAMES[dtype])
        shapes = [t.shape for t in tensors]
        recorded = any(t.requires_grad for t in tensors)
        single = n > 0 and code.is_quick(n, self.length)
        simple = single and code.workspace_bytes <= OWN_WORKSPACE and not code.helper
        alone = code.ops(n, self.length) if n > 0 and code.is_small(n, self.length) and not code.helper else None
        like = guard(tensors)
        return Plan(
            like,
            recorded,
            dtype,
            shapes,
            batches,
            n,
            templates,
            totals,
            words,
            [],
            code,
            single,
            alone,
            simple,
            n <= GROUP,
        )
