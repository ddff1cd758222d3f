"""Equality constraints of MJCF: connect, weld and joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from costate.model.constraint import Connect, Constraint, Couple, Weld
from costate.model.errors import Assumptions
from costate.model.mjcf_geom import softness
from costate.model.model import Transform
from costate.model.rotation import from_wxyz

_CONNECT, _WELD, _JOINT = 0, 1, 2
_SITE = 6


def read_constraints(
    mj: Any, links: Sequence[str], joint: Callable[[int], str], assumed: Assumptions
) -> tuple[Constraint, ...]:
    """links: names by body; joint: name by number. What is switched off, or of another kind, is left out with a note."""
    found: list[Constraint] = []
    for e in range(mj.neq):
        kind = int(mj.eq_type[e])
        if kind not in (_CONNECT, _WELD, _JOINT) or not mj.eq_active0[e]:
            assumed.note(
                "equality constraints that are inactive or not connect, weld or joint, left out",
                mj.equality(e).name or str(e),
            )
            continue
        soft = softness(mj.eq_solref[e], mj.eq_solimp[e])
        data = np.array(mj.eq_data[e])
        if kind == _JOINT:
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
    """Body, and frame in it, of one side of a constraint."""
    if int(mj.eq_objtype[e]) != _SITE:
        return which, Transform()
    return int(mj.site_bodyid[which]), Transform(from_wxyz(mj.site_quat[which]), np.array(mj.site_pos[which]))


def _couple(mj: Any, e: int, joint: Callable[[int], str], data: np.ndarray, soft: Any) -> Couple:
    first, second = int(mj.eq_obj1id[e]), int(mj.eq_obj2id[e])
    at = [float(mj.qpos0[mj.jnt_qposadr[j]]) if j >= 0 else 0.0 for j in (first, second)]
    other = joint(second) if second >= 0 else None
    return Couple(joint(first), other, tuple(map(float, data[:5])), (at[0], at[1]), softness=soft)
