"""Actuators of MJCF: what they act along, the laws of their forces, and their activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from costate.model.actuation import (
    Actuator,
    Crank,
    GeneralActuator,
    OnBody,
    OnJoint,
    OnSite,
    OnTendon,
    Site,
    Transmission,
)
from costate.model.actuation.actuator import ALL, Span
from costate.model.errors import Assumptions
from costate.model.mjcf.flags import is_off
from costate.model.mjcf.tendon import tendon_name
from costate.model.rotation import from_wxyz
from costate.model.transform import Transform

_JOINT, _IN_PARENT, _CRANK, _TENDON, _SITE, _BODY = range(6)  # mjtTrn
_GAINS = {0: "fixed", 1: "affine", 2: "muscle"}  # mjtGain
_BIASES = {0: "none", 1: "affine", 2: "muscle"}  # mjtBias
_DYNAMICS = {0: "none", 1: "integrator", 2: "filter", 3: "filterexact", 4: "muscle"}  # mjtDyn
_ONE_COORDINATE = (2, 3)  # mjtJoint: slide, hinge
_OVER_JOINTS = 1  # mjtWrap
_NOT_KEPT = ("delay", "armature", "damping", "dampingpoly")
"""Attributes that newer versions of MuJoCo add."""
_GROUPS = 31
"""Number of groups of actuators that can be switched off."""


def read_actuators(
    mj: Any, links: Sequence[str], joint: Callable[[int], str], assumed: Assumptions
) -> tuple[Actuator | GeneralActuator, ...]:
    """Return all actuators of known kinds. links: names by body; joint: name of a joint by its number."""
    found = []
    for a in range(len(mj.actuator_trntype)):
        name = mj.actuator(a).name or f"actuator{a}"
        reasons = list(_unknown(mj, a))
        for reason in reasons:
            assumed.note(f"actuators with {reason}, left out", name)
        if not reasons:
            found.append(_plain(mj, a, name, joint) if _is_plain(mj, a) else _general(mj, a, name, links, joint))
    return tuple(found)


def _unknown(mj: Any, a: int) -> Iterator[str]:
    """Yield what an actuator has that is not read."""
    if int(mj.actuator_plugin[a]) >= 0:
        yield "a plugin"
    for what, known in (("gain", _GAINS), ("bias", _BIASES), ("dyn", _DYNAMICS)):
        kind = int(getattr(mj, f"actuator_{what}type")[a])
        if kind not in known:
            yield f"a {what}type other than {', '.join(known.values())}"
    if int(mj.actuator_trntype[a]) > _BODY:
        yield "a transmission other than joint, tendon, site, slider-crank and body"
    for what in _NOT_KEPT:
        values = getattr(mj, f"actuator_{what}", None)
        if values is not None and np.any(values[a]):
            yield what
    states = int(mj.actuator_actnum[a])
    if states > 1:
        yield f"{states} activations"


def _is_plain(mj: Any, a: int) -> bool:
    """Return whether the force is gain * control + offset - stiffness * length - damping * speed, along one coordinate or a fixed
    tendon."""
    kinds = (mj.actuator_gaintype[a], mj.actuator_dyntype[a])
    if any(map(int, kinds)) or int(mj.actuator_biastype[a]) > 1 or _is_off(mj, a):
        return False
    on, which = int(mj.actuator_trntype[a]), int(mj.actuator_trnid[a, 0])
    if on == _TENDON:
        return int(mj.wrap_type[mj.tendon_adr[which]]) == _OVER_JOINTS and not mj.tendon_actfrclimited[which]
    return on in (_JOINT, _IN_PARENT) and int(mj.jnt_type[which]) in _ONE_COORDINATE


def _plain(mj: Any, a: int, name: str, joint: Callable[[int], str]) -> Actuator:
    """Return a plain actuator. MuJoCo's numbers are for lengths times the gear; ours are for the joint or tendon itself."""
    which, on_tendon = int(mj.actuator_trnid[a, 0]), int(mj.actuator_trntype[a]) == _TENDON
    gear = float(mj.actuator_gear[a, 0])
    biased = int(mj.actuator_biastype[a]) == 1
    offset, along, speed = map(float, mj.actuator_biasprm[a, :3]) if biased else (0.0, 0.0, 0.0)
    lower, upper = _controls(mj, a)
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


def _general(mj: Any, a: int, name: str, links: Sequence[str], joint: Callable[[int], str]) -> GeneralActuator:
    return GeneralActuator(
        name=name,
        on=_transmission(mj, a, links, joint),
        gain=_GAINS[int(mj.actuator_gaintype[a])],
        gain_numbers=tuple(map(float, mj.actuator_gainprm[a])),
        bias=_BIASES[int(mj.actuator_biastype[a])],
        bias_numbers=tuple(map(float, mj.actuator_biasprm[a])),
        dynamics=_DYNAMICS[int(mj.actuator_dyntype[a])],
        dynamics_numbers=tuple(map(float, mj.actuator_dynprm[a])),
        acts_early=bool(mj.actuator_actearly[a]),
        controls=_controls(mj, a),
        activations=_span(mj.actuator_actrange[a]) if mj.actuator_actlimited[a] else ALL,
        forces=_span(mj.actuator_forcerange[a]) if mj.actuator_forcelimited[a] else ALL,
        lengths=_span(mj.actuator_lengthrange[a]),
        ease=float(mj.actuator_acc0[a]),
        is_off=_is_off(mj, a),
    )


def _controls(mj: Any, a: int) -> Span:
    limited = mj.actuator_ctrllimited[a] and not is_off(mj, "clampctrl")
    return _span(mj.actuator_ctrlrange[a]) if limited else ALL


def _span(values: Any) -> Span:
    return float(values[0]), float(values[1])


def _is_off(mj: Any, a: int) -> bool:
    if is_off(mj, "actuation"):
        return True
    group = int(mj.actuator_group[a])
    return 0 <= group < _GROUPS and bool(int(mj.opt.disableactuator) >> group & 1)


def _transmission(mj: Any, a: int, links: Sequence[str], joint: Callable[[int], str]) -> Transmission:
    on, (which, other), gear = int(mj.actuator_trntype[a]), map(int, mj.actuator_trnid[a]), mj.actuator_gear[a]
    first = float(gear[0])
    if on in (_JOINT, _IN_PARENT):
        x, y, z, rx, ry, rz = map(float, gear)
        return OnJoint(joint(which), (x, y, z, rx, ry, rz), on == _IN_PARENT)
    if on == _TENDON:
        return OnTendon(tendon_name(mj, which), first)
    if on == _CRANK:
        return Crank(_site(mj, which, links), _site(mj, other, links), float(mj.actuator_cranklength[a]), first)
    if on == _SITE:
        x, y, z, rx, ry, rz = map(float, gear)
        reference = _site(mj, other, links) if other >= 0 else None
        return OnSite(_site(mj, which, links), (x, y, z, rx, ry, rz), reference)
    return OnBody(links[which], first)


def _site(mj: Any, s: int, links: Sequence[str]) -> Site:
    pose = Transform(from_wxyz(mj.site_quat[s]), np.array(mj.site_pos[s]))
    return Site(links[int(mj.site_bodyid[s])], pose)
