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
from costate.physics.algebra import quaternion
from costate.physics.algebra.spatial import cross
from costate.physics.kinematics import body_velocities
from costate.robot import Robot
from costate.sim import Body, Newton, PositionServo, Static, World
from costate.sim.scene.shapes import plane
from costate.tasks.manipulation.proposer import Proposer
from costate.tasks.manipulation.step import Step

ROBOT, OBJECT = "hand", "object"


@dataclass(frozen=True)
class Servos:
    """Numbers of the servos."""

    arm: float = 3000.0
    """Stiffness of the arm's joints [N m/rad]."""
    arm_damping: float = 100.0
    """Damping of the arm's joints [N m s/rad]."""
    hand: float = 3.0
    """Stiffness of the hand's joints [N m/rad]."""
    hand_damping: float = 0.05
    """Damping of the hand's joints [N m s/rad]."""
    squeeze: float = 1.0
    """Factor on proposed forces."""
    feedback: bool = False
    """True: the policy looks at the object in every step; False: once, at the start."""
    substeps: int = 10
    """Physics steps per control step."""

    def of(self, arm: bool) -> PositionServo:
        """Return the servo of a joint."""
        stiffness, damping = (self.arm, self.arm_damping) if arm else (self.hand, self.hand_damping)
        return PositionServo(stiffness=stiffness, damping=damping, gravity_compensation="nominal")


def world_of(step: Step, servos: Servos, mass: float, friction: float, middle: Sequence[float]) -> World:
    """Return the full world: robot with servos, object and floor, in contact. State: joints, object; then their velocities."""
    hand, o = step.hand, step.physics
    tips, middles = [c.link for c in hand.tips], [c.link for c in hand.others if c.link.endswith("middle")]
    touching = [(f"{ROBOT}/{link}", f"{OBJECT}/body") for link in (*tips, *middles)]
    if o.floor:
        touching += [(f"{OBJECT}/body", "floor"), *((f"{ROBOT}/{link}", "floor") for link in tips)]
    arm = set(hand.joints[: hand.arm])
    kind = {"joint": "continuous"} if o.hinge else {}
    return World(
        robots={ROBOT: Robot(hand.model).double()},
        bodies=[Body(OBJECT, [step.thing.shape()], mass, position=middle, **kind)],  # type: ignore[arg-type]
        scenery=[Static("floor", plane())],
        actuators={f"{ROBOT}/{name}": servos.of(name in arm) for name in hand.joints},
        contact=Newton(friction=friction, cone="elliptic", impratio=10.0),
        collide=touching,
        poses={ROBOT: hand.base},
        gravity=(0.0, 0.0, -o.gravity),
        dt=o.dt,
        substeps=servos.substeps,
        parameters=["friction", f"mass:{OBJECT}/body", f"inertia:{OBJECT}/body", f"size:{OBJECT}"],
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
        commanded joints, and the targets of the servos."""
        s = self.step
        x, a, thing = SX.sym("state", s.nx), SX.sym("action", s.na), SX.sym("object", 3)
        q, quat = x[: s.nq], x[s.nq + 3 : s.nq + 7]
        rates = ca.SX(s.hand.coupling) @ (ca.SX(s.speeds) * ca.tanh(a[: len(s.hand.driven)]))
        stiffness, damping = self._gains
        lead = ca.SX(damping / stiffness) * rates
        push = self.servos.squeeze * self._torque(q, quat, a, thing[0]) / ca.SX(stiffness)
        following = q + s.physics.dt * rates
        out = {"following": following, "target": following + lead + push}
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
        R, B = quaternion.to_rotation(quat), ca.SX(s.hand.base.rotation)
        (tree, bodies), poses = s.poses(q)
        v = SX.sym("v", s.nq)
        twists, power = body_velocities(tree, bodies, v), SX(0)
        for k, tip in enumerate(s.hand.tips):
            _, under, force, _ = s.proposal(a, k, scale)
            index, (_, offset) = tree.links[tip.link]
            linear, omega = twists[index]
            arm = bodies[index][0] @ offset + B.T @ poses[tip.link][0] @ under
            power += ca.dot(R @ force, B @ (linear + cross(omega, arm)))
        return ca.substitute(ca.gradient(power, v), v, 0)

    def begin(self, policy: Proposer) -> Any:
        """Return the function that acts in one episode: of what is measured (B, 9) to the targets of the servos (B, joints).

        Measured are position and quaternion of the object, its scale, and the time as a part of the whole. Without
        `feedback` the object is looked at once, and then goes where the model says.
        """
        kept: list[Tensor] = []

        def act(measured: Tensor) -> Tensor:
            x = torch.cat(
                [measured.new_zeros(*measured.shape[:-1], self.step.nq), measured[..., :7],
                 measured.new_zeros(*measured.shape[:-1], 6), measured[..., 8:]], -1
            )  # fmt: skip
            thing = torch.cat([measured[..., 7:8], torch.ones_like(measured[..., :2])], -1)
            x[..., : self.step.nq] = kept[0][..., : self.step.nq] if kept else measured.new_tensor(self.step.hand.home)
            if kept and not self.servos.feedback:
                x[..., self.step.nq : -1] = kept[0][..., self.step.nq : -1]
            action = policy(self.step.observe(state=x, object=thing).seen)
            out = self.kernel(state=x, action=action, object=thing)
            if self.servos.feedback:
                kept[:] = [out.following]
            else:
                thing = torch.cat([thing[..., :1], thing[..., :1] ** 3 * self.mass, thing[..., 2:]], -1)
                kept[:] = [self.step.kernel(state=x, action=action, object=thing).after]
            return out.target

        return act
