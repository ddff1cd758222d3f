"""Identification of a towel, its bending stiffness and its friction, from its fall over a ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares, minimize
from torch import Tensor

import costate as cs
from costate.continuum.cloth.body import sheet
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.state import ClothHistory
from costate.continuum.cloth.step import Solver
from costate.core.names import unknown
from costate.optimise.search import SearchOptions, search

Tell = Callable[[str], object]
UNKNOWN = {"friction": (0.1, 0.25, 0.8), "bending": (5e-5, 3e-4, 2e-3)}
"""Unknown number -> (least, first guess, greatest). Bending stiffness [N m]."""
WIDE = 1.959963984540054
"""Half width of a 95 % interval of a normal distribution, in standard deviations."""
CLOSE = 0.05
"""Largest relative error of a number that counts as found."""


@dataclass
class ClothFound:
    """The result of a task."""

    facts: dict[str, str | float]
    solved: bool
    losses: list[float]
    """Mean square of what is left of the observations, of every evaluation [m^2]."""
    model: ClothModel
    history: ClothHistory
    rows: list[dict[str, float | str]] = field(default_factory=list)
    """Table of what was found."""


@dataclass(frozen=True)
class TowelTask:
    """Let a towel fall over a ball, watch some of its points with noise, and find friction and bending stiffness."""

    summary: str = "friction and bending stiffness of a towel from its fall over a ball, with intervals"
    points: int = 10
    """Points along a side."""
    steps: int = 35
    iterations: int = 30
    """Largest number of iterations; of CMA-ES, of populations: ten times as many."""
    method: str = "gauss_newton"
    """Method: one of METHODS."""
    noise: float = 5e-4
    """Standard deviation of an observed coordinate [m]."""
    watched: int = 20
    """Number of points that are watched."""

    def model(self) -> ClothModel:
        """Return the towel above the ball."""
        towel = sheet((self.points, self.points), (0.3, 0.3), name="towel")
        ball = Collider(cs.shapes.sphere(0.1), name="ball")
        return ClothModel([towel], dt=1 / 100, colliders=[ball], solver=Solver(1e-6))

    def solve(self, seed: int, tell: Tell) -> ClothFound:
        """Solve for random true values, a random place of the towel, and noise."""
        if self.method not in METHODS:
            raise ValueError(unknown("method", self.method, METHODS))
        model, random = self.model(), np.random.default_rng(seed)
        low, first, high = np.log(np.array(list(UNKNOWN.values()))).T
        truth = low + (high - low) * random.uniform(0.25, 0.75, len(UNKNOWN))
        shift = torch.tensor([*random.uniform(0.02, 0.04, 2), 0.103])
        start = model.start(model.start().x + shift)
        seen = torch.as_tensor(random.choice(model.points, self.watched, replace=False))

        def run(z: Tensor) -> ClothHistory:
            return model.run(self.steps, start, friction=z[:1].exp(), parameters={"bending": z[1].exp()})

        clean = run(torch.as_tensor(truth)).x[1:, seen].flatten()
        measured = clean + torch.as_tensor(random.normal(0, self.noise, clean.shape))
        watch = Watch(lambda z: run(z).x[1:, seen].flatten(), measured, self.noise, tell)
        found = METHODS[self.method](watch, first, (low, high), self.iterations)
        J = watch.jacobian(found)
        wide = WIDE * np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
        return self._found(model, run(torch.as_tensor(found)), watch, found, truth, wide)

    def _found(self, model: ClothModel, history: ClothHistory, watch: Watch, found, truth, wide) -> ClothFound:
        rows: list[dict[str, float | str]] = []
        for name, z, t, w in zip(UNKNOWN, found, truth, wide, strict=True):
            value = float(np.exp(z))
            rows.append(
                {"parameter": name, "true": np.exp(t), "found": value, "from": np.exp(z - w), "to": np.exp(z + w)}
            )
        facts: dict[str, str | float] = {
            f"{r['parameter']} (true {r['true']:.4g})": f"{r['found']:.4g}, from {r['from']:.4g} to {r['to']:.4g}"
            for r in rows
        }
        error = np.abs(np.exp(found - truth) - 1)
        facts |= {
            "largest error [%]": 100 * float(error.max()),
            "roll-outs": watch.evaluations,
            "tangents": watch.tangents,
        }
        facts |= {"gradients": watch.gradients}
        return ClothFound(facts, bool((error < CLOSE).all()), watch.losses, model, history, rows)


@dataclass
class Watch:
    """Observations, and how a roll-out differs from them."""

    points: Callable[[Tensor], Tensor]
    measured: Tensor
    noise: float
    tell: Tell
    evaluations: int = 0
    tangents: int = 0
    gradients: int = 0
    losses: list[float] = field(default_factory=list)

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return differences, in standard deviations of the noise."""
        with torch.no_grad():
            r = self.points(torch.as_tensor(z)) - self.measured
        self._count(r)
        return (r / self.noise).numpy()

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """Return the derivatives of `residual`, by tangents."""
        self.tangents += len(z)
        point = torch.as_tensor(z)
        columns = [torch.func.jvp(self.points, (point,), (way,))[1] for way in torch.eye(len(z), dtype=point.dtype)]
        return (torch.stack(columns, 1) / self.noise).detach().numpy()

    def loss(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return half the mean of the squares, and its gradient."""
        self.gradients += 1
        point = torch.as_tensor(z).clone().requires_grad_()
        r = self.points(point) - self.measured
        self._count(r.detach())
        value = (r / self.noise).square().mean() / 2
        return float(value.detach()), torch.autograd.grad(value, point)[0].numpy()

    def value(self, z: Tensor) -> Tensor:
        """Return half the mean of the squares."""
        r = self.residual(z.numpy())
        return torch.as_tensor(np.mean(r**2) / 2)

    def _count(self, r: Tensor) -> None:
        self.evaluations += 1
        self.losses.append(float(r.square().mean()))
        self.tell(f"evaluation {self.evaluations}, {1e3 * self.losses[-1] ** 0.5:.3g} mm")


def _gauss_newton(watch: Watch, first: np.ndarray, bounds, iterations: int) -> np.ndarray:
    options: Any = {"jac": watch.jacobian, "bounds": bounds, "max_nfev": iterations, "xtol": 1e-6, "ftol": 1e-6}
    return least_squares(watch.residual, first, **options).x


def _lbfgs(watch: Watch, first: np.ndarray, bounds, iterations: int) -> np.ndarray:
    box = list(zip(*bounds, strict=True))
    return minimize(watch.loss, first, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": iterations}).x


def _search(watch: Watch, first: np.ndarray, bounds, iterations: int) -> np.ndarray:
    low, high = (torch.as_tensor(b) for b in bounds)
    options = SearchOptions(iterations=10 * iterations, sigma=0.3, cma={"tolx": 1e-4, "tolfun": 1e-6})
    unit = (torch.as_tensor(first) - low) / (high - low)

    def inside(u):
        return low + (high - low) * u.clamp(0, 1)

    return inside(search(lambda u: watch.value(inside(u)), unit, options).x).numpy()


METHODS = {"gauss_newton": _gauss_newton, "lbfgs": _lbfgs, "search": _search}
"""Name of a method -> what solves by it."""
CLOTH_TASKS = {"cloth_towel": TowelTask()}
"""Name -> task with its defaults."""
