"""Heat in a part that grows: roll-outs of any length, with gradients.

    part = wall(length=0.02, height=0.004)
    model = HeatModel(part.mesh, part.path, INCONEL_718, dt=0.01)
    history = model.run(power=200.0)
    history.T                                                # (frames, nodes) [K]

A roll-out is cut into segments. Only the states between them are kept; a backward pass computes each segment again. So memory grows
with the number of segments, plus what one segment needs while it is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.continuum.checks import positive
from costate.continuum.heat.bodies import PAIRS
from costate.continuum.heat.laws import Curve
from costate.continuum.heat.process import Laser, Surroundings
from costate.continuum.heat.stable import stable_step
from costate.continuum.heat.step import PARAMETERS, HeatStep, Observer
from costate.continuum.heat.timeline import Timeline
from costate.continuum.locate import locate
from costate.continuum.materials import Material
from costate.continuum.memory import segment_steps
from costate.continuum.mesh import HexMesh
from costate.continuum.toolpath import ToolPath
from costate.kernel import Kernel
from costate.kernel.fields import FieldBuilder

STATUS = 4
"""Numbers of the status of a solve: converged, residual that is left, iterations, Newton steps."""
Told = Callable[[int, int], object]
"""Function (steps done, all steps) that shows progress."""


@dataclass(frozen=True, eq=False)
class History:
    """The history of a roll-out."""

    times: Tensor
    """Times of the frames (frames,) [s]: the beginning, and the end of every segment."""
    enthalpy: Tensor
    """Enthalpy of the nodes in every frame (..., frames, nodes) [J/kg]."""
    T: Tensor
    """Temperature of the nodes in every frame (..., frames, nodes) [K]."""
    readings: Tensor
    """Temperature at the sensors at the beginning of every step (..., steps, sensors) [K]."""
    integrals: Tensor
    """Integrals over time of what was observed (..., nodes, n)."""


@dataclass(frozen=True, eq=False)
class HeatModel:
    """Heat in a mesh of hexahedra that are born as the laser passes, step by step."""

    mesh: HexMesh
    """Mesh, with elements in the order of their births."""
    path: ToolPath
    """Path of the laser."""
    material: Material
    """Tables of the material."""
    dt: float = None  # type: ignore[assignment]
    """Length of a step [s]; None: 90 % of the longest stable one."""
    implicit: bool = False
    """Implicit conduction: steps of any length, each of which solves an equation. Then dt is ten times the longest explicit step,
    unless it is given."""
    duration: float = None  # type: ignore[assignment]
    """Time that is computed [s]; None: that of the path."""
    laser: Laser = field(default_factory=Laser)
    surroundings: Surroundings = field(default_factory=Surroundings)
    absorptivity: float | None = None
    """Share of the power that is taken up; None: that of the material, or all of it."""
    sensors: Any = ()
    """Points (S, 3) [m] whose temperature is read in every step."""
    observe: tuple[Observer, int, int] | None = None
    """Function (T, settings) of symbols -> n numbers of a node that are integrated over time, n, and the number of settings."""
    segment: int = None  # type: ignore[assignment]
    """Steps per segment; None: as few as memory allows, but 32 at least."""
    memory: str | int = "1 GB"
    """Memory that a gradient may take, such as "500 MB"; it decides on the segment."""

    def __post_init__(self) -> None:
        longest = self.longest
        usual = 10 * longest if self.implicit else 0.9 * longest
        dt = usual if self.dt is None else float(self.dt)
        duration = self.path.duration if self.duration is None else float(self.duration)
        positive(dt=dt, duration=duration)
        if dt > longest and not self.implicit:
            raise ValueError(
                f"dt is {dt:g} s, but explicit steps of this mesh and material are stable up to {longest:.3g} s; give a "
                "shorter one (or None), implicit=True, coarser elements, or a greater density"
            )
        object.__setattr__(self, "dt", dt)
        object.__setattr__(self, "duration", duration)
        numbers = self._nodes * (1 + self.step.observed)
        if self.segment is None:
            object.__setattr__(self, "segment", segment_steps(self.steps, numbers, self.memory))
        elif self.segment < 1:
            raise ValueError(f"segment is {self.segment}; expected a number of steps, 1 or more")

    @cached_property
    def longest(self) -> float:
        """Length of the longest stable explicit step [s]."""
        return stable_step(self.mesh, self.material)

    @cached_property
    def timeline(self) -> Timeline:
        """Elements, faces and the place of the laser in every step."""
        return Timeline.of(self.mesh, self.path, self.dt, self.duration)

    @cached_property
    def step(self) -> HeatStep:
        """The program of a step."""
        observer, n, n_settings = self.observe or (None, 0, 0)
        read = locate(self.mesh, self.sensors)
        return HeatStep(
            self.mesh, self.material, self.laser, self.timeline, *read, observer, n, n_settings, self.implicit
        )

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.timeline.times)

    @property
    def segments(self) -> int:
        """Number of segments."""
        return -(-self.steps // self.segment)

    @cached_property
    def curve(self) -> Curve:
        """Enthalpy of the material."""
        return Curve.of(self.material)

    @cached_property
    def parameters(self) -> dict[str, float]:
        """Numbers that `run` uses where no others are given."""
        around = self.surroundings
        known = self.material.absorptivity if self.absorptivity is None else self.absorptivity
        values = (
            1.0,
            1.0,
            1.0,
            1.0,
            1.0 if known is None else known,
            around.convection,
            self.material.emissivity,
            around.ambient,
        )
        return dict(zip(PARAMETERS, (*values, self.laser.radius), strict=True))

    # --- kernels --------------------------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> Kernel:
        """One segment of steps."""
        step, n = self.step, self.segment
        f = FieldBuilder("heat")
        sets = step.sets(f)
        nodes = sets["nodes"]
        carries = [f.field("h", nodes)]
        if step.observed:
            carries.append(f.field("integrals", nodes, step.observed))
        rows = [f.input(name, (n, k)) for name, k in (("between", 5), ("clock", 2), ("spot", 3), ("power", 1))]
        fixed = [f.field("free", nodes), f.field("shares", nodes, 2 * step.degree)]
        fixed += [f.field("pairs", sets["elements"], len(PAIRS))]
        fixed += [f.field(name.split()[0], sets[name], 22) for name in sets if name.endswith("faces")]
        if "sensors" in sets:
            fixed.append(f.field("weights", sets["sensors"], 8))
        shared = [x.var for x in fixed] + [f.input("p", len(PARAMETERS)), f.input("settings", max(step.n_settings, 1))]
        final, readings, _ = f.scan(step.program(), n, [c.var for c in carries], rows, shared)
        f.field_output("h", f.as_field(final[0], nodes))
        if step.observed:
            f.field_output("integrals", f.as_field(final[1], nodes, step.observed), flat=False)
        if "sensors" in sets:
            f.field_output("readings", f.as_field(readings[0], sets["sensors"]), frames=n)
        if step.implicit:
            f.output("status", readings[-1], (n, STATUS))
        return f.kernel()

    @cached_property
    def to_temperature(self) -> Kernel:
        """Temperature of nodes from their enthalpy."""
        h, p = ca.SX.sym("h"), ca.SX.sym("p", len(PARAMETERS))
        return Kernel("temperature", {"h": h, "p": p}, {"T": self.curve.temperature(h, p[1], p[2])})

    @cached_property
    def to_enthalpy(self) -> Kernel:
        """Enthalpy of nodes from their temperature."""
        T, p = ca.SX.sym("T"), ca.SX.sym("p", len(PARAMETERS))
        return Kernel("enthalpy", {"T": T, "p": p}, {"h": self.curve.enthalpy(T, p[1], p[2])})

    # --- roll-outs ------------------------------------------------------------------------------------------------

    def run(
        self,
        power: Tensor | float,
        T0: Tensor | float | None = None,
        *,
        spots: Tensor | None = None,
        settings: Tensor | Sequence[float] = (0.0,),
        dtype: torch.dtype = torch.float64,
        told: Told | None = None,
        **parameters: Tensor | float,
    ) -> History:
        """Compute all steps.

        Args:
            power: Power of the laser while it is on [W]: a number, or (..., steps).
            T0: Temperatures at the beginning [K]: a number, or (..., nodes), where unborn nodes have that of what is added to the
                part. None: that of the air; the base is at its own.
            spots: Positions of the laser (..., steps, 3) [m]; None: those of the path.
            settings: Parameters of the observer.
            dtype: Number type, unless a tensor is given that has one.
            told: Function (steps done, all steps) that shows progress.
            parameters: Other values of `parameters`, as numbers or tensors (...).
        """
        given = [x for x in (power, T0, spots, *parameters.values()) if isinstance(x, Tensor) and x.is_floating_point()]
        dtype = given[0].dtype if given else dtype
        p = self._parameters(parameters, dtype)
        h = self._start(T0, p, dtype)
        rows = self._rows(power, spots, dtype)
        fixed = self._fixed(dtype)
        settings = torch.as_tensor(settings, dtype=dtype)
        integrals = torch.zeros(*h.shape[:-1], self._nodes, self.step.observed, dtype=dtype)
        states, readings = [h], []
        for k in range(self.segments):
            part = {name: x[..., k * self.segment : (k + 1) * self.segment, :] for name, x in rows.items()}
            carried = {"integrals": integrals} if self.step.observed else {}
            out = self.kernel(h=h, **carried, **part, **fixed, p=p, settings=settings)
            if not torch.isfinite(out.h.detach()).all():
                self._explain(k, h, part, fixed, p, settings, carried)
            if self.implicit:
                self._check_solves(k, out.status.detach())
            h = out.h
            integrals = out.integrals if self.step.observed else integrals
            states.append(h)
            if len(self.step.sensors):
                readings.append(out.readings)
            if told is not None:
                told(min((k + 1) * self.segment, self.steps), self.steps)
        return self._history(states, readings, integrals, p)

    def _history(self, states: list[Tensor], readings: list[Tensor], integrals: Tensor, p: Tensor) -> History:
        lead = np.broadcast_shapes(*(s.shape[:-1] for s in states))
        h = torch.stack([s.expand(*lead, self._nodes) for s in states], -2)
        T = self.to_temperature(h=h[..., None], p=p[..., None, None, :] if p.dim() > 1 else p).T[..., 0]
        read = torch.cat(readings, -2)[..., : self.steps, :] if readings else h.new_zeros(*lead, self.steps, 0)
        ends = [min(k * self.segment, self.steps) for k in range(self.segments + 1)]
        times = torch.as_tensor(self.timeline.times[0] + self.dt * np.array(ends), dtype=h.dtype)
        return History(times, h, T, read, integrals)

    @property
    def _nodes(self) -> int:
        return len(self.mesh.nodes)

    def _parameters(self, given: dict[str, Tensor | float], dtype: torch.dtype) -> Tensor:
        unknown = [name for name in given if name not in PARAMETERS]
        if unknown:
            raise TypeError(f"no parameter '{unknown[0]}'; there are {', '.join(PARAMETERS)}")
        values = [torch.as_tensor(given.get(name, self.parameters[name]), dtype=dtype) for name in PARAMETERS]
        p = torch.stack(torch.broadcast_tensors(*values), -1)
        k, c, _, density = p.detach()[..., :4].unbind(-1)
        share = self.dt / self.longest * k / (c * density)
        if not self.implicit and (share > 1 + 1e-6).any():
            worst = int(share.argmax())
            found = {n: float(p.detach().reshape(-1, len(PARAMETERS))[worst, i]) for i, n in enumerate(PARAMETERS[:4])}
            raise ValueError(
                f"with conductivity {found['conductivity']:g}, specific_heat {found['specific_heat']:g} and density "
                f"{found['density']:g} explicit steps are stable up to {self.dt / float(share.max()):.3g} s; give the model a dt "
                f"below that (now {self.dt:g} s)"
            )
        return p

    def _start(self, T0: Tensor | float | None, p: Tensor, dtype: torch.dtype) -> Tensor:
        ambient = p[..., PARAMETERS.index("ambient"), None]
        T = ambient if T0 is None else torch.as_tensor(T0, dtype=dtype)
        if T.dim() and T.shape[-1] not in (1, self._nodes):
            raise ValueError(f"T0 has shape {tuple(T.shape)}; expected a number, or (..., {self._nodes}): one per node")
        T = T.expand(*T.shape[:-1], self._nodes) if T.dim() else T.expand(self._nodes)
        if self.surroundings.base is not None:
            T = torch.where(torch.as_tensor(self._held), torch.as_tensor(self.surroundings.base, dtype=dtype), T)
        return self.to_enthalpy(T=T[..., None], p=p[..., None, :] if p.dim() > 1 else p).h[..., 0]

    @cached_property
    def _held(self) -> np.ndarray:
        z = self.mesh.nodes[:, 2]
        return (
            z < z.min() + 1e-9 * max(np.ptp(z), 1e-12) if self.surroundings.base is not None else np.zeros(len(z), bool)
        )

    def _rows(self, power: Tensor | float, spots: Tensor | None, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return what changes from step to step, with steps of length 0 behind the last: they change nothing."""
        line, steps = self.timeline, self.steps
        more = self.segments * self.segment - steps
        P = torch.as_tensor(power, dtype=dtype)
        if P.dim() and P.shape[-1] != steps:
            raise ValueError(f"power has shape {tuple(P.shape)}; expected a number, or (..., {steps}): one per step")
        P = P * torch.as_tensor(line.on, dtype=dtype)
        S = torch.as_tensor(line.spots, dtype=dtype) if spots is None else spots
        if S.shape[-2:] != (steps, 3):
            raise ValueError(f"spots have shape {tuple(S.shape)}; expected (..., {steps}, 3): one per step")
        clock = np.stack([np.arange(steps), np.full(steps, self.dt)], 1)
        between = np.concatenate([line.alive[:, None], line.lasting.between, line.passing.between], 1)
        last = np.array([[steps - 1, 0.0]])
        return {
            "between": torch.as_tensor(np.concatenate([between, np.repeat(between[-1:], more, 0)]), dtype=dtype),
            "clock": torch.as_tensor(np.concatenate([clock, np.repeat(last, more, 0)]), dtype=dtype),
            "spot": torch.cat([S, S[..., -1:, :].expand(*S.shape[:-2], more, 3)], -2),
            "power": torch.cat([P, P.new_zeros(*P.shape[:-1], more)], -1)[..., None],
        }

    def _fixed(self, dtype: torch.dtype) -> dict[str, Tensor]:
        step = self.step
        values = {"free": 1.0 - self._held, "shares": step.shares, "pairs": step.pairs}
        values |= {n: step.face_data(n) for n in ("lasting", "passing") if len(step.faces(n).nodes)}
        if len(self.step.sensors):
            values["weights"] = self.step.weights
        return {name: torch.as_tensor(np.array(value), dtype=dtype) for name, value in values.items()}

    def _check_solves(self, k: int, status: Tensor) -> None:
        """Raise if a solve of a segment did not converge."""
        bad = (status[..., 0] != 1).nonzero()
        if len(bad):
            *sample, row = bad[0].tolist()
            _, left, iterations, steps = status[(*sample, row)].tolist()
            raise FloatingPointError(
                f"step {k * self.segment + row} of {self.steps} was not solved: {left:.2g} of its residual is left after "
                f"{steps:.0f} Newton steps with {iterations:.0f} iterations of conjugate gradients; take a shorter dt (now "
                f"{self.dt:g} s)"
            )

    def _explain(self, k: int, h: Tensor, rows: dict[str, Tensor], fixed, p: Tensor, settings, carried) -> None:
        """Raise an error that names the first step after which a number is not finite, and its node."""

        def after(n: int) -> Tensor:
            """Return the state after n steps of the segment: in the others the last one is repeated, with a length of 0."""
            if n == 0:
                return h.detach()
            part = {name: x[..., torch.arange(self.segment).clamp(max=n - 1), :] for name, x in rows.items()}
            part["clock"][n:, 1] = 0
            return self.kernel(h=h, **carried, **part, **fixed, p=p, settings=settings).h.detach()

        good, bad = -1, self.segment
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if torch.isfinite(after(middle)).all() else (good, middle)
        state = after(bad)
        place = tuple((~torch.isfinite(state)).nonzero()[0])
        where = ", ".join(f"{1e3 * x:.2f}" for x in self.mesh.nodes[int(place[-1])])
        step = k * self.segment + bad - 1
        when = f"after step {step} of {self.steps} (t = {self.timeline.times[step]:.4g} s)" if bad else "to begin with"
        raise FloatingPointError(
            f"the enthalpy of node {int(place[-1])}, at ({where}) mm, is {float(state[place])} {when}; look at power, T0 and "
            f"parameters, or take a shorter dt (now {self.dt:g} s)"
        )
