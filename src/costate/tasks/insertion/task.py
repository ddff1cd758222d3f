"""The insertion task: worlds, random episodes, observations, errors.

State (18,): q = arm joints (6), socket x, y, angle; v = arm joints (6), socket x, y, angle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from costate.core.fork import cached_property
from costate.robot import Pose, Robot
from costate.sim import PGS, Static, Torque, VelocityServo, World
from costate.tasks.insertion.scene import (
    BOTTLE_LENGTH,
    GRIP,
    SEAT_HEIGHT,
    TOUCHING,
    arm_with_bottle,
    socket_body,
    table,
)

Tensor = torch.Tensor

ARM_Q, SOCKET_XY = slice(0, 6), slice(6, 8)
ARM_V, SOCKET_V = slice(9, 15), slice(15, 17)
"""Parts of a state."""
OBSERVATION = 19
"""Joint positions 6, joint velocities 6, target position 3, target velocity 3, time index 1."""
ACTION = 6
COMMAND_LIMIT = 0.95
"""Commanded velocities stay below this fraction of the joint's limit: moving arms push each other's joints a little beyond."""


@dataclass(frozen=True)
class InsertionOptions:
    """The task."""

    horizon: int = 30
    """Control steps until the bottle must be seated."""
    hold: int = 10
    """Control steps it must then stay seated."""
    dt: float = 0.01
    """Control period [s]."""
    substeps: int = 4
    """Physics steps per control period."""
    moving: bool = False
    """The socket rides on a conveyor."""
    belt_speed: float = 0.3
    """Highest speed of the conveyor, in any direction of the plane [m/s]."""
    start_range: float = 0.05
    """Start poses differ from the one above the seat by up to this much in every joint [rad]."""
    target_range: float = 0.05
    """The socket stands up to this far from the middle, in x and in y [m]."""
    start_height: float = 0.12
    """Of the bottle above its seat at the start [m]."""
    center: tuple[float, float] = (0.5, 0.1)
    """Where the socket stands on average: x, y in the frame of the arm's base [m]."""
    actuation: Literal["velocity", "torque"] = "velocity"
    """What actions are: commands to joint velocity servos, or torques added to those that carry the arm's weight at the start."""
    friction: float = 0.3
    """Coefficient between bottle and socket."""

    @property
    def seconds(self) -> float:
        """Until the bottle must be seated."""
        return self.horizon * self.dt

    def wide(self) -> InsertionOptions:
        """The same task with twice the ranges."""
        from dataclasses import replace

        return replace(self, start_range=0.1, target_range=0.1)


class Insertion:
    """The task.

    `world` has contact; `smooth` is the same without: it is what most of the training runs in, since a good motion touches nothing
    before the seat.
    """

    def __init__(self, options: InsertionOptions = InsertionOptions()):  # noqa: B008  (frozen)
        self.options = options
        self.arm = Robot(arm_with_bottle())
        self.max_velocity = self.arm.max_velocity.clone()
        self._check_reach()

    @cached_property
    def world(self) -> World:
        """With contact; payload and friction are inputs."""
        contact = PGS(friction=self.options.friction, sweeps=30)
        return self._world(contact, ("friction", "mass:ur5/bottle"))

    @cached_property
    def smooth(self) -> World:
        """Without contact."""
        return self._world(None, ())

    @cached_property
    def smooth_payload(self) -> World:
        """Without contact; the payload is an input."""
        return self._world(None, ("mass:ur5/bottle",))

    @cached_property
    def shown(self) -> World:
        """`world` with a table under the socket: for pictures, reports and the viewer."""
        contact = PGS(friction=self.options.friction, sweeps=30)
        return self._world(contact, ("friction", "mass:ur5/bottle"), [table(self.options.center)])

    def _world(self, contact: PGS | None, parameters: tuple[str, ...], scenery: Sequence[Static] = ()) -> World:
        o = self.options
        return World(
            robots={"ur5": self.arm},
            bodies=[socket_body()],
            scenery=scenery,
            actuators=VelocityServo(gravity_compensation="nominal") if o.actuation == "velocity" else Torque(),
            contact=contact,
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
        return self._reach(torch.tensor(self.options.center), self.options.start_height, guess)

    def seats(self, xy: Tensor, height: float = 0.0) -> Tensor:
        """Configurations (..., 6) with the bottle in (or above) a socket at xy (..., 2)."""
        return self._reach(xy, height, self.start.expand(*xy.shape[:-1], 6))

    def _reach(self, xy: Tensor, height: float, guess: Tensor) -> Tensor:
        z = torch.full_like(xy[..., :1], SEAT_HEIGHT + height + BOTTLE_LENGTH / 2 + GRIP)
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
        """Random initial states (batch, 18), from ranges `spread` times those of the options."""
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

    def _check_reach(self) -> None:
        """Refuse ranges that no motion within the velocity limits can cover in time."""
        o = self.options
        state = self.sample(512, torch.Generator().manual_seed(0), torch.float64)
        corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 2)
        state[:4, SOCKET_XY] = torch.tensor(o.center, dtype=torch.float64) + o.target_range * corners
        goal = self.seats(state[:, SOCKET_XY] + o.seconds * state[:, SOCKET_V])
        travel = (goal - state[:, ARM_Q]).abs()
        travel[:4] = (goal[:4] - self.start).abs() + o.start_range
        reach = o.seconds * self.max_velocity
        worst = travel.max(0).values
        if bool((worst > reach).any()):
            k = int((worst - reach).argmax())
            name = [j.name for j in self.arm.model.joints if j.nv][k]
            raise ValueError(
                f"joint '{name}' would have to turn {float(worst[k]):.2f} rad in {o.seconds:g} s, but at "
                f"{float(self.max_velocity[k]):.2f} rad/s it turns at most {float(reach[k]):.2f} rad; choose a longer "
                f"horizon (now {o.horizon} steps of {1e3 * o.dt:g} ms) or smaller ranges (start_range {o.start_range} rad, "
                f"start_height {o.start_height} m, target_range {o.target_range} m)"
            )

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

    def observe(self, state: Tensor, step: int) -> Tensor:
        """(..., 19): joint positions and velocities, target position and velocity, time index in [0, 1]; each of order one."""
        matrix, offset = (x.to(state.dtype) for x in self.features)
        now = offset.clone()
        now[-1] = min(step / self.options.horizon, 1.0)
        return state @ matrix + now

    @cached_property
    def action_scale(self) -> tuple[Tensor, Tensor]:
        """Control = offset + scale * action, both (6,): joint velocities [rad/s], or torques [N m]."""
        if self.options.actuation == "velocity":
            return torch.zeros(6, dtype=torch.float64), COMMAND_LIMIT * self.max_velocity.double()
        weight = self.arm.bias_forces(self.start, torch.zeros(6, dtype=torch.float64))
        return weight, self.arm.max_effort.double() - weight.abs()

    def control(self, action: Tensor) -> Tensor:
        """Control (..., 6) of an action in [-1, 1]."""
        offset, scale = (x.to(action.dtype) for x in self.action_scale)
        return torch.addcmul(offset, scale, action)

    # --- how good it is -------------------------------------------------------------------------------------------

    def errors(self, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of the bottle's foot against its seat: position [m] (..., 3), tilt [rad] (...), velocity [m/s] (..., 3)."""
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
