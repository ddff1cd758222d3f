"""Actuators of MJCF: motor, position and velocity, on joints and on fixed tendons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from costate.model.errors import Assumptions
from costate.model.joint import Actuator
from costate.model.mjcf.tendon import is_fixed, tendon_name

_ON_JOINT, _ON_TENDON = (0, 1), 3  # mjtTrn
_NO_BIAS, _AFFINE_BIAS, _FIXED_GAIN, _NO_DYNAMICS = 0, 1, 0, 0
_ONE_COORDINATE = (2, 3)  # mjtJoint: slide, hinge
_NOT_KEPT = ("delay", "armature", "damping", "dampingpoly")
"""Attributes that newer versions of MuJoCo add."""


def read_actuators(mj: Any, joint: Callable[[int], str], assumed: Assumptions) -> tuple[Actuator, ...]:
    """Return the actuators whose force is gain * control + offset - stiffness * length - damping * speed.

    joint: name of a joint by its number.
    """
    found = []
    for a in range(len(mj.actuator_trntype)):
        name = mj.actuator(a).name or f"actuator{a}"
        if not _is_affine(mj, a) or not _has_one_length(mj, a):
            assumed.note("actuators that are not plain motors or servos on a joint or a fixed tendon, left out", name)
            continue
        found.append(_actuator(mj, a, name, joint))
    return tuple(found)


def _is_affine(mj: Any, a: int) -> bool:
    extras = (getattr(mj, f"actuator_{what}", None) for what in _NOT_KEPT)
    if any(x is not None and np.any(x[a]) for x in extras):
        return False
    bias, gain, dynamics = (int(x[a]) for x in (mj.actuator_biastype, mj.actuator_gaintype, mj.actuator_dyntype))
    return bias in (_NO_BIAS, _AFFINE_BIAS) and gain == _FIXED_GAIN and dynamics == _NO_DYNAMICS


def _has_one_length(mj: Any, a: int) -> bool:
    on, which = int(mj.actuator_trntype[a]), int(mj.actuator_trnid[a, 0])
    if on == _ON_TENDON:
        return is_fixed(mj, which)
    return on in _ON_JOINT and int(mj.jnt_type[which]) in _ONE_COORDINATE


def _actuator(mj: Any, a: int, name: str, joint: Callable[[int], str]) -> Actuator:
    """Return an actuator. MuJoCo's numbers are for lengths times the gear; ours are for the joint or tendon itself."""
    which, on_tendon = int(mj.actuator_trnid[a, 0]), int(mj.actuator_trntype[a]) == _ON_TENDON
    gear = float(mj.actuator_gear[a, 0])
    biased = int(mj.actuator_biastype[a]) == _AFFINE_BIAS
    offset, along, speed = map(float, mj.actuator_biasprm[a, :3]) if biased else (0.0, 0.0, 0.0)
    lower, upper = map(float, mj.actuator_ctrlrange[a] if mj.actuator_ctrllimited[a] else (-np.inf, np.inf))
    forces = np.array(mj.actuator_forcerange[a] if mj.actuator_forcelimited[a] else (-np.inf, np.inf))
    weakest, strongest = sorted(map(float, forces * gear)) if gear else (0.0, 0.0)
    return Actuator(
        name=name,
        joint="" if on_tendon else joint(which),
        gear=gear * float(mj.actuator_gainprm[a, 0]),
        lower=lower,
        upper=upper,
        tendon=tendon_name(mj, which) if on_tendon else "",
        offset=gear * offset,
        stiffness=-along * gear**2,
        damping=-speed * gear**2,
        weakest=weakest,
        strongest=strongest,
    )
