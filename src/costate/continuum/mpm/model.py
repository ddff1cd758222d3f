"""Soft bodies, plasticine, sand and liquids on a grid: roll-outs of any length, with gradients.

    jelly = SoftBody(fill.box((0.4, 0.2), (0.6, 0.4), 1 / 128), 1 / 128, "neo_hookean", {"E": 5e3})
    model = MpmModel(cube(64), [jelly], dt=1e-3, sides={"-y": 0.5})
    history = model.run(500)
    history.x                                                # (frames, particles, 2) [m]

A roll-out is cut into segments. Only the states between them are kept; a backward pass computes each segment again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from costate.continuum.checks import positive
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid, parse_sides
from costate.continuum.mpm.rollout import RollOut
from costate.continuum.mpm.stable import SHARE, longest_substep, scan_bytes, segment_steps
from costate.continuum.mpm.state import MpmHistory, MpmState
from costate.continuum.mpm.step import MpmStep
from costate.continuum.mpm.walls import Contact, Obstacle, walls_of
from costate.continuum.mpm.weights import SPLINES
from costate.continuum.mpm.window import whole
from costate.kernel.torch_op import in_transform

Told = Callable[[int, int], object]
"""Function (steps done, all steps) that shows progress."""
Numbers = Mapping[str, Tensor | float]


@dataclass(frozen=True, eq=False)
class MpmModel:
    """Bodies on a grid, between walls."""

    grid: MpmGrid
    bodies: Sequence[SoftBody]
    dt: float
    """Length of a step [s]; actuation is constant in it."""
    substeps: int = None  # type: ignore[assignment]
    """Number of equal parts of a step; None: as few as keep waves of pressure below half a cell in each."""
    gravity: Sequence[float] = ()
    """Gravity (dim) [m/s^2]; (): 9.81 downwards along the last axis."""
    sides: str | float | Mapping[str, Contact] = "slip"
    """Contact with the sides of the grid (`sticky`, `slip`, or a coefficient of friction), for all, or by name: {"-y": 0.5}."""
    obstacles: Sequence[Obstacle] = ()
    """Shapes that do not move."""
    spline: str = "quadratic"
    """Kernel that couples particles and nodes: `quadratic` (3 nodes along each axis) or `cubic` (4)."""
    segment: int | None = None
    """Steps per segment, whose ends are the frames of the history; None: as few as memory allows, but 16 at least."""
    memory: str | float = "1 GB"
    """Memory that a gradient may take, such as "500 MB"; it decides on the segment, and on what of a segment is computed again."""
    limits: tuple[float, ...] = field(init=False, default=())
    """Longest stable substep of every body [s]."""

    def __post_init__(self) -> None:
        positive(dt=self.dt)
        object.__setattr__(self, "bodies", tuple(self.bodies))
        self._check_bodies()
        gravity = tuple(float(g) for g in self.gravity) or (0.0,) * (self.grid.dim - 1) + (-9.81,)
        if len(gravity) != self.grid.dim:
            raise ValueError(f"gravity has {len(gravity)} numbers; the grid has {self.grid.dim} axes")
        object.__setattr__(self, "gravity", gravity)
        if self.spline not in SPLINES:
            raise ValueError(f"no spline '{self.spline}'; there are {', '.join(SPLINES)}")
        limits = tuple(longest_substep(b, b.values(), self.grid.dx) for b in self.bodies)
        object.__setattr__(self, "limits", limits)
        if self.substeps is None:
            object.__setattr__(self, "substeps", max(1, int(np.ceil(self.dt / (SHARE * min(limits)) - 1e-9))))
        elif self.substeps < 1:
            raise ValueError(f"substeps is {self.substeps}; expected 1 or more")
        for body in self.bodies:
            self._check_step(body, body.values())

    def _check_bodies(self) -> None:
        names = [b.name for b in self.bodies]
        if not names:
            raise ValueError("a model needs at least one body")
        if len(set(names)) < len(names):
            raise ValueError(f"bodies are named {', '.join(names)}; give each a name of its own")
        for body in self.bodies:
            if body.dim != self.grid.dim:
                raise ValueError(f"'{body.name}' has {body.dim} dimensions, the grid has {self.grid.dim}")

    def _check_step(self, body: SoftBody, values: dict[str, float]) -> None:
        longest = longest_substep(body, values, self.grid.dx)
        if self.h > longest:
            raise ValueError(
                f"a substep is {self.h:.3g} s, but with the stiffness and density of '{body.name}' waves of pressure cross a "
                f"cell in {longest:.3g} s; take substeps={int(np.ceil(self.dt / (SHARE * longest)))} or more"
            )

    @property
    def h(self) -> float:
        """Length of a substep [s]."""
        return self.dt / self.substeps

    @property
    def counts(self) -> list[int]:
        """Number of particles of every body."""
        return [b.count for b in self.bodies]

    @property
    def particles(self) -> int:
        """Number of all particles."""
        return sum(self.counts)

    @cached_property
    def step(self) -> MpmStep:
        """The substep, as a program."""
        walls = walls_of(self.grid, parse_sides(self.sides, self.grid.dim), self.obstacles)
        return MpmStep(self.grid, tuple(self.bodies), walls, SPLINES[self.spline], self.h, self.grid.shape)

    @cached_property
    def rollout(self) -> RollOut:
        """Kernels of segments."""
        limit = None if self.segment else scan_bytes(self.substeps, *self._sizes(), self.memory)
        return RollOut(self.step, self.substeps, limit)

    @property
    def n_muscles(self) -> int:
        """Number of muscles."""
        return self.step.n_muscles

    def start(
        self, x: Tensor | None = None, v: Tensor | Sequence[float] | None = None, dtype=torch.float64
    ) -> MpmState:
        """Return undeformed particles.

        Args:
            x: Positions (..., particles, dim) [m]; None: those of the bodies.
            v: Velocities (..., particles, dim), or one for all (dim) [m/s]; None: 0.
            dtype: Number type, unless a tensor is given. float32 is quicker, but in long motions with contact its gradients are
                far from those of float64.
        """
        given = [t for t in (x, v) if isinstance(t, Tensor)]
        dtype = given[0].dtype if given else dtype
        dim, n = self.grid.dim, self.particles
        points = torch.as_tensor(np.concatenate([b.points for b in self.bodies]), dtype=dtype)
        x = points if x is None else self._particles("x", x)
        v = torch.zeros(n, dim, dtype=dtype) if v is None else torch.as_tensor(v, dtype=dtype)
        v = self._particles("v", v.expand(n, dim) if v.dim() == 1 else v)
        laws = tuple(torch.tensor(b.rest, dtype=dtype).repeat(b.count, 1) for b in self.bodies)
        return MpmState(x, v, torch.zeros(n, dim * dim, dtype=dtype), laws)

    def _particles(self, name: str, value: Tensor) -> Tensor:
        if value.shape[-2:] != (self.particles, self.grid.dim):
            raise ValueError(
                f"{name} has the shape {tuple(value.shape)}; expected (..., {self.particles}, {self.grid.dim}): particles, axes"
            )
        return value

    def run(
        self,
        steps: int,
        state: MpmState | None = None,
        *,
        act: Tensor | None = None,
        gravity: Tensor | None = None,
        parameters: Numbers | None = None,
        told: Told | None = None,
    ) -> MpmHistory:
        """Compute steps; differentiable in every tensor that is given.

        Args:
            steps: Number of steps.
            state: State to begin with (see `start`, which also says the number type); None: undeformed particles at rest.
            act: Actuation of the muscles in every step (..., steps, muscles); None: 0.
            gravity: Gravity (..., dim) [m/s^2].
            parameters: Values of materials: `E` for all bodies that have it, `jelly.E` for one; numbers, tensors (...), or
                (..., particles of the body) for those that vary.
            told: Function (steps done, all steps) that shows progress.
        """
        if steps < 1:
            raise ValueError(f"steps is {steps}; expected 1 or more")
        state = state or self.start()
        fixed = self.given(state, parameters, gravity)
        rows = self._actuation(act, steps, state.x.dtype)
        n = self.segment or self.segment_of(steps)
        return self.rollout.run(state, rows, fixed, min(n, steps), told)

    def segment_of(self, steps: int) -> int:
        """Return the number of steps of a segment in a roll-out."""
        return segment_steps(steps, self.substeps, *self._sizes(), self.memory)

    def _sizes(self) -> tuple[int, int]:
        """Return how many numbers a state and the grid are."""
        state = sum(b.count * sum(self.step.carried(k)) for k, b in enumerate(self.bodies))
        return state, self.grid.count * (self.grid.dim + 1) * len(self.bodies)

    def fixed(self, state: MpmState, parameters: Numbers | None, gravity: Tensor | None) -> dict[str, Tensor]:
        """Return the inputs of a roll-out on the whole grid that do not change."""
        return self.given(state, parameters, gravity) | self.rollout.walls(whole(self.grid), state.x.dtype)

    def given(self, state: MpmState, parameters: Numbers | None, gravity: Tensor | None) -> dict[str, Tensor]:
        """Return gravity and the numbers of the materials, after a look at where the particles are."""
        if not in_transform():
            self._check_inside(state.x)
        dtype = state.x.dtype
        return self.rollout.fixed(self._values(parameters or {}, dtype), self._gravity(gravity, dtype))

    # --- what is given ----------------------------------------------------------------------------------------------

    def _gravity(self, gravity: Tensor | None, dtype: torch.dtype) -> Tensor:
        found = torch.as_tensor(self.gravity if gravity is None else gravity, dtype=dtype)
        if found.shape[-1:] != (self.grid.dim,):
            raise ValueError(f"gravity has the shape {tuple(found.shape)}; expected (..., {self.grid.dim})")
        return found

    def _actuation(self, act: Tensor | None, steps: int, dtype: torch.dtype) -> Tensor:
        n = self.n_muscles
        rows = torch.zeros(steps, n, dtype=dtype) if act is None else act.to(dtype)
        if rows.shape[-2:] != (steps, n):
            raise ValueError(f"act has the shape {tuple(rows.shape)}; expected (..., {steps}, {n}): steps, muscles")
        return torch.cat([rows, rows.new_zeros(*rows.shape[:-1], 1)], -1)

    def _values(self, given: Numbers, dtype: torch.dtype) -> list[dict[str, Tensor]]:
        """Return the parameters of every body."""
        used: set[str] = set()
        found = []
        for body in self.bodies:
            values = {}
            for name, usual in body.values().items():
                key = f"{body.name}.{name}" if f"{body.name}.{name}" in given else name
                used.add(key)
                values[name] = torch.as_tensor(given.get(key, usual), dtype=dtype)
                if name in body.varying and values[name].shape[-1:] not in ((), (body.count,)):
                    raise ValueError(
                        f"{key} has the shape {tuple(values[name].shape)}; expected a number or (..., {body.count})"
                    )
            if not in_transform():
                greatest = {k: float(t.detach().max()) for k, t in values.items()}
                least = {k: float(t.detach().min()) for k, t in values.items()}
                for name in values:
                    body.check_value(name, least[name], greatest[name])
                self._check_step(body, greatest | {"density": least["density"]})
            found.append(values)
        unknown = [name for name in given if name not in used]
        if unknown:
            raise ValueError(f"no parameter '{unknown[0]}'; there are {', '.join(sorted(used))}")
        return found

    def _check_inside(self, x: Tensor) -> None:
        flat = x.detach().reshape(-1, self.particles, self.grid.dim).numpy()
        for sample in flat:
            out = self.grid.outside(sample, self.step.spline.nodes / 2)
            if len(out):
                raise ValueError(self.rollout.name_lost(sample, out, "to begin with"))
