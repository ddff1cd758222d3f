"""The controller: a guide from kinematics, an observer where there is noise or latency, and a network that corrects commands."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from costate.tasks.insertion.guidance.guide import Guide
from costate.tasks.insertion.guidance.observer import Observer
from costate.tasks.insertion.scene import ACTION, OBSERVATION

REACH = 0.15
"""Largest correction of an action by the network."""
PARTS = (6, 6, 2, 1, 2, 1, 1)
"""Sizes of the parts of an observation: joint positions, velocities, socket x y (z), its velocity x y (z), clock."""


class GuidedPolicy(nn.Module):
    """action = the guide's action + REACH * tanh(W2 tanh(W1 (what is known, the guide's action, the last action) + b1) + b2).

    unit, zero: a measurement is unit * observation + zero (19,). scale: a command is scale * action (6,).
    """

    unit: Tensor
    zero: Tensor
    scale: Tensor
    start: Tensor

    def __init__(
        self,
        guide: Guide,
        unit: Tensor,
        zero: Tensor,
        scale: Tensor,
        hidden: int = 256,
        generator: torch.Generator | None = None,
        observer: Observer | None = None,
    ):
        super().__init__()
        self.guide, self.observer = guide, observer
        seen = OBSERVATION + 2 * ACTION + (observer is not None)
        self.inner, self.outer = (nn.Linear(n, m, dtype=torch.float32) for n, m in ((seen, hidden), (hidden, ACTION)))
        for name, value in (("unit", unit), ("zero", zero), ("scale", scale)):
            self.register_buffer(name, value.float())
        nothing = torch.zeros(ACTION, dtype=torch.float32)
        self.register_buffer("start", nothing if observer is None else torch.cat([nothing, observer.start]))
        with torch.no_grad():
            # The last layer is near zero: an untrained network hardly corrects anything, and nothing that an observer found.
            last = 0.1 * hidden**-0.5 if observer is None else 0.0
            for layer, bound in ((self.inner, 2 * seen**-0.5), (self.outer, last)):
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
            self.inner.bias.uniform_(-(seen**-0.5), seen**-0.5, generator=generator)

    def memory(self) -> list[Tensor]:
        """Return the memory at the start of an episode: the last action, and what the observer keeps."""
        return [self.start]

    def forward(self, observation: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        last, kept = memory[..., :ACTION], []
        q, v, xy, z, belt, dz, clock = (self.unit * observation + self.zero).split(PARTS, -1)
        step, known, slow = self.guide.horizon * clock, [observation], ()
        if self.observer is not None:
            before = memory[..., ACTION:]
            q, v, xy, ahead, *slow, after = self.observer(self.guide, q, v, xy, belt, step, self.scale * last, before)
            kept = [after]
            step = step + ahead
            known = [(torch.cat([q, v, xy, z, belt, dz, clock], -1) - self.zero) / self.unit, ahead]
        # Nothing that the arm does moves the socket: no gradient has to go there.
        action = self.guide(q, v, xy.detach(), belt.detach(), step.detach(), *slow)
        action = action / self.scale
        change = torch.tanh(self.outer(torch.tanh(self.inner(torch.cat([*known, action, last], -1)))))
        action = (action + REACH * change).clamp(-1.0, 1.0)
        return action, torch.cat([action, *kept], -1)
