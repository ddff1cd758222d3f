"""Roll-outs of particles, segment by segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm.state import MpmHistory, MpmState
from costate.continuum.mpm.step import MpmStep
from costate.continuum.mpm.window import Window, around, reused, whole
from costate.kernel import Kernel
from costate.kernel.fields import FieldBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.torch_op import in_transform

SHOWN = 5
"""Particles that an error names."""


@dataclass(frozen=True, eq=False)
class RollOut:
    """Kernels of segments of steps. Each computes a window of the grid around the particles; larger ones follow if it is left."""

    step: MpmStep
    substeps: int
    memory: float | None = None
    """Bytes that the states of a segment may take while it is differentiated; where they do not fit, some are computed again."""
    kernels: dict[tuple[int, tuple[int, ...]], Kernel] = field(default_factory=dict)
    """Kernels by the number of steps and the window."""

    def kernel(self, steps: int, window: tuple[int, ...] | None = None) -> Kernel:
        """Return the kernel of some steps in a window, made once."""
        key = steps, window or self.step.grid.shape
        if key not in self.kernels:
            self.kernels[key] = self._make(replace(self.step, window=key[1]), steps)
        return self.kernels[key]

    def _make(self, step: MpmStep, steps: int) -> Kernel:
        f = FieldBuilder("mpm")
        every = range(len(step.bodies))
        names = [(b, name, k) for b in every for name, k in self.names(b)]
        states = [f.field(name, step.particles(b), k) for b, name, k in names]
        act = f.field("act", step.muscles, None, frames=steps)
        carry, shared = [s.var for s in states], self.shared(f, step)
        final, lost, _ = f.scan(self._body(step), steps, carry, [act.var], shared, memory=self.memory)
        for var, like, (_, name, _) in zip(final, states, names, strict=True):
            f.field_output(name, f.as_field(var, like.of, like.n), flat=False)
        f.output("lost", lost[0], (steps, 1))
        return f.kernel()

    def shared(self, f: FieldBuilder, step: MpmStep) -> list[Var]:
        """Declare what all steps share: gravity, the window, walls, parameters."""
        found = [f.input("gravity", step.grid.dim), f.input("origin", step.grid.dim)]
        found += [f.field(n, step.nodes, k).var for n, k in self._wall_names()]
        for b in range(len(step.bodies)):
            common, own = step.split(b)
            found.append(f.input(f"p{b}", len(common)))
            if own:
                found.append(f.field(f"own{b}", step.particles(b), len(own)).var)
        return found

    def names(self, b: int) -> list[tuple[str, int]]:
        """Return the names of what the particles of a body carry, and how many numbers each is."""
        return [(f"{n}{b}", k) for n, k in zip("xvCs", self.step.carried(b), strict=True)]

    def _wall_names(self) -> list[tuple[str, int]]:
        return list(zip(("walls", "normals"), self.step.wall_sizes, strict=False))

    def _body(self, step: MpmStep) -> Program:
        """Return the program of a step: its substeps."""
        inner = step.program()
        if self.substeps == 1:
            return inner
        f = FieldBuilder("mpm step")
        variables = list(f.inputs(*inner.in_sizes))
        n = len(inner.outputs) - 1
        final, lost, _ = f.scan(inner, self.substeps, variables[:n], (), variables[n:])
        return f.program(*final, self._total(f, lost[0]))

    def _total(self, f: FieldBuilder, lost: Var) -> Var:
        return f.call(lambda each: sum(each[k] for k in range(self.substeps)), lost)[0]

    # --- running ----------------------------------------------------------------------------------------------------

    def fixed(self, values: Sequence[dict[str, Tensor]], gravity: Tensor) -> dict[str, Tensor]:
        """Return the inputs that do not change."""
        found = {"gravity": gravity}
        for b, numbers in enumerate(values):
            common, own = self.step.split(b)
            found[f"p{b}"] = torch.stack(torch.broadcast_tensors(*(numbers[n] for n in common)), -1)
            if own:
                count = self.step.bodies[b].count
                single = [_each(numbers[n], count) for n in own]
                found[f"own{b}"] = torch.stack(torch.broadcast_tensors(*single), -1)
        return found

    def run(
        self,
        state: MpmState,
        act: Tensor,
        fixed: dict[str, Tensor],
        segment: int,
        told: Callable[[int, int], object] | None,
    ) -> MpmHistory:
        """Compute the steps of the rows of actuation, segment by segment."""
        steps, frames, ends = act.shape[-2], [state], [0]
        while ends[-1] < steps:
            begin = ends[-1]
            rows = act[..., begin : min(begin + segment, steps), :]
            state = self.advance(state, rows, fixed, begin)
            frames.append(state)
            ends.append(begin + rows.shape[-2])
            if told is not None:
                told(ends[-1], steps)
        times = torch.tensor(ends, dtype=state.x.dtype) * (self.step.h * self.substeps)
        lead = state.x.shape[:-2]
        x, v = (
            torch.stack([t.expand(*lead, *t.shape[-2:]) for t in each], -3)
            for each in zip(*((s.x, s.v) for s in frames), strict=True)
        )
        return MpmHistory(times, x, v, state)

    def advance(self, state: MpmState, rows: Tensor, fixed: dict[str, Tensor], begin: int) -> MpmState:
        """Return the state after some steps; raise if a particle left the grid in one of them."""
        if in_transform():  # there are no numbers to look at
            return self.state_of(self._call(state, rows, fixed, whole(self.step.grid)))
        needed = around(self.step, state.x.detach(), state.v.detach(), rows.shape[-2] * self.substeps)
        window = reused(needed, (s for n, s in self.kernels if n == rows.shape[-2]), self.step.grid)
        while True:
            out = self._call(state, rows, fixed, window)
            lost = out.lost.detach()[..., 0]
            if not lost.any() and torch.isfinite(out.x0.detach()).all():
                return self.state_of(out)
            if window.shape == self.step.grid.shape:
                self._explain(state, rows, fixed, lost, begin)
            window = whole(self.step.grid)

    def _call(self, state: MpmState, rows: Tensor, fixed: dict[str, Tensor], window: Window):
        walls = self.walls(window, state.x.dtype)
        return self.kernel(rows.shape[-2], window.shape)(**self.named(state), act=rows, **walls, **fixed)

    def walls(self, window: Window, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return the inputs that say where a window is, and what walls are in it."""
        walls, grid = self.step.walls, self.step.grid
        found = {"origin": torch.tensor(window.origin, dtype=dtype)}
        found["walls"] = torch.as_tensor(window.cut(walls.codes, grid), dtype=dtype)
        if walls.obstacles:
            found["normals"] = torch.as_tensor(window.cut(walls.normals, grid), dtype=dtype)
        return found

    def named(self, state: MpmState) -> dict[str, Tensor]:
        """Return the inputs of a state."""
        parts = state.split([b.count for b in self.step.bodies])
        return {f"{n}{b}": t for b, part in enumerate(parts) for n, t in zip("xvCs", part, strict=True)}

    def state_of(self, out) -> MpmState:
        """Return the state among the outputs of a kernel."""
        every = range(len(self.step.bodies))
        x, v, C = (torch.cat([getattr(out, f"{n}{b}") for b in every], -2) for n in "xvC")
        return MpmState(x, v, C, tuple(getattr(out, f"s{b}") for b in every))

    # --- errors -----------------------------------------------------------------------------------------------------

    def _explain(self, state: MpmState, rows: Tensor, fixed: dict[str, Tensor], lost: Tensor, begin: int) -> None:
        """Raise an error that names the step in which particles were lost, and the particles."""
        bad = lost.reshape(-1, lost.shape[-1]).amax(0).nonzero()
        k = int(bad[0]) if len(bad) else lost.shape[-1] - 1
        with torch.no_grad():
            for j in range(k):
                state = self.state_of(self._call(state, rows[..., j : j + 1, :], fixed, whole(self.step.grid)))
        when = f"in step {begin + k} (t = {(begin + k) * self.step.h * self.substeps:.4g} s)"
        for x, v in zip(*(t.reshape(-1, *t.shape[-2:]).numpy() for t in (state.x, state.v)), strict=True):
            reach = self.step.spline.nodes / 2 - 0.5
            out = self.step.grid.outside(x, reach)
            fast = np.nonzero(~(np.abs(v).max(1) * self.step.h <= self.step.grid.dx))[0]
            if len(out) or len(fast):
                raise FloatingPointError(self.name_lost(x, out if len(out) else fast, when, v, not len(out)))
        raise FloatingPointError(
            f"a particle left the grid, or moved more than a cell in one substep, {when}; take more substeps, or less force"
        )

    def name_lost(
        self, x: np.ndarray, rows: np.ndarray, when: str, v: np.ndarray | None = None, fast: bool = False
    ) -> str:
        """Return a message about particles that are outside of the grid, or too fast."""
        grid = self.step.grid
        named = ", ".join(self._label(int(k)) for k in rows[:SHOWN]) + (", ..." if len(rows) > SHOWN else "")
        k = int(rows[0])
        if fast:
            assert v is not None
            return (
                f"{len(rows)} particles ({named}) move more than one cell of {grid.dx:g} m in a substep of {self.step.h:.3g} s "
                f"{when}: the first at {np.round(v[k], 3).tolist()} m/s; take more substeps, or look for what pushes it so hard"
            )
        return (
            f"{len(rows)} particles ({named}) are outside of the grid {when}: the first at {np.round(x[k], 4).tolist()} m, the "
            f"grid reaches from {grid.lower} to {tuple(np.round(grid.upper, 4).tolist())}, and a particle needs "
            f"{self.step.spline.nodes / 2:g} cells around it; move the bodies or enlarge the grid"
        )

    def _label(self, number: int) -> str:
        for body in self.step.bodies:
            if number < body.count:
                return f"{body.name} {number}"
            number -= body.count
        return str(number)


def _each(value: Tensor, count: int) -> Tensor:
    """Return one number per particle (..., count) of a number for all, or of one each."""
    return value if value.dim() and value.shape[-1] == count else value[..., None].expand(*value.shape, count)
