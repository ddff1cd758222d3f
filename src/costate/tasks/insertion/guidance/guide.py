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
    Usual,
    answered,
    moments,
    monomials,
    polar,
    upright,
)
from costate.tasks.insertion.guidance.swift import HASTY, LOW, Swift, swift_change, swift_motion
from costate.tasks.insertion.scene import ARRIVAL

if TYPE_CHECKING:
    from costate.tasks.insertion.cell import Cell

USED = 0.98
"""Part of the limit of acceleration that it uses."""
SLOW = 0.05
"""Speed at which the bottle meets a chamfer [m/s]."""
RUNAWAY = 2.0
"""Times the largest velocity of a joint beyond which no prediction goes. A filter that assumes a wrong latency can run away."""


class Guide(nn.Module):
    """Function of positions and velocities of joints and socket that returns joint velocities to command, all in SI units.

    payload: largest difference of the bottle's mass from the usual one [kg]; 0: what it is told of the payload is ignored.
    aim: height above the seat that it aims at [m].
    """

    table: Tensor
    places: Tensor
    upright: Tensor
    middle: Tensor
    far: Tensor
    changes: Tensor
    inverse: Tensor
    low: Tensor
    most: Tensor
    spill: Tensor

    def __init__(self, cell: Cell, payload: float = 0.0, aim: float = 1.5e-4):
        super().__init__()
        o = cell.options
        T, arrival = o.horizon, round(ARRIVAL * o.horizon)
        if o.disturbances.belt_change:
            arrival = max(arrival, T // 2 + AFTER)
        self.horizon, self.dt, self.weighs = T, o.dt, payload > 0
        self.limit = USED * o.acceleration_limit * o.dt if o.acceleration_limit else float("inf")
        self.fastest = RUNAWAY * float(cell.max_velocity.max())
        fit = upright(cell)
        answer = answered(cell, fit, payload)
        late = answer.late
        usual = Usual(T, arrival, aim, SLOW * o.dt if o.chamfer else 0.0)
        swift = swift_motion(cell, fit, usual)
        self.swift, self.late, self.missed = swift is not None, late, answer.missed.numpy()
        numbers = {
            "table": _table(swift or usual, late, o.dt),
            "places": torch.stack([fit.middle, 1 / fit.half]),
            "upright": fit.coefficients,
            "middle": answer.middle,
            "changes": torch.cat([answer.moved, answer.faster], -1),
            "inverse": answer.inverse,
        }
        if swift:
            share = answer.faster[:6] / answer.faster[:6].diagonal()
            numbers |= {"low": LOW * cell.max_velocity, "most": cell.action_scale[1], "spill": share.fill_diagonal_(0)}
        for name, values in numbers.items():
            self.register_buffer(name, torch.as_tensor(values).float())
        self.register_buffer("far", answer.far.float(), persistent=False)

    def forward(
        self,
        q: Tensor,
        v: Tensor,
        xy: Tensor,
        belt: Tensor,
        step: Tensor,
        load: Tensor | None = None,
        drift: Tensor | None = None,
    ) -> Tensor:
        """Return joint velocities (..., 6) to command, from (..., 6), (..., 6), (..., 2), (..., 2), the step (..., 1), the mass of
        the bottle beyond the usual one (..., 1), and what velocities change in a step beside what is predicted (..., 6)."""
        row = self.looked_up(self.table, step)
        place = xy.unsqueeze(-2) + belt.unsqueeze(-2) * row[..., 4:8].unsqueeze(-1)
        points = torch.cat([place, row[..., :4].unsqueeze(-1)], -1)
        r = monomials((polar(points) - self.places[0]) * self.places[1]) @ self.upright
        now, after = ((r[..., k + 1, :] - r[..., k, :]) / self.dt for k in (1, 2))
        a, b, ahead, free, *hasty = row[..., 8:].split(1, -1)
        error = q - (r[..., 0, :] - ahead * now)
        faster = torch.lerp(after, now, free) + a / self.dt * error + b * (v - now) - v
        if self.swift:
            left = torch.maximum(ahead, 1 - hasty[0])  # any time, where it is not used
            part = (0.5 - self.late) * self.dt
            soon = swift_change(error - part * (now - v), now - v, v, left, self.low, self.limit, self.dt)
            faster = torch.lerp(faster, soon, hasty[0])
        faster = faster.clamp(-self.limit, self.limit)
        faster = faster if drift is None else faster - drift
        command = v + moments(self._near(q), v, faster, load if self.weighs else None) @ self.inverse
        if self.swift:  # a servo that cannot have what it needs takes from other joints, too, unless they are told
            given = torch.minimum(torch.maximum(command, -self.most), self.most)
            command = given + (command - given) @ self.spill
        return command

    def _near(self, q: Tensor) -> Tensor:
        """Return how far joints are from the middle; no further than the model of the servos is known."""
        return torch.minimum(torch.maximum(q - self.middle, -self.far), self.far)

    def looked_up(self, table: Tensor, step: Tensor) -> Tensor:
        """Return the row of a table (T + 1, n) for a step (..., 1), interpolated, (..., n)."""
        last = table.shape[0] - 1
        number = torch.arange(last + 1, dtype=step.dtype)
        return torch.relu(1 - (step.clamp(max=last) - number).abs()) @ table

    def predict(
        self, q: Tensor, v: Tensor, command: Tensor, load: Tensor | None = None, drift: Tensor | float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Return positions and velocities of the joints after a step with a command, and with a payload."""
        known = moments(self._near(q), v, command - v, load if self.weighs else None)
        moved, faster = (known @ self.changes).split(6, -1)
        after = (v + faster + drift).clamp(-self.fastest, self.fastest)  # its products would run away
        return q + self.dt * (v + self.late * drift) + moved, after


def _table(way: Usual | Swift, late: float, dt: float) -> np.ndarray:
    """Return a row for each step up to the horizon.

    It has heights of the foot [m] at four times, these times from now [s], gains of position and velocity, the time until the
    joints have arrived [s], whether there is any, and, in a swift motion, whether `swift_change` steers them.
    """
    steps = np.arange(way.steps + 1)
    # The velocity that a step begins with is that of the reference a little earlier, since changes count in part.
    shifts = np.array([0.0, -late, 1 - late, 2 - late])
    ahead = np.maximum(way.arrival - steps, 0)[:, None]
    shifts = np.where(ahead > 0, ahead + np.array([0.0, -0.5, 0.5, 1.5]), shifts)
    z = way.heights(steps[:, None] + shifts)
    z[-1] = way.aim  # the clock stops at the horizon
    hasty = [ahead >= HASTY] if isinstance(way, Swift) else []
    return np.concatenate([z, dt * shifts, way.gains(late), dt * ahead, ahead > 0, *hasty], -1)
