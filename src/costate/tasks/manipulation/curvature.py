"""Samples of the curvature of a policy's residuals, from a few random backward passes: the preconditioner of its training needs
them."""

from __future__ import annotations

import torch
from torch import Tensor

from costate.tasks.manipulation.proposals import WEIGHTS, blocks_of
from costate.tasks.manipulation.proposer import Proposer
from costate.tasks.manipulation.step import Step
from costate.tasks.manipulation.unroll import Record


def curvature(
    step: Step, goal: Tensor, policy: Proposer, start: Tensor, thing: Tensor, rest: bool, probes: int,
    generator: torch.Generator,
) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """Return inputs and random adjoints of a policy's two layers, as `Kronecker` takes them; arguments as of `residuals`.

    probes: Number of backward passes.
    """
    record = Record(step, start, thing, step.physics.steps)
    weights = tuple(w.detach() for w in policy.parameters())
    rows, states = (x.detach().requires_grad_() for x in record.forward(weights))  # type: ignore[arg-type]
    blocks = blocks_of(step, goal, rows, states, rest)
    into, out = [], []
    for _ in range(probes):
        random = [
            WEIGHTS[name] ** 0.5 * torch.randn(block.shape, generator=generator, dtype=block.dtype)
            for name, block in blocks.items()
        ]
        record.transposed(*torch.autograd.grad(list(blocks.values()), [rows, states], random, retain_graph=True))
        for samples, adjoints in zip((into, out), record.adjoints, strict=True):
            samples.append(adjoints.flatten(0, 1))
    inputs = [x.flatten(0, 1) for x in (record.seen, record.hidden)]
    return inputs, [torch.stack(into), torch.stack(out)]
