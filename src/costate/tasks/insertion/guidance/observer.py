"""The observer: estimates of joints and socket from noisy sensors, of the payload, and of the latency of commands.

It has a Kalman filter of the joints and the payload for every latency that there may be: it predicts with the guide's model of the
servos, and is corrected by what is measured. The filter whose predictions miss least tells the latency. The socket moves as its
conveyor says, so that all readings of its place count alike. Estimates are of the moment at which the next command acts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from costate.tasks.insertion.cell import Cell
from costate.tasks.insertion.episode import Disturbances
from costate.tasks.insertion.guidance.guide import Guide
from costate.tasks.insertion.guidance.kalman import joint_gains

LATEST = 0.01
"""Part of a reading of the socket that is believed at least."""
DOUBT = 0.015
"""Difference of a measured joint velocity from a predicted one that is no surprise [rad/s]."""
PARTS = (6, 6, 1, 6)
"""Parts of a filter's state: positions and velocities of the joints, payload, unforeseen change of each velocity in a step."""
FILTER = sum(PARTS)


class Observer(nn.Module):
    """Filter of measurements, from step to step.

    against: noise and latencies that it reckons with.
    """

    delays: Tensor
    gains: Tensor
    start: Tensor

    def __init__(self, guide: Guide, cell: Cell, against: Disturbances):
        super().__init__()
        o = cell.options
        self.each = tuple(range(against.latency + 1)) if against.random_latency else (against.latency,)
        """Latencies that there may be, in control steps."""
        self.late, self.count = max(self.each), len(self.each)
        self.sizes = (FILTER * self.count, 2, 2, self.count, *[6] * self.late)
        """Sizes of what is kept: states of the filters, place and velocity of the socket, scores of the latencies, commands."""
        steps = torch.arange(o.horizon + 1, dtype=torch.float32)[:, None]
        place = (1 / (steps + 1)).clamp(min=LATEST) if against.target_jitter else torch.ones_like(steps)
        table = torch.from_numpy(joint_gains(guide, o, against)).mT.flatten(1).float()
        first = torch.zeros(sum(self.sizes), dtype=torch.float32)
        first[: FILTER * self.count].view(self.count, FILTER)[:, :6] = cell.start.float()
        self.register_buffer("gains", torch.cat([table, place], -1))
        self.register_buffer("delays", torch.tensor(self.each).float())
        self.register_buffer("start", first)

    def forward(
        self, guide: Guide, q: Tensor, v: Tensor, xy: Tensor, belt: Tensor, step: Tensor, last: Tensor, kept: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return estimates of q, v and xy when the next command acts, in how many steps that is, the mass of the bottle beyond the
        usual one, unforeseen changes of v in a step, and what is kept."""
        filters, xy0, belt0, score, *older = kept.split(self.sizes, -1)
        commands = [last, *older]  # the latest first
        before_q, before_v, *slow = filters.unflatten(-1, (self.count, FILTER)).split(PARTS, -1)
        # What was to be expected of each latency, and what is measured
        acted = torch.stack([commands[d] for d in self.each], -2)
        expected_q, expected_v = guide.predict(before_q, before_v, acted, *slow)
        missed_q, missed_v = q.unsqueeze(-2) - expected_q, v.unsqueeze(-2) - expected_v
        gains = guide.looked_up(self.gains, step)
        corrected = torch.cat([missed_q, missed_v], -1) @ gains[..., :-1].unflatten(-1, (12, FILTER))
        filters = torch.cat([expected_q, expected_v, *slow], -1) + corrected
        score = score - missed_v.square().sum(-1).detach() / (2 * DOUBT**2)
        share = torch.softmax(score, -1)
        xy = torch.lerp(xy0 + guide.dt * belt0, xy, gains[..., -1:])
        kept = torch.cat([filters.flatten(-2), xy, belt, score, *commands[: self.late]], -1)
        then = torch.stack(
            [self._awaited(guide, filters[..., k, :], commands[:d]) for k, d in enumerate(self.each)], -2
        )
        ahead = (share * self.delays).sum(-1, keepdim=True)
        q, v, load, drift = (share.unsqueeze(-1) * then).sum(-2).split(PARTS, -1)
        return q, v, xy + guide.dt * ahead * belt, ahead, load, drift, kept

    def _awaited(self, guide: Guide, state: Tensor, commands: Sequence[Tensor]) -> Tensor:
        """Return a filter's state when the next command acts, from commands that were given and have not acted, latest first."""
        q, v, *slow = state.split(PARTS, -1)
        for command in reversed(commands):
            q, v = guide.predict(q, v, command, *slow)
        return torch.cat([q, v, *slow], -1)
