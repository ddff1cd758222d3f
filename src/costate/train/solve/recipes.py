"""The table of tasks that `costate solve` knows: which optimisers solve them, with which options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from costate.core.names import unknown
from costate.optimise.direct import DirectOptions
from costate.optimise.gauss_newton import GaussNewtonOptions
from costate.optimise.ilqr import ILQROptions
from costate.optimise.search import SearchOptions
from costate.optimise.solution import OptimiserOptions
from costate.train.solve.problems import Solvable


@dataclass(frozen=True)
class Recipe:
    """A way to solve a task."""

    task: str
    """Class of the task, as module:class in `costate.tasks`."""
    options: Mapping[str, OptimiserOptions]
    """Optimisers and their options; the first one is the usual one, "search" the reference without gradients."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the task that differ from their defaults."""
    to_the_end: bool = False
    """True: look for the minimum instead of stopping at the target."""

    def make(self, **changes: Any) -> Solvable:
        """Return the task."""
        module, _, name = self.task.partition(":")
        return getattr(import_module(f"costate.tasks.{module}"), name)(**{**self.fields, **changes})


def _newton(iterations: int, **options: Any) -> GaussNewtonOptions:
    return GaussNewtonOptions(iterations=iterations, batched=True, **options)


_IDENTIFY = {
    "gauss_newton": _newton(40, damping=1.0, loss_tolerance=1e-9),
    "search": SearchOptions(iterations=300, sigma=0.3, batched=True),
}

RECIPES: dict[str, Recipe] = {
    "throw": Recipe(
        "throw:Throw",
        {"gauss_newton": _newton(20), "search": SearchOptions(iterations=500, sigma=0.3, batched=True)},
    ),
    "throw_knots": Recipe(
        "throw:Throw",
        {"gauss_newton": _newton(20), "search": SearchOptions(iterations=500, sigma=0.3, batched=True)},
        {"knots": 6},
    ),
    "throw_fine": Recipe(
        "throw:Throw",
        {"gauss_newton": _newton(20), "search": SearchOptions(iterations=500, sigma=0.3, batched=True)},
        {"tolerance": 1e-4},
    ),
    "golf": Recipe(
        "golf:Golf",
        {"gauss_newton": _newton(50), "search": SearchOptions(iterations=1500, sigma=0.3, batched=True)},
    ),
    "racecar": Recipe(
        "racecar:Racecar",
        {
            "gauss_newton": _newton(10),
            "search": SearchOptions(iterations=100, sigma=0.3, batched=True, method="random"),
        },
    ),
    **{
        f"pendulum{n}": Recipe(
            "pendulum:Pendulum",
            {
                "ilqr": ILQROptions(iterations=500),
                "search": SearchOptions(iterations=500, sigma=0.3, batched=True),
            },
            {"links": n} | ({"strength": 0.5, "drawn": False} if n < 3 else {}),
        )
        for n in range(1, 8)
    },
    "push": Recipe(
        "push:Push",
        {
            "ilqr": ILQROptions(iterations=100),
            "gauss_newton": _newton(40),
            "search": SearchOptions(iterations=500, sigma=0.3, batched=True),
        },
    ),
    "identify_contact": Recipe("identify_contact:IdentifyContact", _IDENTIFY, {"system": "bounce"}, to_the_end=True),
    "identify_cart_pole": Recipe(
        "identify_contact:IdentifyContact", _IDENTIFY, {"system": "cart_pole"}, to_the_end=True
    ),
    "identify_double_pendulum": Recipe(
        "identify_contact:IdentifyContact", _IDENTIFY, {"system": "double_pendulum"}, to_the_end=True
    ),
    "reach": Recipe(
        "reach:Reach",
        {
            "gauss_newton": _newton(40, damping=1e-2, cg_iterations=30, cg_tolerance=0.1),
            "search": SearchOptions(iterations=500, sigma=0.1, batched=True),
        },
    ),
    "insertion_bound": Recipe("insertion.least_time.bound:InsertionBound", {"direct": DirectOptions(method="inverse")}),
    "insertion_bound_moving": Recipe(
        "insertion.least_time.bound:InsertionBound", {"direct": DirectOptions(method="inverse")}, {"moving": True}
    ),
}


def recipe(name: str) -> Recipe:
    """Return the row of a task."""
    if name not in RECIPES:
        raise ValueError(unknown("task", name, RECIPES))
    return RECIPES[name]
