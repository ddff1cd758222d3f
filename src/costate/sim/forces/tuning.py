"""Numbers of actuators as inputs of a step: World(parameters=["actuator_stiffness:arm/elbow", "actuator_limit"]).

Every number that an actuator is made of may be one, under the name of its field. A step is built from drives that hold symbols in
place of these numbers, so the laws of actuators.py, and those of a user's own actuator, need not know about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from casadi import SX

from costate.sim.forces.actuators import HIDDEN, PREFIX

if TYPE_CHECKING:
    from costate.sim.setup import Drive


def numbers(d: Drive) -> dict[str, np.ndarray]:
    """Return the numbers of a drive that may be inputs, by the names of its actuator's fields."""
    resolved = {"limit": d.limit, "stiffness": d.stiffness, "damping": d.damping, "gain": d.damping}
    found: dict[str, Any] = {"limit": d.limit}
    if is_dataclass(d.actuator):
        for f in fields(d.actuator):
            value = getattr(d.actuator, f.name)
            found[f.name] = resolved.get(f.name) if value is None else value
    return {name: np.atleast_1d(np.array(x, float)) for name, x in found.items() if _is_numeric(name, x)}


def _is_numeric(name: str, value: Any) -> bool:
    several = value if isinstance(value, tuple) else (value,)
    return name not in HIDDEN and all(isinstance(x, Real) and not isinstance(x, bool) for x in several)


def owned(drives: Sequence[Drive], parameter: str) -> dict[int, np.ndarray]:
    """Return the drives that a parameter "actuator_FIELD" or "actuator_FIELD:NAME" is about, by number, and their values.

    NAME: Joint or tendon ("robot/joint", or "joint"), or robot; without it all actuators that have the field.
    """
    kind, _, owner = parameter.partition(":")
    field = kind.removeprefix(PREFIX)
    chosen = {k: numbers(d) for k, d in enumerate(drives) if not owner or owner in _names(d)}
    if not chosen:
        names = ", ".join(dict.fromkeys(d.joint for d in drives)) or "none"
        raise ValueError(f"parameter '{parameter}': no actuator acts on '{owner}'; actuated are {names}")
    found = {k: own[field] for k, own in chosen.items() if field in own}
    if not found:
        known = dict.fromkeys(f"{PREFIX}{name}" for own in chosen.values() for name in own)
        raise ValueError(
            f"parameter '{parameter}': these actuators have no number of this name; use {', '.join(known)}"
        )
    return found


def _names(d: Drive) -> tuple[str, str, str]:
    return d.joint, d.joint.partition("/")[2], d.joint.split("/")[0]


def tuned(drives: Sequence[Drive], given: Mapping[str, SX]) -> tuple[Drive, ...]:
    """Return the drives with symbols in place of the numbers that are parameters. given: parameter -> symbol."""
    symbols: dict[int, dict[str, SX]] = {}
    for parameter, symbol in given.items():
        if not parameter.startswith(PREFIX):
            continue
        field = parameter.partition(":")[0].removeprefix(PREFIX)
        own = owned(drives, parameter)
        parts = ca.vertsplit(symbol, np.cumsum([0, *(x.size for x in own.values())]).tolist())
        for k, part in zip(own, parts, strict=True):
            if field in symbols.setdefault(k, {}):
                raise ValueError(f"parameter '{parameter}': '{PREFIX}{field}' of '{drives[k].joint}' is named twice")
            symbols[k][field] = part
    return tuple(_with(d, symbols[k]) if k in symbols else d for k, d in enumerate(drives))


def _with(d: Drive, symbols: Mapping[str, SX]) -> Drive:
    """Return a drive with symbols in place of some numbers, and with what follows from them."""
    actuator = copy(d.actuator)  # and not `replace`, which would check symbols as if they were numbers
    for name, value in {**numbers(d), **symbols}.items():
        if name in symbols or (name != "limit" and getattr(actuator, name) is None):
            several = ca.vertsplit(value) if isinstance(value, SX) else value.tolist()
            object.__setattr__(actuator, name, tuple(several) if len(several) > 1 else several[0])

    def inertia() -> float:
        raise ValueError(f"the gains of the actuator of '{d.joint}' follow from an inertia: they cannot be parameters")

    stiffness, damping = actuator.gains(inertia)
    return replace(d, actuator=actuator, stiffness=stiffness, damping=damping, limit=symbols.get("limit", d.limit))
