"""The fastest insertions that the arm's servos and motors allow: what no controller can beat, for the same starts and sockets.

What the task asks for is relaxed wherever it is changed, with one exception, so that no motion that touches nothing is faster:

- commands may change at any time, where a controller gives one every 10 ms; effort and velocity limits hold as in the task, and so
  do those of acceleration and jerk; the exception is that these hold in every interval, where the task looks at control steps;
- bottle and socket overlap by no more than success allows, as far as three points tell: the lowest of the foot is above the mouth
  or over the bore; from where the middle of the foot passes the mouth, it and the axis at the mouth keep to the bore;
- it has to be seated, within the error and tilt that success allows, when its time is up and one and two control steps later, and
  slower than success asks at the latter; after that nobody looks.

Walls and floor can stop a bottle sooner than motors can. What holds with contact, too, follows from velocity limits alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import cos
from typing import Any, ClassVar

import casadi as ca
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.optimise.direct import DirectOptions
from costate.sim import PGS, Torque, VelocityServo, World
from costate.tasks.insertion.cell import InsertionOptions, least_time
from costate.tasks.insertion.episode import draw
from costate.tasks.insertion.judge import MAX_ERROR, MAX_PENETRATION, MAX_SPEED, MAX_TILT
from costate.tasks.insertion.scene import (
    ARM_Q,
    ARM_V,
    BOTTLE_LENGTH,
    BOTTLE_RADIUS,
    CLEARANCE,
    DEPTH,
    MOUTH_HEIGHT,
    SEAT_HEIGHT,
    SOCKET_V,
    SOCKET_XY,
    TOUCHING,
    socket_body,
    table,
)
from costate.tasks.insertion.task import Insertion
from costate.train.solve.least_time import least_times
from costate.train.solve.problems import Solvable, Timed
from costate.train.streams import CHUNK, generator

VELOCITY_SLACK = 1.001
"""Factor of the velocity limits, as in judging."""
LEAST_TILT = 1e-3
"""Tilt below which the lowest point of a foot moves to its middle, so that it is a smooth function [rad]."""
HELD = 2
"""Control steps after the motion in which the bottle has to stay."""
PLAY_STEP = 2.5e-4
"""Physics steps when a motion is played [s]."""


@dataclass(frozen=True, eq=False)
class InsertionBound(Solvable):
    """Least time of numbered episodes."""

    name: ClassVar[str] = "insertion_bound"
    summary: ClassVar[str] = "the fastest insertions that the arm's motors allow"
    unit: ClassVar[str] = "m"
    trails: ClassVar[tuple[str, ...]] = ("ur5/bottle",)

    options: InsertionOptions = field(default_factory=InsertionOptions)
    moving: bool = False
    """The socket rides on a conveyor."""
    seed: int = 0
    """Seed of the held-out episodes: number k is the k-th that `costate evaluate --seed` judges a policy on."""
    tolerance: float = 2 * MAX_ERROR
    """Largest distance from its seat at which the bottle may end when the motion is played [m]."""
    steps: tuple[int, int, int, int] = (16, 2, 16, 4 * HELD)
    """Intervals until the lowest point of the foot passes the mouth, until its middle does, until the bottle is seated, and in the
    HELD control steps in which it comes to rest and stays."""

    @cached_property
    def task(self) -> Insertion:
        return Insertion(replace(self.options, moving=self.moving or self.options.moving))

    @property
    def actuator(self) -> Torque | VelocityServo:
        """Servos of the arm, or its motors."""
        return VelocityServo(gravity_compensation="nominal") if self.options.actuation == "velocity" else Torque()

    @cached_property
    def world(self) -> World:
        """World with contact, for overlaps and pictures."""
        return self._world(PGS(friction=self.options.friction))

    @cached_property
    def free(self) -> World:
        """World that motions are played in: the task's arm and socket, in short steps, without contact."""
        return self._world(None)

    def _world(self, contact: PGS | None) -> World:
        dt = self.options.dt / 10
        return World(
            robots={"ur5": self.task.arm},
            bodies=[socket_body()],
            scenery=[table(self.options.center)],
            actuators={"ur5": self.actuator},
            contact=contact,
            dt=dt,
            substeps=round(dt / PLAY_STEP),
            collide=TOUCHING if contact else (),
            check=False,
        )

    @cached_property
    def arm(self) -> World:
        """The arm alone."""
        return World(robots={"ur5": self.task.arm}, actuators=self.actuator, contact=None, dt=self.options.dt)

    def episodes(self, numbers: Sequence[int]) -> Tensor:
        """Return states at the start, (B, 18)."""
        chunks = {k // CHUNK: None for k in numbers}
        drawn = {c: draw(self.task, CHUNK, generator("held out", self.seed, c), dtype=torch.float64) for c in chunks}
        return torch.stack([drawn[k // CHUNK].state[k % CHUNK] for k in numbers])

    def least_times(self, numbers: Sequence[int], rest: bool = True) -> Timed:
        """Return the problems. rest: the motors bring the bottle to rest; else it only has to arrive, in two even movements."""
        start, held = self.episodes(numbers), HELD * self.options.dt
        phases = self.steps if rest else (1, 1, 1)
        above, within, seated = (sum(phases[: k + 1]) for k in range(3))
        low, high = self.task.arm.lower, self.task.arm.upper
        fastest = VELOCITY_SLACK * self.task.max_velocity
        offset, scale = self.task.action_scale
        limits = [(above_the_mouth, range(1, above + 1)), (over_the_bore, range(above, within + 1))]
        limits += [(at_the_mouth, range(within, within + 1)), (in_the_bore, range(within, seated + 1))]
        limits += [(off_the_seat, range(seated, seated + 1))]
        if rest:
            each = self.steps[3] // HELD
            last = range(seated + each, sum(phases) + 1, each)
            limits += [(off_the_seat, last), (too_fast, last)]
        return Timed(
            world=self.arm,
            state0=torch.cat([start[:, ARM_Q], start[:, ARM_V]], -1),
            states0=self._guess(start, phases),
            phases=phases,
            limits=limits,
            inputs={"socket": torch.cat([start[:, SOCKET_XY], start[:, SOCKET_V]], -1)},
            state_bounds=(torch.cat([low, -fastest]), torch.cat([high, fastest])),
            controls=(offset - scale, offset + scale),
            durations=([1e-3, 0.0, 1e-3, held][: len(phases)], [1.0, 1.0, 1.0, held][: len(phases)]),
            duration=self.options.seconds + held * rest,
            after=held * rest,
            rates=(self.options.acceleration_limit or None, self.options.jerk_limit or None),
            play=lambda times, controls: self.play(start, times, controls),
            error=lambda states: self.task.errors(states[-1])[0].norm(dim=-1),
            columns=lambda states: {"overlap [mm]": 1e3 * (-self.world.gaps(states).amin((0, -1))).clamp(min=0)},
        )

    def _guess(self, start: Tensor, phases: Sequence[int]) -> Tensor:
        """Return a guess: straight over the mouth, then straight down, with the joint velocities that follow, (T + 1, B, 12)."""
        seconds = self.options.seconds
        places = [start[:, SOCKET_XY] + part * seconds * start[:, SOCKET_V] for part in (0.5, 1.0)]
        knots = [start[:, ARM_Q], *[self.task.seats(places[0], DEPTH)] * 2, *[self.task.seats(places[1])] * 2]
        parts = [
            a + torch.linspace(0, 1, n + 1, dtype=torch.float64)[1:, None, None] * (b - a)
            for a, b, n in zip(knots, knots[1:], phases, strict=False)
        ]
        q = torch.cat([knots[0][None], *parts])
        v = torch.gradient(q, spacing=seconds / sum(phases), dim=0)[0]
        v[0] = 0.0
        return torch.cat([q, v], -1)

    def play(self, start: Tensor, times: Tensor, controls: Tensor) -> Tensor:
        """Return states (T + 1, B, 18) in the world without contact, up to the longest of the times.

        times (T' + 1, B), controls (T', B, 6), constant between the times. Each motion ends when its time is up, and stands
        still from then on.
        """
        dt = self.free.dt
        ends = times[-1]
        count = int(torch.ceil(ends.max() / dt - 1e-9))
        ticks = dt * torch.arange(count + 1, dtype=torch.float64)
        total = torch.cat([torch.zeros_like(controls[:1]), (controls * times.diff(dim=0)[..., None]).cumsum(0)])
        mean = torch.stack(
            [_interpolate(ticks, times[:, b], total[:, b]).diff(dim=0) / dt for b in range(len(ends))], 1
        )
        states = self.free.rollout(start, mean)
        # Where the time is up between two ticks: the state is between theirs.
        place = (ends / dt).clamp(max=count)
        left = place.floor().clamp(max=count - 1).long()
        each = torch.arange(len(ends))
        last = torch.lerp(states[left, each], states[left + 1, each], (place - left)[:, None])
        over = torch.arange(count + 1)[:, None] >= place
        return torch.where(over[..., None], last, states)


def _interpolate(at: Tensor, times: Tensor, values: Tensor) -> Tensor:
    """Interpolate linearly, constant after the end; (K,), (T,), (T, n) -> (K, n)."""
    at = at.clamp(max=float(times[-1]))
    right = torch.searchsorted(times.contiguous(), at).clamp(1, len(times) - 1)
    part = (at - times[right - 1]) / (times[right] - times[right - 1])
    return torch.lerp(values[right - 1], values[right], part[:, None])


# --- what must not be positive; each of order one near where it is zero -----------------------------------------------


def foot_and_axis(s: Any) -> tuple[ca.SX, ca.SX]:
    """Return the middle of the bottle's foot against its seat [m], and the bottle's axis."""
    axis = s.rotation("ur5/bottle")[:, 2]
    foot = s.position("ur5/bottle") - axis * (BOTTLE_LENGTH / 2)
    socket = s["socket"]
    return foot - ca.vertcat(socket[:2] + s["time"] * socket[2:], SEAT_HEIGHT), axis


def _lowest(s: Any) -> tuple[ca.SX, ca.SX]:
    """Return the lowest point of the foot against the mouth: its height, and x and y from the middle of the bore [m]."""
    foot, axis = foot_and_axis(s)
    tilted = ca.sqrt(ca.sumsqr(axis[:2]) + LEAST_TILT**2)
    return foot[2] - DEPTH - BOTTLE_RADIUS * (tilted - LEAST_TILT), foot[:2] + BOTTLE_RADIUS * axis[2] * axis[
        :2
    ] / tilted


def above_the_mouth(s: Any) -> ca.SX:
    """Return what is positive if a point of the foot is below the mouth by more than success allows."""
    return -1e2 * (_lowest(s)[0] + MAX_PENETRATION)


def over_the_bore(s: Any) -> ca.SX:
    """Return what is positive if the lowest point of the foot is not over the bore."""
    return ca.sumsqr(_lowest(s)[1]) / (BOTTLE_RADIUS + CLEARANCE + MAX_PENETRATION) ** 2 - 1


def at_the_mouth(s: Any) -> ca.SX:
    """Return what is positive if the foot is below the mouth."""
    return 1e2 * (MOUTH_HEIGHT - SEAT_HEIGHT - foot_and_axis(s)[0][2])


def in_the_bore(s: Any) -> ca.SX:
    """Return what is positive if the middle of the foot, or the axis where it passes the mouth, leaves the bore."""
    foot, axis = foot_and_axis(s)
    room = CLEARANCE + MAX_PENETRATION
    mouth = foot + axis * (DEPTH - foot[2]) / axis[2]
    beside = room + BOTTLE_RADIUS * (1 - axis[2])  # a tilted foot is narrower, seen from above
    return ca.vertcat(ca.sumsqr(foot[:2]) / beside**2, ca.sumsqr(mouth[:2]) / room**2) - 1


def off_the_seat(s: Any) -> ca.SX:
    """Return what is positive if the bottle is too far from its seat, or too tilted."""
    foot, axis = foot_and_axis(s)
    return ca.vertcat(ca.sumsqr(foot) / MAX_ERROR**2 - 1, (cos(MAX_TILT) - axis[2]) / (1 - cos(MAX_TILT)))


def too_fast(s: Any) -> ca.SX:
    """Return what is positive if the foot is too fast against the socket."""
    twist, (_, axis) = s.velocity("ur5/bottle"), foot_and_axis(s)
    velocity = twist[:3] - ca.cross(twist[3:], axis * (BOTTLE_LENGTH / 2))
    return ca.sumsqr(velocity - ca.vertcat(s["socket"][2:], 0)) / MAX_SPEED**2 - 1


# --- bounds of held-out episodes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """Least times of insertions, per episode (B,)."""

    seconds: Tensor
    """Least time of a motion that touches nothing, by any torques within the effort limits [s]. A local minimum of IPOPT."""
    arrival: Tensor
    """Least time by velocity limits alone, also for motions that let walls and floor stop the bottle [s]."""
    solved: Tensor
    """True where both were found, bool."""


def hardest(task: InsertionBound, pool: int, count: int) -> list[int]:
    """Return numbers of those of the first `pool` held-out episodes whose joints need longest until they are over the mouth."""
    start, o = task.episodes(range(pool)), task.options
    over = task.task.seats(start[:, SOCKET_XY] + o.seconds / 2 * start[:, SOCKET_V], DEPTH)
    travel, fastest = (over - start[:, ARM_Q]).abs(), task.task.max_velocity.double()
    needed = least_time(travel, fastest, o.acceleration_limit, o.jerk_limit).amax(-1)
    return needed.topk(count).indices.tolist()


def insertion_bound(
    options: InsertionOptions = InsertionOptions(),  # noqa: B008  (frozen)
    episodes: int = 8,
    seed: int = 0,
    direct: DirectOptions = DirectOptions(method="inverse"),  # noqa: B008
    pool: int | None = None,
) -> Bound:
    """Return the bounds of the first held-out episodes. pool: of the `hardest` of so many of them."""
    task = InsertionBound(options, seed=seed)
    numbers = range(episodes) if pool is None else hardest(task, pool, episodes)
    moved = task.least_times(numbers)
    arrived = task.least_times(numbers, rest=False)
    motions, arrivals = least_times(moved, direct), least_times(arrived, replace(direct, method="kinematic"))
    return Bound(
        torch.tensor([s.extra["duration"] - moved.after for s in motions], dtype=torch.float64),
        torch.tensor([s.extra["duration"] - arrived.after for s in arrivals], dtype=torch.float64),
        torch.tensor([a.converged and b.converged for a, b in zip(motions, arrivals, strict=True)]),
    )
