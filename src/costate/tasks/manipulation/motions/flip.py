"""Flip: a cube is turned over by a quarter turn, about its far lower edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import pi
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.tasks.manipulation.execute import Servos
from costate.tasks.manipulation.hand import Hand, hand_on_arm
from costate.tasks.manipulation.motions.motion import MotionTask, Numbers, along
from costate.tasks.manipulation.motions.reach import Reach, about_z, palm_down
from costate.tasks.manipulation.options import ManipulationOptions
from costate.tasks.manipulation.task import Episodes, quaternion_product
from costate.train.episode import Trajectory, Verdict
from costate.train.plan import Iteration

TURN, WAY, SPEED = 10.0, 0.03, 0.05
"""Largest errors of a success: of the turn [degrees], of the place [m], and of the speed in the end [m/s]."""
READY, TOUCH, AWAY = 0.6, 0.25, 0.3
"""Time to get near, to touch, and to leave [s]."""
BACK, GAP = (-0.11, 0.0, 0.1), 0.015
"""Place of the fingertips at home, from the cube on the floor [m]; distance from its face before they touch it [m]."""
POINTS = 8
"""Points of the arc."""


class Flip(MotionTask):
    """Turn a cube over: fingertips push its near face along an arc about the far lower edge, until it falls over."""

    name: ClassVar[str] = "flip"
    summary: ClassVar[str] = "a Shadow hand on a UR5 turns a cube over, about its far edge"
    unit: ClassVar[str] = "degrees"
    tolerance: ClassVar[float | None] = TURN
    options: ManipulationOptions = ManipulationOptions(
        steps=100, dt=0.02, mass=0.1, friction=0.8, force=1.0, place=0.03, scales=(0.8, 1.2), masses=(0.5, 2.0),
        frictions=(0.75, 1.25), servos=Servos(arm=2000.0, arm_damping=60.0),
    )  # fmt: skip
    way: ClassVar[tuple[float, float, float]] = (0.06, 0.0, 0.0)
    numbers: ClassVar[Numbers] = {
        "height": (0.75, 0.08),
        "depth": (0.006, 0.004),
        "angle": (0.95, 0.1),
        "seconds": (0.6, 0.1),
        "tilt": (0.6, 0.15),
        "J2": (0.5, 0.15),
        "J1": (0.3, 0.15),
    }
    """Height at which the fingers push, by the edge; depth that they are led into the face [m]; angle of the arc [rad] and its
    time [s]; tilt of the palm and bend of the fingers [rad]."""

    def hand(self) -> Hand:
        """Return the hand, its fingertips behind the cube and above it."""
        hand = hand_on_arm()
        start = {name: torch.tensor([value], dtype=torch.float64) for name, (value, _) in self.numbers.items()}
        fingers = Reach(hand).posture(start)
        moved = replace(hand, model=replace(hand.model, home=np.append(hand.home[: hand.arm], fingers[0].numpy())))
        reach = Reach(moved)
        down = palm_down(start["tilt"])
        offset = torch.tensor([BACK], dtype=torch.float64) - (down @ reach.tips(fingers)[..., None])[..., 0]
        place = torch.tensor([[*self.middle[:2], 0.0]], dtype=torch.float64)
        near = torch.tensor(hand.home[None, : hand.arm])
        arm = reach.arm(place, torch.zeros(1, dtype=torch.float64), offset, start["tilt"], near)
        return replace(moved, model=replace(moved.model, home=np.append(arm[0].numpy(), fingers[0].numpy())))

    # --- the motion -----------------------------------------------------------------------------------------------

    def motion(self, n: Mapping[str, Tensor], measured: Tensor) -> Tensor:
        """Return joints (T + 1, B, joints): near the face, against it, along the arc, and away."""
        edge, yaw = self.step.thing.size[0] * measured[:, 7], heading(measured[:, 3:7])
        fingers = self.reach.posture({"J2": n["J2"], "J1": n["J1"]})
        tip = (palm_down(n["tilt"]) @ self.reach.tips(fingers)[..., None])[..., 0]
        home = torch.tensor(self.step.hand.home).expand(len(measured), -1)
        place = torch.cat([measured[:, :2], torch.zeros_like(edge)[:, None]], -1)
        outside, high = self.step.hand.tips[0].radius - n["depth"], n["height"] * edge
        zero = torch.zeros_like(edge)
        ends = [torch.stack([-edge / 2 - outside - n["depth"] - GAP, zero, high], -1)]
        for k in range(POINTS + 1):
            angle = k / POINTS * n["angle"]
            x, z = -edge - outside, high
            turned = x * angle.cos() + z * angle.sin(), -x * angle.sin() + z * angle.cos()
            ends.append(torch.stack([edge / 2 + turned[0], zero, turned[1]], -1))
        ends.append(ends[-1] + torch.tensor([-0.06, 0.0, 0.04], dtype=torch.float64))
        arm, poses = home[:, : self.step.hand.arm], [home]
        for end in ends:
            arm = self.reach.arm(place, yaw, end - tip, n["tilt"], arm)
            poses.append(torch.cat([arm, fingers], -1))
        each = (n["seconds"] / POINTS).clamp(min=0.02)
        durations = [zero, zero + READY, zero + TOUCH, *[each] * POINTS, zero + AWAY]
        times = torch.arange(self.steps + 1, dtype=torch.float64) * self.options.dt
        return along(times, torch.stack(durations).cumsum(0), torch.stack(poses))

    # --- judging --------------------------------------------------------------------------------------------------

    def goals(self, episodes: Episodes) -> Tensor:
        """Return where the cubes have to be: turned by a quarter turn about the edge that they fall over."""
        pose = self.pose(episodes.state)
        yaw, edge = heading(pose[:, 3:]), self.step.thing.size[0] * episodes.thing[:, 0].to(pose.dtype)
        ahead = (about_z(yaw) @ torch.stack([edge, 0 * edge, 0 * edge], -1)[..., None])[..., 0]
        quarter = pose.new_tensor([0.0, np.sin(pi / 4), 0.0, np.cos(pi / 4)])
        return torch.cat([pose[:, :3] + ahead, quaternion_product(pose[:, 3:], quarter)], -1)

    def _errors(self, trajectory: Trajectory) -> tuple[Tensor, Tensor, Tensor]:
        """Return errors of the turn [degrees] and of the place [m], and the speed in the end [m/s]."""
        after, goal = self.pose(trajectory.states[-1]), self.goals(trajectory.episodes)
        turn = 2 * torch.acos((after[:, 3:] * goal[:, 3:]).sum(-1).abs().clamp(max=1))
        return torch.rad2deg(turn), (after - goal)[:, :3].norm(dim=-1), trajectory.states[-1, :, -6:-3].norm(dim=-1)

    def judge(self, trajectory: Trajectory) -> Verdict:
        """Judge the turn [degrees], the place, and whether the cube is at rest."""
        turn, place, speed = self._errors(trajectory)
        columns = {"place [mm]": 1e3 * place, "speed [m/s]": speed}
        return Verdict((turn <= TURN) & (place <= WAY) & (speed <= SPEED), turn, columns=columns)

    def loss(self, trajectory: Trajectory, iteration: Iteration) -> dict[str, Tensor]:
        """Return what search minimises."""
        turn, place, _ = self._errors(trajectory)
        failed = (~self.judge(trajectory).success).to(turn.dtype)
        return {"turn": turn / 90, "place": (place / 0.1).clamp(max=1), "failed": 3 * failed}

    def story(self) -> str:
        return (
            "A cube is turned over by a quarter turn about its far lower edge, by fingertips that push its near face along an arc. "
            f"It has succeeded if the turn is right to {TURN:g} degrees and the place to {1e3 * WAY:g} mm, and the cube lies still."
        )


def heading(quaternion: Tensor) -> Tensor:
    """Return the angle about the vertical of upright poses (..., 4) [rad]."""
    return 2 * torch.atan2(quaternion[..., 2], quaternion[..., 3])
