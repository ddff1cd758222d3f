"""Forward dynamics by whichever algorithm takes fewer operations, and its derivative without differentiating it."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.aba import aba
from costate.physics.crba import crba
from costate.physics.ltl import factor
from costate.physics.params import Parameters
from costate.physics.passive import Passive
from costate.physics.rnea import Wrenches, rnea


def forward_dynamics_crba(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    f_ext: Wrenches | None = None,
    passive: Passive | None = Passive(),
) -> SX:
    """Joint accelerations M^-1 (tau - h) [rad/s^2 or m/s^2], shape (nv,), by CRBA and a sparse factorisation."""
    bias = rnea(model, params, q, v, SX(model.nv, 1), f_ext, passive)
    return factor(crba(model, params, q)).solve(tau - bias)
