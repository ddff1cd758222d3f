"""Methods that solve problems of cloth, with every evaluation counted: Gauss-Newton, L-BFGS-B, and CMA-ES without gradients."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares, minimize
from torch import Tensor

from costate.core.names import unknown
from costate.optimise.search import SearchOptions, search
from costate.tasks.cloth.problem import ClothProblem, Tell

FAR = 1e12
"""Loss of a roll-out that could not be computed."""


NUDGE = 1e-6
"""Distance, in shares of the bounds, at which a Jacobian is taken that is not finite where it was asked for."""


class Ended(Exception):  # noqa: N818  (it is no error)
    """Raised when a motion is as wanted, or there is no way on."""


class Counted:
    """The residuals of a problem, with what was asked of them."""

    def __init__(self, problem: ClothProblem, tell: Tell):
        self.problem, self.tell = problem, tell
        self.evaluations = self.tangents = self.gradients = 0
        self.losses: list[float] = []
        self.best, self.least = problem.first, np.inf

    @property
    def facts(self) -> dict[str, int]:
        """Counts: roll-outs, and passes for derivatives through one of them."""
        return {"roll-outs": self.evaluations, "tangents": self.tangents, "gradients": self.gradients}

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return the residuals (m); infinite if the roll-out fails."""
        with torch.no_grad():
            r = self._evaluate(torch.as_tensor(z))
        return np.full(1, np.inf) if r is None else r.numpy()

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """Return the derivatives (m, n) of `residual`, by tangents; raise `Ended` where there are none."""
        for shift in (0.0, NUDGE):
            self.tangents += len(z)
            point = torch.as_tensor(z + shift * (self.problem.bounds[1] - self.problem.bounds[0]))
            J = torch.func.jacfwd(self._residuals)(point).detach()
            if bool(torch.isfinite(J).all()):
                return J.numpy()
        self.tell("a Jacobian is not finite")
        raise Ended

    def loss(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return half the mean of the squares of the residuals, and its gradient."""
        self.gradients += 1
        point = torch.as_tensor(z).clone().requires_grad_()
        r = self._evaluate(point)
        if r is None:
            return FAR, np.zeros_like(z)
        value = r.square().mean() / 2
        slope = torch.autograd.grad(value, point)[0]
        if not bool(torch.isfinite(slope).all()):
            self.tell("a gradient is not finite")
            raise Ended
        return float(value.detach()), slope.numpy()

    def value(self, z: Tensor) -> Tensor:
        """Return half the mean of the squares of the residuals."""
        r = self._evaluate(z)
        return torch.tensor(FAR) if r is None else r.square().mean() / 2

    def _residuals(self, z: Tensor) -> Tensor:
        return self.problem.residuals(z, self.problem.play(z))

    def _evaluate(self, z: Tensor) -> Tensor | None:
        """Return the residuals, or None if a step did not converge; raise `Ended` if the motion is as wanted."""
        self.evaluations += 1
        try:
            motion = self.problem.play(z)
        except FloatingPointError:
            self.tell(f"evaluation {self.evaluations}: a step did not converge")
            return None
        r = self.problem.residuals(z, motion)
        self.losses.append(float(r.detach().square().mean()) / 2)
        self.tell(f"evaluation {self.evaluations}, loss {self.losses[-1]:.4g}")
        ended = self.problem.judge is not None and self.problem.judge(motion)[1]
        if ended or self.losses[-1] < self.least:
            self.best, self.least = z.detach().numpy().copy(), self.losses[-1]
        if ended:
            raise Ended
        return r


def minimise(problem: ClothProblem, method: str, iterations: int, tell: Tell) -> Counted:
    """Solve a problem until its motion is as wanted, or until the residuals are least; return what was counted and found."""
    if method not in METHODS:
        raise ValueError(unknown("method", method, METHODS))
    counted = Counted(problem, tell)
    with suppress(Ended):
        METHODS[method](counted, iterations)
    return counted


def _gauss_newton(counted: Counted, iterations: int) -> None:
    problem = counted.problem
    options: Any = {"jac": counted.jacobian, "bounds": problem.bounds, "max_nfev": iterations}
    least_squares(counted.residual, problem.first, xtol=1e-6, ftol=1e-6, **options)


def _lbfgs(counted: Counted, iterations: int) -> None:
    problem = counted.problem
    box = list(zip(*problem.bounds, strict=True))
    minimize(counted.loss, problem.first, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 10 * iterations})


def _search(counted: Counted, iterations: int) -> None:
    problem = counted.problem
    low, high = (torch.as_tensor(b) for b in problem.bounds)
    options = SearchOptions(iterations=10 * iterations, sigma=problem.spread, cma={"tolx": 1e-4, "tolfun": 1e-6})

    def inside(u: Tensor) -> Tensor:
        return low + (high - low) * u.clamp(0, 1)

    search(lambda u: counted.value(inside(u)), (torch.as_tensor(problem.first) - low) / (high - low), options)


METHODS = {"gauss_newton": _gauss_newton, "lbfgs": _lbfgs, "search": _search}
"""Name of a method -> what solves by it."""
