"""Wheel: a valve is turned twice round, by turning and regrasping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import pi
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.model import Model, Shape, Transform
from costate.sim import Body
from costate.tasks.manipulation.execute import OBJECT, Servos
from costate.tasks.manipulation.hand import Hand, hand_on_arm
from costate.tasks.manipulation.hinged import Hinged
from costate.tasks.manipulation.motions.motion import MotionTask, Numbers, along, steady
from costate.tasks.manipulation.motions.reach import Reach
from costate.tasks.manipulation.motions.search import SearchTraining
from costate.tasks.manipulation.options import ManipulationOptions
from costate.tasks.manipulation.step import Physics, Step
from costate.train.episode import Trajectory, Verdict
from costate.train.plan import Iteration

TURNS = 2.0
"""Turns of the valve that are asked for."""
HALF = float(np.radians(75))
"""Half of the angle that the hand turns by between two grasps [rad]."""
CLOSE, STROKE, OPEN, RETURN = 0.4, 2.9, 0.3, 2.9
"""Times of a cycle [s]; the arm's joints then stay below the 3.1 rad/s of a UR5."""
ANGLES = 15
"""Angles at which the arm's joints are solved for; between them they are interpolated."""
TORQUE, DAMPING = 0.1, 0.01
"""Friction of the valve's hinge [N m], and its damping [N m s/rad]."""


class Valve(Body):
    """A body on a hinge with friction; a bar on its top, which touches nothing, shows how it is turned."""

    def model(self) -> Model:
        made = super().model()
        world, link = made.links
        radius, length = (float(x) for x in link.collisions[0].size)
        bar = Shape("box", np.array([1.8 * radius, 0.012, 0.004]), Transform(translation=np.array([0, 0, length / 2])))
        shown = (*link.visuals, replace(bar, color=(0.2, 0.2, 0.22, 1.0)))
        hinge = replace(made.joints[0], friction=TORQUE, damping=DAMPING)
        return replace(made, links=(world, replace(link, visuals=shown)), joints=(hinge,))


class Wheel(Hinged, MotionTask):
    """Turn a valve: grasp it, turn the hand about its axis, open, turn back, and again."""

    name: ClassVar[str] = "wheel"
    summary: ClassVar[str] = "a Shadow hand on a UR5 turns a valve twice round, by regrasping"
    training: ClassVar[SearchTraining] = SearchTraining(iterations=5, batch=6, candidates=12, kept=4, steps=325)
    middle: ClassVar[tuple[float, float, float]] = (-0.15, -0.15, 0.2)
    options: ManipulationOptions = ManipulationOptions(
        steps=1800, dt=0.02, mass=0.1, friction=0.8, place=0.02, scales=(0.8, 1.2), masses=(0.5, 2.0),
        frictions=(0.75, 1.25), servos=Servos(substeps=5),
    )  # fmt: skip
    numbers: ClassVar[Numbers] = {
        "back": (0.086, 0.006),
        "above": (0.08, 0.006),
        "aside": (-0.005, 0.006),
        "tilt": (0.45, 0.08),
        "J2": (0.7, 0.15),
        "J1": (0.5, 0.15),
        "THJ4": (0.7, 0.15),
        "THJ1": (-0.3, 0.15),
    }
    """Place of the palm behind, above and beside the middle of the valve's top [m], and its tilt [rad]; closed joints [rad]."""

    def hand(self) -> Hand:
        """Return the hand, open over the valve and turned back."""
        hand = hand_on_arm()
        n = {name: torch.tensor([value], dtype=torch.float64) for name, (value, _) in self.numbers.items()}
        top = torch.tensor([self.middle], dtype=torch.float64) + torch.tensor([0.0, 0.0, 0.03])
        arm = _arms(Reach(hand), n, top, torch.linspace(0, -HALF, ANGLES, dtype=torch.float64))[-1]
        return replace(hand, model=replace(hand.model, home=np.append(arm[0].numpy(), hand.home[hand.arm :])))

    @cached_property
    def step(self) -> Step:
        o = self.options
        physics = Physics(dt=o.dt, steps=o.steps, gravity=o.gravity, floor=False, hinge=True, force=o.force)
        return Step(self.hand(), self.thing(), physics)

    def body(self) -> Body:
        """Return the valve."""
        return Valve(OBJECT, [self.step.thing.shape()], self.options.mass, joint="continuous", position=self.middle)

    # --- the motion -----------------------------------------------------------------------------------------------

    def motion(self, n: Mapping[str, Tensor], measured: Tensor) -> Tensor:
        """Return joints (T + 1, B, joints): close, turn, open, turn back, and again."""
        top = measured[:, :3] + measured[:, 7:8] * measured.new_tensor([0.0, 0.0, self.step.thing.size[1] / 2])
        arms = _arms(self.reach, n, top, torch.linspace(-HALF, HALF, ANGLES, dtype=torch.float64))
        opened = torch.tensor(self.step.hand.home[self.step.hand.arm :]).expand(len(measured), -1)
        closed = self.reach.posture({name: n[name] for name in ("J2", "J1", "THJ4", "THJ1")})
        times = torch.arange(self.steps + 1, dtype=torch.float64) * self.options.dt
        cycles = int(np.ceil(self.steps * self.options.dt / (CLOSE + STROKE + OPEN + RETURN)))
        ends = np.cumsum([0.0, *[CLOSE, STROKE, OPEN, RETURN] * cycles])
        knots = torch.tensor(ends)[:, None]
        turned = torch.tensor([0.0, *[0.0, 1.0, 1.0, 0.0] * cycles])[:, None, None]
        grip = torch.tensor([0.0, *[1.0, 1.0, 0.0, 0.0] * cycles])[:, None, None]
        part = along(times, knots, turned.double(), steady)[:, 0]
        return torch.cat([_swept(arms, part), opened + along(times, knots, grip.double()) * (closed - opened)], -1)

    # --- judging --------------------------------------------------------------------------------------------------

    def judge(self, trajectory: Trajectory) -> Verdict:
        """Judge how far the valve has turned [degrees]."""
        angle = trajectory.states[:, :, self.step.nq]
        turned = torch.rad2deg(angle[-1] - angle[0])
        error = (360 * TURNS - turned).clamp(min=0)
        strokes = 1 + int((self.steps * self.options.dt - CLOSE - STROKE) / (CLOSE + STROKE + OPEN + RETURN))
        columns = {"turned [degrees]": turned, "turned per grasp [degrees]": turned / strokes}
        return Verdict(error <= 10.0, error, columns=columns)

    def loss(self, trajectory: Trajectory, iteration: Iteration) -> dict[str, Tensor]:
        """Return what search minimises."""
        angle = trajectory.states[:, :, self.step.nq]
        return {"turned": 1 - (angle[-1] - angle[0]) / (2 * pi * TURNS)}

    def story(self) -> str:
        return (
            f"A valve with a hinge that resists with {TORQUE:g} N m is turned {TURNS:g} times round: the hand grasps it, turns by "
            f"{np.degrees(2 * HALF):.0f} degrees, opens, goes back and grasps it again. It has succeeded within 10 degrees."
        )


def _arms(reach: Reach, n: Mapping[str, Tensor], top: Tensor, angles: Tensor) -> Tensor:
    """Return the arm's joints (angles, B, 6) with the palm over the top (B, 3) of valves, turned by angles [rad]; the first is near
    home."""
    offset = torch.stack([-n["back"], n["aside"], n["above"]], -1).expand(len(top), 3)
    last, found = torch.tensor(reach.hand.home[: reach.hand.arm]).expand(len(top), -1), []
    for angle in angles:
        last = reach.arm(top, angle.expand(len(top)), offset, n["tilt"].expand(len(top)), last)
        found.append(last)
    return torch.stack(found)


def _swept(arms: Tensor, part: Tensor) -> Tensor:
    """Return joints (T, B, 6) at parts (T, 1) of the way through joints (angles, B, 6), as the fastest joint goes it."""
    length = torch.cat([torch.zeros_like(arms[:1, :, 0]), arms.diff(dim=0).abs().amax(-1).cumsum(0)])
    where = part * length[-1]
    k = torch.searchsorted(length.T.contiguous(), where.T.contiguous()).T.clamp(1, len(arms) - 1)
    b = torch.arange(arms.shape[1])
    share = (where - length[k - 1, b]) / (length[k, b] - length[k - 1, b])
    return arms[k - 1, b] + share[..., None] * (arms[k, b] - arms[k - 1, b])
