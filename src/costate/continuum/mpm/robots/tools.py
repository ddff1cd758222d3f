"""Tools that move as they are told among soft bodies: rolling pins, fingers, knives, with gradients by their motion.

    scene = SoftTools(model, [Tool(cs.shapes.sphere(0.03), 0.9)])
    motion = scene.run(tool_rows(p, dt)[:, None])      # p (steps + 1, 3): where the tool is
    motion.x                                           # (frames, particles, 3)

A tool has a row of 18 numbers in every step: position [m], rotation row by row, velocity [m/s] and angular velocity [rad/s].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from costate.continuum.coupling import POSE
from costate.continuum.mpm.model import MpmModel, Numbers
from costate.continuum.mpm.robots.pusher import Tool
from costate.continuum.mpm.rollout import RollOut
from costate.continuum.mpm.state import MpmHistory, MpmState
from costate.continuum.mpm.step import MpmStep
from costate.continuum.mpm.window import Window
from costate.kernel import Kernel
from costate.kernel.fields import FieldBuilder
from costate.kernel.ir.program import Program, Var


def tool_rows(p: Tensor, dt: float, R: Tensor | None = None, w: Tensor | None = None) -> Tensor:
    """Return the rows (..., steps, 18) of a tool that is at p (..., steps + 1, 3) [m] between steps of dt [s].

    Args:
        p: Positions at the beginning and after every step.
        dt: Length of a step.
        R: Rotations (..., steps, 3, 3) in every step; None: it does not turn.
        w: Angular velocities (..., steps, 3) [rad/s], world axes; None: 0.
    """
    v = torch.diff(p, dim=-2) / dt
    R = torch.eye(3, dtype=p.dtype).expand(*v.shape[:-1], 3, 3) if R is None else R
    return torch.cat([p[..., :-1, :], R.flatten(-2), v, torch.zeros_like(v) if w is None else w], -1)


@dataclass(frozen=True, eq=False)
class ToolRollOut(RollOut):
    """Kernels of segments in which tools move. Every row of what is given in a step ends with the rows of the tools."""

    tools: tuple[Tool, ...] = ()

    def _make(self, step: MpmStep, steps: int) -> Kernel:
        f = FieldBuilder("mpm with tools")
        names = [(b, name, k) for b in range(len(step.bodies)) for name, k in self.names(b)]
        states = [f.field(name, step.particles(b), k) for b, name, k in names]
        rows = f.input("rows", (steps, POSE * len(self.tools)))
        act = f.field("act", step.muscles, None, frames=steps)
        shared = [*self.shared(f, step), f.field("node", step.nodes).var]
        final, lost, _ = f.scan(self._pushed(step), steps, [s.var for s in states], [rows, act.var], shared)
        for var, like, (_, name, _) in zip(final, states, names, strict=True):
            f.field_output(name, f.as_field(var, like.of, like.n), flat=False)
        f.output("lost", lost[0], (steps, 1))
        return f.kernel()

    def _pushed(self, step: MpmStep) -> Program:
        """Return a step: (particles), rows of the tools, actuation; gravity, origin, walls, parameters, node."""
        f, n = FieldBuilder("mpm step with tools"), len(self.tools)
        states = [[f.carried(step.particles(b), k) for k in step.carried(b)] for b in range(len(step.bodies))]
        (rows,) = f.inputs(POSE * n)
        given = replace(step.given_shared(f), states=states)
        node = f.carried(step.nodes)
        poses: list[Var] = f.call(lambda r: [r[POSE * k : POSE * (k + 1)] for k in range(n)], rows)
        links = [(tool.touch(step.grid.dx), pose) for tool, pose in zip(self.tools, poses, strict=True)]
        return f.program(*step.advance(f, given, links, node)[0])

    def _call(self, state: MpmState, rows: Tensor, fixed: dict[str, Tensor], window: Window):
        n = POSE * len(self.tools)
        given = {"act": rows[..., :-n], "rows": rows[..., -n:]}
        count = self.step.nodes.count if window.shape == self.step.window else int(torch.tensor(window.shape).prod())
        given["node"] = torch.arange(count, dtype=state.x.dtype)
        walls = self.walls(window, state.x.dtype)
        return self.kernel(rows.shape[-2], window.shape)(**self.named(state), **given, **walls, **fixed)


@dataclass(frozen=True, eq=False)
class SoftTools:
    """Soft bodies among tools. A step of the model is one of its substeps: give it the dt that it needs, and a row for each."""

    model: MpmModel
    tools: Sequence[Tool]

    def __post_init__(self) -> None:
        if self.model.grid.dim != 3:
            raise ValueError("tools move in 3D; the grid has 2 axes: give it three")
        if self.model.substeps != 1:
            raise ValueError(
                f"a step of the model has {self.model.substeps} substeps; tools have a row for each: give the model "
                f"dt={self.model.h:.3g}"
            )
        if not self.tools:
            raise ValueError("no tool is given; without any, MpmModel.run does it")

    @cached_property
    def rollout(self) -> ToolRollOut:
        """Kernels of segments."""
        return ToolRollOut(self.model.step, 1, tools=tuple(self.tools))

    def run(
        self,
        rows: Tensor,
        state: MpmState | None = None,
        *,
        gravity: Tensor | None = None,
        parameters: Numbers | None = None,
    ) -> MpmHistory:
        """Compute as many steps as there are rows; differentiable in every tensor.

        Args:
            rows: Poses and velocities of the tools in every step (..., steps, tools, 18); see `tool_rows`.
            state: Particles to begin with; None: undeformed and at rest.
            gravity: Gravity (..., 3) [m/s^2].
            parameters: Values of materials, as in `MpmModel.run`.
        """
        if rows.shape[-2:] != (len(self.tools), POSE):
            raise ValueError(
                f"rows have the shape {tuple(rows.shape)}; expected (..., steps, {len(self.tools)}, {POSE})"
            )
        model, steps = self.model, rows.shape[-3]
        state = state or model.start(dtype=rows.dtype)
        fixed = model.given(state, parameters, gravity)
        act = rows.new_zeros(*rows.shape[:-2], model.n_muscles + 1)
        segment = min(model.segment or model.segment_of(steps), steps)
        return self.rollout.run(state, torch.cat([act, rows.flatten(-2)], -1), fixed, segment, None)
