"""The cell of the insertion task: its worlds, random starts, observations, errors.

State (18,): q = arm joints (6), socket x, y, angle; v = arm joints (6), socket x, y, angle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.robot import Pose, Robot
from costate.sim import PGS, Static, Torque, VelocityServo, World
from costate.tasks.insertion.episode import REALISTIC, Disturbances, Episodes
from costate.tasks.insertion.scene import (
    ARM_Q,
    ARM_V,
    ARRIVAL,
    BOTTLE_LENGTH,
    CLEARANCE,
    DEPTH,
    GRIP,
    OBSERVATION,
    SEAT_HEIGHT,
    SOCKET_V,
    SOCKET_XY,
    TOUCHING,
    arm_with_bottle,
    socket_body,
    table,
)
from costate.train.trainable import Trainable

COMMAND_LIMIT = 0.95
"""Commanded velocities stay below this fraction of the joint's limit: moving arms push each other's joints a little beyond."""

ROBUST_HORIZON, RIDING_HORIZON, WIDE_HORIZON, FAR_HORIZON = 80, 70, 50, 70
"""Control steps, at least, of a motion among disturbances, of one to a socket that rides besides (the longer it takes, the further
that goes), of one in wide ranges, and of one to anywhere."""
PACE = 1.4
"""Time that a paced motion takes above the mouth, as a multiple of the least time that its joints could turn as far in."""


@dataclass(frozen=True)
class InsertionOptions:
    """Options of the task."""

    horizon: int = 30
    """Control steps until the bottle must be seated."""
    hold: int = 10
    """Control steps it must then stay seated."""
    dt: float = 0.01
    """Control period [s]."""
    substeps: int = 4
    """Physics steps per control period."""
    moving: bool = False
    """True: the socket rides on a conveyor."""
    belt_speed: float = 0.3
    """Highest speed of the conveyor, in any direction of the plane [m/s]."""
    start_range: float = 0.05
    """Largest difference of start poses from the one above the seat, in every joint [rad]."""
    target_range: float = 0.05
    """Largest distance of the socket from the middle, in x and in y [m]."""
    start_height: float = 0.12
    """Height of the bottle above its seat at the start [m]."""
    center: tuple[float, float] = (0.5, 0.1)
    """Place of the socket on average: x, y in the frame of the arm's base [m]."""
    actuation: Literal["velocity", "torque"] = "velocity"
    """Kind of action: commands to joint velocity servos, or torques added to those that carry the arm's weight at the start."""
    clearance: float = CLEARANCE
    """Clearance of the socket's bore on the radius [m]."""
    chamfer: float = 0.0
    """Width and height of a chamfer at the socket's mouth [m]; 0: none."""
    friction: float = 0.3
    """Coefficient of friction between bottle and socket."""
    acceleration_limit: float = 40.0
    """Largest acceleration of a joint, from one control step to the next [rad/s^2]; 0: none."""
    jerk_limit: float = 4000.0
    """Largest jerk of a joint, likewise [rad/s^3]; 0: none."""
    paced: bool = False
    """True: a motion takes as long as its distance needs, up to the horizon: the time index of an episode begins later."""
    disturbances: Disturbances = field(default_factory=Disturbances)
    """Disturbances of its episodes."""

    @property
    def seconds(self) -> float:
        """Time until the bottle must be seated [s]."""
        return self.horizon * self.dt

    def wide(self) -> InsertionOptions:
        """Return the options of the same task with twice the ranges, and the time and height that these need.

        From 120 mm above their seats 1.6 % of the bottles would begin in the socket's wall.
        """
        more = {"horizon": max(self.horizon, WIDE_HORIZON), "start_height": max(self.start_height, 0.17)}
        return replace(self, start_range=0.1, target_range=0.1, **more)

    def anywhere(self) -> InsertionOptions:
        """Return the options of the same task with the socket anywhere in a field of 0.4 m x 0.4 m, and time that it needs."""
        more = {"horizon": max(self.horizon, FAR_HORIZON), "start_height": max(self.start_height, 0.17)}
        return replace(self, target_range=0.2, center=(0.45, 0.0), paced=True, **more)

    def unlimited(self) -> InsertionOptions:
        """Return the options of the same task without limits of acceleration and jerk."""
        return replace(self, acceleration_limit=0.0, jerk_limit=0.0)

    def chamfered(self) -> InsertionOptions:
        """Return the options of a narrower socket with a chamfer, whose place is known to 1 mm only, and time to feel it."""
        least = max(self.horizon, ROBUST_HORIZON)
        unseen = replace(self.disturbances, target_offset=1e-3)
        return replace(self, horizon=least, clearance=3e-4, chamfer=1e-3, disturbances=unseen)

    def robust(self) -> InsertionOptions:
        """Return the options of the same task with all disturbances of a real cell at once, and time to deal with them."""
        least = RIDING_HORIZON if self.moving else ROBUST_HORIZON
        return replace(self, horizon=max(self.horizon, least), disturbances=REALISTIC)


class Cell(Trainable):
    """The arm, the bottle and the socket.

    `world` has contact; `smooth` is the same without: it is what most of the training runs in, since a good motion touches nothing
    before the seat.
    """

    options: InsertionOptions = InsertionOptions()

    def __init__(self, options: InsertionOptions = InsertionOptions()):  # noqa: B008  (frozen)
        super().__init__(options)
        self.arm = Robot(arm_with_bottle()).double()
        self.max_velocity = self.arm.max_velocity.clone()
        self._seen_as: dict[torch.dtype, tuple[Tensor, Tensor]] = {}
        self._check_reach()

    @property
    def _contact(self) -> PGS:
        # Sweeps: a bottle that is thrown into the bore strikes several times in a substep, and a recorded policy that seats it with
        # them, and in MuJoCo, misses the seat with Hard. Why is not known; the guided policy succeeds with either.
        # What slides along a chamfer and a wall rests in the overlap that is left alone: it must be less than what is allowed.
        usual = PGS(friction=self.options.friction, sweeps=30)
        return replace(usual, slop=2e-5) if self.options.chamfer else usual

    @cached_property
    def world(self) -> World:
        """World with contact; payload and friction are parameters."""
        return self._world(self._contact, ("friction", "mass:ur5/bottle"))

    @cached_property
    def plain(self) -> World:
        """World with contact; nothing is a parameter."""
        return self._world(self._contact, ())

    @cached_property
    def smooth(self) -> World:
        """World without contact."""
        return self._world(None, ())

    @cached_property
    def smooth_payload(self) -> World:
        """World without contact; the payload is a parameter."""
        return self._world(None, ("mass:ur5/bottle",))

    def shown(self, number: int = 0) -> World:
        """Return `world` with a table under the socket: for pictures, reports and the viewer."""
        return self._shown

    @cached_property
    def _shown(self) -> World:
        return self._world(self._contact, ("friction", "mass:ur5/bottle"), [table(self.options.center)])

    def _world(self, contact: PGS | None, parameters: tuple[str, ...], scenery: Sequence[Static] = ()) -> World:
        o = self.options
        return World(
            robots={"ur5": self.arm},
            bodies=[socket_body(o.clearance, o.chamfer)],
            scenery=scenery,
            actuators=VelocityServo(gravity_compensation="nominal") if o.actuation == "velocity" else Torque(),
            contact=contact,
            integrator="euler",  # as in MuJoCo, which judges policies too
            substeps=o.substeps,
            dt=o.dt,
            collide=TOUCHING if contact else (),
            parameters=parameters,
            check=False,
        )

    @cached_property
    def start(self) -> Tensor:
        """Configuration with the bottle above the middle seat, (6,)."""
        guess = torch.tensor([0.0, -1.5, 1.6, -1.65, -np.pi / 2, -np.pi / 2], dtype=torch.float64)
        center = torch.tensor(self.options.center, dtype=torch.float32)  # as for the controllers that were published
        return self._reach(center, self.options.start_height, guess)

    def seats(self, xy: Tensor, height: Tensor | float = 0.0) -> Tensor:
        """Return configurations (..., 6) with the bottle in (or above, height (..., 1)) a socket at xy (..., 2)."""
        return self._reach(xy, height, self.start.expand(*xy.shape[:-1], 6))

    def _reach(self, xy: Tensor, height: Tensor | float, guess: Tensor) -> Tensor:
        z = (SEAT_HEIGHT + height + BOTTLE_LENGTH / 2 + GRIP) * torch.ones_like(xy[..., :1])
        down = torch.diag(torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)).expand(*xy.shape[:-1], 3, 3)
        goal = Pose(torch.cat([xy, z], -1).double(), down)
        found = self.arm.inverse_kinematics(goal, "tool0", guess)
        reached = self.arm.forward_kinematics(found, "tool0").position
        if not torch.allclose(reached, goal.position, atol=1e-6):
            far = (reached - goal.position).norm(dim=-1).max()
            raise ValueError(
                f"the arm cannot hold the bottle straight over every socket: it stays {1e3 * float(far):.0f} mm away "
                f"from one (middle {self.options.center} m, range {self.options.target_range} m); choose a smaller "
                "target_range or belt_speed, or another center"
            )
        return found

    # --- episodes -------------------------------------------------------------------------------------------------

    def sample(
        self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32, spread: float = 1.0
    ) -> Tensor:
        """Draw random initial states (batch, 18), from ranges `spread` times those of the options."""
        o = self.options

        def uniform(*shape: int) -> Tensor:
            return spread * (2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1)

        state = torch.zeros(batch, 18, dtype=torch.float64)
        state[:, ARM_Q] = self.start + o.start_range * uniform(batch, 6)
        state[:, SOCKET_XY] = torch.tensor(o.center, dtype=torch.float64) + o.target_range * uniform(batch, 2)
        if o.moving:
            speed, angle, phase = o.belt_speed * uniform(batch).abs(), np.pi * uniform(batch), uniform(batch, 1).abs()
            velocity = speed[:, None] * torch.stack([angle.cos(), angle.sin()], -1)
            state[:, SOCKET_XY] -= phase * o.seconds * velocity  # it passes its place at some moment of the motion
            state[:, SOCKET_V] = velocity
        return state.to(dtype)

    def spared(self, state: Tensor) -> Tensor | None:
        """Return the control steps of the horizon that motions from states (B, 18) have no need of, (B,); None: all have the same.

        Only the way until the bottle is over the mouth is shortened: all go down as fast.
        """
        o = self.options
        if not o.paced:
            return None
        start = state.double()
        over = self.seats(start[:, SOCKET_XY] + o.seconds / 2 * start[:, SOCKET_V], DEPTH)
        travel = (over - start[:, ARM_Q]).abs()
        needed = least_time(travel, self.max_velocity.double(), o.acceleration_limit, o.jerk_limit).amax(-1)
        above = round(ARRIVAL * o.horizon)
        return above - (PACE * needed / o.dt).ceil().long().clamp(min=above // 2, max=above)

    def _check_reach(self) -> None:
        """Refuse ranges that no motion within the limits of velocity, acceleration and jerk can cover in time."""
        o = self.options
        state = self.sample(512, torch.Generator().manual_seed(0), torch.float64)
        corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 2)
        state[:4, SOCKET_XY] = torch.tensor(o.center, dtype=torch.float64) + o.target_range * corners
        goal = self.seats(state[:, SOCKET_XY] + o.seconds * state[:, SOCKET_V])
        travel = (goal - state[:, ARM_Q]).abs()
        travel[:4] = (goal[:4] - self.start).abs() + o.start_range
        worst = travel.max(0).values
        needed = least_time(worst, self.max_velocity.double(), o.acceleration_limit, o.jerk_limit, stops=not o.moving)
        if bool((needed > o.seconds).any()):
            k = int(needed.argmax())
            name = [j.name for j in self.arm.model.joints if j.nv][k]
            limits = f"{float(self.max_velocity[k]):.2f} rad/s"
            limits += f", {o.acceleration_limit:g} rad/s^2" if o.acceleration_limit else ""
            limits += f", {o.jerk_limit:g} rad/s^3" if o.jerk_limit else ""
            raise ValueError(
                f"joint '{name}' would have to turn {float(worst[k]):.2f} rad in {o.seconds:g} s, but within its limits "
                f"({limits}) that takes at least {float(needed[k]):.3f} s; choose a longer horizon (now {o.horizon} steps of "
                f"{1e3 * o.dt:g} ms), smaller ranges (start_range {o.start_range} rad, start_height {o.start_height} m, "
                f"target_range {o.target_range} m), or other limits (acceleration_limit, jerk_limit; 0: none)"
            )

    @property
    def steps(self) -> int:
        """Control steps of an episode, those in which the bottle stays seated included."""
        return self.options.horizon + self.options.hold

    # --- what the controller sees and does ------------------------------------------------------------------------

    @cached_property
    def features(self) -> tuple[Tensor, Tensor]:
        """Matrix (18, 19) and offset (19,) of the observation, which is linear in the state: each part is of order one."""
        matrix, offset = (
            torch.zeros(18, OBSERVATION, dtype=torch.float64),
            torch.zeros(OBSERVATION, dtype=torch.float64),
        )
        columns = ((ARM_Q, 0, 0.3), (ARM_V, 6, 3.0), (SOCKET_XY, 12, 0.05), (SOCKET_V, 15, 0.3))
        for part, at, unit in columns:
            for k, row in enumerate(range(part.start, part.stop)):
                matrix[row, at + k] = 1 / unit
        zero = torch.cat([self.start, torch.tensor(self.options.center, dtype=torch.float64)])
        offset[[0, 1, 2, 3, 4, 5, 12, 13]] = -zero / torch.tensor([0.3] * 6 + [0.05] * 2, dtype=torch.float64)
        return matrix, offset

    def observe(self, state: Tensor, step: int, episodes: Episodes | None = None) -> Tensor:
        """Return (..., 19), all of order one: position and velocity of joints and target, and the time index in [0, 1]."""
        matrix, clock = self._seen(state.dtype)
        begun = None if episodes is None else episodes.begun
        now = clock[
            min(step, self.options.horizon) if begun is None else (step + begun).clamp(max=self.options.horizon)
        ]
        if episodes is not None and episodes.encoder:
            state = torch.cat([_rounded(state[..., ARM_Q], episodes.encoder), state[..., ARM_Q.stop :]], -1)
        observation = torch.addmm(now, state, matrix) if state.dim() == 2 else state @ matrix + now
        if episodes is None or episodes.noise is None:
            return observation
        return observation + episodes.noise[step]

    def _seen(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the matrix of `features`, and its offset at every step up to the horizon, (horizon + 1, 19)."""
        if dtype not in self._seen_as:
            (matrix, offset), T = self.features, self.options.horizon
            clock = offset.repeat(T + 1, 1)
            clock[:, -1] = torch.arange(T + 1, dtype=torch.float64) / T
            self._seen_as[dtype] = matrix.to(dtype), clock.to(dtype)
        return self._seen_as[dtype]

    def disturb(self, state: Tensor, step: int, episodes: Episodes) -> Tensor:
        """Return the state after the socket has changed its velocity, half-way."""
        if episodes.belt_change is None:
            return state
        now = (step if episodes.begun is None else (step + episodes.begun)[:, None]) == self.options.horizon // 2
        if now is False:
            return state
        state = state.clone()
        state[:, SOCKET_V] = state[:, SOCKET_V] + episodes.belt_change * now
        return state

    def applied(self, actions: Sequence[Tensor], episodes: Episodes) -> Tensor:
        """Return the action that acts now: an older one if there is latency, none at first."""
        if not episodes.latency:
            return actions[-1]
        none, chosen = torch.zeros_like(actions[-1]), episodes.delays
        recent = [actions[-1 - k] if len(actions) > k else none for k in range(episodes.latency + 1)]
        return recent[-1] if chosen is None else torch.einsum("kbm,bk->bm", torch.stack(recent), chosen)

    @cached_property
    def action_scale(self) -> tuple[Tensor, Tensor]:
        """Control = offset + scale * action, both (6,): joint velocities [rad/s], or torques [N m]."""
        if self.options.actuation == "velocity":
            return torch.zeros(6, dtype=torch.float64), COMMAND_LIMIT * self.max_velocity.double()
        weight = self.arm.bias_forces(self.start, torch.zeros(6, dtype=torch.float64))
        return weight, self.arm.max_effort.double() - weight.abs()

    def control(self, action: Tensor) -> Tensor:
        """Return the control (..., 6) of an action in [-1, 1]."""
        offset, scale = (x.to(action.dtype) for x in self.action_scale)
        return torch.addcmul(offset, scale, action)

    @property
    def room(self) -> tuple[float, float]:
        """Clearance and chamfer of the socket [m]."""
        return self.options.clearance, self.options.chamfer

    # --- errors ---------------------------------------------------------------------------------------------------

    def errors(self, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return errors of the bottle's foot: position [m] (..., 3), tilt [rad] (...), velocity [m/s] (..., 3) against its seat."""
        q, v = state[..., ARM_Q], state[..., ARM_V]
        pose = self.arm.forward_kinematics(q, "bottle")
        axis = pose.rotation[..., 2]
        foot = pose.position - axis * (BOTTLE_LENGTH / 2)
        seat = torch.cat([state[..., SOCKET_XY], torch.full_like(state[..., :1], SEAT_HEIGHT)], -1)
        tilt = torch.atan2(axis[..., :2].square().sum(-1).add(1e-14).sqrt(), axis[..., 2])
        twist = self.arm.link_velocity(q, v, "bottle")
        speed = twist[..., :3] + torch.linalg.cross(twist[..., 3:], foot - pose.position)
        belt = torch.cat([state[..., SOCKET_V], torch.zeros_like(state[..., :1])], -1)
        return foot - seat, tilt, speed - belt


def least_time(travel: Tensor, velocity: Tensor, acceleration: float, jerk: float, stops: bool = True) -> Tensor:
    """Return the time [s] that a joint needs at least to turn so far from rest [rad].

    acceleration, jerk: 0: no limit. stops: it is at rest in the end.
    """
    least, phases = travel / velocity, 2 if stops else 1
    if acceleration:
        short = (phases * 2 * travel / acceleration).sqrt()
        least = torch.where(
            short * acceleration > phases * velocity, least + phases * velocity / (2 * acceleration), short
        )
    if jerk:
        least = torch.maximum(least, ((32 if stops else 6) * travel / jerk) ** (1 / 3))
    return least


def _rounded(x: Tensor, step: float) -> Tensor:
    """Return multiples of a step; the derivative is that of x."""
    return x + ((x / step).round() * step - x).detach()
