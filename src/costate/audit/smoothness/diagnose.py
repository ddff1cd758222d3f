"""The examination of a rollout: products of its linearisations, its events and the causes of bad gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from costate.audit.smoothness.advice import advise
from costate.audit.smoothness.causes import find_causes
from costate.audit.smoothness.events import find_events, find_zeros
from costate.audit.smoothness.motion import Motion
from costate.audit.smoothness.report import Smoothness
from costate.sim import World
from costate.sim.inputs import Params


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
    A, B = world.linearize(x[:-1], u, params)
    chain = [torch.eye(world.ndx, dtype=x.dtype)]
    for t in reversed(range(len(A))):
        chain.append(chain[-1] @ A[t])
    to_final = torch.stack(chain[::-1])  # (T + 1, 2nv, 2nv)
    by_control = to_final[1:] @ B
    motion = Motion(world, x, u, params, A, B)
    events = find_events(motion, slip_speed, limit_margin)
    zeros, causes = find_zeros(motion, by_control), find_causes(motion, events)
    growths = _norm(A), _stretch(A, to_final[0]), _norm(by_control)
    found = Smoothness(events, _norm(to_final), *growths, zeros, causes, [])
    found.advice.extend(advise(found, world.dt))
    return found


def _norm(M: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(M, 2) if M.numel() else torch.zeros(0)


def _stretch(A: Tensor, total: Tensor) -> Tensor:
    """Return the growth in every step of the direction that grows most in all of them. A: (T, 2nv, 2nv); total: their product."""
    if not total.numel():
        return torch.zeros(len(A), dtype=A.dtype)
    along, sizes = torch.linalg.svd(total).Vh[0], []
    for step in A:
        along = step @ along
        sizes.append(along.norm())
        along = along / sizes[-1].clamp(min=1e-300)
    return torch.stack(sizes)
