"""Search without gradients: CMA-ES and random search, the references for everything that uses gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from costate.core.extras import needs
from costate.core.names import unknown
from costate.optimise.solution import OptimiserOptions, Run, Solution
from costate.optimise.unknowns import Unknowns


@dataclass(frozen=True, kw_only=True)
class SearchOptions(OptimiserOptions):
    """Options of `search`. An iteration is one population; each candidate counts as an evaluation."""

    method: str = "cma"
    """Method: "cma" (CMA-ES, of the package cma) or "random"."""
    sigma: float = 0.3
    """Standard deviation of the first population around x0."""
    population: int | None = None
    """Candidates per iteration; the default is that of CMA-ES, 4 + 3 log n."""
    batched: bool = False
    """Switch for a loss that takes a whole population at once, tensors (P, ...) -> (P,), instead of one candidate."""
    bounds: tuple[float, float] | None = None
    """Lowest and highest value of every entry."""
    seed: int = 0
    """Seed of the random numbers."""
    cma: Mapping[str, Any] = field(default_factory=dict)
    """Further options of CMA-ES."""


def search(loss: Callable[[Any], Tensor], x0: Any, options: SearchOptions = SearchOptions()) -> Solution:  # noqa: B008
    """Minimise loss(x) from x0, for one problem. The solution is the best candidate seen.

    Args:
        loss: Function of x that returns (); with `batched` its tensors have a leading dimension for the candidates, and it returns
            (P,).
        x0: A tensor, a dict or list of tensors, or an nn.Module (loss is then called with the module).
    """
    unknowns = Unknowns(x0)
    if options.method not in METHODS:
        raise ValueError(unknown("method", options.method, METHODS))
    if options.batched and unknowns.is_module:
        raise ValueError("a module has one set of weights: use batched=False with it")
    start = unknowns.rows(None)
    method = METHODS[options.method](start[0].double().numpy(), options)
    with Run(options.method, options) as run:
        losses = _losses(loss, unknowns, options.batched, run)
        best_x, best = start, losses(start)[0]
        ended = run.note(best, sigma=options.sigma)
        while not ended and len(run.history) <= options.iterations:
            candidates = torch.as_tensor(np.asarray(method.ask()), dtype=start.dtype)
            found = losses(candidates)
            method.tell(found.double().numpy())
            k = int(found.argmin())
            if found[k] < best:
                best_x, best = candidates[k : k + 1], found[k]
            ended = run.note(best, sigma=method.sigma)
            if not ended and (reason := method.stopped()):
                run.reason, ended = reason, True
        return run.solution(unknowns.result(best_x, None), best, torch.tensor(False))


def _losses(loss: Callable[[Any], Tensor], unknowns: Unknowns, batched: bool, run: Run) -> Callable[[Tensor], Tensor]:
    """Return the function from rows (P, n) to losses (P,). Losses that are not finite count as infinite."""

    def evaluate(rows: Tensor) -> Tensor:
        run.evaluations += len(rows)
        with torch.no_grad():
            if batched:
                found = unknowns.stacked(loss, rows)
            else:
                found = torch.stack([torch.as_tensor(unknowns.call(loss, row[None], None)) for row in rows])
        if found.shape != (len(rows),):
            expected = f"({len(rows)},) for {len(rows)} candidates" if batched else "(): one problem at a time"
            raise ValueError(f"the loss has shape {tuple(found.shape[not batched :])}; expected {expected}")
        return torch.where(torch.isfinite(found), found, float("inf"))

    return evaluate


class Method(Protocol):
    """A search method: it proposes candidates and is told their losses."""

    @property
    def sigma(self) -> float: ...

    def ask(self) -> Any: ...

    def tell(self, losses: np.ndarray) -> None: ...

    def stopped(self) -> str: ...


class CMA:
    """Hansen's CMA-ES."""

    def __init__(self, x0: np.ndarray, options: SearchOptions):
        try:
            import cma
        except ImportError:
            raise ImportError(needs("CMA-ES", "the package cma", "optimise")) from None
        own: dict[str, Any] = {
            "seed": options.seed + 1,
            "verbose": -9,
            "maxiter": options.iterations + 1,
        }  # seed 0 is the clock
        if options.population:
            own["popsize"] = options.population
        if options.bounds:
            own["bounds"] = list(options.bounds)
        if x0.size < 2:
            raise ValueError("CMA-ES needs at least two unknowns: use method='random' for one")
        self._es = cma.CMAEvolutionStrategy(x0, options.sigma, own | dict(options.cma))

    @property
    def sigma(self) -> float:
        return float(self._es.sigma)

    def ask(self) -> Any:
        self._asked = self._es.ask()
        return self._asked

    def tell(self, losses: np.ndarray) -> None:
        self._es.tell(self._asked, losses.tolist())

    def stopped(self) -> str:
        found = [k for k in self._es.stop() or {} if k != "maxiter"]
        return f"CMA-ES stopped: {', '.join(found)}" if found else ""


class Random:
    """Normally distributed candidates around the best one; sigma grows after a success and shrinks after a failure."""

    GROW, SHRINK = 1.5, 0.9

    def __init__(self, x0: np.ndarray, options: SearchOptions):
        self._sigma, self._best, self._bounds = options.sigma, x0, options.bounds
        self._least = float("inf")
        self._count = options.population or 4 + int(3 * log(x0.size))
        self._random = np.random.default_rng(options.seed)

    @property
    def sigma(self) -> float:
        return self._sigma

    def ask(self) -> Any:
        self._asked = self._best + self._sigma * self._random.standard_normal((self._count, self._best.size))
        if self._bounds:
            self._asked = self._asked.clip(*self._bounds)
        if self._least == float("inf"):
            self._asked[0] = self._best  # the start is also a candidate
        return self._asked

    def tell(self, losses: np.ndarray) -> None:
        k = int(losses.argmin())
        better = losses[k] < self._least
        if better:
            self._least, self._best = losses[k], self._asked[k]
        self._sigma *= self.GROW if better else self.SHRINK

    def stopped(self) -> str:
        return ""


METHODS: dict[str, Callable[[np.ndarray, SearchOptions], Method]] = {"cma": CMA, "random": Random}
