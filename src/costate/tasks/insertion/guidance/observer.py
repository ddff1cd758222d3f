"""The observer: estimates of joints and socket from noisy sensors, and of the latency of commands.

It predicts joints and socket with the guide's model of the servos, and corrects its estimates by what is measured, less and less
for what does not change. Of several latencies it finds the one whose commands explain the measured velocities; its estimates are of
the moment at which the next command acts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from costate.tasks.insertion.guidance.guide import Guide

FLOORS = (0.1, 0.25, 0.02, 0.01)
"""Part of a difference between measured and predicted that is believed at least: joint positions, velocities, socket, payload."""
FIRST, SLOW = 0.08, 10
"""More of that for the payload, for so many steps while the arm is slow: later its model is less exact."""
DOUBT = 0.02
"""Difference of a measured joint velocity from a predicted one that is no surprise [rad/s]."""
SIZES = (6, 6, 2, 2, 1)
"""Sizes of what is kept: positions and velocities of joints and socket, and payload."""


class Observer(nn.Module):
    """Filter of measurements, from step to step.

    delays: latencies that there may be, in control steps.
    """

    delays: Tensor

    def __init__(self, horizon: int, delays: Sequence[int] = (0,)):
        super().__init__()
        self.late, self.count = max(delays), len(delays)
        self.size = sum(SIZES) + len(delays) + 6 * self.late
        """Numbers that are kept from step to step."""
        steps = torch.arange(horizon + 1)[:, None]
        less = (1 / (steps + 1.0)).clamp(min=torch.tensor(FLOORS))
        less[:, 3] = FLOORS[3] + FIRST / (1 + (steps[:, 0] / SLOW) ** 2)
        self.believed = nn.Parameter(less)
        self.register_buffer("delays", torch.tensor(delays).float())
        self.each = tuple(delays)

    def forward(
        self, guide: Guide, q: Tensor, v: Tensor, xy: Tensor, belt: Tensor, step: Tensor, last: Tensor, kept: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return estimates of q, v and xy when the next command acts, in how many steps that is, what payload adds to commands,
        and what is kept."""
        q0, v0, xy0, belt0, load, score, *older = kept.split((*SIZES, self.count, *[6] * self.late), -1)
        commands = [last, *older]  # the latest first
        sag = guide.sag
        # Which latency explains the velocities?
        acted = torch.stack([commands[d] for d in self.each], -2) - (load * sag).unsqueeze(-2)
        each_q, each_v = guide.predict(q0.unsqueeze(-2), v0.unsqueeze(-2), acted)
        missed = (v.unsqueeze(-2) - each_v).square().sum(-1)
        score = score - (missed / (2 * DOUBT**2)).detach() * (step > 0.5)
        share = torch.softmax(score, -1)
        # What was to be expected, and what is measured
        believed = guide.looked_up(self.believed, step)
        q1, v1 = ((share.unsqueeze(-1) * each).sum(-2) for each in (each_q, each_v))
        push = sag @ guide.faster[:6]  # of a kilogram in a step
        found = ((v1 - v) @ push).unsqueeze(-1) / push.square().sum()
        load = load + believed[..., 3:] * found * (step > 0.5)
        q, v = torch.lerp(q1, q, believed[..., :1]), torch.lerp(v1, v, believed[..., 1:2])
        xy = torch.lerp(xy0 + guide.dt * belt0, xy, believed[..., 2:3])
        kept = torch.cat([q, v, xy, belt, load, score, *commands[: self.late]], -1)
        ahead = (share * self.delays).sum(-1, keepdim=True)
        then = self._awaited(guide, q, v, [c - load * sag for c in commands])
        q, v = ((share.unsqueeze(-1) * torch.stack([then[d][i] for d in self.each], -2)).sum(-2) for i in (0, 1))
        return q, v, xy + guide.dt * ahead * belt, ahead, load * sag, kept

    def _awaited(self, guide: Guide, q: Tensor, v: Tensor, commands: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Return positions and velocities of the joints when the next command acts, for every latency from 0 on."""
        then, now = [(q, v)], (q.unsqueeze(-2), v.unsqueeze(-2))
        for passed in range(self.late):  # commands that were given, and have not acted yet
            waiting = torch.stack([commands[d - passed] for d in range(passed, self.late)], -2)
            now = guide.predict(*(x if passed == 0 else x[..., 1:, :] for x in now), waiting)
            then.append((now[0][..., 0, :], now[1][..., 0, :]))
        return then
