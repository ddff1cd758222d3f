"""The examination of a rollout: products of its linearisations, its events and the causes of bad gradients."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from costate.audit.smoothness.advice import advise
from costate.audit.smoothness.causes import find_causes
from costate.audit.smoothness.events import find_events, find_zeros
from costate.audit.smoothness.motion import Motion
from costate.audit.smoothness.report import Smoothness
from costate.sim import World
from costate.sim.inputs import Params

LARGEST = 1e300
"""Sensitivity above which only this much is reported."""


def diagnose(
    world: World,
    states: Tensor,
    controls: Tensor | None = None,
    params: Params = None,
    sample: int = 0,
    slip_speed: float = 1e-3,
    limit_margin: float = 1e-3,
) -> Smoothness:
    """Report how smooth a rollout is, and what to change if its gradients are of no use.

    Args:
        world: World in which the rollout was made.
        states: States of the rollout, (T + 1, nx), or (T + 1, B, nx), of which one sample is examined.
        controls: Controls of the rollout, (T, nu) or (T, B, nu); default: zero.
        params: Parameters of the rollout.
        sample: Index of the sample that is examined.
        slip_speed: Speed below which a contact sticks [m/s].
        limit_margin: Distance from its limit within which a joint has reached it [rad or m].
    """
    if states.dim() not in (2, 3) or states.shape[-1] != world.nx or len(states) < 2:
        raise ValueError(
            f"states have shape {tuple(states.shape)}; expected those of a rollout, (T + 1, {world.nx}) or (T + 1, B, {world.nx})"
        )
    x = (states if states.dim() == 2 else states[:, sample]).detach().double()
    u = torch.zeros(len(x) - 1, world.nu, dtype=x.dtype) if controls is None else controls.detach().double()
    u = u if u.dim() == 2 else u[:, sample]
    _check_finite("state", x)
    A, B = world.linearize(x[:-1], u, params)
    _check_finite("the derivative of step", torch.cat([A, B], -1))
    motion = Motion(world, x, u, params, A, B)
    to_final, logs = _products(A)
    by_control = to_final[1:] @ B
    sensitivity, control = _norm(to_final, logs), _norm(by_control, logs[1:])
    events = find_events(motion, slip_speed, limit_margin)
    zeros, causes = find_zeros(motion, by_control), find_causes(motion, events)
    stretch = _stretch(A, to_final, int(sensitivity.argmax()))
    residual = motion.contacts.residual if motion.has_contacts else x.new_zeros(0)
    found = Smoothness(events, sensitivity, motion.growth, stretch, control, zeros, causes, residual, [])
    found.advice.extend(advise(found, world.dt))
    return found


def _check_finite(what: str, values: Tensor) -> None:
    """Raise if a number of a step, (T, ...), is not finite."""
    lost = (~values.isfinite()).flatten(1).any(-1).nonzero()
    if len(lost):
        t = int(lost[0])
        raise ValueError(
            f"{what} {t} is not finite, so nothing can be said about what follows. Examine the motion before it "
            f"(states[:{max(t, 1)}]), and reduce dt, raise substeps, or soften gains and contact"
        )


def _products(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return d x_T / d x_t for every t, each divided by a factor so that none overflows, (T + 1, ndx, ndx); and the logarithms of
    these factors, (T + 1,)."""
    chain, logs = [torch.eye(A.shape[-1], dtype=A.dtype)], [0.0]
    for step in A.flip(0):
        product = chain[-1] @ step
        size = float(product.abs().max()) if product.numel() else 0.0
        scale = size if size > 1e100 else 1.0
        chain.append(product / scale)
        logs.append(logs[-1] + log(scale))
    return torch.stack(chain[::-1]), torch.tensor(logs[::-1], dtype=A.dtype)


def _norm(M: Tensor, logs: Tensor) -> Tensor:
    """Return the largest singular values of matrices, given without the factors whose logarithms are `logs`; at most 1e300."""
    if not M.numel():
        return torch.zeros(0 if not M.shape[-1] else len(M), dtype=M.dtype)
    return (torch.linalg.matrix_norm(M, 2).log() + logs).clamp(max=log(LARGEST)).exp()


def _stretch(A: Tensor, to_final: Tensor, start: int) -> Tensor:
    """Return the growth in every step from `start` on of the disturbance that grows most until the end; 1 before."""
    sizes = torch.ones(len(A), dtype=A.dtype)
    if not A.numel() or start == len(A):
        return sizes
    along = torch.linalg.svd(to_final[start]).Vh[0]
    for t in range(start, len(A)):
        along = A[t] @ along
        sizes[t] = along.norm()
        along = along / sizes[t].clamp(min=1e-300)
    return sizes
