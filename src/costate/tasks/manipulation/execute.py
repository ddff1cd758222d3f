"""Execution: proposals become joint targets and a grasp force, in a world that knows nothing of them.

The commanded joints are what the policy's rates add up to. A servo's target leads them by what its damping would hold back, and by
the torque J^T f with which a finger exerts its proposed force, divided by the stiffness: where the finger touches, it presses with
that force; where it does not, it moves on until it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import torch
from casadi import SX
from torch import Tensor

from costate.core.fork import cached_property
from costate.kernel import Kernel
from costate.physics.algebra.spatial import cross
from costate.physics.kinematics import body_velocities
from costate.robot import Robot
from costate.sim import Body, Newton, PositionServo, Static, World
from costate.sim.scene.shapes import plane
from costate.tasks.manipulation.proposer import Proposer
from costate.tasks.manipulation.step import Step

ROBOT, OBJECT = "hand", "object"
SMALL = 1e-3
"""Size of a force that hardly counts [N]."""
RELEASED = 0.5
"""Part of the largest forces below which the hand lets go."""
LEVER, DAMPING = 0.05, 0.01
"""One radian counts as this many metres; correction of errors that the arm can hardly correct is damped [m]."""


@dataclass(frozen=True)
class Servos:
    """Numbers of the servos."""

    arm: float = 20000.0
    """Stiffness of the arm's joints [N m/rad]."""
    arm_damping: float = 500.0
    """Damping of the arm's joints [N m s/rad]."""
    hand: float = 3.0
    """Stiffness of the hand's joints [N m/rad]."""
    hand_damping: float = 0.05
    """Damping of the hand's joints [N m s/rad]."""
    squeeze: float = 12.0
    """Factor on the part of the proposed forces that cancels: the fingers press harder against each other, and carry no more.
    On all of them where a hinge carries the rest."""
    correct: float = 0.25
    """Part of an error of the object's pose that the arm corrects in a step; 0: it is not looked at after the start."""
    held: float = 0.3
    """Part of an episode after which the object is taken to be in the hand, and corrected."""
    substeps: int = 10
    """Physics steps per control step."""

    def of(self, arm: bool) -> PositionServo:
        """Return the servo of a joint."""
        stiffness, damping = (self.arm, self.arm_damping) if arm else (self.hand, self.hand_damping)
        return PositionServo(stiffness=stiffness, damping=damping, gravity_compensation="nominal")


def world_of(
    step: Step, servos: Servos, friction: float, body: Body, links: Sequence[str], parameters: Sequence[str]
) -> World:
    """Return the full world: robot with servos, object and floor, in contact. State: joints, object; then their velocities.

    links: Names of the robot's links that touch the object; the fingertips touch the floor, too, if there is one.
    """
    hand, o = step.hand, step.physics
    touching = [(f"{ROBOT}/{link}", f"{OBJECT}/body") for link in links]
    if o.floor:
        touching += [(f"{OBJECT}/body", "floor"), *((f"{ROBOT}/{c.link}", "floor") for c in hand.tips)]
    arm = set(hand.joints[: hand.arm])
    return World(
        robots={ROBOT: Robot(hand.model).double()},
        bodies=[body],
        scenery=[Static("floor", plane())],
        actuators={f"{ROBOT}/{name}": servos.of(name in arm) for name in hand.joints},
        contact=Newton(friction=friction, cone="elliptic", impratio=10.0),
        collide=touching,
        poses={ROBOT: hand.base},
        gravity=(0.0, 0.0, -o.gravity),
        dt=o.dt,
        substeps=servos.substeps,
        parameters=list(parameters),
        check=False,
    )


@dataclass(frozen=True, eq=False)
class Executor:
    """The controller between a policy and the servos."""

    step: Step
    servos: Servos
    mass: float
    """Usual mass of the object [kg]."""

    def __deepcopy__(self, memo: Any) -> Executor:
        return self

    @cached_property
    def kernel(self) -> Kernel:
        """Function of a state of the model (its joints are those commanded so far), an action and the object that returns the next
        commanded joints, the targets of the servos, and the sum of the sizes of proposed forces, in their unit."""
        s = self.step
        x, a, thing = SX.sym("state", s.nx), SX.sym("action", s.na), SX.sym("object", 3)
        q, quat = x[: s.nq], x[s.nq + 3 : s.nq + 7]
        rates = ca.SX(s.hand.coupling) @ (ca.SX(s.speeds) * ca.tanh(a[: len(s.hand.driven)]))
        stiffness, damping = self._gains
        lead = ca.SX(damping / stiffness) * rates
        push = self._torque(q, quat, a, thing[0]) / ca.SX(stiffness)
        following = q + s.physics.dt * rates
        sizes = [ca.sqrt(ca.sumsqr(s.proposal(a, k, thing[0])[2])) for k in range(len(s.hand.tips))]
        out = {
            "following": following,
            "target": following + lead + push,
            "pressing": sum(sizes, SX(0)) / s.unit(thing[0]),
        }
        return Kernel("execute", {"state": x, "action": a, "object": thing}, out)

    @cached_property
    def _gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness of each joint, and all of its damping."""
        arm = np.arange(self.step.nq) < self.step.hand.arm
        own = np.array([j.damping for j in self.step.hand.model.joints if j.nv])
        o = self.servos
        return np.where(arm, o.arm, o.hand), np.where(arm, o.arm_damping, o.hand_damping) + own

    def _torque(self, q: SX, quat: SX, a: SX, scale: SX) -> SX:
        """Return the joint torques that exert the proposed forces: J^T f of the points on the fingers."""
        s = self.step
        R, B = s.frame(quat), ca.SX(s.hand.base.rotation)
        (tree, bodies), poses = s.poses(q)
        v = SX.sym("v", s.nq)
        twists, power = body_velocities(tree, bodies, v), SX(0)
        proposals = [s.proposal(a, k, scale) for k in range(len(s.hand.tips))]
        forces, factor = [R @ force for _, _, force, _ in proposals], self.servos.squeeze
        forces = [factor * f for f in forces] if s.physics.carried else _squeezed(forces, factor)
        for tip, (_, under, _, _), force in zip(s.hand.tips, proposals, forces, strict=True):
            index, (_, offset) = tree.links[tip.link]
            linear, omega = twists[index]
            arm = bodies[index][0] @ offset + B.T @ poses[tip.link][0] @ under
            power += ca.dot(force, B @ (linear + cross(omega, arm)))
        return ca.substitute(ca.gradient(power, v), v, 0)

    @cached_property
    def robot(self) -> Robot:
        """Robot alone, for its Jacobian."""
        return Robot(self.step.hand.model).double()

    def begin(self, policy: Proposer) -> Acting:
        """Return what acts in one episode."""
        return Acting(self, policy)

    def corrected(self, q: Tensor, planned: Tensor, measured: Tensor) -> Tensor:
        """Return how the arm's joints (B, arm) have to move for an object that the hand holds to be where it was planned.

        planned, measured: position and quaternion of the object, (B, 7).
        """
        n, base = self.step.hand.arm, self.step.hand.base
        R, b = (torch.as_tensor(x, dtype=q.dtype) for x in (base.rotation, base.translation))
        J = self.robot.jacobian(q, "palm")[..., :n]
        palm = self.robot.forward_kinematics(q, "palm").position
        arm = (measured[..., :3] - b) @ R - palm
        moving = J[..., :3, :] - torch.linalg.cross(arm[..., None].expand_as(J[..., 3:, :]), J[..., 3:, :], dim=-2)
        rows = torch.cat([moving, LEVER * J[..., 3:, :]], -2)
        turn = between(measured[..., 3:], planned[..., 3:]) * q.new_tensor([1.0, 1.0, 0.0])  # tilt, not yaw
        error = torch.cat([(planned - measured)[..., :3] @ R, LEVER * turn @ R], -1)
        damped = rows @ rows.mT + DAMPING**2 * torch.eye(6, dtype=q.dtype)
        return (rows.mT @ torch.linalg.solve(damped, error[..., None]))[..., 0]


class Acting:
    """A policy at work in one episode: from what is measured (B, 9) to the targets of the servos (B, joints).

    Measured are position and quaternion of the object, its scale, and the time as a part of the whole. The policy looks
    at the object once; then its proposals follow from each other, as in the model. What the object does else, the arm corrects.
    """

    def __init__(self, executor: Executor, policy: Proposer):
        self._executor, self._policy = executor, policy
        self._plan: Tensor | None = None
        self.action: Tensor | None = None
        """Latest proposals (B, na)."""
        self._still: Tensor | None = None

    def __call__(self, measured: Tensor) -> Tensor:
        own, step, n = self._executor, self._executor.step, self._executor.step.nq
        scale = measured[..., 7:8]
        if self._plan is None:
            home = measured.new_tensor(step.hand.home).expand(*measured.shape[:-1], n)
            still = measured.new_zeros(*measured.shape[:-1], 6)
            self._plan = torch.cat([home, measured[..., :7], still, measured[..., 8:]], -1)
            self._shift = measured.new_zeros(*measured.shape[:-1], step.hand.arm)
        plan, thing = self._plan, torch.cat([scale, scale**3 * own.mass, torch.ones_like(scale)], -1)
        self.action = action = self._policy(step.observe(state=plan, object=thing).seen)
        out = own.kernel(state=plan, action=action, object=thing)
        target = self._let_go(out, plan[..., :n]) if step.physics.carried else out.target
        if step.hand.arm and own.servos.correct:
            planned, seen = plan[..., n : n + 7], measured[..., :7]
            held = (measured[..., 8:] >= own.servos.held).to(plan.dtype)
            more = held * own.servos.correct * own.corrected(plan[..., :n], planned, seen)
            self._shift = self._shift + more
            ahead = own.servos.arm_damping / own.servos.arm / step.physics.dt * more
            target = target + torch.nn.functional.pad(self._shift + ahead, (0, n - step.hand.arm))
        self._plan = step.kernel(state=plan, action=action, object=thing).after
        return target

    def _let_go(self, out: Any, q: Tensor) -> Tensor:
        """Return the targets with an object that turns on by itself: once forces have come and gone, the hand stands still."""
        if self._still is None:
            self._most, self._gone, self._still = (
                torch.zeros_like(q[..., :1]),
                torch.zeros_like(q[..., :1], dtype=torch.bool),
                q,
            )
        self._most = torch.maximum(self._most, out.pressing)
        over = (out.pressing < RELEASED * self._most) & (self._most > 1)
        self._gone = self._gone | over
        self._still = torch.where(self._gone, self._still, q)
        return torch.where(self._gone, self._still, out.target)


def between(a: Tensor, b: Tensor) -> Tensor:
    """Return the small turn (..., 3) that leads from one quaternion to another, in world axes [rad]."""
    turn = b[..., 3:] * -a[..., :3] + a[..., 3:] * b[..., :3] + torch.linalg.cross(a[..., :3], b[..., :3])
    return 2 * turn * (a * b).sum(-1, keepdim=True).sign()


def _squeezed(forces: list[SX], factor: float) -> list[SX]:
    """Return forces of the same sum, whose parts that cancel are larger by a factor; each has a share of the sum by its size."""
    sizes = [ca.sqrt(ca.sumsqr(f) + SMALL**2) for f in forces]
    total, whole = sum(forces, SX.zeros(3)), sum(sizes, SX(0))
    shares = [size / whole * total for size in sizes]
    return [share + factor * (f - share) for f, share in zip(forces, shares, strict=True)]
