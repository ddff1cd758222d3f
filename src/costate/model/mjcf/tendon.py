"""Tendons of MJCF: the fixed ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from costate.model.errors import Assumptions
from costate.model.mjcf.geom import softness
from costate.model.surface import Bounds
from costate.model.tendon import FixedTendon

_OVER_JOINTS = 1  # mjtWrap
_NOT_KEPT = ("armature", "stiffnesspoly", "dampingpoly", "springyield")
"""Attributes that are left out, if this version of MuJoCo knows them."""


def tendon_name(mj: Any, t: int) -> str:
    """Return the name of a tendon. In MJCF it may be that of a joint; in a model names differ."""
    name = mj.tendon(t).name or f"tendon{t}"
    joints = {mj.joint(j).name or f"joint{j}" for j in range(mj.njnt)}
    return f"{name}_tendon" if name in joints else name


def is_fixed(mj: Any, t: int) -> bool:
    """Return whether a tendon runs over joints only."""
    return int(mj.wrap_type[mj.tendon_adr[t]]) == _OVER_JOINTS


def read_tendons(mj: Any, joint: Callable[[int], str], assumed: Assumptions) -> tuple[FixedTendon, ...]:
    """Return the fixed tendons; spatial ones are left out with a note. joint: name of a joint by its number."""
    found = []
    for t in range(mj.ntendon):
        if not is_fixed(mj, t):
            assumed.note("spatial tendons, left out", tendon_name(mj, t))
            continue
        extras = (getattr(mj, f"tendon_{what}", None) for what in _NOT_KEPT)
        if any(x is not None and np.any(x[t]) for x in extras):
            assumed.note("armature, yield and nonlinear springs and dampers of tendons, left out", tendon_name(mj, t))
        found.append(_tendon(mj, t, joint))
    return tuple(found)


def _tendon(mj: Any, t: int, joint: Callable[[int], str]) -> FixedTendon:
    first = int(mj.tendon_adr[t])
    joints: dict[str, float] = {}
    for w in range(first, first + int(mj.tendon_num[t])):
        name = joint(int(mj.wrap_objid[w]))
        joints[name] = joints.get(name, 0.0) + float(mj.wrap_prm[w])
    lower, upper = mj.tendon_range[t] if mj.tendon_limited[t] else (-np.inf, np.inf)
    low, high = map(float, mj.tendon_lengthspring[t])
    effort = np.abs(mj.tendon_actfrcrange[t]).max() if mj.tendon_actfrclimited[t] else np.inf
    return FixedTendon(
        name=tendon_name(mj, t),
        joints=joints,
        stiffness=float(mj.tendon_stiffness[t]),
        rest=(low, high),
        damping=float(mj.tendon_damping[t]),
        friction=float(mj.tendon_frictionloss[t]),
        lower=float(lower),
        upper=float(upper),
        max_effort=float(effort),
        bounds=Bounds(
            softness(mj.tendon_solref_lim[t], mj.tendon_solimp_lim[t]),
            softness(mj.tendon_solref_fri[t], mj.tendon_solimp_fri[t]),
            float(mj.tendon_margin[t]),
        ),
    )
