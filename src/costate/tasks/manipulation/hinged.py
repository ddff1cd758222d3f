"""Objects on a hinge: cylinders at a random place, which do nothing but turn about the vertical."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import ClassVar

import torch
from torch import Tensor

from costate.tasks.manipulation import task as tasks
from costate.tasks.manipulation.execute import OBJECT
from costate.tasks.manipulation.objects import Cylinder, Thing
from costate.tasks.manipulation.task import CLEAR, Manipulation, about_z


@dataclass(frozen=True)
class Episodes(tasks.Episodes):
    """Starts, and objects on their hinges."""

    place: Tensor
    """Middle of the object [m], (B, 3)."""

    @property
    def params(self) -> Mapping[str, Tensor]:
        """Parameters of the world."""
        return {**super().params, f"translation:{OBJECT}/joint": self.place}

    def only(self, k: int) -> Episodes:
        return Episodes(**vars(super().only(k)), place=self.place[k : k + 1])

    def repeated(self, times: int) -> Episodes:
        return Episodes(**vars(super().repeated(times)), place=self.place.repeat(times, 1))


class Hinged(Manipulation):
    """A task with an object on a hinge, whose state is one angle [rad] that counts turns."""

    unit: ClassVar[str] = "degrees"
    tolerance: ClassVar[float | None] = 10.0
    hinge: ClassVar[bool] = True
    way: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.0)
    spread: ClassVar[tuple[float, float, float]] = (1.0, 1.0, 1.0)
    """Largest distance of objects from their usual place along x, y and z, in units of the option `place`."""
    parameters: ClassVar[tuple[str, ...]] = (*Manipulation.parameters, f"translation:{OBJECT}/joint")

    def thing(self) -> Thing:
        return Cylinder()

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        """Draw objects, their places and angles. A place within 1 mm of a link of the open hand is drawn anew."""
        drawn = super().draw(batch, generator, torch.float64)
        middle, reach = torch.tensor(self.middle), self.options.place * torch.tensor(self.spread, dtype=torch.float64)
        place = middle + reach * (2 * torch.rand(batch, 3, generator=generator, dtype=torch.float64) - 1)
        scale, turn = drawn.thing[:, 0], about_z(drawn.state[:, self.step.nq])
        while len(within := torch.nonzero(self._depth(torch.cat([place, turn], -1), scale) > -CLEAR)[:, 0]):
            again = 2 * torch.rand(len(within), 3, generator=generator, dtype=torch.float64) - 1
            place[within] = middle + reach * again
        return Episodes(**{name: x.to(dtype) for name, x in vars(drawn).items()}, place=place.to(dtype))

    def _put(self, state: Tensor, scale: Tensor, drawn: Tensor) -> None:
        state[:, self.step.nq] = drawn[:, 2] * pi

    def _within(self, state: Tensor, scale: Tensor) -> Tensor:
        """Return none: states have no place, and `draw` looks at those that it draws."""
        return torch.zeros(0, dtype=torch.int64)

    def pose(self, state: Tensor) -> Tensor:
        """Return the pose of an object at the usual place."""
        angle = state[..., self.step.nq]
        return torch.cat([angle.new_tensor(self.middle).expand(*angle.shape, 3), about_z(angle)], -1)

    def placed(self, state: Tensor, episodes: Episodes) -> Tensor:  # type: ignore[override]
        usual = self.pose(state)
        return torch.cat([episodes.place.to(usual.dtype).expand_as(usual[..., :3]), usual[..., 3:]], -1)
