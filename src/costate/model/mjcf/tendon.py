"""Tendons of MJCF: fixed ones over joints, and spatial ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from costate.model.errors import Assumptions
from costate.model.mjcf.geom import softness
from costate.model.rotation import from_wxyz
from costate.model.surface import Bounds
from costate.model.tendon import FixedTendon, Pulley, SpatialTendon, Tendon, Via, Wrap
from costate.model.transform import Transform

_JOINT, _PULLEY, _SITE = 1, 2, 3  # mjtWrap
_ROUND = {4: "sphere", 5: "cylinder"}
_NOT_KEPT = ("armature", "stiffnesspoly", "dampingpoly", "springyield")
"""Attributes that are left out, if this version of MuJoCo knows them."""


def tendon_name(mj: Any, t: int) -> str:
    """Return the name of a tendon. In MJCF it may be that of a joint; in a model names differ."""
    name = mj.tendon(t).name or f"tendon{t}"
    joints = {mj.joint(j).name or f"joint{j}" for j in range(mj.njnt)}
    return f"{name}_tendon" if name in joints else name


def read_tendons(
    mj: Any, links: Sequence[str], joint: Callable[[int], str], assumed: Assumptions
) -> tuple[Tendon, ...]:
    """Return all tendons. links: names by body; joint: name of a joint by its number."""
    found: list[Tendon] = []
    for t in range(mj.ntendon):
        name = tendon_name(mj, t)
        extras = (getattr(mj, f"tendon_{what}", None) for what in _NOT_KEPT)
        if any(x is not None and np.any(x[t]) for x in extras):
            assumed.note("armature, yield and nonlinear springs and dampers of tendons, left out", name)
        wraps = range(int(mj.tendon_adr[t]), int(mj.tendon_adr[t] + mj.tendon_num[t]))
        if int(mj.wrap_type[wraps[0]]) == _JOINT:
            found.append(FixedTendon(name, _coefficients(mj, wraps, joint), **_elastic(mj, t)))
        else:
            found.append(SpatialTendon(name, tuple(_path(mj, wraps, links)), **_elastic(mj, t)))
    return tuple(found)


def _coefficients(mj: Any, wraps: range, joint: Callable[[int], str]) -> dict[str, float]:
    joints: dict[str, float] = {}
    for w in wraps:
        name = joint(int(mj.wrap_objid[w]))
        joints[name] = joints.get(name, 0.0) + float(mj.wrap_prm[w])
    return joints


def _path(mj: Any, wraps: range, links: Sequence[str]) -> Iterator[Via | Wrap | Pulley]:
    for w in wraps:
        kind, which, number = int(mj.wrap_type[w]), int(mj.wrap_objid[w]), float(mj.wrap_prm[w])
        if kind == _PULLEY:
            yield Pulley(number)
        elif kind == _SITE:
            yield _via(mj, which, links)
        else:
            pose = Transform(from_wxyz(mj.geom_quat[which]), np.array(mj.geom_pos[which]))
            side = _via(mj, round(number), links) if number >= 0 else None
            radius, link = float(mj.geom_size[which, 0]), links[int(mj.geom_bodyid[which])]
            yield Wrap(link, radius, "sphere" if _ROUND[kind] == "sphere" else "cylinder", pose, side)


def _via(mj: Any, site: int, links: Sequence[str]) -> Via:
    return Via(links[int(mj.site_bodyid[site])], tuple(map(float, mj.site_pos[site])))


def _elastic(mj: Any, t: int) -> dict[str, Any]:
    """Return the fields of a tendon's spring, damper, friction and limits."""
    lower, upper = mj.tendon_range[t] if mj.tendon_limited[t] else (-np.inf, np.inf)
    low, high = map(float, mj.tendon_lengthspring[t])
    efforts = tuple(map(float, mj.tendon_actfrcrange[t])) if mj.tendon_actfrclimited[t] else None
    return {
        "stiffness": float(mj.tendon_stiffness[t]),
        "rest": (low, high),
        "damping": float(mj.tendon_damping[t]),
        "friction": float(mj.tendon_frictionloss[t]),
        "lower": float(lower),
        "upper": float(upper),
        "max_effort": max(map(abs, efforts)) if efforts else np.inf,
        "efforts": efforts,
        "bounds": Bounds(
            softness(mj.tendon_solref_lim[t], mj.tendon_solimp_lim[t]),
            softness(mj.tendon_solref_fri[t], mj.tendon_solimp_fri[t]),
            float(mj.tendon_margin[t]),
        ),
    }
