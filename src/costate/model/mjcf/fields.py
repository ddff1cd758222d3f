"""The fields of MuJoCo's compiled model: which are read, which do not matter to the motion, and which are named when they are used.

A field that none of the tables has (one of a newer version of MuJoCo) is named, too, unless it is zero everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.model.errors import Assumptions

_GROUPS = {
    "body": "body",
    "jnt": "joint",
    "dof": "",
    "geom": "geom",
    "eq": "equality",
    "pair": "pair",
    "exclude": "exclude",
}
"""Groups of fields that are looked at, by their prefix, and the kind of element each number belongs to. Actuators and tendons are
looked at where they are read."""
_READ = {
    "body": "geomadr geomnum gravcomp inertia ipos iquat jntadr jntnum mass parentid pos quat",
    "jnt": "actfrclimited actfrcrange actgravcomp axis dofadr limited margin pos qposadr range solimp solref stiffness type",
    "dof": "armature damping frictionloss solimp solref",
    "geom": (
        "bodyid conaffinity condim contype dataid friction gap group margin matid pos priority quat rgba size solimp solmix solref "
        "type"
    ),
    "eq": "active0 data obj1id obj2id objtype solimp solref type",
    "pair": "dim friction gap geom1 geom2 margin solimp solref",
    "exclude": "signature",
}
"""Fields that are read."""
_DERIVED = {
    "body": (
        "bvhadr bvhnum conaffinity contype dofadr dofnum invweight0 margin rootid sameframe simple subtreemass treeid user weldid"
    ),
    "jnt": "actuatorid bodyid group plasticadr user",
    "dof": "M0 Madr bodyid invweight0 jntid length parentid simplenum treeid",
    "geom": "aabb castshadow rbound sameframe user",
    "eq": "",
    "pair": "signature",
    "exclude": "",
}
"""Fields that follow from others, or that do not matter to the motion."""
_OPTIONS = (
    "cone density disableactuator disableflags enableflags gravity impratio integrator noslip_iterations "
    "o_friction o_margin o_solimp o_solref timestep viscosity wind "  # read
    "ccd_iterations ccd_tolerance iterations jacobian ls_iterations ls_tolerance magnetic noslip_tolerance sdf_initpoints "
    "sdf_iterations sleep_tolerance solver tolerance apirate mpr_iterations mpr_tolerance"  # of solvers and sensors
)
"""Options that are read, and those of solvers and sensors."""


@dataclass(frozen=True)
class _Named:
    """A field that is not followed."""

    words: str
    unused: float = 0.0
    """Value of an element that does not use it."""
    when: Callable[[Any], bool] = lambda mj: True
    """Condition under which it matters."""


_NAMED = {
    "body_mocapid": _Named("bodies that are moved from outside (mocap), which stay where the file puts them", -1),
    "body_plugin": _Named("plugins of bodies, left out", -1),
    "jnt_springyield": _Named("springs that yield, which do not"),
    "jnt_stiffnesspoly": _Named("nonlinear springs, of which only the linear part is kept"),
    "dof_dampingpoly": _Named("nonlinear dampers, of which only the linear part is kept"),
    "geom_adhesion": _Named("adhesion, left out"),
    "geom_surfacevel": _Named("surfaces that move like a belt, which stand still"),
    "geom_plugin": _Named("plugins of geoms, left out", -1),
    "geom_fluid": _Named(
        "the ellipsoid model of fluids, in place of which the box model acts",
        when=lambda mj: bool(mj.opt.density or mj.opt.viscosity),
    ),
    "pair_adhesion": _Named("adhesion, left out"),
    "pair_solreffriction": _Named("a softness of their own for the friction of contact pairs, left out"),
}


def note_fields(mj: Any, assumed: Assumptions) -> None:
    """Note the fields of a compiled model that are used but not followed."""
    for name in compiled_fields(mj):
        values = np.asarray(getattr(mj, name))
        named = _NAMED.get(name) or _Named(f"numbers of MuJoCo's that are not known here ({name}), left out")
        if not values.size or (name in known_fields() and name not in _NAMED) or not named.when(mj):
            continue
        for k in np.flatnonzero((values.reshape(len(values), -1) != named.unused).any(1)):
            assumed.note(named.words, _element(mj, name, int(k)))
    for name in unknown_options(mj):
        if np.any(getattr(mj.opt, name)):
            assumed.note("options that are not followed", name)


def unknown_options(mj: Any) -> list[str]:
    """Return the options that the tables do not have, in the version of MuJoCo that is installed."""
    return [n for n in dir(mj.opt) if not n.startswith("_") and n not in _OPTIONS.split()]


def compiled_fields(mj: Any) -> list[str]:
    """Return the names of the fields that are looked at, in the version of MuJoCo that is installed."""
    return [n for n in dir(mj) if n.partition("_")[0] in _GROUPS and isinstance(getattr(mj, n), np.ndarray)]


def known_fields() -> set[str]:
    """Return the names of the fields in the tables."""
    listed = {f"{group}_{n}" for table in (_READ, _DERIVED) for group, names in table.items() for n in names.split()}
    return listed | set(_NAMED)


def _element(mj: Any, field: str, k: int) -> str:
    """Return the name of the element that a number belongs to, or what stands for it."""
    group = field.partition("_")[0]
    if group == "dof":
        group, k = "jnt", int(mj.dof_jntid[k])
    kind = _GROUPS[group]
    return getattr(mj, kind)(k).name or f"{kind}{k}"
