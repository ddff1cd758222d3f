"""Direct optimal control: collocation or multiple shooting, solved by IPOPT on the same symbolic physics."""

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
class DirectOptions(Options):
    """How to transcribe and solve."""

    iterations: int = 500
    method: str = "collocation"
    """"collocation": continuous dynamics, cubic states (Hermite-Simpson), constant controls in each interval; "shooting": the
    world's own step."""
    minimum_time: bool = False
    """Also minimise the duration; only with collocation."""
    duration: float | None = None
    """Of the motion [s], or its guess with minimum_time. Default: steps times the world's dt."""
    duration_bounds: tuple[float, float] = (1e-3, 1e3)
    """With minimum_time [s]."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest controls, each (nu,) or a number. Default: effort limits of the actuators."""
    state_bounds: tuple[Any, Any] | None = None
    """Lowest and highest states, each (nx,) or a number; infinite for none."""
    tolerance: float = 1e-8
    """Of IPOPT."""
    ipopt: Mapping[str, Any] | None = None
    """More options of IPOPT."""


def direct(
    world: World,
    cost: Cost | None,
    state0: Tensor,
    controls0: Tensor,
    options: DirectOptions = DirectOptions(),  # noqa: B008
    *,
    final_state: Tensor | None = None,
    states0: Tensor | None = None,
    inputs: Mapping[str, Tensor] | None = None,
) -> Solution:
    """Minimise a cost, or the duration, of one motion of a smooth world (no contact, or `Compliant`).

    x of the solution: controls (T, nu). extra: "states" (T + 1, nx), "times" (T + 1,) [s], "duration" [s].

    Args:
        cost: None with minimum_time: the duration alone.
        state0: (nx,).
        controls0: Guess, (T, nu).
        final_state: (nx,) to be reached exactly; entries that are NaN are free.
        states0: Guess, (T + 1, nx). Default: interpolated from state0 to final_state, or a rollout.
        inputs: Those of the cost, name -> (n,) or (T + 1, n).
    """
    raise NotImplementedError
