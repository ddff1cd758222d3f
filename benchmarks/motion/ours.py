"""The same motions in Costate: values and derivatives of whole roll-outs by automatic differentiation.

A world is compiled once, with a step of UNIT. Another step length is another unit of time: with velocities times dt / UNIT and
gravity times its square, a step of UNIT is one of dt, and the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

import costate as cs
from benchmarks.motion.bodies import Arm, Ball, Floating
from benchmarks.motion.reference import LEVER
from benchmarks.motion.scenes import Kind, Start

D = torch.float64
UNIT = 0.01
"""Step that worlds are compiled with [s]."""
HARD = cs.Hard(friction=0.5, restitution=0.5, restitution_speed=1e-7)
"""Hard contact of the audit: friction and restitution are given, and slow impacts bounce, too, as those of the reference do."""
EVERY, CHUNK = 5, 5000
"""Number of steps between states that are kept, the same for all step lengths, so that one kernel serves all; and of a roll-out."""
Pair = tuple[Start, Start]


def world_of(kind: Kind) -> cs.World:
    """Return the world of a kind of scene."""
    return kind.world(UNIT, HARD)


def run(kind: Kind, world: cs.World, dt: float, starts: Sequence[Pair], t: Tensor) -> Tensor:
    """Return the ends (B, n) of the motions from starts at distances t (B,) along their directions; differentiable in t."""
    a, by = zip(*starts, strict=True)
    scale = dt / world.dt

    def laws(name: str) -> Tensor:
        first, along = (torch.tensor(np.array([getattr(s, name) for s in side]), dtype=D) for side in (a, by))
        return first.reshape(len(a), -1) + t[:, None] * along.reshape(len(a), -1)

    params = {name: laws(name) for name in ("restitution", "friction", "gravity")}
    params["gravity"] = params["gravity"] * scale**2
    state = states(kind, starts, t)
    steps = round(kind.seconds / dt)
    end = torch.cat([state[:, : world.nq], scale * state[:, world.nq :]], -1)
    for first in range(0, steps, CHUNK):
        controls = torch.zeros(min(CHUNK, steps - first), len(a), world.nu, dtype=D)
        end = world.rollout(end, controls, params=params, checkpoint=EVERY)[-1]
    return _ends(kind, torch.cat([end[:, : world.nq], end[:, world.nq :] / scale], -1), world.nq)


def slopes(kind: Kind, world: cs.World, dt: float, starts: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the motions, and their derivatives along the directions, by automatic differentiation, (B, n) each."""
    t = torch.zeros(len(starts), dtype=D)
    found = torch.func.jvp(lambda t: run(kind, world, dt, starts, t), (t,), (torch.ones_like(t),))
    return found[0].numpy(), found[1].numpy()


def states(kind: Kind, starts: Sequence[Pair], t: Tensor) -> Tensor:
    """Return the states (B, nx) of the world at distances t along the directions."""
    q, v = [], []
    a, by = zip(*starts, strict=True)
    for k, part in enumerate(kind.system.parts):
        at, along = (torch.tensor(np.array([s.places[k] for s in side]), dtype=D) for side in (a, by))
        moved = at + t[:, None, None] * along
        if isinstance(part, Arm):
            q.append(moved[:, 0])
            v.append(moved[:, 1])
            continue
        # To first order; disturbances of a finite size are turned by the exponential, as those of the reference.
        floats = isinstance(part, Floating)
        turned = _quaternion(at[:, 0, 3:6] if floats else at[:, 1])
        turned = _product(_exponential(t[:, None] * (along[:, 0, 3:6] if floats else along[:, 1])), turned)
        R = _matrix(turned)
        if floats:
            q += [moved[:, 0, :3], turned, moved[:, 0, 6:]]
            v += [(R.mT @ moved[:, 1, i : i + 3, None]).squeeze(-1) for i in (0, 3)] + [moved[:, 1, 6:]]
            continue
        q += [moved[:, 0], turned]
        v += [(R.mT @ moved[:, row, :, None]).squeeze(-1) for row in (2, 3)]
    return torch.cat([*q, *v], -1)


def _ends(kind: Kind, state: Tensor, nq: int) -> Tensor:
    found, iq, iv = [], 0, nq
    for part in kind.system.parts:
        if isinstance(part, Arm):
            n = len(part.lengths)
            found += [LEVER * state[:, iq : iq + n], LEVER * state[:, iv : iv + n]]
            iq, iv = iq + n, iv + n
            continue
        joints = part.joints if isinstance(part, Floating) else 0
        R = _matrix(state[:, iq + 3 : iq + 7])
        v, w = ((R @ state[:, at : at + 3, None]).squeeze(-1) for at in (iv, iv + 3))
        axes = [] if isinstance(part, Ball) else [LEVER * R[:, :, 0], LEVER * R[:, :, 1]]
        bent = [LEVER * state[:, at : at + joints] for at in (iq + 7, iv + 6)]
        found += [state[:, iq : iq + 3], *axes, v, LEVER * w, *bent]
        iq, iv = iq + 7 + joints, iv + 6 + joints
    return torch.cat(found, -1)


def _quaternion(vectors: Tensor) -> Tensor:
    angles = vectors.norm(dim=-1, keepdim=True)
    return torch.cat([vectors / 2 * torch.sinc(angles / (2 * torch.pi)), torch.cos(angles / 2)], -1)


def _exponential(vector: Tensor) -> Tensor:
    square = (vector * vector).sum(-1, keepdim=True) / 4
    # Series of sin(x) / x and cos(x) in x^2, of small angles.
    return torch.cat([vector / 2 * (1 - square / 6 + square**2 / 120), 1 - square / 2 + square**2 / 24], -1)


def _product(a: Tensor, b: Tensor) -> Tensor:
    (u, s), (v, c) = ((x[:, :3], x[:, 3:]) for x in (a, b))
    return torch.cat([s * v + c * u + torch.linalg.cross(u, v), s * c - (u * v).sum(-1, keepdim=True)], -1)


def _matrix(quaternion: Tensor) -> Tensor:
    q = quaternion / quaternion.norm(dim=-1, keepdim=True)
    x, y, z, w = q.unbind(-1)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
            2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
            2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]  # fmt: skip
    return torch.stack(rows, -1).reshape(-1, 3, 3)
