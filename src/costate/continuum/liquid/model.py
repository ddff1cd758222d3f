"""Incompressible liquids with a free surface in 2D and 3D: roll-outs with gradients.

water = LiquidModel((64, 32), cell=1 / 32, dt=5e-3)
history = water.run(200, fill.box((0, 0), (0.5, 0.8), water.spacing))
history.x                                                # (frames, particles, 2) [m]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.continuum.checks import positive
from costate.continuum.fluid.grid import Grid
from costate.continuum.liquid.step import BORDER, LiquidStep
from costate.kernel import Kernel

SHOWN = 5
"""Particles that an error names."""


@dataclass(frozen=True, eq=False)
class LiquidHistory:
    """The history of a roll-out."""

    times: Tensor
    """Times of the frames (frames,) [s]."""
    x: Tensor
    """Positions in every frame (..., frames, particles, d) [m]."""
    v: Tensor
    """Velocities in every frame (..., frames, particles, d) [m/s]."""
    C: Tensor
    """Gradients of the velocity around the particles at the end (..., particles, d * d) [1/s]."""
    pressure: Tensor
    """Pressure by density in every step (..., frames - 1, *shape) [m^2/s^2]; 0 in cells without liquid."""
    iterations: Tensor
    """Iterations of the pressure solve in every step (..., frames - 1)."""


@dataclass(frozen=True, eq=False)
class LiquidModel:
    """A liquid in a room with walls around, along which it slips."""

    shape: tuple[int, ...]
    """Number of cells of the room along each axis: two or three numbers. The room begins at the origin."""
    cell: float
    """Length of the edge of a cell [m]."""
    dt: float
    """Length of a step [s]; nothing may move more than a cell in it."""
    solid: Any = None
    """Cells that are solid (*shape), as truth values; None: none."""
    gravity: Sequence[float] = ()
    """Gravity (d) [m/s^2]; (): 9.81 downwards along the last axis."""
    tolerance: float = 1e-10
    """Largest error of the pressure solve, by the divergence before it; 5e-7 at least in float32."""
    limit: int = 2000
    """Largest number of iterations of the pressure solve."""
    kernels: dict[int, Kernel] = field(default_factory=dict)
    """Kernels by the number of particles."""

    def __post_init__(self) -> None:
        positive(cell=self.cell, dt=self.dt, tolerance=self.tolerance)
        gravity = tuple(float(g) for g in self.gravity) or (0.0,) * (len(self.shape) - 1) + (-9.81,)
        if len(gravity) != len(self.shape):
            raise ValueError(f"gravity has {len(gravity)} numbers; the room has {len(self.shape)} axes")
        object.__setattr__(self, "gravity", gravity)
        self.grid  # noqa: B018 - it looks at shape and solid

    @cached_property
    def grid(self) -> Grid:
        """The cells of the room, with solid ones around."""
        shape = tuple(int(n) for n in self.shape)
        solid = np.zeros(shape, bool) if self.solid is None else np.asarray(self.solid)
        if solid.shape != shape or solid.dtype != bool:
            raise ValueError(
                f"solid has the shape {solid.shape} and the type {solid.dtype}; expected {shape} truth values, one per cell"
            )
        padded = np.pad(solid, BORDER, constant_values=True)
        return Grid(padded.shape, self.cell, padded)

    @property
    def spacing(self) -> float:
        """Distance of particles at the beginning [m]: two along the edge of a cell."""
        return self.cell / 2

    def step(self, count: int) -> LiquidStep:
        """Return the step of so many particles."""
        return LiquidStep(self.grid, count, self.dt, self.tolerance, self.limit)

    @cached_property
    def _constants(self) -> dict[str, np.ndarray]:
        return self.step(1).constants()

    def run(
        self,
        steps: int,
        x: Tensor | np.ndarray,
        v: Tensor | np.ndarray | None = None,
        *,
        C: Tensor | None = None,
        gravity: Tensor | None = None,
        told: Callable[[int, int], object] | None = None,
    ) -> LiquidHistory:
        """Compute steps; differentiable in every tensor that is given.

        Args:
            steps: Number of steps.
            x: Positions of the particles (..., particles, d) [m]; see `fill`, with a spacing of half a cell.
            v: Velocities (..., particles, d), or one for all (d) [m/s]; None: 0.
            C: Gradients of the velocity (..., particles, d * d) [1/s], to go on from a history; None: 0.
            gravity: Gravity (..., d) [m/s^2], in every step the same; None: that of the model.
            told: Function (steps done, all steps) that shows progress.
        """
        if steps < 1:
            raise ValueError(f"steps is {steps}; expected 1 or more")
        at, speed, bent = self._start(x, v, C)
        n, dtype = at.shape[-2], at.dtype
        fixed = {name: torch.as_tensor(a, dtype=dtype) for name, a in self._constants.items()}
        fixed["gravity"] = torch.as_tensor(self.gravity if gravity is None else gravity, dtype=dtype)
        if n not in self.kernels:
            self.kernels[n] = self.step(n).kernel()
        frames, pressures, iterations = [(at, speed)], [], []
        for k in range(steps):
            out = self.kernels[n](x=at, v=speed, C=bent, **fixed)
            self._check(k, steps, at, speed, out.told.detach())
            at, speed, bent = out.x, out.v, out.C
            frames.append((at, speed))
            pressures.append(out.pressure * (self.cell / self.dt))
            iterations.append(out.told[..., 3].detach())
            if told is not None:
                told(k + 1, steps)
        return self._history(frames, bent, pressures, iterations)

    def _start(self, x: Any, v: Any, C: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return positions, velocities and their gradients as tensors."""
        d = self.grid.d
        at = torch.as_tensor(x)
        at = at if at.is_floating_point() else at.double()
        if at.dim() < 2 or at.shape[-1] != d:
            raise ValueError(f"x has the shape {tuple(at.shape)}; expected (..., particles, {d})")
        n, dtype = at.shape[-2], at.dtype
        speed = torch.zeros(d, dtype=dtype) if v is None else torch.as_tensor(v, dtype=dtype)
        speed = speed.expand(n, d) if speed.dim() == 1 else speed
        if speed.shape[-2:] != (n, d):
            raise ValueError(f"v has the shape {tuple(speed.shape)}; expected ({d}) or (..., {n}, {d})")
        return at, speed, torch.zeros(n, d * d, dtype=dtype) if C is None else C

    def _history(self, frames: list[tuple[Tensor, Tensor]], C: Tensor, pressures, iterations) -> LiquidHistory:
        lead = frames[-1][0].shape[:-2]
        x, v = (torch.stack([t.expand(*lead, *t.shape[-2:]) for t in each], -3) for each in zip(*frames, strict=True))
        p = torch.stack(pressures, -2)
        p = p.reshape(*p.shape[:-1], *self.grid.shape)
        room = (..., *(slice(BORDER, -BORDER),) * self.grid.d)
        times = self.dt * torch.arange(len(frames), dtype=x.dtype)
        return LiquidHistory(times, x, v, C, p[room], torch.stack(iterations, -1))

    def _check(self, k: int, steps: int, x: Tensor, v: Tensor, told: Tensor) -> None:
        """Raise if a step lost particles, or was not solved."""
        rows = told.reshape(-1, told.shape[-1])
        if (rows[:, 0] != 0).any():
            size = self.cell * torch.tensor(self.shape, dtype=x.dtype)
            bad = ~((x.detach() >= 0) & (x.detach() <= size)).all(-1)
            fast = ~(v.detach().abs().amax(-1) * self.dt <= self.cell)
            which = (bad | fast).nonzero()[:, -1].unique().tolist()
            named = ", ".join(map(str, which[:SHOWN])) + (", ..." if len(which) > SHOWN else "")
            raise FloatingPointError(
                f"in step {k} of {steps} {len(which)} particles ({named}) are outside of the room, from 0 to {size.tolist()} m, or "
                f"move more than a cell of {self.cell:g} m in {self.dt:g} s; move them, or take a shorter dt"
            )
        if (rows[:, 1] != 1).any():
            _, _, left, taken = rows[(rows[:, 1] != 1).nonzero()[0, 0]].tolist()
            raise FloatingPointError(
                f"the pressure of step {k} of {steps} was not found: {left:.2g} of the divergence is left after {taken:.0f} "
                "iterations; a room that is full to the ceiling has no free surface: leave some air, or raise limit or tolerance"
            )
