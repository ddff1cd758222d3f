"""Model-predictive control as a layer: optimal controls of a world, differentiable in the state, the cost and the model.

The controls u of `ilqr` minimise J(u; theta), a roll-out and its cost, theta being the first state, the inputs of the cost and the
parameters of the world. Where they lie within their limits, dJ/du = 0, and by the implicit function theorem

    du / dtheta = -H^-1 d2J / (du dtheta),   H = d2J / du2.

The gradient of a loss with respect to theta needs one solution of H w = dloss/du, by conjugate gradients with products of the exact
Hessian, and one more backward pass; how many iterations `ilqr` took does not matter. Controls at their limits stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from costate.optimise.conjugate import conjugate_gradients
from costate.optimise.cost import Cost
from costate.optimise.feedback import control_box
from costate.optimise.ilqr import ILQROptions, ilqr, placed
from costate.sim import World

TIGHT = ILQROptions(tolerance=1e-12, iterations=200)
"""Options of a solution that derivatives can be taken of."""


class Planned(NamedTuple):
    """Optimal motions."""

    controls: Tensor
    """Controls, (T, nu) or (T, B, nu)."""
    states: Tensor
    """States, (T + 1, nx) or (T + 1, B, nx)."""
    solved: Tensor
    """Flags of the problems that met the tolerance, bool, () or (B,). Gradients of the others mean nothing."""


def mpc(
    world: World,
    cost: Cost,
    state0: Tensor,
    controls0: Tensor,
    options: ILQROptions = TIGHT,
    *,
    inputs: Mapping[str, Tensor] | None = None,
    params: Mapping[str, Tensor] | None = None,
) -> Planned:
    """Return optimal controls and states, differentiable in state0, in inputs of the cost and in parameters of the world.

    Arguments are those of `ilqr`, in float64. Gradients are those of a local minimum: where the minimum jumps, they do not follow.
    """
    given, theta = dict(inputs or {}), dict(params or {})
    given_now, theta_now = ({k: t.detach() for k, t in group.items()} for group in (given, theta))
    found = ilqr(world, cost, state0.detach(), controls0, options, inputs=given_now, params=theta_now)
    u = found.x.detach()
    if torch.is_grad_enabled():
        u = _polished(world, cost, state0.detach(), u, given_now, theta_now, options, found.solved)
        slope, solve = _around(world, cost, state0, u, given, theta, options)
        u = _Implicit.apply(slope, u, solve)
    return Planned(u, world.rollout(state0, u, params=theta or None), found.solved)


def _polished(world, cost, state0, u, inputs, params, options: ILQROptions, solved: Tensor) -> Tensor:
    """Return controls after a step of Newton's method with the exact Hessian: `ilqr` ends where the cost hardly changes any more,
    while the controls still may."""
    slope, solve = _around(world, cost, state0, u, inputs, params, options)
    return (u - solve(slope.detach()) * solved[..., None]).clamp(*control_box(world, options.bounds, u.dtype))


def _around(world, cost, state0, u, inputs, params, options: ILQROptions) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the slope dJ/du of the free controls, and the function that solves H w = given for them; others are 0."""
    one = state0.dim() == 1
    leaf = u.clone().requires_grad_()
    states = world.rollout(state0, leaf, params=params or None)
    x, v = (t[:, None] if one else t for t in (states, leaf))
    total = cost.value(x.movedim(0, 1), v.movedim(0, 1), placed(inputs, one)).sum()
    (slope,) = torch.autograd.grad(total, leaf, create_graph=True)
    low, high = control_box(world, options.bounds, u.dtype)
    free = (u > low) & (u < high)

    def flat(t: Tensor) -> Tensor:
        """Return a row for each problem, which do not mix."""
        return (t * free).reshape(len(t), -1, t.shape[-1]).movedim(0, 1).flatten(1)

    def shaped(rows: Tensor) -> Tensor:
        return rows.unflatten(1, (len(u), -1)).movedim(0, 1).reshape(u.shape) * free

    def product(p: Tensor) -> Tensor:
        return flat(torch.autograd.grad(slope, leaf, shaped(p), retain_graph=True)[0])

    def solve(wanted: Tensor) -> Tensor:
        rows = flat(wanted)
        return shaped(conjugate_gradients(product, rows, 4 * rows.shape[1], 1e-12)[0])

    return slope, solve


class _Implicit(torch.autograd.Function):
    """Controls u at which the slope dJ/du vanishes: constant in value, and du = -H^-1 dslope."""

    @staticmethod
    def forward(ctx: Any, slope: Tensor, u: Tensor, solve: Callable[[Tensor], Tensor]) -> Tensor:  # type: ignore[override]
        ctx.solve = solve
        return u.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, bar: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return -ctx.solve(bar), None, None
