"""Smoke and other incompressible fluids on a grid: roll-outs of any length, with gradients.

    grid = Grid((64, 64), cell=1 / 64, solid=border((64, 64)))
    model = FluidModel(grid, dt=0.02, steps=100)
    history = model.run(smoke=puff, buoyancy=(0.0, 1.0))
    history.smoke                                            # (frames, 64, 64)

A roll-out is cut into segments, whose ends are kept: as many as memory allows. A backward pass computes segments of more than one
step again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.continuum.checks import positive
from costate.continuum.fluid.grid import Grid
from costate.continuum.fluid.step import SCHEMES, TOLD, FluidStep
from costate.continuum.memory import segment_steps
from costate.core.names import unknown
from costate.kernel import Kernel
from costate.kernel.fields import FieldBuilder

Told = Callable[[int, int], object]
"""Function (steps done, all steps) that shows progress."""
BALANCE = 1e-6
"""Net flow into a closed fluid, by the root of the sum of squares of what flows into its cells, that is taken for rounding."""


@dataclass(frozen=True, eq=False)
class FluidHistory:
    """The history of a roll-out."""

    times: Tensor
    """Times of the frames (frames,) [s]: the beginning, and the end of every segment."""
    velocity: Tensor
    """Velocity through the lower faces of the cells in every frame (..., frames, d, *shape) [m/s]."""
    smoke: Tensor
    """Smoke in every frame (..., frames, *shape)."""
    pressure: Tensor
    """Pressure by density at the end of every segment (..., frames - 1, *shape) [m^2/s^2]."""
    force: Tensor
    """Force on porous cells in every step, by density (..., steps, d) [m^4/s^2; m^3/s^2 in 2D]."""
    iterations: Tensor
    """Iterations of the pressure solve in every step (..., steps)."""


@dataclass(frozen=True, eq=False)
class FluidModel:
    """An incompressible fluid that carries smoke, step by step."""

    grid: Grid
    dt: float
    """Length of a step [s]."""
    steps: int
    advection: str = "semi_lagrangian"
    """Scheme that carries velocity and smoke: "semi_lagrangian", or "maccormack", which smears less."""
    conserve: bool = False
    """Carry smoke by fluxes: none is lost or made, but the flow may cross no more than one cell in a step."""
    slip: bool = False
    """Let the fluid slip along walls; else it sticks to them, as far as it is viscous."""
    patterns: int = 0
    """Number of patterns of forces that controls scale."""
    porous: bool = False
    """Allow cells with a resistance."""
    tolerance: float = 1e-10
    """Largest error of the pressure solve, by the divergence before it; 5e-7 at least in float32."""
    limit: int = 2000
    """Largest number of iterations of the pressure solve."""
    segment: int = None  # type: ignore[assignment]
    """Steps per segment; None: as few as memory allows."""
    memory: str | int = "1 GB"
    """Memory that a gradient may take, such as "500 MB"; it decides on the segment."""

    def __post_init__(self) -> None:
        positive(dt=self.dt, tolerance=self.tolerance)
        if self.advection not in SCHEMES:
            raise ValueError(unknown("advection", self.advection, SCHEMES))
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; expected a number of steps, 1 or more")
        numbers = self.grid.count * (self.grid.d + 1)
        if self.segment is None:
            object.__setattr__(self, "segment", segment_steps(self.steps, numbers, self.memory, shortest=1))
        elif self.segment < 1:
            raise ValueError(f"segment is {self.segment}; expected a number of steps, 1 or more")

    @cached_property
    def step(self) -> FluidStep:
        """The program of a step."""
        options = (self.advection, self.conserve, self.slip, self.patterns, self.porous, self.tolerance, self.limit)
        return FluidStep(self.grid, self.dt, *options)

    @property
    def segments(self) -> int:
        """Number of segments; the last may be shorter."""
        return -(-self.steps // self.segment)

    def kernel(self, steps: int) -> Kernel:
        """Return some steps as a kernel."""
        known = self._kernels
        if steps not in known:
            known[steps] = self._build(steps)
        return known[steps]

    @cached_property
    def _kernels(self) -> dict[int, Kernel]:
        return {}

    def _build(self, n: int) -> Kernel:
        step, d, m = self.step, self.grid.d, max(self.patterns, 1)
        f = FieldBuilder("fluid")
        cells = f.entities("cells", self.grid.count)
        state = [f.field(f"u{a}", cells).var for a in range(d)] + [f.field("smoke", cells).var]
        control = f.input("control", (n, m) if n > 1 else m)
        fixed = [f.field(name, f.entities("cells", count), k).var for name, count, k in step.inputs()] + [
            f.input("p", 1 + d)
        ]
        if n == 1:  # without a scan: its backward pass would solve for the pressure once more
            *state, pressure, force, told = f.call(step.program(), *state, control, *fixed)
        else:
            state, (pressures, force, told), _ = f.scan(step.program(), n, state, [control], fixed)
            size = pressures.size // n
            pressure = f.slice(pressures, (n - 1) * size, size)
        for a in range(d):
            f.field_output(f"u{a}", f.as_field(state[a], cells))
        f.field_output("smoke", f.as_field(state[d], cells))
        f.field_output("pressure", f.as_field(pressure, cells))
        f.output("force", force, (n, d))
        f.output("told", told, (n, TOLD))
        return f.kernel()

    @cached_property
    def projection(self) -> Kernel:
        """Velocities without divergence."""
        f = FieldBuilder("fluid projection")
        cells, d = f.entities("cells", self.grid.count), self.grid.d
        u = [f.field(f"u{a}", cells) for a in range(d)]
        k = {name: f.field(name, f.entities("cells", count), n) for name, count, n in self.step.wall_inputs()}
        new, _, told = self.step.project(f, cells, u, k)
        for a in range(d):
            f.field_output(f"u{a}", new[a])
        f.output("told", told, (1, TOLD))
        return f.kernel()

    # --- roll-outs ------------------------------------------------------------------------------------------------

    def run(
        self,
        velocity: Tensor | None = None,
        smoke: Tensor | None = None,
        *,
        source: Tensor | None = None,
        given: Tensor | None = None,
        patterns: Tensor | None = None,
        controls: Tensor | None = None,
        resistance: Tensor | None = None,
        viscosity: Tensor | float = 0.0,
        buoyancy: Tensor | Sequence[float] | None = None,
        dtype: torch.dtype = torch.float64,
        told: Told | None = None,
    ) -> FluidHistory:
        """Compute all steps. What is not given is 0.

        Args:
            velocity: Velocity at the beginning (..., d, *shape) [m/s]: component a of a cell is that through its lower face across
                axis a. Its divergence, and what goes through walls, is taken out first.
            smoke: Smoke at the beginning (..., *shape).
            source: Smoke that enters each cell per time (..., *shape) [1/s].
            given: Velocity of solids and porous cells (..., d, *shape) [m/s], at faces.
            patterns: Forces by mass that controls scale (..., patterns, d, *shape) [m/s^2], at faces.
            controls: Factors of the patterns (..., steps, patterns).
            resistance: Resistance of porous cells (..., *shape) [1/s]: how quickly the fluid in them comes to rest.
            viscosity: Kinematic viscosity [m^2/s].
            buoyancy: Acceleration per smoke (..., d) [m/s^2].
            dtype: Number type, unless a tensor is given that has one.
            told: Function (steps done, all steps) that shows progress.
        """
        tensors = (velocity, smoke, source, given, patterns, controls, resistance, viscosity, buoyancy)
        types = [x.dtype for x in tensors if isinstance(x, Tensor) and x.is_floating_point()]
        dtype = types[0] if types else dtype
        d = self.grid.d
        u = self._cells("velocity", velocity, (d,), dtype)
        state = [*u.unbind(-2), self._cells("smoke", smoke, (), dtype)]
        fixed = {name: torch.as_tensor(x, dtype=dtype) for name, x in self.step.constants().items()}
        fixed |= {
            "given": self._cells("given", given, (d,), dtype).mT,
            "source": self._cells("source", source, (), dtype)[..., None],
        }
        fixed |= self._options(patterns, resistance, dtype)
        fixed["p"] = self._parameters(viscosity, buoyancy, dtype)
        if velocity is not None or given is not None:
            state[:d] = self._projected(state[:d], fixed)
        rows = self._controls(controls, dtype)
        return self._rolled(state, rows, fixed, told)

    def _rolled(self, state: list[Tensor], rows: Tensor, fixed: dict[str, Tensor], told: Told | None) -> FluidHistory:
        """Compute all segments."""
        grid, d = self.grid, self.grid.d
        frames, forces, pressures, tellings = [state], [], [], []
        for first in range(0, self.steps, self.segment):
            n = min(self.segment, self.steps - first)
            self._check_flow(state, first)
            row = rows[..., first : first + n, :] if n > 1 else rows[..., first, :]
            named = {f"u{a}": state[a] for a in range(d)} | {"smoke": state[d]}
            out = self.kernel(n)(**named, control=row, **fixed)
            self._check(first, out.told.detach())
            state = [*(getattr(out, f"u{a}") for a in range(d)), out.smoke]
            frames.append(state)
            forces.append(out.force)
            pressures.append(out.pressure * (grid.cell / self.dt))
            tellings.append(out.told[..., 2].detach())
            if told is not None:
                told(first + n, self.steps)
        return self._history(frames, forces, pressures, tellings)

    def _projected(self, u: list[Tensor], fixed: dict[str, Tensor]) -> list[Tensor]:
        names = [f"u{a}" for a in range(self.grid.d)]
        known = {name: fixed[name] for name, _, _ in self.step.wall_inputs()}
        out = self.projection(**dict(zip(names, u, strict=True)), **known)
        self._check(0, out.told.detach())
        return [getattr(out, name) for name in names]

    def _history(self, frames: list[list[Tensor]], forces, pressures, tellings) -> FluidHistory:
        shape, d = self.grid.shape, self.grid.d
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in frames[-1]))
        columns = [torch.stack([f[c].expand(*lead, -1) for f in frames], -2) for c in range(d + 1)]
        columns = [x.reshape(*x.shape[:-1], *shape) for x in columns]
        ends = [min(k * self.segment, self.steps) for k in range(self.segments + 1)]
        pressure = torch.stack(pressures, -2)
        return FluidHistory(
            torch.as_tensor(self.dt * np.array(ends), dtype=columns[0].dtype),
            torch.stack(columns[:d], -1 - d),
            columns[d],
            pressure.reshape(*pressure.shape[:-1], *shape),
            torch.cat(forces, -2),
            torch.cat(tellings, -1),
        )

    # --- what users give ------------------------------------------------------------------------------------------

    def _cells(self, name: str, value: Any, more: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return a tensor (..., *more, *shape) as (..., *more, count)."""
        shape = self.grid.shape
        if value is None:
            return torch.zeros(*more, self.grid.count, dtype=dtype)
        x = torch.as_tensor(value, dtype=dtype)
        expected = (*more, *shape)
        if tuple(x.shape[-len(expected) :]) != expected:
            raise ValueError(f"{name} has the shape {tuple(x.shape)}; expected (..., {', '.join(map(str, expected))})")
        return x.reshape(*x.shape[: x.dim() - len(shape)], self.grid.count)

    def _options(self, patterns: Tensor | None, resistance: Tensor | None, dtype: torch.dtype) -> dict[str, Tensor]:
        found = {}
        if resistance is not None and not self.porous:
            raise ValueError("a resistance was given, but the model has no porous cells; make it with porous=True")
        if self.porous:
            found["resistance"] = self._cells("resistance", resistance, (), dtype)[..., None]
        if (patterns is None) != (self.patterns == 0):
            raise ValueError(
                f"the model has {self.patterns} patterns of forces, but {'none were' if patterns is None else 'some were'} given; "
                "FluidModel(patterns=...) says how many there are"
            )
        if patterns is not None:
            flat = self._cells("patterns", patterns, (self.patterns, self.grid.d), dtype)
            found["patterns"] = flat.flatten(-3, -2).mT
        return found

    def _controls(self, controls: Tensor | None, dtype: torch.dtype) -> Tensor:
        n = max(self.patterns, 1)
        if controls is None:
            return torch.ones(self.steps, n, dtype=dtype)
        if tuple(controls.shape[-2:]) != (self.steps, self.patterns):
            raise ValueError(
                f"controls have the shape {tuple(controls.shape)}; expected (..., {self.steps}, {self.patterns}): a row per step"
            )
        return controls.to(dtype)

    def _parameters(self, viscosity: Any, buoyancy: Any, dtype: torch.dtype) -> Tensor:
        grid = self.grid
        nu = torch.as_tensor(viscosity, dtype=dtype)
        lift = torch.as_tensor(np.zeros(grid.d) if buoyancy is None else buoyancy, dtype=dtype)
        if lift.shape[-1:] != (grid.d,):
            raise ValueError(f"buoyancy has the shape {tuple(lift.shape)}; expected (..., {grid.d}): an acceleration")
        across = self.step.rub.reshape(grid.d, -1, *grid.shape).sum(1)[grid.free]
        longest = grid.cell**2 / (2 + float(across.max()))
        most = float(nu.detach().max())
        if not float(nu.detach().min()) >= 0 or most * self.dt > longest * (1 + 1e-6):
            raise ValueError(
                f"viscosity is {most:g} m^2/s; with cells of {grid.cell:g} m and this dt ({self.dt:g} s) it may be from 0 to "
                f"{longest / self.dt:.3g}: take a shorter dt, or larger cells"
            )
        lead = np.broadcast_shapes(nu.shape, lift.shape[:-1])
        return torch.cat([nu.expand(lead)[..., None], lift.expand(*lead, grid.d)], -1)

    def _check_flow(self, state: list[Tensor], step: int) -> None:
        """Raise if smoke is carried by fluxes and the flow crosses more than a cell in a step."""
        if not self.conserve:
            return
        crossed = sum(float(u.detach().abs().max()) for u in state[:-1]) * self.dt / self.grid.cell
        if crossed > 1:
            raise FloatingPointError(
                f"in step {step} of {self.steps} the flow may cross {crossed:.2g} cells, but conserved smoke may cross one: "
                f"take dt = {0.8 * self.dt / crossed:.2g} s (now {self.dt:g} s), or conserve=False"
            )

    def _check(self, first: int, told: Tensor) -> None:
        """Raise if a step of a segment was not solved."""
        grid = self.grid
        closed = not grid.open.any()
        unbalanced = closed & (told[..., 3].abs() > BALANCE * np.sqrt(grid.count) * told[..., 4].sqrt())
        for wrong, what in ((unbalanced, "flow"), (told[..., 0] != 1, "solve")):
            if not (bad := wrong.nonzero()).numel():
                continue
            *sample, row = bad[0].tolist()
            _, left, iterations, net, _ = told[(*sample, row)].tolist()
            if what == "flow":
                raise ValueError(
                    f"in step {first + row} of {self.steps}, {net * grid.cell ** (grid.d - 1):.3g} m^{grid.d}/s flow "
                    "into a fluid that has nowhere to go: let `given` bring as much out as in, or leave some cells open"
                )
            raise FloatingPointError(
                f"the pressure of step {first + row} of {self.steps} was not found: {left:.2g} of the divergence is left after "
                f"{iterations:.0f} iterations; raise limit (now {self.limit}) or tolerance, or look for numbers that are not finite"
            )
