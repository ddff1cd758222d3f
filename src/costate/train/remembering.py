"""Policies with memory: they can filter noise, and infer what a single observation does not tell, such as latency or a payload.

Such a policy gives changes of its last action, so that its commands have no jumps; it sees its last action, and beside it

    command   nothing else
    frames    observations and actions of the last few steps
    cell      estimates of a recurrent cell: each moves on by a linear function of what is seen, and is then corrected towards
              another one by a gain between 0 and 1, which depends on what is seen as well. A Kalman filter has this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class MemoryOptions:
    """Memory of a policy."""

    kind: Literal["auto", "none", "command", "frames", "cell"] = "auto"
    """Memory of the policy: none, its last action, the last few steps, a recurrent cell, or what the task needs."""
    frames: int = 8
    """Steps that are remembered, with "frames"."""
    units: int = 24
    """Estimates of the recurrent cell, with "cell"."""

    def __post_init__(self) -> None:
        if self.frames < 1 or self.units < 1:
            raise ValueError(f"a memory of {self.frames} frames and {self.units} units; it has at least 1 of each")


@dataclass(frozen=True)
class Followed:
    """Knowledge that a cell begins with: which observations are positions, and how they follow from their rates."""

    rates: Mapping[int, tuple[int, float]]
    """Observed position -> its observed rate, and how far the position moves in a step per unit of it."""
    clock: int
    """Observation that grows from 0 to 1 over an episode; estimates are corrected less and less."""


class RememberingPolicy(nn.Module):
    """action = last action + reach * tanh(W2 tanh(W1 (observation, last action, memory) + b1) + b2), within [-1, 1].

    memory: kind and size of the memory; not "auto" or "none".
    reach: largest change of an action from one step to the next, a number or one for each (outputs,).
    followed: what a cell begins with; None: nothing in particular.
    """

    reach: Tensor
    start: Tensor

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden: int = 256,
        generator: torch.Generator | None = None,
        memory: MemoryOptions = MemoryOptions("cell"),  # noqa: B008  (frozen)
        reach: Tensor | float = 0.25,
        followed: Followed | None = None,
    ):
        super().__init__()
        if memory.kind not in ("command", "frames", "cell"):
            raise ValueError(f"memory is {memory.kind!r}; a policy that remembers has one of command, frames, cell")
        self.kind, self.outputs, seen = memory.kind, outputs, inputs + outputs
        kept = {"command": 0, "frames": memory.frames * seen, "cell": memory.units}[memory.kind]
        self.inner = nn.Linear(seen + kept, hidden, dtype=torch.float32)
        self.outer = nn.Linear(hidden, outputs, dtype=torch.float32)
        self.register_buffer("reach", torch.as_tensor(reach).float().expand(outputs).clone())
        self.register_buffer("start", torch.zeros(outputs + kept))
        with torch.no_grad():
            # The last layer is near zero: an untrained robot hardly moves.
            for layer, bound in ((self.inner, 2 * (seen + kept) ** -0.5), (self.outer, 0.1 * hidden**-0.5)):
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
            self.inner.bias.uniform_(-((seen + kept) ** -0.5), (seen + kept) ** -0.5, generator=generator)
        if memory.kind == "cell":
            self.cell = Cell(seen, kept, generator, followed)

    def memory(self) -> list[Tensor]:
        """Return the memory at the start of an episode: the last action, and what else is kept."""
        return [self.start]

    def forward(self, observation: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        command = memory[..., : self.outputs]
        seen = torch.cat([observation, command], -1)
        kept = [memory[..., self.outputs :]] if self.kind != "command" else []
        if self.kind == "cell":
            kept = [self.cell(seen, *kept)]
        change = torch.tanh(self.outer(torch.tanh(self.inner(torch.cat([seen, *kept], -1)))))
        action = (command + self.reach * change).clamp(-1.0, 1.0)
        if self.kind == "frames":
            kept = [torch.cat([seen, *kept], -1)[..., : kept[0].shape[-1]]]
        return action, torch.cat([action, *kept], -1)


class Cell(nn.Module):
    """Estimates (..., n) from those of the step before, and what is seen: predicted + gain (measured - predicted)."""

    def __init__(self, seen: int, units: int, generator: torch.Generator | None, followed: Followed | None):
        super().__init__()
        self.drift, self.measured, self.gain = (nn.Linear(seen, units, dtype=torch.float32) for _ in range(3))
        with torch.no_grad():
            for layer in (self.drift, self.measured, self.gain):
                layer.weight.zero_()
                layer.bias.zero_()
            self.measured.weight.uniform_(-(seen**-0.5), seen**-0.5, generator=generator)
            if followed is None:
                return
            for k, (position, (rate, gain)) in zip(range(units), followed.rates.items(), strict=False):
                self.measured.weight[k].zero_()
                self.measured.weight[k, position] = 1.0
                self.drift.weight[k, rate] = gain
            # From nearly 1 at the start to about 0.1: what is known grows.
            self.gain.bias.fill_(3.0)
            self.gain.weight[:, followed.clock] = -5.0

    def forward(self, seen: Tensor, before: Tensor) -> Tensor:
        predicted = before + self.drift(seen)
        return torch.lerp(predicted, self.measured(seen), torch.sigmoid(self.gain(seen)))
