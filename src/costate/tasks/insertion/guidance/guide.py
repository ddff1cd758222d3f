"""The guide: a controller that follows from kinematics alone, which a network then corrects.

The bottle is to be upright over the socket when its foot passes the mouth, and to go down from there as a table of heights says;
inverse kinematics gives the joint positions r(t) of that. Above the mouth joints only have to arrive, at the velocity that they go
on with, so r(t) is a straight line there. What the arm is away from it, e = q - r, vanishes by the time the foot passes the
mouth: the next velocity is r' + a(t) e + b(t) e', from a table, too. Commands then take into account how the servos answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from costate.tasks.insertion.guidance.steering import (
    AFTER,
    answered,
    factors,
    gains,
    heights,
    moments,
    monomials,
    polar,
    upright,
)
from costate.tasks.insertion.scene import ARRIVAL

if TYPE_CHECKING:
    from costate.tasks.insertion.cell import Cell

LEAST = 4
"""Steps in which an error is to vanish at least."""
USED = 0.98
"""Part of the limit of acceleration that it uses."""
SLOW = 0.05
"""Speed at which the bottle meets a chamfer [m/s]."""


class Guide(nn.Module):
    """Function of positions and velocities of joints and socket that returns joint velocities to command, all in SI units.

    payload: largest difference of the bottle's mass from the usual one [kg]; 0: what it is told of the payload is ignored.
    aim: height above the seat that it aims at [m].
    """

    table: Tensor
    places: Tensor
    upright: Tensor
    middle: Tensor
    changes: Tensor
    inverse: Tensor

    def __init__(self, cell: Cell, payload: float = 0.0, aim: float = 1.5e-4):
        super().__init__()
        o = cell.options
        T, arrival = o.horizon, round(ARRIVAL * o.horizon)
        if o.disturbances.belt_change:
            arrival = max(arrival, T // 2 + AFTER)
        self.horizon, self.dt, self.weighs = T, o.dt, payload > 0
        self.limit = USED * o.acceleration_limit * o.dt if o.acceleration_limit else float("inf")
        fit = upright(cell)
        answer = answered(cell, fit, payload)
        late = answer.late
        steps = np.arange(T + 1)
        # The velocity that a step begins with is that of the reference a little earlier, since changes count in part.
        shifts = np.array([0.0, -late, 1 - late, 2 - late])
        ahead = np.maximum(arrival - steps, 0)[:, None]
        shifts = np.where(ahead > 0, ahead + np.array([0.0, -0.5, 0.5, 1.5]), shifts)
        z = heights(steps[:, None] + shifts, T, arrival, aim, SLOW * o.dt if o.chamfer else 0.0)
        z[-1] = aim  # the clock stops at the horizon
        ab = np.array([gains(max(arrival - k, LEAST), arrival, late) for k in range(T + 1)])
        numbers = {
            "table": np.concatenate([z, o.dt * shifts, ab, o.dt * ahead, ahead > 0], -1),
            "places": torch.stack([fit.middle, 1 / fit.half]),
            "upright": fit.coefficients,
            "middle": answer.middle,
            "changes": torch.cat([answer.moved, answer.faster], -1),
            "inverse": answer.inverse,
        }
        self.chosen = [f"factors{k}" for k in range(6)]
        numbers |= dict(zip(self.chosen, factors(), strict=True))
        for name, values in numbers.items():
            self.register_buffer(name, torch.as_tensor(values).float())

    def forward(
        self, q: Tensor, v: Tensor, xy: Tensor, belt: Tensor, step: Tensor, load: Tensor | None = None
    ) -> Tensor:
        """Return joint velocities (..., 6) to command, from (..., 6), (..., 6), (..., 2), (..., 2), the step (..., 1) and the mass
        of the bottle beyond the usual one (..., 1)."""
        row = self.looked_up(self.table, step)
        place = xy.unsqueeze(-2) + belt.unsqueeze(-2) * row[..., 4:8].unsqueeze(-1)
        points = torch.cat([place, row[..., :4].unsqueeze(-1)], -1)
        chosen = [getattr(self, name) for name in self.chosen]
        r = monomials((polar(points) - self.places[0]) * self.places[1], chosen) @ self.upright
        now, after = ((r[..., k + 1, :] - r[..., k, :]) / self.dt for k in (1, 2))
        a, b, ahead, free = row[..., 8:].split(1, -1)
        error = q - (r[..., 0, :] - ahead * now)
        wanted = torch.lerp(after, now, free) + a / self.dt * error + b * (v - now)
        faster = (wanted - v).clamp(-self.limit, self.limit)
        return v + moments(q - self.middle, v, faster, load if self.weighs else None) @ self.inverse

    def looked_up(self, table: Tensor, step: Tensor) -> Tensor:
        """Return the row of a table (T + 1, n) for a step (..., 1), interpolated, (..., n)."""
        last = table.shape[0] - 1
        number = torch.arange(last + 1, dtype=step.dtype)
        return torch.relu(1 - (step.clamp(max=last) - number).abs()) @ table

    def predict(self, q: Tensor, v: Tensor, command: Tensor, load: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return positions and velocities of the joints after a step with a command, and with a payload."""
        known = moments(q - self.middle, v, command - v, load if self.weighs else None)
        moved, faster = (known @ self.changes).split(6, -1)
        return q + self.dt * v + moved, v + faster
