"""Robots that handle cloth: links touch and grasp it, and feel what it weighs, in one program with gradients both ways.

    scene = ClothWorld(model, world, [Grip("panda/hand", [0, 1, 2])])
    motion = scene.run(robot, u)

In a step the robots move first, pushed by what cloth did to their links in the step before; then cloth, among the moved links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.continuum.cloth.contact import POSE
from costate.continuum.cloth.model import AIR, ClothModel, Numbers, derived, detached
from costate.continuum.cloth.state import ClothState
from costate.continuum.cloth.step import TOLD
from costate.continuum.coupling import WorldLinks
from costate.kernel import Kernel
from costate.kernel.fields import TOTAL, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.torch_op import in_transform
from costate.sim.world import World


@dataclass(frozen=True, eq=False)
class Grip:
    """Fingers of a link that hold points of cloth, by springs to places that move with the link."""

    link: str
    """Name of the link, as the world names it: `robot/link`."""
    points: Sequence[int]
    """Points that it holds; the model must have them among its `ties`."""
    stiffness: float = 500.0
    """Stiffness of the spring of every point [N/m]."""


@dataclass(frozen=True, eq=False)
class ClothMotion:
    """A roll-out of robots and cloth."""

    robot: Tensor
    """States of the world (..., steps + 1, nx)."""
    x: Tensor
    """Positions of the points (..., steps + 1, points, 3) [m]."""
    wrenches: Tensor
    """Force [N] and torque [N m] of the cloth on every link in every step (..., steps, links, 6), about its origin."""
    final: ClothState
    told: Tensor
    """Numbers about the solve of every step (..., steps, 4)."""


@dataclass(frozen=True, eq=False)
class ClothWorld:
    """A world whose links handle cloth. Both have the same step."""

    model: ClothModel
    world: World
    grips: Sequence[Grip] = ()
    kernels: dict[tuple[int, bool], Kernel] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grips", tuple(self.grips))
        if not np.isclose(self.model.dt, self.world.dt):
            raise ValueError(
                f"a step of the world is {self.world.dt:g} s, one of the cloth {self.model.dt:g} s: give both one dt"
            )
        if self.model.self_contact:
            raise ValueError(
                "the model has self_contact, but robots handle cloth whose layers do not touch; leave it out, and play the motion "
                "of what holds the cloth again, by ties, in a model that has it, as the task cloth_fold does"
            )
        held = [k for g in self.grips for k in g.points]
        if tuple(held) != tuple(self.model.ties):
            raise ValueError(
                f"grips hold the points {held}, the model has the ties {list(self.model.ties)}; name the same, in the same order"
            )
        if wrong := [c.name for c in self.model.colliders if c.moves and not c.link]:
            raise ValueError(
                f"the collider '{wrong[0]}' moves without a link; in a world, colliders that move have one"
            )
        if not self.names:
            raise ValueError("no link touches or holds the cloth; give colliders with a link, or grips")

    @property
    def names(self) -> tuple[str, ...]:
        """Links that touch or hold cloth."""
        touching = [c.link for c in self.model.colliders if c.link]
        return tuple(dict.fromkeys([*touching, *(g.link for g in self.grips)]))

    @property
    def links(self) -> WorldLinks:
        """Links that touch or hold cloth, as programs see them."""
        return WorldLinks(self.world, self.names)

    @property
    def held(self) -> Entities:
        """Points that grips hold."""
        return Entities("ties", max(len(self.model.ties), 1))

    # --- programs -------------------------------------------------------------------------------------------------

    def _sequences(self, given: bool) -> list[tuple[str, Entities | None, int]]:
        mine = [("u", None, self.world.nu), *([("grip", None, len(self.grips))] if self.grips else [])]
        theirs = [s for s in self.model.rollout.sequences(given) if s[0] not in ("poses", "ties")]
        return [*mine, *theirs]

    def _shared(self) -> list[tuple[str, Entities | None, int]]:
        places: list[tuple[str, Entities | None, int]] = [("places", self.held, 4)] if self.grips else []
        return [*places, *self.model.rollout.shared()]

    def _body(self, given: bool) -> Program:
        """Return a step: (robot, wrenches, x, v, [a]), sequences; shared -> carried, robot, wrenches, told, x."""
        f, roll, n = FieldBuilder("cloth world"), self.model.rollout, len(self.names)
        robot, sums = f.inputs(self.world.nx)[0], f.inputs(6 * n)[0]
        points = roll.step.points
        carried = [f.carried(points, 3) for _ in roll.carries(given)]
        row: dict[str, Any]
        fixed: dict[str, Any]
        row, fixed = (
            {name: f.inputs(k)[0] if of is None else f.carried(of, k) for name, of, k in rows}
            for rows in (self._sequences(given), self._shared())
        )
        row |= dict(zip(roll.carries(given)[2:], carried[2:], strict=True))
        wrenches = [f.slice(sums, 6 * k, 6) for k in range(n)]
        after = self.links.step(f, robot, row.pop("u"), wrenches)
        was, now = (dict(zip(self.names, self.links.poses(f, r), strict=True)) for r in (robot, after))
        touching = [c.link for c in self.model.colliders if c.link]
        if touching:
            rows = [poses[link] for poses in (was, now) for link in touching]
            row["poses"] = f.call(lambda *p: ca.vertcat(*(q[:POSE] for q in p)), *rows)[0]
        if self.grips:
            row["ties"] = self._ties(f, now, row.pop("grip"), fixed["places"])
        new, status, pushes = roll.advance(f, carried[0], carried[1], row, fixed)
        pulls = self._pulls(f, now, new[0], row["ties"], fixed["places"]) if self.grips else []
        acting = [*touching, *(g.link for g in self.grips)]

        def joined(*w: ca.SX) -> ca.SX:
            every = [
                sum((x for x, link in zip(w, acting, strict=True) if link == name), ca.SX.zeros(6))
                for name in self.names
            ]
            return ca.vertcat(*every)

        total = f.call(joined, *pushes, *pulls)[0]
        return f.program(after, total, *(v.var for v in new), after, total, status, new[0].var)

    def _ties(self, f: FieldBuilder, poses: dict[str, Var], grip: Var, places: Field) -> Field:
        """Return stiffness and place of every spring. places: number of the grip, and place in the frame of its link."""

        def body(place: ca.SX, grip: ca.SX, *poses: ca.SX) -> ca.SX:
            found = ca.SX.zeros(4)
            for k, g in enumerate(self.grips):
                pose = poses[self.names.index(g.link)]
                at = pose[:3] + ca.mtimes(ca.reshape(pose[3:12], 3, 3).T, place[1:])
                found = ca.if_else(place[0] == k, ca.vertcat(g.stiffness * grip[k], at), found)
            return found

        return f.for_each(self.held, body, [places, grip, *poses.values()])[0]

    def _pulls(self, f: FieldBuilder, poses: dict[str, Var], x: Field, ties: Field, places: Field) -> list[Var]:
        """Return force and torque of the springs on every link that holds points."""
        table = f.table(self.held, x.of, np.asarray(self.model.ties, int)[:, None])

        def body(x: ca.SX, tie: ca.SX, place: ca.SX, *poses: ca.SX) -> tuple[ca.SX, ...]:
            force = tie[0] * (ca.vec(x) - tie[1:])
            found = []
            for k, g in enumerate(self.grips):
                origin = poses[self.names.index(g.link)][:3]
                wrench = ca.vertcat(force, ca.cross(tie[1:] - origin, force))
                found.append(ca.if_else(place[0] == k, wrench, ca.SX.zeros(6)))
            return tuple(found)

        return f.for_each(self.held, body, [x[table], ties, places, *poses.values()], [TOTAL] * len(self.grips))

    # --- roll-outs --------------------------------------------------------------------------------------------------

    def kernel(self, steps: int, given: bool) -> Kernel:
        """Return the kernel of some steps, made once. given: True if it is told the positions at their ends."""
        key = steps, given
        if key not in self.kernels:
            self.kernels[key] = self._make(steps, given)
        return self.kernels[key]

    def _make(self, steps: int, given: bool) -> Kernel:
        f, roll, n = FieldBuilder("cloth world"), self.model.rollout, len(self.names)
        points, names = roll.step.points, roll.carries(given)
        state = [
            f.input("robot", self.world.nx),
            f.input("wrenches", 6 * n),
            *(f.field(k, points, 3).var for k in names),
        ]
        rows = [
            f.input(k, (steps, m)) if of is None else f.field(k, of, m, frames=steps).var
            for k, of, m in self._sequences(given)
        ]
        fixed = [f.input(k, m) if of is None else f.field(k, of, m).var for k, of, m in self._shared()]
        final, results, _ = f.scan(self._body(given), steps, state, rows, fixed)
        for name, var in zip(names, final[2:], strict=True):
            f.field_output(name, f.as_field(var, points, 3), flat=False)
        f.output("robots", results[0], (steps, self.world.nx))
        f.output("pushes", results[1], (steps, 6 * n))
        f.output("told", results[2], (steps, TOLD))
        path = f.as_field(results[3], points, 3)
        f.field_output("path" if given else "ends", path, frames=steps, flat=False)
        return f.kernel()

    @cached_property
    def _poses(self) -> Kernel:
        f = FieldBuilder("poses of links")
        robot = f.input("robot", self.world.nx)
        for k, pose in enumerate(self.links.poses(f, robot)):
            f.output(f"pose{k}", pose)
        return f.kernel()

    def _places(self, robot: Tensor, x: Tensor) -> Tensor:
        """Return number of the grip and place in its link of every point that is held (..., ties, 4): where it is now."""
        found, out = [], self._poses(robot=robot.detach())
        for k, grip in enumerate(self.grips):
            pose = getattr(out, f"pose{self.names.index(grip.link)}")
            R = pose[..., 3:12].unflatten(-1, (3, 3))
            local = (x.detach()[..., list(grip.points), :] - pose[..., None, :3]) @ R
            found.append(torch.cat([torch.full_like(local[..., :1], k), local], -1))
        return torch.cat(found, -2)

    def run(
        self,
        robot: Tensor,
        u: Tensor,
        state: ClothState | None = None,
        *,
        grip: Tensor | None = None,
        pins: Tensor | None = None,
        gravity: Tensor | None = None,
        wind: Tensor | None = None,
        air: Tensor | float = AIR,
        friction: Tensor | None = None,
        parameters: Numbers | None = None,
        rest: Tensor | None = None,
    ) -> ClothMotion:
        """Compute as many steps as u has rows; differentiable in every tensor.

        Args:
            robot: State of the world (..., nx).
            u: Controls (..., steps, nu).
            state: Cloth to begin with; None: at rest. Grips hold points where they are then.
            grip: How firmly every grip holds (..., steps, grips), from 0 (open) to 1; None: 1.
            pins, gravity, wind, air, friction, parameters, rest: As in `ClothModel.run`.
        """
        model, steps = self.model, u.shape[-2]
        state = state or model.start(dtype=robot.dtype)
        fixed = model.fixed(robot.dtype, parameters, rest, friction, air)
        rows = {"u": u, **model.rows(steps, state, pins, None, None, gravity, wind, alone=False)}
        if self.grips:
            rows["grip"] = torch.ones(steps, len(self.grips), dtype=robot.dtype) if grip is None else grip
            fixed["places"] = self._places(robot, state.x)
        lead = np.broadcast_shapes(robot.shape[:-1], state.x.shape[:-2], u.shape[:-2])
        start = {"robot": robot, "wrenches": robot.new_zeros(*lead, 6 * len(self.names)), "x": state.x, "v": state.v}
        given = {**start, **rows, **fixed}
        out = self.kernel(steps, False)(a=model.acceleration(state, rows), **detached(given))
        if not in_transform():
            model.check(out.told)
        ends, told, a = model.frames(out.ends, steps), out.told, out.a
        if derived(given):
            out = self.kernel(steps, True)(ends=ends.flatten(-2), **given)
            ends = model.frames(out.path, steps)
        x = torch.cat([state.x.expand(*lead, *state.x.shape[-2:])[..., None, :, :], ends], -3)
        robots = torch.cat([robot.expand(*lead, robot.shape[-1])[..., None, :], out.robots], -2)
        pushes = out.pushes.unflatten(-1, (len(self.names), 6))
        return ClothMotion(robots, x, pushes, ClothState(out.x, out.v, a), told)
