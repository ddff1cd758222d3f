"""Cloth and ropes: implicit steps, roll-outs of any length, with gradients.

model = ClothModel([sheet((30, 30), (1.0, 1.0))], dt=1 / 120, pins=[0, 29])
history = model.run(120)
history.x                                                # (121, 900, 3) [m]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from costate.continuum.checks import index_table, positive
from costate.continuum.cloth.body import CLOTH, ROPE, Cloth, Rope
from costate.continuum.cloth.contact import POSE, Collider, Contacts
from costate.continuum.cloth.layers.nearby import Surfaces
from costate.continuum.cloth.layers.untangled import Untangled
from costate.continuum.cloth.rollout import ClothRollOut
from costate.continuum.cloth.scene import Scene
from costate.continuum.cloth.state import ClothHistory, ClothState
from costate.continuum.cloth.step import ClothStep, Solver
from costate.continuum.memory import segment_steps
from costate.core.names import unknown
from costate.kernel import Kernel
from costate.kernel.fields import Entities
from costate.kernel.torch_op import in_transform

Numbers = Mapping[str, Tensor | float]
AIR = 1.2
"""Density of air [kg/m^3]."""


@dataclass(frozen=True, eq=False)
class ClothModel:
    """Pieces of cloth and ropes, among shapes."""

    bodies: Sequence[Cloth | Rope]
    dt: float
    """Length of a step [s]."""
    gravity: Sequence[float] = (0.0, 0.0, -9.81)
    pins: Sequence[int] = ()
    """Points that are where they are told to be; points of all bodies are numbered one body after another."""
    seams: Sequence[tuple[int, int]] = ()
    """Pairs of points that are sewn together, by stiff springs without length."""
    ties: Sequence[int] = ()
    """Points that springs may pull towards places, such as fingers that grasp: see `run`."""
    colliders: Sequence[Collider] = ()
    """Shapes that points touch."""
    thickness: float = 2e-3
    """Distance from shapes at which contact begins [m]."""
    push: float = 100.0
    """Strength of contact [m/s^2]: about the acceleration at half of the thickness."""
    seam: float = 1e4
    """Stiffness of seams [N/m]."""
    self_contact: bool = False
    """True if cloth and ropes touch themselves and each other: nothing ever passes through anything, but a step takes longer."""
    self_friction: float = 0.3
    """Coefficient of friction of cloth and ropes with themselves."""
    windy: bool = False
    """True if air acts on cloth."""
    curved: bool | None = None
    """True if the rest shape may be curved; None: as the bodies say."""
    solver: Solver = field(default_factory=Solver)
    memory: str | int = "1 GB"
    """Memory that a gradient may take, such as "500 MB"."""

    def __post_init__(self) -> None:
        positive(dt=self.dt, thickness=self.thickness, push=self.push, seam=self.seam)
        for name in ("bodies", "colliders"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.bodies:
            raise ValueError("a model needs a piece of cloth or a rope")
        names = [b.name for b in self.bodies]
        if len(set(names)) < len(names):
            raise ValueError(f"bodies are named {', '.join(names)}; give each a name of its own")
        n = sum(b.count for b in self.bodies)
        index_table("pins", np.reshape(np.asarray(self.pins, int), (-1, 1)), 1, n)
        index_table("ties", np.reshape(np.asarray(self.ties, int), (-1, 1)), 1, n)
        if len(set(self.pins)) < len(self.pins):
            raise ValueError("a point is pinned twice; name every point once")
        if self.windy and not any(isinstance(b, Cloth) for b in self.bodies):
            raise ValueError("there is no cloth that air could act on; leave out windy")

    @cached_property
    def scene(self) -> Scene:
        """Points and elements."""
        seams = index_table(
            "seams", np.reshape(np.asarray(self.seams, int), (-1, 2)), 2, sum(b.count for b in self.bodies)
        )
        curved = self.curved
        if curved is None:
            curved = any(isinstance(b, Cloth) and not b.is_flat for b in self.bodies)
        return Scene(tuple(self.bodies), seams, curved)

    @property
    def points(self) -> int:
        """Number of points of all bodies."""
        return self.scene.count

    @cached_property
    def rollout(self) -> ClothRollOut:
        """Kernels of roll-outs."""
        scene = self.scene
        order = sorted(self.colliders, key=lambda c: not c.moves)
        if list(order) != list(self.colliders):
            raise ValueError("colliders that move must be named before those that do not")
        contacts = Contacts(tuple(self.colliders), Entities("points", scene.count), self.dt, self.thickness, self.push)
        step = ClothStep(scene, self.dt, contacts, bool(self.pins), bool(self.ties), self.windy, self.solver)
        return ClothRollOut(step, tuple(self.pins), tuple(self.ties))

    @cached_property
    def _prepare(self) -> Kernel:
        return self.rollout.prepare()

    # --- roll-outs --------------------------------------------------------------------------------------------------

    def start(
        self, x: Tensor | None = None, v: Tensor | Sequence[float] | None = None, dtype=torch.float64
    ) -> ClothState:
        """Return a state: the positions of the bodies at rest, unless others are given (..., points, 3)."""
        given = [t for t in (x, v) if isinstance(t, Tensor)]
        dtype = given[0].dtype if given else dtype
        x = torch.as_tensor(self.scene.points, dtype=dtype) if x is None else self._points("x", x)
        v = torch.zeros(self.points, 3, dtype=dtype) if v is None else torch.as_tensor(v, dtype=dtype)
        return ClothState(x, self._points("v", v.expand(self.points, 3) if v.dim() == 1 else v))

    def _points(self, name: str, value: Tensor) -> Tensor:
        if value.shape[-2:] != (self.points, 3):
            raise ValueError(f"{name} has the shape {tuple(value.shape)}; expected (..., {self.points}, 3)")
        return value

    def run(
        self,
        steps: int,
        state: ClothState | None = None,
        *,
        pins: Tensor | None = None,
        ties: Tensor | None = None,
        poses: Tensor | None = None,
        gravity: Tensor | None = None,
        wind: Tensor | None = None,
        air: Tensor | float = AIR,
        friction: Tensor | None = None,
        self_friction: Tensor | float | None = None,
        parameters: Numbers | None = None,
        rest: Tensor | None = None,
    ) -> ClothHistory:
        """Compute steps; differentiable in every tensor that is given.

        Args:
            steps: Number of steps.
            state: State to begin with (see `start`, which also says the number type); None: bodies at rest.
            pins: Places of the pinned points at the end of every step (..., steps, pins, 3) [m]; None: where they are.
            ties: Stiffness [N/m] and place [m] of the springs at the points of `ties` in every step (..., steps, ties, 4).
            poses: Poses of the colliders that move (..., steps + 1, moving, 12): position [m], rotation row by row.
            gravity: Gravity (..., 3), or one for every step (..., steps, 3) [m/s^2].
            wind: Velocity of the air (..., 3), or one for every step (..., steps, 3) [m/s].
            air: Density of the air times its coefficient of drag [kg/m^3].
            friction: Coefficients of all colliders (..., colliders).
            self_friction: Coefficient of cloth and ropes with themselves.
            parameters: Values of materials: `bending` for all bodies that have it, `towel.bending` for one; numbers, tensors (...),
                or (..., elements of the body).
            rest: Rest shape (..., points, 3) [m].
        """
        if steps < 1:
            raise ValueError(f"steps is {steps}; expected 1 or more")
        state = state or self.start()
        dtype = state.x.dtype
        fixed = self.fixed(dtype, parameters, rest, friction, air)
        rows = self.rows(steps, state, pins, ties, poses, gravity, wind)
        if self.self_contact:
            mu = self.self_friction if self_friction is None else self_friction
            fixed["self_friction"] = torch.as_tensor(mu, dtype=dtype)[..., None]
        return self._rolled(steps, state, rows, fixed)

    def _rolled(self, steps: int, state: ClothState, rows: dict[str, Tensor], fixed: dict[str, Tensor]) -> ClothHistory:
        """Compute all segments."""
        segment = self._untangled if self.self_contact else self._segment
        n = segment_steps(steps, 6 * self.points, self.memory, shortest=1)
        whole = n == 1
        n = steps if whole else n
        frames, told, times = [state.x[..., None, :, :]], [], [0]
        for begin in range(0, steps, n):
            count = min(n, steps - begin)
            part = {k: t[..., begin : begin + count, :] for k, t in rows.items()}
            if whole or not torch.is_grad_enabled():
                x, v, a, ends, found = segment(count, state, part, fixed)
            else:
                x, v, a, ends, found = checkpoint(segment, count, state, part, fixed, use_reentrant=False)
            state = ClothState(x, v, a)
            frames.append(ends if whole else x[..., None, :, :])
            times += list(range(begin + 1, begin + count + 1)) if whole else [begin + count]
            told.append(found)
        lead = state.x.shape[:-2]
        x = torch.cat([f.expand(*lead, *f.shape[-3:]) for f in frames], -3)
        return ClothHistory(self.dt * torch.tensor(times, dtype=x.dtype), x, state, torch.cat(told, -2))

    @property
    def surfaces(self) -> Surfaces:
        """Triangles and edges that may touch each other."""
        return self._apart.surfaces

    @cached_property
    def _apart(self) -> Untangled:
        return Untangled(self)

    def _untangled(self, n: int, state: ClothState, rows: dict[str, Tensor], fixed: dict[str, Tensor]):
        """Return what `_segment` does, of cloth that touches itself."""
        frames, told = [], []
        for k in range(n):
            x, v, found = self._apart.step(state, {name: t[..., k : k + 1, :] for name, t in rows.items()}, fixed)
            self.check(found)
            state = ClothState(x, v)
            frames.append(x)
            told.append(found)
        return state.x, state.v, None, torch.stack(frames, -3), torch.stack(told, -2)

    def _segment(self, n: int, state: ClothState, rows: dict[str, Tensor], fixed: dict[str, Tensor]):
        """Return positions and velocities at the end of some steps, positions at the end of each, numbers about the solves."""
        given = {"x": state.x, "v": state.v, **rows, **fixed}
        out = self.rollout.kernel(n, False)(a=self.acceleration(state, rows), **detached(given))
        if not in_transform():
            self.check(out.told)
        ends = self.frames(out.ends, n)
        if not derived(given):
            return out.x, out.v, out.a, ends, out.told
        follow = self.rollout.kernel(n, True)(ends=ends.flatten(-2), **given)
        return follow.x, follow.v, out.a, self.frames(follow.path, n), out.told

    def frames(self, ends: Tensor, steps: int) -> Tensor:
        """Return positions at the ends of steps, as a kernel gives them, as (..., steps, points, 3)."""
        return ends[..., None, :, :] if steps == 1 else ends.unflatten(-1, (self.points, 3))

    def acceleration(self, state: ClothState, rows: dict[str, Tensor]) -> Tensor:
        """Return the acceleration that the first solve begins with."""
        g = rows["gravity"]
        found = g[..., :1, :].expand(*g.shape[:-2], self.points, 3) if state.a is None else state.a
        return found.detach()

    def check(self, told: Tensor) -> None:
        """Raise if the solve of a step did not converge."""
        good = told[..., 0] == 1
        if good.all():
            return
        worst = told[~good]
        raise FloatingPointError(
            f"{len(worst)} steps did not converge; the first has a residual of {float(worst[0, 1]):.3g} of the weight after "
            f"{int(worst[0, 3])} steps of Newton's method; take a shorter dt, or allow more (Solver)"
        )

    # --- what users give --------------------------------------------------------------------------------------------

    def fixed(
        self, dtype: torch.dtype, parameters: Numbers | None, rest: Tensor | None, friction, air
    ) -> dict[str, Tensor]:
        """Return the inputs that do not change in a roll-out."""
        free = torch.ones(self.points, dtype=dtype)
        free[list(self.pins)] = 0
        rest = torch.as_tensor(self.scene.rest, dtype=dtype) if rest is None else self._points("rest", rest)
        out = self._prepare(rest=rest, free=free, **self._materials(parameters or {}, dtype))
        found = {name: getattr(out, name) for name, _, _ in self.rollout.shared() if name.startswith(("own", "fixed"))}
        if n := len(self.colliders):
            usual = [c.friction for c in self.colliders]
            mu = torch.as_tensor(usual if friction is None else friction, dtype=dtype)
            if mu.shape[-1:] != (n,):
                raise ValueError(
                    f"friction has the shape {tuple(mu.shape)}; expected (..., {n}): one of every collider"
                )
            found["friction"] = mu
        if self.windy:
            found["air"] = torch.as_tensor(air, dtype=dtype)[..., None]
        return found

    def _materials(self, parameters: Numbers, dtype: torch.dtype) -> dict[str, Tensor]:
        known = {f"{b.name}.{k}" for b in self.bodies for k in b.values()} | {
            k for b in self.bodies for k in b.values()
        }
        if wrong := [k for k in parameters if k not in known]:
            raise ValueError(unknown("parameter", wrong[0], sorted(known)))
        found = {}
        for name, kind, usual in (("triangles", Cloth, CLOTH), ("segments", Rope, ROPE)):
            parts = [self._material(b, usual, parameters, dtype) for b in self.bodies if isinstance(b, kind)]
            if parts:
                lead = np.broadcast_shapes(*(p.shape[:-2] for p in parts))
                found[name] = torch.cat([p.expand(*lead, *p.shape[-2:]) for p in parts], -2)
        if len(self.scene.seams):
            found["seams"] = torch.full((len(self.scene.seams), 1), self.seam, dtype=dtype)
        return found

    def _material(self, body: Cloth | Rope, usual: dict, parameters: Numbers, dtype: torch.dtype) -> Tensor:
        columns = []
        values = body.values()
        count = len(values["density"])
        for key in usual:
            given = parameters.get(f"{body.name}.{key}", parameters.get(key))
            column = torch.as_tensor(np.array(values[key]) if given is None else given, dtype=dtype)
            if column.dim() == 0 or column.shape[-1] != count:
                column = column[..., None].expand(*column.shape, count)
            columns.append(column)
        if isinstance(body, Cloth):
            columns += [torch.full((count,), float(w), dtype=dtype) for w in body.warp]
        return torch.stack(torch.broadcast_tensors(*columns), -1)

    def rows(
        self, steps: int, state: ClothState, pins, ties, poses, gravity, wind, alone: bool = True
    ) -> dict[str, Tensor]:
        """Return the inputs that change from step to step. alone: False if a world gives poses and ties."""
        dtype = state.x.dtype
        found = {"gravity": self._each("gravity", self.gravity if gravity is None else gravity, steps, dtype)}
        if self.pins:
            now = state.x[..., list(self.pins), :] if pins is None else pins
            rows = now[..., None, :, :].expand(*now.shape[:-2], steps, *now.shape[-2:]) if pins is None else pins
            self._shaped("pins", rows, (steps, len(self.pins), 3))
            found["pins"] = rows.flatten(-2)
        elif pins is not None:
            raise ValueError("places of pins were given, but the model has none; ClothModel(pins=...) names points")
        if self.ties and alone:
            rows = torch.zeros(steps, len(self.ties), 4, dtype=dtype) if ties is None else ties
            self._shaped("ties", rows, (steps, len(self.ties), 4))
            found["ties"] = rows.flatten(-2)
        if self.windy:
            found["wind"] = self._each("wind", (0.0, 0.0, 0.0) if wind is None else wind, steps, dtype)
        elif wind is not None:
            raise ValueError("wind was given, but the model has none; make it with windy=True")
        if alone and (n := self.rollout.step.contacts.moving):
            if poses is None:
                raise ValueError(f"{n} colliders move; give their poses (..., {steps + 1}, {n}, {POSE})")
            self._shaped("poses", poses, (steps + 1, n, POSE))
            found["poses"] = torch.cat([poses[..., :-1, :, :], poses[..., 1:, :, :]], -2).flatten(-2)
        return found

    def _each(self, name: str, value, steps: int, dtype: torch.dtype) -> Tensor:
        t = torch.as_tensor(value, dtype=dtype)
        if t.shape[-1:] != (3,):
            raise ValueError(f"{name} has the shape {tuple(t.shape)}; expected (..., 3), or (..., {steps}, 3)")
        return t if t.dim() > 1 and t.shape[-2] == steps else t[..., None, :].expand(*t.shape[:-1], steps, 3)

    def _shaped(self, name: str, value: Tensor, shape: tuple[int, ...]) -> None:
        if tuple(value.shape[-len(shape) :]) != shape:
            expected = ", ".join(map(str, shape))
            raise ValueError(f"{name} have the shape {tuple(value.shape)}; expected (..., {expected})")


def detached(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors without what they were computed from."""
    return {k: t.detach() for k, t in given.items()}


def derived(given: dict[str, Tensor]) -> bool:
    """Return whether derivatives by some of the tensors may be asked for."""
    return in_transform() or (torch.is_grad_enabled() and any(t.requires_grad for t in given.values()))
