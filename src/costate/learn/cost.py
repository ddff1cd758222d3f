"""Costs of motions, written once in symbols: value, gradient and Hessian in the tangent space are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from casadi import SX

if TYPE_CHECKING:
    from costate.sim import World


class Cost:
    """Cost of a motion of a world: a sum over steps, and one of the last state.

        def stage(s):                       # s.q, s.v, s.u, s.position("link"), s.rotation("link"), s.away(q), s["goal"]
            return casadi.vertcat(0.1 * s.v, 0.01 * s.u)
        def final(s):
            return 10 * (s.position("ur5/tool0") - s["goal"])
        cost = Cost(world, stage, final, inputs={"goal": 3})

    Args:
        stage: Point of the motion -> residuals, a column; the cost is half their squared norm, its Hessian that of Gauss-Newton.
        final: The same for the last state, which has no control; None for no cost.
        inputs: Further inputs -> size; given as tensors (n,), (B, n) or (T + 1, B, n) to the optimiser.
        least_squares: False when stage and final return costs themselves, scalars. Their exact Hessian is used.
    """

    def __init__(
        self,
        world: World,
        stage: Callable[..., SX],
        final: Callable[..., SX] | None = None,
        inputs: Mapping[str, int] | None = None,
        least_squares: bool = True,
    ):
        raise NotImplementedError
