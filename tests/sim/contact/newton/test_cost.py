"""Costs of constraints: their differences are the work of their forces, and Hessians are differences of these."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from casadi import SX

from costate.sim.contact.newton.cost import Cost

COSTS = {
    "equality": Cost("equality", 3, "pyramidal", 1.0),
    "friction": Cost("friction", 1, "pyramidal", 1.0),
    "limit": Cost("limit", 1, "pyramidal", 1.0),
    "pyramid": Cost("contact", 4, "pyramidal", 1.0),
    "ellipse": Cost("contact", 3, "elliptic", 2.0),
}
D, MU = 1.7, (0.6, 0.8, 0.01)
POINTS = 20_000


@pytest.mark.parametrize("name", COSTS)
def test_the_work_of_the_force_is_the_cost(name: str) -> None:
    """Along straight ways, most of which cross a bound of the force, by the rule of the middle: its error there is 1 / POINTS^2."""
    cost = COSTS[name]
    mu = list(MU[: max(cost.dim - 1, 1)])
    x = [SX.sym(f"x{k}") for k in range(cost.dim)]
    given = SX(D), [SX(m) for m in mu]
    column = ca.vertcat(*x)
    value = ca.Function("value", [column], [cost.value(x, *given)])
    force = ca.Function("force", [column], [ca.vertcat(*cost.force(x, *given))])
    hessian = ca.Function("hessian", [column], [ca.densify(SX(cost.hessian(x, *given)))])
    random = np.random.default_rng(0)
    middles = (np.arange(POINTS) + 0.5) / POINTS
    for _ in range(12):
        start, end = random.uniform(-1, 1, (2, cost.dim))
        way = start[:, None] + np.outer(end - start, middles)
        work = float((end - start) @ np.array(force(way)).mean(1))
        assert float(value(end)) - float(value(start)) == pytest.approx(-work, abs=1e-7)
        h, along = 1e-6, random.uniform(-1, 1, cost.dim)
        ahead, behind = (np.array(force(start + s * h * along)).ravel() for s in (1, -1))
        np.testing.assert_allclose(
            np.array(hessian(start)) @ along, -(ahead - behind) / (2 * h), atol=1e-7, err_msg=str(start)
        )
