"""Tasks that are done by a planned motion: a look at the object, joints over time, and a few numbers that training finds.

A motion is planned once, at the start, for the object that is seen: the arm's joints by inverse kinematics, the fingers' between
two postures. Nobody tells it of contacts; whether it works is found out in the full world.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.tasks.manipulation.motions.reach import Reach
from costate.tasks.manipulation.motions.search import SearchTraining
from costate.tasks.manipulation.task import Manipulation
from costate.train.episode import Controller
from costate.train.network import Network
from costate.train.trainable import Variant

Numbers = Mapping[str, tuple[float, float]]
"""Name -> value to begin with, and how far the search looks at first."""


class MotionPolicy(nn.Module):
    """The numbers of a motion, in units of how far the search looks at first; zero is where it begins."""

    def __init__(self, task: MotionTask):
        super().__init__()
        self.task = task
        self.numbers = nn.Parameter(torch.zeros(len(task.numbers), dtype=torch.float64), requires_grad=False)

    def __deepcopy__(self, memo: Any) -> MotionPolicy:
        made = MotionPolicy(self.task)
        made.numbers.data.copy_(self.numbers)
        return made

    def begin(self) -> Controller:
        """Return the function that acts in one episode: from what is measured (B, 9) to the targets of servos."""
        return Acting(self.task, self.numbers)


class Acting:
    """A motion at work: planned from the first look at the object, then carried out."""

    def __init__(self, task: MotionTask, numbers: Tensor):
        self._task, self._numbers = task, numbers
        self._targets: Tensor | None = None
        self._step = 0

    def __call__(self, measured: Tensor) -> Tensor:
        """Return the targets of the servos (B, joints). numbers may differ between episodes, (B, n)."""
        if self._targets is None:
            self._targets = self._task.targets(self._numbers, measured.double()).to(measured.dtype)
        target = self._targets[min(self._step, len(self._targets) - 1)]
        self._step += 1
        return target


class MotionTask(Manipulation):
    """A task that is done by a planned motion."""

    training: ClassVar[SearchTraining] = SearchTraining()
    variants: ClassVar[Mapping[str, Variant]] = {}
    numbers: ClassVar[Numbers]
    """Numbers that training finds."""

    @abstractmethod
    def motion(self, n: Mapping[str, Tensor], measured: Tensor) -> Tensor:
        """Return the joints (T + 1, B, joints) of the motion, given its numbers (B,) and what is measured (B, 9)."""

    @cached_property
    def reach(self) -> Reach:
        """Arm of the hand."""
        return Reach(self.step.hand)

    def targets(self, numbers: Tensor, measured: Tensor) -> Tensor:
        """Return the targets of the servos (T, B, joints): the motion, led by what damping would hold back."""
        start, spread = torch.tensor(list(self.numbers.values()), dtype=torch.float64).T
        values = (start + spread * numbers.double()).expand(*measured.shape[:-1], len(start))
        joints = self.motion(dict(zip(self.numbers, values.unbind(-1), strict=True)), measured)
        stiffness, damping = self.executor._gains
        rates = joints.diff(dim=0) / self.options.dt
        return joints[1:] + torch.tensor(damping / stiffness) * rates

    def policy(self, training: SearchTraining, generator: torch.Generator | None = None) -> MotionPolicy:  # type: ignore[override]
        """Return the motion that the search begins with."""
        return MotionPolicy(self)

    def network(self, policy: nn.Module) -> Network:
        raise ValueError("a motion is planned by inverse kinematics, which no file of a network can hold")

    def _depth(self, pose: Tensor, scale: Tensor) -> Tensor:
        """Return nothing within: hands of these tasks begin beside or above the object."""
        return torch.full_like(scale, -1.0)

    def touching(self) -> Sequence[str]:
        """Return the names of the links that touch the object in the full world: all of the fingers, and the palm."""
        hand = self.step.hand
        return [*(c.link for c in (*hand.tips, *hand.others)), "palm"]


def smooth(part: Tensor) -> Tensor:
    """Return a way that begins and ends at rest, of time as a part of the whole."""
    return part**2 * (3 - 2 * part)


def steady(part: Tensor, ramp: float = 0.15) -> Tensor:
    """Return a way whose speed is constant but for a ramp at either end, which is such a part of the time."""
    rest = (part - ramp).clamp(0, 1 - 2 * ramp)
    ends = part.clamp(max=ramp) ** 2 + ramp**2 - (1 - part).clamp(max=ramp) ** 2
    return (ends / (2 * ramp) + rest) / (1 - ramp)


def along(times: Tensor, knots: Tensor, values: Tensor, eased: Callable[[Tensor], Tensor] = smooth) -> Tensor:
    """Return values (T, B, n) at times (T,), between those (K, B, n) at knots (K, B) [s]; each piece begins and ends at rest."""
    found = values[0].expand(len(times), *values.shape[1:]).clone()
    for k in range(len(knots) - 1):
        part = ((times[:, None] - knots[k]) / (knots[k + 1] - knots[k]).clamp(min=1e-6)).clamp(0, 1)[..., None]
        found += eased(part) * (values[k + 1] - values[k])
    return found
