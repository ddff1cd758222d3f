"""Iterative LQR: optimal controls of a world, with feedback gains; batched over initial states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from costate.learn.cost import Cost
from costate.learn.solution import Options, Solution

if TYPE_CHECKING:
    from costate.sim import World

Tensor = torch.Tensor


@dataclass(frozen=True, kw_only=True)
class ILQROptions(Options):
    """How to iterate."""

    tolerance: float = 1e-6
    """A problem is solved when its cost is expected to fall by at most this part, and no gap is left."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest controls, each (nu,) or a number."""
    regularization: float = 1e-6
    """Of the first backward pass: added to the Hessian of the controls."""
    max_regularization: float = 1e6
    """A problem that needs more has failed."""
    line_search: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125)
    """Parts of the step that are tried, all at once."""
    accept: float = 1e-4
    """Least ratio of actual to expected decrease."""


def ilqr(
    world: World,
    cost: Cost,
    state0: Tensor,
    controls0: Tensor,
    options: ILQROptions = ILQROptions(),  # noqa: B008
    *,
    states0: Tensor | None = None,
    inputs: Mapping[str, Tensor] | None = None,
    params: Mapping[str, Tensor] | None = None,
) -> Solution:
    """Minimise a cost over the controls of a world.

    x of the solution: controls (T, ..., nu). extra: "states" (T + 1, ..., nx), "gains" (T, ..., nu, 2nv) for
    u = u_t + K_t (x - x_t), differences in the tangent space.

    Args:
        state0: (nx,) for one problem, (B, nx) for B problems solved side by side.
        controls0: Guess, (T, nu) or (T, B, nu).
        states0: Guess of the states, (T + 1, nx) or (T + 1, B, nx), which need not follow from the controls: multiple
            shooting, the gaps close as full steps are taken. None: single shooting from a rollout.
        inputs: Those of the cost: name -> (n,), (B, n) or (T + 1, B, n).
        params: Of the world (see World.step).
    """
    raise NotImplementedError
