"""Equality constraints of MJCF: connect, weld, joint and tendon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from costate.model.constraint import Connect, Constraint, Couple, Weld
from costate.model.errors import Assumptions
from costate.model.mjcf.flags import is_off
from costate.model.mjcf.geom import softness
from costate.model.mjcf.tendon import tendon_name
from costate.model.rotation import from_wxyz
from costate.model.transform import Transform

_CONNECT, _WELD, _JOINT, _TENDON = 0, 1, 2, 3
_SITE = 6


def read_constraints(
    mj: Any, links: Sequence[str], joint: Callable[[int], str], assumed: Assumptions
) -> tuple[Constraint, ...]:
    """Return the constraints. Those that are switched off, or of another kind, are left out with a note.

    links: names by body; joint: name of a joint by its number.
    """
    found: list[Constraint] = []
    if is_off(mj, "equality") or is_off(mj, "constraint"):
        return ()
    for e in range(mj.neq):
        kind = int(mj.eq_type[e])
        if kind not in (_CONNECT, _WELD, _JOINT, _TENDON) or not mj.eq_active0[e]:
            assumed.note(
                "equality constraints that are inactive or not connect, weld, joint or tendon, left out",
                mj.equality(e).name or str(e),
            )
            continue
        soft = softness(mj.eq_solref[e], mj.eq_solimp[e])
        data = np.array(mj.eq_data[e])
        if kind in (_JOINT, _TENDON):
            found.append(_couple(mj, e, joint, data, soft))
            continue
        (a, at_a), (b, at_b) = (_frame(mj, e, int(x)) for x in (mj.eq_obj1id[e], mj.eq_obj2id[e]))
        sites = int(mj.eq_objtype[e]) == _SITE
        if kind == _CONNECT:
            points = (at_a.translation, at_b.translation) if sites else (data[0:3], data[3:6])
            found.append(Connect(links[a], links[b], *map(tuple, points), softness=soft))
            continue
        if sites:
            pose, anchor = at_a @ at_b.inverse(), at_b.translation
        else:
            R, anchor = from_wxyz(data[6:10]), data[0:3]
            pose = Transform(R, data[3:6] - R @ anchor)
        found.append(Weld(links[a], links[b], pose, tuple(anchor), float(data[10]), softness=soft))
    return tuple(found)


def _frame(mj: Any, e: int, which: int) -> tuple[int, Transform]:
    """Return the body, and the frame in it, of one side of a constraint."""
    if int(mj.eq_objtype[e]) != _SITE:
        return which, Transform()
    return int(mj.site_bodyid[which]), Transform(from_wxyz(mj.site_quat[which]), np.array(mj.site_pos[which]))


def _couple(mj: Any, e: int, joint: Callable[[int], str], data: np.ndarray, soft: Any) -> Couple:
    """Return a coupling of joints or tendons, counted from where they are in the reference configuration."""
    both = [int(k) for k in (mj.eq_obj1id[e], mj.eq_obj2id[e]) if k >= 0]
    if int(mj.eq_type[e]) == _TENDON:
        names, at = [tendon_name(mj, t) for t in both], [float(mj.tendon_length0[t]) for t in both]
    else:
        names, at = [joint(j) for j in both], [float(mj.qpos0[mj.jnt_qposadr[j]]) for j in both]
    other = names[1] if len(both) > 1 else None
    return Couple(names[0], other, tuple(map(float, data[:5])), (at[0], at[-1]), softness=soft)
