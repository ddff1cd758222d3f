"""The check every differentiable function of the tests goes through: `costate.gradcheck`, with errors as failed assertions.

    check_gradients(lambda q, v: robot.forward_dynamics(q, v, tau), (q, v), names=("q", "v"))

A point where the function is not smooth fails too: tests choose their points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from costate.audit.check import GradientReport, Tolerances
from costate.audit.gradcheck import Function, gradcheck


def check_gradients(fn: Function, inputs: Sequence[torch.Tensor], **options: Any) -> GradientReport:
    """Options are those of `costate.gradcheck`; second order is checked where asked for."""
    report = gradcheck(fn, inputs, **{"second_order": False, **options})
    for check in report.checks:
        if check.kink or not check.ok:
            raise AssertionError(str(check))
    return report


__all__ = ["GradientReport", "Tolerances", "check_gradients"]
