"""Identification from recorded motion with noise: a body that bounces and slides, a cart-pole, a double pendulum.

Positions are recorded, forces are known, and so are the initial states. Parameters that belong to the motion are found by
least squares over whole rollouts, through impacts and friction; the Gauss-Newton Hessian at the minimum says how sure they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.identify.noise.correlated import record_intervals
from costate.model import Model, load_model
from costate.model.builtin.parts import BLUE, GREY, ORANGE, X, Y, Z, box, cylinder, joint, link, robot, sphere
from costate.robot import Robot
from costate.sim import Static, Torque, World
from costate.sim.scene.shapes import plane
from costate.tasks.numbers import correlated, normal, uniform
from costate.train.solve.problems import Problems, Solvable


@dataclass(frozen=True)
class Unknown:
    """A parameter to be found."""

    label: str
    name: str
    """Name as in `World(parameters=...)` calls it."""
    truth: float
    low: float
    """First guesses are between low and high."""
    high: float
    share: bool = False
    """True: it is between 0 and 1; else it is positive."""

    def encode(self, value: Tensor) -> Tensor:
        """Return a number without bounds."""
        return torch.logit(value) if self.share else value.log()

    def decode(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x) if self.share else x.exp()

    def slope(self, x: Tensor) -> Tensor:
        """Return d decode / dx."""
        p = self.decode(x)
        return p * (1 - p) if self.share else p


@dataclass(frozen=True, eq=False)
class System:
    """A world, what is unknown in it, and the motions that were recorded: K of them."""

    world: Callable[[], World]
    unknowns: tuple[Unknown, ...]
    state0: tuple[tuple[float, ...], ...]
    """State at the start of each record, (K, nx)."""
    forces: Callable[[Tensor], Tensor]
    """Times (T,) -> known forces (T, K, nu)."""
    observed: tuple[int, ...]
    """Coordinates that are recorded."""
    noise: float
    """Standard deviation of the recorded positions [m or rad]."""
    steps: int
    early: tuple[int, ...] = ()
    """Shorter records to fit first, in steps: a guess that is far off meets the later bounces at the wrong time."""


def _bouncing() -> World:
    size = 0.1
    shape = box((size, size, size), color=ORANGE)
    body = link("body", 1.0, inertia=0.01, shapes=[sphere(size / 2)], visuals=[shape])
    joints = [joint("x", "prismatic", "ground", "rail", axis=X), joint("z", "prismatic", "rail", "body", axis=Z)]
    model = robot("body", [link("ground"), link("rail"), body], joints, "a block that does not turn", (0, size / 2))
    return World(
        robots=[Robot(model).double()],
        scenery=[Static("ground", plane())],
        actuators={"body/x": Torque()},
        collide=[("body", "ground")],
        parameters=["friction", "restitution", "mass:body/body"],
        dt=0.01,
        substeps=20,
    )


def cart_pole() -> Model:
    """Return a cart on a rail with a pole on a free hinge; at q = 0 the pole hangs."""
    rod = cylinder(0.02, (0, 0, 0), (0, 0, -0.8), BLUE)
    links = [
        link("rail", shapes=[cylinder(0.015, (-1.5, 0, 0), (1.5, 0, 0), GREY)]),
        link("cart", 1.0, inertia=0.01, shapes=[box((0.2, 0.1, 0.1), color=ORANGE)]),
        link("pole", 0.3, (0, 0, -0.4), (0.016, 0.016, 0.0001), [rod]),
    ]
    joints = [
        joint("slide", "prismatic", "rail", "cart", axis=X, damping=0.5),
        joint("hinge", "continuous", "cart", "pole", axis=Y, damping=0.02),
    ]
    return robot("cart_pole", links, joints, "a cart of 1 kg, a pole of 0.8 m and 0.3 kg")


def _cart_pole() -> World:
    names = ["mass:cart_pole/cart", "mass:cart_pole/pole", "damping:cart_pole/slide", "damping:cart_pole/hinge"]
    force = {"cart_pole/slide": Torque()}
    return World([Robot(cart_pole()).double()], actuators=force, contact=None, parameters=names, dt=0.01, substeps=2)


def _double_pendulum() -> World:
    model = load_model("pendulum2")
    joints = tuple(replace(j, damping=0.2) if j.nv else j for j in model.joints)
    names = [f"{kind}_{k}" for kind in ("mass:pendulum2/link", "damping:pendulum2/joint") for k in (1, 2)]
    return World([Robot(replace(model, joints=joints)).double()], contact=None, parameters=names, dt=0.01, substeps=2)


def _push(t: Tensor) -> Tensor:
    """Return known pushes along x [N] during the first 0.4 s."""
    return (t < 0.4)[:, None, None] * t.new_tensor([0.0, 0.0, 3.0, 4.0])[:, None]


def _waves(amplitude: float, rates: Sequence[float], nu: int) -> Callable[[Tensor], Tensor]:
    def forces(t: Tensor) -> Tensor:
        rate = t.new_tensor(rates).reshape(-1, nu)
        return amplitude * torch.sin(rate * t[:, None, None])

    return forces


SYSTEMS: dict[str, System] = {
    "bounce": System(
        _bouncing,
        (
            Unknown("friction", "friction", 0.25, 0.05, 0.8),
            Unknown("restitution", "restitution", 0.6, 0.3, 0.9, share=True),
            Unknown("mass [kg]", "mass:body/body", 1.3, 0.5, 3.0),
        ),
        # x, z, vx, vz: thrown, thrown from higher, thrown up and pushed, sliding and pushed.
        ((0, 0.35, 2.0, 0), (0, 0.65, 3.0, 0), (0, 0.35, 1.5, 1.0), (0, 0.05, 1.0, 0)),
        _push,
        (0, 1),
        0.003,
        80,
        early=(40,),
    ),
    "cart_pole": System(
        _cart_pole,
        (
            Unknown("cart [kg]", "mass:cart_pole/cart", 1.2, 0.4, 3.0),
            Unknown("pole [kg]", "mass:cart_pole/pole", 0.25, 0.1, 1.0),
            Unknown("cart damping [N s/m]", "damping:cart_pole/slide", 0.6, 0.1, 2.0),
            Unknown("hinge damping [N m s/rad]", "damping:cart_pole/hinge", 0.03, 0.005, 0.2),
        ),
        ((0, 0.5, 0, 0), (0, -1.5, 0, 1.0)),
        _waves(5.0, (4.0, 7.0), 1),
        (0, 1),
        0.002,
        200,
        early=(50,),
    ),
    "double_pendulum": System(
        _double_pendulum,
        (
            Unknown("upper [kg]", "mass:pendulum2/link_1", 1.4, 0.4, 3.0),
            Unknown("lower [kg]", "mass:pendulum2/link_2", 0.7, 0.3, 2.0),
            Unknown("upper damping [N m s/rad]", "damping:pendulum2/joint_1", 0.3, 0.05, 1.0),
            Unknown("lower damping [N m s/rad]", "damping:pendulum2/joint_2", 0.15, 0.03, 0.6),
        ),
        ((0.5, 0.3, 0, 0), (-1.0, 0.8, 0, 0)),
        _waves(4.0, (3.0, 5.0, 6.0, 2.0), 2),
        (0, 1),
        0.005,
        200,
        early=(50,),
    ),
}


@dataclass(frozen=True, eq=False)
class IdentifyContact(Solvable):
    """The task. Every problem has its own first guess and its own noise."""

    name: ClassVar[str] = "identify_contact"
    summary: ClassVar[str] = "friction, restitution and masses from recorded motion"
    unit: ClassVar[str] = "relative"

    system: str = "bounce"
    """A key of `SYSTEMS`."""
    tolerance: float = 0.05
    """Largest relative error of a parameter."""
    correlation: float = 0.0
    """Correlation of the noise of a position with that of the one before."""

    @cached_property
    def setup(self) -> System:
        if self.system not in SYSTEMS:
            raise ValueError(f"unknown system '{self.system}' to identify: use one of {', '.join(SYSTEMS)}")
        return SYSTEMS[self.system]

    @cached_property
    def world(self) -> World:
        return self.setup.world()

    @property
    def truth(self) -> Tensor:
        return torch.tensor([u.truth for u in self.setup.unknowns], dtype=torch.float64)

    def decode(self, x: Tensor) -> Tensor:
        """Return unbounded numbers (..., n) -> parameters."""
        return torch.stack([u.decode(x[..., k]) for k, u in enumerate(self.setup.unknowns)], -1)

    def encode(self, parameters: Tensor) -> Tensor:
        return torch.stack([u.encode(parameters[..., k]) for k, u in enumerate(self.setup.unknowns)], -1)

    def records(self, x: Tensor, steps: int | None = None) -> Tensor:
        """Return motions of all records under parameters x (B, n): (T + 1, B, K, nx)."""
        own, steps = self.setup, steps or self.setup.steps
        state0 = x.new_tensor(own.state0).expand(x.shape[0], -1, -1)
        forces = own.forces(torch.arange(steps, dtype=x.dtype) * self.world.dt)
        controls = forces[:, None].expand(-1, x.shape[0], -1, -1)
        values = self.decode(x)[:, None].expand(-1, state0.shape[1], -1)
        params = {u.name: values[..., k : k + 1] for k, u in enumerate(own.unknowns)}
        return self.world.rollout(state0, controls, params=params)

    def measured(self, numbers: Sequence[int]) -> Tensor:
        """Return what was recorded, with noise, (T + 1, B, K, observed)."""
        own = self.setup
        clean = self.records(self.encode(self.truth)[None])[..., own.observed].detach()
        shape = clean.shape[0], *clean.shape[2:]
        white = normal([10_000 + k for k in numbers], *shape).movedim(0, 1)
        return clean + own.noise * torch.as_tensor(correlated(white.numpy(), self.correlation))

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        own = self.setup
        measured = self.measured(numbers)

        def residuals(x: Tensor, steps: int | None = None) -> Tensor:
            found = self.records(x, steps)[..., own.observed]
            return ((found - measured[: len(found)]) / own.noise).movedim(0, 1).flatten(1)

        count = measured[:, 0].numel()
        guess = uniform(numbers, [u.low for u in own.unknowns], [u.high for u in own.unknowns])
        return Problems(
            x0=self.encode(guess),
            residuals=residuals,
            states=lambda x: self.records(x)[:, 0].detach(),
            error=lambda x: (self.decode(x) / self.truth - 1).abs().amax(-1),
            # What is left is noise: the sum of squares is below its mean by chance, and 4 standard deviations above.
            target=(count + 4 * np.sqrt(2 * count)) / 2,
            facts=lambda x: self._facts(residuals, x),
            stages=[lambda x, steps=steps: residuals(x, steps) for steps in own.early],
        )

    def confidence(self, residuals: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Return half widths of the 95 % confidence intervals of the parameters at a minimum x (B, n): (B, n).

        Noise may go together from row to row; all coordinates of all records have the same.
        """
        columns = [
            torch.func.jvp(residuals, (x,), (e.expand_as(x).contiguous(),))[1] for e in torch.eye(x.shape[-1]).to(x)
        ]
        each = zip(x.numpy(), torch.stack(columns, -1).numpy(), residuals(x).numpy(), strict=True)
        wide = np.stack([record_intervals(y, J, r, self.setup.steps + 1)[1] - y for y, J, r in each])
        slopes = torch.stack([u.slope(x[..., k]) for k, u in enumerate(self.setup.unknowns)], -1)
        return torch.as_tensor(wide) * slopes

    def _facts(self, residuals: Callable[[Tensor], Tensor], x: Tensor) -> dict[str, Any]:
        width = self.confidence(residuals, x)[0]
        found = self.decode(x)[0]
        return {
            u.label: f"{float(p):.4f} ± {float(w):.4f} (true {u.truth:g})"
            for u, p, w in zip(self.setup.unknowns, found, width, strict=True)
        }
