"""Which checks a budget allows."""

from __future__ import annotations

import casadi as ca

from costate.audit.budget import ALL, left_out, operations, plan
from costate.kernel import Kernel


def test_small_functions_come_first_and_what_is_missing_is_said() -> None:
    x = ca.SX.sym("x")
    long = x
    for _ in range(50):
        long = ca.sin(long)
    kernels = {"long": Kernel("long", {"x": x}, {"y": long}), "short": Kernel("short", {"x": x}, {"y": ca.sin(x)})}
    assert operations(kernels["long"]) > 10 * operations(kernels["short"])
    assert plan(kernels, budget=1e6) == {"long": ALL, "short": ALL} and not left_out(plan(kernels, budget=1e6))
    chosen = plan(kernels, budget=5 * sum(map(operations, kernels.values())))
    assert chosen["short"] == ALL and not chosen["long"].second_order
    assert "second order left out, to save time, for long; --full" in " ".join(left_out(chosen))
