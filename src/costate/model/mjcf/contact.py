"""Contact lists of MJCF: pairs of geoms that may touch in their own way, and bodies that do not touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costate.model.errors import Assumptions
from costate.model.mjcf.flags import is_off
from costate.model.mjcf.geom import softness
from costate.model.surface import Listed, Surface


def listed_geoms(mj: Any) -> set[int]:
    """Return the geoms that some pair names."""
    return set() if _is_off(mj) else {int(g) for g in (*mj.pair_geom1, *mj.pair_geom2)}


def read_listed(mj: Any, assumed: Assumptions) -> tuple[Listed, ...]:
    """Return the pairs of geoms with contact properties of their own."""
    return () if _is_off(mj) else tuple(_pair(mj, k, assumed) for k in range(mj.npair))


def read_excluded(mj: Any, links: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of links that do not touch. links: names by body."""
    return tuple((links[int(s) >> 16], links[int(s) & 0xFFFF]) for s in mj.exclude_signature)


def _is_off(mj: Any) -> bool:
    return is_off(mj, "contact") or is_off(mj, "constraint")


def _pair(mj: Any, k: int, assumed: Assumptions) -> Listed:
    first, second = (mj.geom(int(g[k])).name for g in (mj.pair_geom1, mj.pair_geom2))
    sliding, across, torsion, rolling, rolling_across = map(float, mj.pair_friction[k])
    if sliding != across or rolling != rolling_across:
        assumed.note("friction of contact pairs that differs by direction, of which the first is kept", first)
    surface = Surface(
        friction=(sliding, torsion, rolling),
        condim=int(mj.pair_dim[k]),
        softness=softness(mj.pair_solref[k], mj.pair_solimp[k]),
        margin=float(mj.pair_margin[k]),
        gap=float(mj.pair_gap[k]),
    )
    return Listed((first, second), surface)
