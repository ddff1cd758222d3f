"""The tasks of a hand with an object: how they start, what they ask of proposals, and when they have succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import pi
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.optimise.kronecker import Kronecker
from costate.sim import Body, World
from costate.sim.scene.parts import solid_inertia
from costate.tasks.manipulation.curvature import curvature
from costate.tasks.manipulation.execute import OBJECT, Executor, world_of
from costate.tasks.manipulation.hand import WIDE, Hand, hand_on_arm
from costate.tasks.manipulation.objects import Cube, Thing
from costate.tasks.manipulation.options import ManipulationOptions, honest, varied
from costate.tasks.manipulation.proposals import first_guess, residuals, weights_of
from costate.tasks.manipulation.proposer import HandPolicy
from costate.tasks.manipulation.step import Physics, Step
from costate.tasks.manipulation.training import PATIENT, GaussNewtonTraining
from costate.tasks.manipulation.unroll import unroll
from costate.train import episode
from costate.train.episode import Trajectory, Verdict
from costate.train.network import Network
from costate.train.plan import Iteration
from costate.train.trainable import Trainable, Variant

CLEAR = 1e-3
"""Least distance between an object and the open hand at the start [m]."""


@dataclass(frozen=True)
class Episodes(episode.Episodes):
    """Starts, and objects."""

    thing: Tensor
    """Scale, mass [kg] and friction of the objects, (B, 3)."""
    size: Tensor
    """Size of the object's shape [m], (B, n)."""
    inertia: Tensor
    """Inertia of the object [kg m^2], (B, 3, 3)."""
    seen: Tensor
    """Errors of the measured positions [m] and orientations [rad], (steps, B, 6)."""

    def only(self, k: int) -> Episodes:
        """Return one of the episodes alone."""
        one = {name: getattr(self, name)[k : k + 1] for name in ("state", "thing", "size", "inertia")}
        return Episodes(**one, seen=self.seen[:, k : k + 1])

    def repeated(self, times: int) -> Episodes:
        """Return all the episodes, so many times one after the other."""
        rows = {name: getattr(self, name) for name in ("state", "thing", "size", "inertia")}
        all_of = {name: x.repeat(times, *[1] * (x.dim() - 1)) for name, x in rows.items()}
        return Episodes(**all_of, seen=self.seen.repeat(1, times, 1))

    @property
    def params(self) -> Mapping[str, Tensor]:
        """Parameters of the world."""
        _, mass, friction = self.thing.split(1, -1)
        body = f"{OBJECT}/body"
        return {
            "friction": friction,
            f"mass:{body}": mass,
            f"inertia:{body}": self.inertia,
            f"size:{OBJECT}": self.size,
        }


class Manipulation(Trainable):
    """A task of a hand with an object; kinds.py has the three of them."""

    unit: ClassVar[str] = "mm"
    tolerance: ClassVar[float | None] = 10.0
    most_tilt: ClassVar[float] = 10.0
    """Largest tilt of the object in the end [degrees]."""
    training: ClassVar[GaussNewtonTraining] = GaussNewtonTraining()
    variants: ClassVar[Mapping[str, Variant]] = {
        "honest": Variant("An object of 100 g, friction 0.8, 0.5 s, at rest in the end.", honest, PATIENT),
        "varied": Variant(
            "Sizes of 80 to 120 %, masses of 50 to 200 %, friction of 75 to 125 %; poses measured to 1 mm and 1 degree.",
            varied,
        ),
    }
    options: ManipulationOptions = ManipulationOptions()

    transfer: ClassVar[str] = "costate.tasks.manipulation.mujoco:try_elsewhere"
    report: ClassVar[str] = "costate.tasks.manipulation.show.report:HandReport"
    play: ClassVar[str] = "costate.tasks.manipulation.show.play:HandPlay"

    way: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.1)
    """Way that the object has to go [m]."""
    angle: ClassVar[float] = 0.0
    """Angle that it has to turn by, about the vertical [rad]."""
    hinge: ClassVar[bool] = False
    middle: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.03)
    """Usual place of the object [m]."""

    # --- the model, and the world ---------------------------------------------------------------------------------

    def hand(self) -> Hand:
        """Return the hand that does it; it begins further open and higher if there may be larger objects than usual."""
        return hand_on_arm(WIDE if self.is_wide else {})

    @property
    def is_wide(self) -> bool:
        """Tell whether the hand begins further open than usual."""
        return self.options.wide or self.options.scales[1] > 1

    def thing(self) -> Thing:
        """Return the object that it is done with."""
        return Cube()

    @cached_property
    def step(self) -> Step:
        """Model that is trained in."""
        o = self.options
        numbers = Physics(
            dt=o.dt, steps=o.steps, gravity=o.gravity if o.carried or not self.hinge else 0.0, floor=not self.hinge,
            hinge=self.hinge, carried=o.carried, drag=o.drag, calm=o.calm, smooth=o.smooth, force=o.force,
            hand_speed=o.hand_speed,
        )  # fmt: skip
        return Step(self.hand(), self.thing(), numbers)

    @cached_property
    def executor(self) -> Executor:
        """Controller between policy and servos."""
        return Executor(self.step, self.options.servos, self.options.mass)

    def body(self) -> Body:
        """Return the object of the full world."""
        kind = {"joint": "continuous"} if self.hinge else {}
        return Body(OBJECT, [self.step.thing.shape()], self.options.mass, position=self.middle, **kind)  # type: ignore[arg-type]

    parameters: ClassVar[tuple[str, ...]] = (
        "friction", f"mass:{OBJECT}/body", f"inertia:{OBJECT}/body", f"size:{OBJECT}",
    )  # fmt: skip
    """Parameters of the full world that episodes set."""

    def touching(self) -> Sequence[str]:
        """Return the names of the links that touch the object in the full world: the last two of every finger."""
        hand = self.step.hand
        return [c.link for c in (*hand.tips, *(c for c in hand.others if c.link.endswith("middle")))]

    @cached_property
    def world(self) -> World:
        o = self.options
        return world_of(self.step, o.servos, o.friction, self.body(), self.touching(), self.parameters)

    # --- episodes -------------------------------------------------------------------------------------------------

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        """Draw random places, and objects. A cube looks the same after a quarter turn, so yaw within an eighth turn is any yaw.

        A place at which the object would be within a link of the open hand, or within 1 mm of one, is drawn anew.
        """
        o = self.options
        drawn = torch.rand(batch, 6, generator=generator, dtype=torch.float64)
        errors = o.noise * torch.randn(o.steps, batch, 3, generator=generator, dtype=torch.float64)
        scale, factor, grip = (low + (high - low) * x for (low, high), x in
                               zip((o.scales, o.masses, o.frictions), drawn[:, :3].T, strict=True))  # fmt: skip
        thing = torch.stack([scale, o.mass * factor * scale**3, o.friction * grip], -1)
        state = self.world.initial_state(batch, torch.float64)
        self._put(state, scale, 2 * drawn[:, 3:] - 1)
        while len(within := self._within(state, scale)):
            moved, again = state[within], torch.rand(len(within), 3, generator=generator, dtype=torch.float64)
            self._put(moved, scale[within], 2 * again - 1)
            state[within] = moved
        shape = self.step.thing
        size = scale[:, None] * torch.tensor(shape.size)
        inertia = thing[:, 1, None, None] * scale[:, None, None] ** 2 * torch.tensor(solid_inertia(shape.shape(), 1.0))
        turns = torch.zeros_like(errors)
        if o.turn_noise:  # drawn only then, so that starts are the same with and without
            turns = o.turn_noise * torch.randn(errors.shape, generator=generator, dtype=torch.float64)
        seen = torch.cat([errors, turns], -1)
        return Episodes(*(t.to(dtype) for t in (state, thing, size, inertia, seen)))

    def _put(self, state: Tensor, scale: Tensor, drawn: Tensor) -> None:
        """Place the objects, given numbers (B, 3) in [-1, 1]."""
        n, yaw = self.step.nq, drawn[:, 2] * pi / 4
        state[:, n : n + 2] = torch.tensor(self.middle[:2]) + self.options.place * drawn[:, :2]
        state[:, n + 2] = scale * self.step.thing.size[-1] / 2
        state[:, n + 3 : n + 7] = about_z(yaw)

    def _within(self, state: Tensor, scale: Tensor) -> Tensor:
        """Return the numbers of the states (B, nx) in which the object is in a link of the open hand, or nearly."""
        return torch.nonzero(self._depth(self.pose(state), scale) > -CLEAR)[:, 0]

    def _depth(self, pose: Tensor, scale: Tensor) -> Tensor:
        """Return how deep links of the hand begin within objects at poses (B, 7) [m], (B,); negative: the least distance."""
        return self.step.overlap(pose=pose, scale=scale[:, None]).depth[:, 0]

    def pose(self, state: Tensor) -> Tensor:
        """Return position [m] and quaternion of the object in states of the world, (..., 7)."""
        return state[..., self.step.nq : self.step.nq + 7]

    def placed(self, state: Tensor, episodes: Episodes) -> Tensor:
        """Return the poses of the objects of episodes in states of the world, (..., 7)."""
        return self.pose(state)

    def observe(self, state: Tensor, step: int, episodes: Episodes) -> Tensor:
        """Return what is measured: pose of the object, its scale, and the time as a part of the whole, (B, 9)."""
        pose = self.placed(state, episodes)
        where, turn = episodes.seen[min(step, len(episodes.seen) - 1)].to(pose.dtype).split(3, -1)
        turned = quaternion_product(torch.nn.functional.pad(turn / 2, (0, 1), value=1.0), pose[..., 3:])
        turned = turned / turned.norm(dim=-1, keepdim=True)
        time = torch.full_like(pose[..., :1], step / self.steps)
        return torch.cat([pose[..., :3] + where, turned, episodes.thing[..., :1].to(pose.dtype), time], -1)

    def control(self, action: Tensor) -> Tensor:
        """Return the targets of the servos, which an action is."""
        return action

    # --- training -------------------------------------------------------------------------------------------------

    def policy(self, training: GaussNewtonTraining, generator: torch.Generator | None = None) -> HandPolicy:
        """Return a policy that does next to nothing."""
        weight = self.options.mass * self.step.physics.gravity
        return HandPolicy(
            self.executor, first_guess(self.step, np.array(self.middle), weight), training.hidden, generator
        )

    def start(self, episodes: Episodes) -> Tensor:
        """Return the starts as states of the model, (B, nx)."""
        pose, n = self.placed(episodes.state, episodes), self.step.nq
        still = pose.new_zeros(len(pose), 7)
        return torch.cat([episodes.state[:, :n], pose, still], -1)

    def goals(self, episodes: Episodes) -> Tensor:
        """Return where the objects have to be in the end, (B, 7)."""
        pose = self.placed(episodes.state, episodes)
        half = self.options.further * self.angle / 2
        half = pose.new_tensor([0.0, 0.0, np.sin(half), np.cos(half)])
        return torch.cat([pose[:, :3] + pose.new_tensor(self.way), quaternion_product(half, pose[:, 3:])], -1)

    def believed(self, episodes: Episodes) -> Tensor:
        """Return the objects as proposals see them: of the same size, with the usual mass, and friction to be trusted."""
        o, scale = self.options, episodes.thing[:, :1]
        return torch.cat([scale, o.mass * scale**3, torch.full_like(scale, o.friction * o.trusted)], -1)

    def residuals(self, policy: HandPolicy, episodes: Episodes) -> dict[str, Tensor]:
        """Return the residuals of proposals, of physics and of the goal."""
        start, goals = self.start(episodes), self.goals(episodes)
        return residuals(self.step, goals, policy, start, self.believed(episodes), self.options.rest)

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Weights of the blocks of residuals."""
        return weights_of(self.step, self.options.rest)

    def misfit(self, policy: HandPolicy, episodes: Episodes) -> Tensor:
        """Return half of the weighted sum of all squared residuals, which training lowers, ()."""
        blocks = self.residuals(policy, episodes)
        return torch.stack([self.weights[name] * r.square().sum() / 2 for name, r in blocks.items()]).sum()

    def curvature(
        self, policy: HandPolicy, episodes: Episodes, probes: int, generator: torch.Generator,
        earlier: Sequence[Tensor] = (), memory: float = 0.9,
    ) -> Kronecker:  # fmt: skip
        """Return the preconditioner of a Gauss-Newton step on these residuals; it goes on with an earlier one, see `Kronecker`."""
        start, goals, thing = self.start(episodes), self.goals(episodes), self.believed(episodes)
        samples = curvature(self.step, goals, policy, start, thing, self.options.rest, probes, generator)
        return Kronecker(*samples, self.weights["weights"], earlier, memory)

    def proposed(self, policy: HandPolicy, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Return what the model makes of proposals: residuals (T, B, nr) and states (T + 1, B, nx)."""
        with torch.no_grad():
            return unroll(self.step, policy, self.start(episodes), self.believed(episodes))

    @property
    def measured(self) -> Mapping[str, str]:
        return {}

    def measures(self, trajectory: Trajectory) -> dict[str, float]:
        return {}

    def loss(self, trajectory: Trajectory, iteration: Iteration) -> dict[str, Tensor]:
        """Return how far the object is from its goal in the full world, for environments; training has `residuals` instead."""
        return {"goal": (self.pose(trajectory.states[-1]) - self.goals(trajectory.episodes)).square().sum(-1)}

    # --- judging --------------------------------------------------------------------------------------------------

    def judge(self, trajectory: Trajectory) -> Verdict:
        """Judge how far along its way the object is in the end [mm], and its tilt."""
        before, after = self.pose(trajectory.states[0]), self.pose(trajectory.states[-1])
        moved, way = after[:, :3] - before[:, :3], after.new_tensor(self.way)
        along = moved @ way / way.norm()
        aside = (moved - along[:, None] * way / way.norm()).norm(dim=-1)
        error = 1e3 * (along - way.norm()).abs()
        x, y, _, _ = after[:, 3:].unbind(-1)
        tilt = torch.rad2deg(torch.acos((1 - 2 * (x**2 + y**2)).clamp(-1, 1)))
        turned = torch.rad2deg(2 * torch.acos((before[:, 3:] * after[:, 3:]).sum(-1).abs().clamp(max=1)))
        columns = {"tilt [degrees]": tilt, "turned [degrees]": turned, "aside [mm]": 1e3 * aside}
        return Verdict((error <= 10.0) & (tilt < self.most_tilt), error, columns=columns)

    def marks(self, episodes: Episodes) -> Tensor:
        """Return where the objects have to be in the end, (B, 1, 3); nothing if they only turn."""
        return self.goals(episodes)[:, None, :3] if any(self.way) else super().marks(episodes)

    def box(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return the corners of what a camera sees at first: the object, and the hand over it."""
        x, y, z = self.middle
        return (x - 0.12, y - 0.1, z - 0.03), (x + 0.1, y + 0.1, z + 0.14)

    def network(self, policy: nn.Module) -> Network:
        raise ValueError("a policy that proposes contacts acts through an executor, which no file can hold")

    def story(self) -> str:
        o = self.options
        return (
            f"{self.summary[:1].upper()}{self.summary[1:]}: an object of {1e3 * o.mass:g} g with friction {o.friction:g}, within "
            f"{o.steps * o.dt:g} s. The policy proposes contacts and is trained where these are taken for true; here it is judged "
            "in full simulation, which knows nothing of them."
        )


def about_z(angle: Tensor) -> Tensor:
    """Return the quaternions (..., 4) of angles about the vertical [rad]."""
    zero = torch.zeros_like(angle)
    return torch.stack([zero, zero, (angle / 2).sin(), (angle / 2).cos()], -1)


def quaternion_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of quaternions xyzw."""
    a, b = torch.broadcast_tensors(a, b)
    (ax, aw), (bx, bw) = (a[..., :3], a[..., 3:]), (b[..., :3], b[..., 3:])
    return torch.cat([aw * bx + bw * ax + torch.linalg.cross(ax, bx), aw * bw - (ax * bx).sum(-1, keepdim=True)], -1)
