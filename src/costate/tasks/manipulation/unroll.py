"""Residuals of a policy over an episode, as a function of its weights, and the products with their Jacobian.

A roll-out alternates the policy and the compiled step. Its linearisation needs nothing but what it has passed through: the products
J v and J^T u run tangents forwards and adjoints backwards through compiled derivatives of the step, and all that weights
contribute is one product of matrices over all steps. Both are given to autograd, so that `gauss_newton` and first-order
optimisers use them as they use any function of torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from costate.tasks.manipulation.proposer import Proposer
from costate.tasks.manipulation.step import Step

Weights = tuple[Tensor, Tensor, Tensor, Tensor]
"""W1 (h, n), b1 (h,), W2 (na, h), b2 (na,)."""


def unroll(
    step: Step, policy: Proposer, start: Tensor, thing: Tensor, steps: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the residuals of all steps (T, B, nr) and all states (T + 1, B, nx), from states (B, nx), with objects (B, 3).

    Differentiable in the policy's weights, which backward and products alike take in one go.
    """
    record = Record(step, start, thing, step.physics.steps if steps is None else steps)
    return _Unroll.apply(record, policy.into.weight, policy.into.bias, policy.out.weight, policy.out.bias)  # type: ignore[return-value]


class Record:
    """The course of a roll-out, with all that its linearisation needs.

    Known after `forward`: what the two layers saw, `seen` (T, B, n) and `hidden` (T, B, h), and `actions` (T, B, na). Known after
    `transposed`: the adjoints of what the two layers gave, `adjoints` (T, B, h) and (T, B, na).
    """

    def __init__(self, step: Step, start: Tensor, thing: Tensor, steps: int):
        self._step, self._start, self._thing, self._steps = step, start, thing.expand(len(start), 3).contiguous(), steps
        k = step.kernel
        self._run, self._back, self._along = k, k.vjp(["state", "action"]), k.jvp(["state", "action"])

    def forward(self, weights: Weights) -> tuple[Tensor, Tensor]:
        """Roll out, and keep what the linearisation needs."""
        W1, b1, W2, b2 = self._weights = weights
        state, seen = self._start, self._step.observe(state=self._start, object=self._thing).seen
        states, seens, hiddens, actions, residuals = [state], [], [], [], []
        for _ in range(self._steps):
            hidden = torch.tanh(torch.addmm(b1, seen, W1.T))
            action = torch.addmm(b2, hidden, W2.T)
            seens.append(seen)
            hiddens.append(hidden)
            actions.append(action)
            state, seen, residual = self._run.run([state, action, self._thing])
            states.append(state)
            residuals.append(residual)
        self._states, self.actions = torch.stack(states), torch.stack(actions)
        self.seen, self.hidden = torch.stack(seens), torch.stack(hiddens)
        self._slope = 1 - self.hidden.square()
        return torch.stack(residuals), self._states

    def transposed(self, of_residuals: Tensor, of_states: Tensor) -> Weights:
        """Return J^T u as the shapes of the weights have it: adjoints run backwards."""
        W1, _, W2, _ = self._weights
        of_state, of_seen = of_states[-1], torch.zeros_like(self.seen[0])
        into, out = torch.empty_like(self.hidden), torch.empty_like(self.actions)
        for t in reversed(range(self._steps)):
            seeds = [of_state, of_seen, of_residuals[t]]
            of_before, of_action = self._back.run([self._states[t], self.actions[t], self._thing, *seeds])
            out[t] = of_action
            into[t] = torch.mul(of_action @ W2, self._slope[t])
            of_seen = into[t] @ W1
            of_state = of_before + of_states[t]
        self.adjoints = into, out
        flat_into, flat_out = into.flatten(0, 1), out.flatten(0, 1)
        seen, hidden = self.seen.flatten(0, 1), self.hidden.flatten(0, 1)
        return flat_into.T @ seen, flat_into.sum(0), flat_out.T @ hidden, flat_out.sum(0)

    def times(self, tangents: Weights) -> tuple[Tensor, Tensor]:
        """Return J v for the residuals and for the states: tangents run forwards."""
        W1, _, W2, _ = self._weights
        dW1, db1, dW2, db2 = tangents
        into = torch.addmm(db1, self.seen.flatten(0, 1), dW1.T).view_as(self.hidden)
        out = torch.addmm(db2, self.hidden.flatten(0, 1), dW2.T).view_as(self.actions)
        state, seen = torch.zeros_like(self._start), torch.zeros_like(self.seen[0])
        states, residuals = [state], []
        for t in range(self._steps):
            hidden = torch.addmm(into[t], seen, W1.T).mul_(self._slope[t])
            action = torch.addmm(out[t], hidden, W2.T)
            inputs = [self._states[t], self.actions[t], self._thing, state, action]
            state, seen, residual = self._along.run(inputs)
            states.append(state)
            residuals.append(residual)
        return torch.stack(residuals), torch.stack(states)


class _Unroll(torch.autograd.Function):
    """Weights -> residuals and states."""

    @staticmethod
    def forward(ctx: Any, record: Record, *weights: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        ctx.record = record
        ctx.save_for_backward(*weights)
        return record.forward(weights)  # type: ignore[arg-type]

    @staticmethod
    def backward(ctx: Any, *seeds: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        return None, *_Transposed.apply(ctx.record, *seeds)  # type: ignore[misc]


class _Transposed(torch.autograd.Function):
    """Adjoints -> J^T u: linear in u, so that its own gradient in u is J v. It has none in the weights."""

    @staticmethod
    def forward(ctx: Any, record: Record, *seeds: Tensor) -> Weights:  # type: ignore[override]
        ctx.record = record
        return record.transposed(*seeds)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *tangents: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        return None, *ctx.record.times(tangents)
