"""The problems of the benchmark of the optimisers: an arm that reaches, a quadruped that crouches, a policy that swings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import torch

import costate as cs
from costate.model import write_urdf
from costate.optimise import Cost, ILQROptions
from costate.optimise.ilqr import Motions
from costate.sim import PGS, World

Tensor = torch.Tensor
F64 = torch.float64


@dataclass(frozen=True, eq=False)
class Problem:
    """A motion to be optimised, in a form that other solvers can be given, too."""

    name: str
    world: World
    steps: int
    start: Tensor
    """State (nx,)."""
    wanted: Tensor
    """State the cost pulls to (nx,)."""
    holding: Tensor
    """Controls (nu,) that keep the start; the guess, and what controls are measured from."""
    frame: str = ""
    """Link that is to reach the goal."""
    goal: tuple[float, ...] = ()
    feet: tuple[str, ...] = ()
    weights: tuple[tuple[str, float], ...] = (("control", 1e-3), ("state", 1e-2), ("place", 1e4), ("final_state", 1e2))

    @property
    def robot(self) -> cs.Robot:
        (robot,) = self.world._inputs.robots.values()
        return robot

    @cached_property
    def cost(self) -> Cost:
        w = {k: x**0.5 for k, x in self.weights}
        q, v = self.wanted.split([self.world.nq, self.world.nv])
        holding = ca.DM(self.holding.tolist())

        def stage(s):
            return ca.vertcat(
                w["control"] * (s.u - holding), w["state"] * s.away(q), w["state"] * (s.v - ca.DM(v.tolist()))
            )

        def final(s):
            rows = [w["final_state"] * s.away(q), w["final_state"] * (s.v - ca.DM(v.tolist()))]
            if self.frame:
                rows.append(w["place"] * (s.position(f"{self.robot.name}/{self.frame}") - ca.DM(self.goal)))
            return ca.vertcat(*rows)

        return Cost(self.world, stage, final)

    def guess(self) -> Tensor:
        return self.holding.expand(self.steps, -1)

    def still(self) -> Tensor:
        """Guess of the states: the start, all the time. It is no motion where the guessed controls do not hold it."""
        return self.start.expand(self.steps + 1, -1)

    def motions(self) -> Motions:
        """Return what iLQR works on, at the start."""
        state, controls, still = self.start[None], self.guess()[:, None], self.still()[:, None]
        return Motions(self.world, self.cost, state, controls, still, {}, None, ILQROptions())

    def task(self, urdf: Path, **more: Any) -> dict[str, Any]:
        """The same problem as plain numbers, with the robot in a file."""
        model = self.robot.model  # without shapes: meshes are of no use there
        bare = tuple(replace(link, visuals=(), collisions=()) for link in model.links)
        # Crocoddyl knows a floating base by the name of its joint.
        joints = tuple(replace(j, name="root_joint") if j.kind == "floating" else j for j in model.joints)
        write_urdf(replace(model, links=bare, joints=joints), urdf)
        return {
            "urdf": str(urdf),
            "joints": [j.name for j in model.joints if j.nv == 1],
            "steps": self.steps,
            "dt": self.world.dt,
            "state": self.start.tolist(),
            "wanted": self.wanted.tolist(),
            "control": self.holding.tolist(),
            "frame": self.frame,
            "goal": list(self.goal),
            "feet": list(self.feet),
            "weights": dict(self.weights),
            **more,
        }


def arm(steps: int = 100) -> Problem:
    """A UR5 brings its tool to a place within a second, by torques."""
    robot = cs.load_robot("ur5")
    world = World(robots=[robot], contact=None, dt=0.01, check=False)
    start = world.initial_state(dtype=torch.float64)
    holding = robot.gravity_torques(start[: world.nq])
    weights = (("control", 1e-3), ("state", 1e-2), ("place", 1e4), ("final_state", 1e-1))
    return Problem("UR5, reaching", world, steps, start, start, holding, "tool0", (0.4, 0.3, 0.4), weights=weights)


def quadruped(steps: int = 50) -> Problem:
    """A Laikago bends its knees by 0.4 rad within half a second: four feet on the ground, 50 sweeps."""
    robot = cs.load_robot("laikago")
    ground = cs.Static("ground", cs.shapes.plane())
    toes = [name for name in robot.link_names if "toe" in name]
    world = World(
        robots=[robot],
        scenery=[ground],
        contact=PGS(sweeps=50, joint_limits=False, joint_friction=False),
        dt=0.01,
        collide=lambda a, b: "ground" in (a, b) and ("toe" in a or "toe" in b),
        check=False,
    )
    start = world.initial_state(dtype=torch.float64)
    start[2] -= world.gaps(start).min()  # the feet touch
    wanted = _crouched(robot, start, toes)
    return Problem(
        "Laikago, crouching", world, steps, start, wanted, _holding(robot, start[: world.nq], toes), feet=tuple(toes)
    )


def _crouched(robot: cs.Robot, state: Tensor, feet: list[str]) -> Tensor:
    """The same stance with bent knees, the feet where they were on average."""

    def middle(q: Tensor) -> Tensor:
        return torch.stack([robot.forward_kinematics(q, foot).position for foot in feet]).mean(0)

    bent = state.clone()
    first = 7 - 6  # quaternions count four in q and three in v
    for k, joint in enumerate(robot.model.joints):
        if "lower_leg" in joint.name or "upper_leg" in joint.name:
            turn = -0.4 if joint.name.split("_2_")[0].endswith("lower_leg") else 0.2
            bent[first + robot.model.v_index[k]] += turn
    bent[:3] += middle(state[: robot.nq]) - middle(bent[: robot.nq])
    return bent


def _holding(robot: cs.Robot, q: Tensor, feet: list[str]) -> Tensor:
    """Torques that hold a standing robot: its feet share its weight, J^T f = g on the base."""
    g = robot.gravity_torques(q)
    J = torch.cat([robot.jacobian(q, foot)[:3] for foot in feet])
    f = torch.linalg.pinv(J[:, :6].T) @ g[:6]
    return g[6:] - J[:, 6:].T @ f


class Policy(torch.nn.Module):
    """A policy of 9,986 weights that swings up a double pendulum, through the simulator."""

    def __init__(self, steps: int = 30, batch: int = 64):
        super().__init__()
        self.world = World(robots=[cs.load_robot("pendulum2")], contact=None, dt=0.02, check=False)
        nx, nu = self.world.nx, self.world.nu
        torch.manual_seed(0)
        layers = (
            torch.nn.Linear(nx, 96),
            torch.nn.Tanh(),
            torch.nn.Linear(96, 96),
            torch.nn.Tanh(),
            torch.nn.Linear(96, nu),
        )
        self.net = torch.nn.Sequential(*layers).double()
        self.steps = steps
        self.start = self.world.initial_state(batch, F64) + 0.3 * torch.randn(batch, nx, dtype=F64)
        self.goal = torch.tensor([1.0, 0.5, 0.0, 0.0], dtype=F64)

    def residuals(self) -> dict[str, Tensor]:
        states = self.world.rollout(self.start, lambda x, t: self.net(x), steps=self.steps)
        return {"way": 0.1 * (states[1:] - self.goal), "end": states[-1] - self.goal}
