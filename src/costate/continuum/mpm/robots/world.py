"""Robots among soft bodies: links of a world push particles and are pushed by them, with friction and gradients both ways.

    scene = SoftWorld(model, world, [Pusher("ur5/tool0", cs.shapes.sphere(0.05), 0.5)])
    motion = scene.run(x0, u)                    # x0 (..., nx), u (..., steps, nu)
    motion.robot, motion.x                       # (..., steps + 1, nx), (..., frames, particles, 3)

In the substeps of a step a link moves on at the velocity that it began with, and the world's own step then feels the mean of the
forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.continuum.coupling import WorldLinks
from costate.continuum.mpm.model import MpmModel, Numbers
from costate.continuum.mpm.robots.pusher import Pusher
from costate.continuum.mpm.state import MpmState
from costate.continuum.mpm.step import MpmStep, Touch
from costate.kernel import Kernel
from costate.kernel.fields import FieldBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.world import World


@dataclass(frozen=True, eq=False)
class SoftMotion:
    """A roll-out of robots and particles."""

    robot: Tensor
    """States of the world (..., steps + 1, nx)."""
    wrenches: Tensor
    """Mean force [N] and torque [N m] of the particles on each link in every step (..., steps, pushers, 6)."""
    x: Tensor
    """Positions of the particles in every frame (..., frames, particles, 3) [m]."""
    final: MpmState
    """Particles at the end."""


@dataclass(frozen=True, eq=False)
class SoftWorld:
    """A world whose links move among soft bodies. Both have the same step."""

    model: MpmModel
    world: World
    pushers: Sequence[Pusher]
    kernels: dict[int, Kernel] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.model.grid.dim != 3:
            raise ValueError("robots move in 3D; the grid has 2 axes: give it three")
        if not np.isclose(self.model.dt, self.world.dt):
            raise ValueError(
                f"a step of the world is {self.world.dt:g} s, one of the particles {self.model.dt:g} s: give both one dt"
            )

    @property
    def links(self) -> WorldLinks:
        """Links that touch particles."""
        return WorldLinks(self.world, tuple(dict.fromkeys(p.link for p in self.pushers)))

    @cached_property
    def _step(self) -> MpmStep:
        return self.model.step

    def _substep(self) -> Program:
        """Return a substep: (particles, wrenches so far), elapsed time; act, gravity, origin, walls, parameters, node, poses."""
        f, step, n = FieldBuilder("soft substep"), self._step, len(self.pushers)
        carried = [[f.carried(step.particles(b), k) for k in step.carried(b)] for b in range(len(step.bodies))]
        sums = f.inputs(*[6] * n) if n > 1 else [f.inputs(6)[0]]
        (elapsed,) = f.inputs(1)
        given = replace(step.given_shared(f), states=carried)
        node = f.carried(step.nodes)
        poses = [f.inputs(18)[0] for _ in self.pushers]
        links: list[tuple[Touch, Var]] = []
        for pusher, pose in zip(self.pushers, poses, strict=True):
            moved = f.call(lambda pose, t: ca.vertcat(pose[:3] + t * pose[12:15], pose[3:]), pose, elapsed)[0]
            links.append((pusher.touch(step.grid.dx), moved))
        found, pushes = step.advance(f, given, links, node)
        totals = [f.call(lambda a, b: a + b, a, b)[0] for a, b in zip(sums, pushes, strict=True)]
        return f.program(*found[:-1], *totals, found[-1])

    def _body(self) -> Program:
        """Return a step: (robot, particles), control, act; gravity, origin, walls, parameters, node -> (robot, particles), mean
        wrenches, lost particles."""
        f, model, inner = FieldBuilder("soft step"), self.model, self._substep()
        n, S = len(self.pushers), model.substeps
        n_state = len(inner.outputs) - 1 - n
        sizes = inner.in_sizes
        (robot,) = f.inputs(self.world.nx)
        states = [f.inputs(k)[0] for k in sizes[:n_state]]
        (control,) = f.inputs(self.world.nu)
        shared = [f.inputs(k)[0] for k in sizes[n_state + n + 1 : -n]]
        poses = dict(zip(self.links.links, self.links.poses(f, robot), strict=True))
        zero = f.call(lambda x: ca.SX.zeros(6) * x[0], robot)[0]
        times = f.call(lambda x: ca.SX(np.arange(S) * model.h) + 0 * x[0], robot)[0]
        # 0 * x keeps the constants in the program without a stage of their own
        given = [*shared, *(poses[p.link] for p in self.pushers)]
        final, lost, _ = f.scan(inner, S, [*states, *[zero] * n], [times], given)
        means = [f.call(lambda w: w / model.dt, w)[0] for w in final[n_state:]]
        by_link = [
            f.call(lambda *w: sum(w), *(m for m, p in zip(means, self.pushers, strict=True) if p.link == link))[0]
            for link in self.links.links
        ]
        after = self.links.step(f, robot, control, by_link)
        total = f.call(lambda each: ca.sum1(each), lost[0])[0]
        return f.program(after, *final[:n_state], after, *means, total)

    def kernel(self, steps: int) -> Kernel:
        """Return the kernel of some steps, made once."""
        if steps not in self.kernels:
            self.kernels[steps] = self._make(steps)
        return self.kernels[steps]

    def _make(self, steps: int) -> Kernel:
        f, step, roll = FieldBuilder("soft world"), self._step, self.model.rollout
        every = range(len(step.bodies))
        names = [(b, name, k) for b in every for name, k in roll.names(b)]
        robot = f.input("robot", self.world.nx)
        states = [f.field(name, step.particles(b), k) for b, name, k in names]
        control = f.input("control", (steps, self.world.nu))
        act = f.field("act", step.muscles)
        shared = [act.var, *roll.shared(f, step), f.field("node", step.nodes).var]
        final, rows, _ = f.scan(self._body(), steps, [robot, *(s.var for s in states)], [control], shared)
        f.output("robot", final[0])
        for var, like, (_, name, _) in zip(final[1:], states, names, strict=True):
            f.field_output(name, f.as_field(var, like.of, like.n), flat=False)
        f.output("path", rows[0], (steps, self.world.nx))
        for k in range(len(self.pushers)):
            f.output(f"wrench{k}", rows[1 + k], (steps, 6))
        f.output("lost", rows[-1], (steps, 1))
        return f.kernel()

    def run(
        self,
        robot: Tensor,
        u: Tensor,
        state: MpmState | None = None,
        *,
        gravity: Tensor | None = None,
        parameters: Numbers | None = None,
    ) -> SoftMotion:
        """Compute as many steps as u has rows; differentiable in every tensor.

        Args:
            robot: State of the world (..., nx).
            u: Controls (..., steps, nu).
            state: Particles to begin with; None: undeformed and at rest.
            gravity: Gravity of the particles (..., 3) [m/s^2].
            parameters: Values of materials, as in `MpmModel.run`.
        """
        model, steps = self.model, u.shape[-2]
        state = state or model.start(dtype=robot.dtype)
        fixed = model.fixed(state, parameters, gravity)
        fixed["node"] = torch.arange(model.grid.count, dtype=robot.dtype)
        fixed["act"] = torch.zeros(model.n_muscles + 1, dtype=robot.dtype)
        segment = model.segment or model.segment_of(steps)
        robots, wrenches, frames = [robot[..., None, :]], [], [state.x]
        for begin in range(0, steps, segment):
            rows = u[..., begin : begin + segment, :]
            out = self.kernel(rows.shape[-2])(robot=robot, control=rows, **model.rollout.named(state), **fixed)
            self._check(out, state, begin)
            robot, state = out.robot, model.rollout.state_of(out)
            robots.append(out.path)
            wrenches.append(torch.stack([getattr(out, f"wrench{k}") for k in range(len(self.pushers))], -2))
            frames.append(state.x)
        lead = state.x.shape[:-2]
        x = torch.stack([t.expand(*lead, *t.shape[-2:]) for t in frames], -3)
        robots[0] = robots[0].expand(*robots[1].shape[:-2], *robots[0].shape[-2:])
        return SoftMotion(torch.cat(robots, -2), torch.cat(wrenches, -3), x, state)

    def _check(self, out, state: MpmState, begin: int) -> None:
        lost = out.lost.detach()[..., 0]
        if lost.any() or not torch.isfinite(out.x0.detach()).all():
            rows = lost.reshape(-1, lost.shape[-1]).amax(0).nonzero()
            when = f"in step {begin + int(rows[0])}" if len(rows) else f"after step {begin}"
            x = state.x.detach().reshape(-1, *state.x.shape[-2:])[0]
            raise FloatingPointError(
                f"{int(lost.max())} particles left the grid, or moved more than a cell of {self.model.grid.dx:g} m in a substep of "
                f"{self.model.h:.3g} s, {when}; before, they lay between {x.amin(0).tolist()} and {x.amax(0).tolist()}: move "
                "the link more slowly, take more substeps, or enlarge the grid"
            )
