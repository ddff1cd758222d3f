"""The flags of MJCF: what a file switches off is taken out of the compiled model before it is read.

So a file without the flag "contact" has no shapes that may touch, one without "limit" has no limits, and so on, whatever is then
done with the robot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.model.errors import Assumptions

_ZEROED: dict[str, tuple[str, ...]] = {
    "equality": ("eq_active0",),
    "frictionloss": ("dof_frictionloss", "tendon_frictionloss"),
    "limit": ("jnt_limited", "tendon_limited"),
    "contact": ("geom_contype", "geom_conaffinity"),
    "spring": ("jnt_stiffness", "tendon_stiffness"),
    "damper": ("dof_damping", "tendon_damping"),
    "gravity": ("gravity",),
}
"""Flag -> fields of the compiled model that are zero without it."""
_CONSTRAINTS = ("equality", "frictionloss", "limit", "contact")
_WITHOUT_EFFECT = ("warmstart", "sensor", "midphase", "autoreset", "island", "energy", "fwdinv", "invdiscrete")
"""Flags that do not change the motion, or only the way to find it."""
_OF_SEARCH = ("nativeccd", "multiccd")
"""Flags of the search for contact points, which is our own in any case."""
_FOLLOWED = ("filterparent", "eulerdamp", "clampctrl", "actuation")
"""Flags that are settings of the model (`Physics`), or of its actuators."""
_SWITCHED_ON = ("override",)


def is_off(mj: Any, flag: str) -> bool:
    """Return whether a file switches a flag off."""
    return bool(int(mj.opt.disableflags) & _bits("mjtDisableBit", "mjDSBL_").get(flag, 0))


def is_on(mj: Any, flag: str) -> bool:
    """Return whether a file switches a flag on that is off by itself."""
    return bool(int(mj.opt.enableflags) & _bits("mjtEnableBit", "mjENBL_").get(flag, 0))


def follow_flags(mj: Any, assumed: Assumptions) -> None:
    """Take out of a compiled model what its flags switch off, and note the flags that are not followed."""
    off = {flag for flag in _bits("mjtDisableBit", "mjDSBL_") if is_off(mj, flag)}
    off |= set(_CONSTRAINTS) if "constraint" in off else set()
    off |= {"spring", "damper"} if "passive" in off else set()  # before MuJoCo 3.3.6
    for flag in off & set(_ZEROED):
        for name in _ZEROED[flag]:
            getattr(mj.opt if name == "gravity" else mj, name)[:] = 0
    if {"spring", "damper"} <= off:  # without both there are no passive forces at all
        mj.opt.density = mj.opt.viscosity = 0.0
        mj.body_gravcomp[:] = 0
    if is_on(mj, "override"):
        _override(mj)
    known = {*_ZEROED, *_WITHOUT_EFFECT, *_OF_SEARCH, *_FOLLOWED, "constraint", "passive"}
    if "refsafe" in off and not _is_safe(mj):
        assumed.note("flags that are not followed", "refsafe (times of solref stay above two time steps)")
    for flag in sorted(off - known - {"refsafe"}):
        assumed.note("flags that are not followed", flag)
    for flag in sorted(_bits("mjtEnableBit", "mjENBL_")):
        if is_on(mj, flag) and flag not in (*_SWITCHED_ON, *_WITHOUT_EFFECT):
            assumed.note("flags that are not followed", flag)


def _bits(enum: str, prefix: str) -> dict[str, int]:
    """Return flag -> its bit, in the version of MuJoCo that is installed."""
    import mujoco

    kind = getattr(mujoco, enum)
    return {n.removeprefix(prefix).lower(): int(getattr(kind, n)) for n in dir(kind) if n.startswith(prefix)}


def _override(mj: Any) -> None:
    """Give all contacts the numbers that the options have for them; margins of two geoms add up."""
    sliding, _, torsion, rolling, _ = mj.opt.o_friction
    mj.geom_margin[:], mj.pair_margin[:] = mj.opt.o_margin / 2, mj.opt.o_margin
    mj.geom_friction[:], mj.pair_friction[:] = (sliding, torsion, rolling), mj.opt.o_friction
    for of in (mj.geom_solref, mj.pair_solref):
        of[:] = mj.opt.o_solref
    for of in (mj.geom_solimp, mj.pair_solimp):
        of[:] = mj.opt.o_solimp


def _is_safe(mj: Any) -> bool:
    """Return whether no time constant is shorter than two time steps."""
    refs = (mj.geom_solref, mj.jnt_solref, mj.dof_solref, mj.eq_solref, mj.pair_solref, mj.tendon_solref_lim)
    times = np.concatenate([np.asarray(x)[:, 0] for x in (*refs, mj.tendon_solref_fri)])
    return not np.any((times > 0) & (times < 2 * mj.opt.timestep))
