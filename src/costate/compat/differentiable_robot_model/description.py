"""Descriptions of robot files, which all models of a file share: links, limits, numbers and compiled functions.

Reading a file and tracing its functions takes much longer than anything else a new model needs. So both are kept for the
process, by the content of the file. What is shared never changes: arrays are read-only, and the kernels are those of a robot
without learnable parameters; a model that learns makes its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.kernel import Kernel
from costate.model import Inertia, Model, load_model
from costate.model.document import MAX_BYTES, Node, parse
from costate.model.errors import ModelError
from costate.model.joint import Joint
from costate.model.model import EARTH
from costate.model.urdf import Faulty
from costate.physics import Parameters
from costate.physics.params import Key

FILES = 64
"""Number of files that are remembered; the one that was not used for the longest time is forgotten first."""
_RANGED = ("revolute", "prismatic", "continuous")


@dataclass(frozen=True, eq=False)
class Description:
    """A robot file, read."""

    links: tuple[str, ...]
    """Links in the order of the file."""
    without_inertia: tuple[str, ...]
    """Links without <inertial>."""
    model: Model
    weightless: Model
    limits: Mapping[str, Mapping[str, float]]
    """Effort, lower, upper and velocity by the link that a joint moves."""
    constants: Mapping[Key, Array]
    """Numbers of the file by parameter and owner, with the shapes that KINDS lists."""
    poses: dict[str, Kernel] = field(default_factory=dict)
    """Kernels of poses by link."""
    kernels: dict[Any, Kernel] = field(default_factory=dict)
    """Kernels of other functions by name and options."""

    @staticmethod
    def read(path: str | Path, unit_inertia: bool, mimic: bool, inertia: Faulty = "keep") -> Description:
        """Read a file, or return what an earlier call has read if the content is the same.

        unit_inertia: Give links without <inertial> mass 1 and inertia 1.
        mimic: Let mimic joints follow others; else they are joints like any other.
        inertia: What to do with inertias that no body can have; the original never looks at them.
        """
        path = Path(path)
        return _read(path.absolute(), _digest(path), unit_inertia, mimic, inertia)


@lru_cache(maxsize=FILES)
def _read(path: Path, digest: str, unit_inertia: bool, mimic: bool, inertia: Faulty) -> Description:
    root = parse(path)
    model = load_model(path, floating_base=False, inertia=inertia).with_gravity(EARTH.copy())
    if _digest(path) != digest:
        raise ModelError(f"{path}: the file changed while it was read; load it again")
    nodes = list(root.children("link"))
    without_inertia = tuple(node.name() for node in nodes if node.child("inertial") is None)
    if unit_inertia:
        model = _with_unit_inertias(model, without_inertia)
    if not mimic:
        model = replace(model, joints=tuple(replace(j, mimic=None) for j in model.joints))
    elements = {node.name(): node for node in root.children("joint")}
    params = Parameters.of(model)
    return Description(
        links=tuple(node.name() for node in nodes),
        without_inertia=without_inertia,
        model=_read_only(model),
        weightless=_read_only(model.with_gravity(np.zeros(3))),
        limits={j.child: _limits(j, elements.get(j.name)) for j in model.joints if j.kind != "fixed"},
        constants={key: params.number(key) for key in params.values},
    )


def _limits(joint: Joint, element: Node | None) -> dict[str, float]:
    """Return the limits of a joint as the original gives them: where there is a <limit>, its missing ends are zero."""
    lower, upper = float(joint.lower[0]), float(joint.upper[0])
    limit = None if element is None else element.child("limit")
    if limit is not None and joint.kind in _RANGED:
        lower, upper = (limit.number(end, 0.0, infinite=True) for end in ("lower", "upper"))
    return {
        "effort": float(joint.max_effort[0]),
        "lower": lower,
        "upper": upper,
        "velocity": float(joint.max_velocity[0]),
    }


def _with_unit_inertias(model: Model, links: tuple[str, ...]) -> Model:
    unit = Inertia(1.0, np.zeros(3), np.eye(3))
    return replace(model, links=tuple(replace(x, inertia=unit) if x.name in links else x for x in model.links))


def _read_only(model: Model) -> Model:
    """Return a model after making its numbers read-only, with those that it computes once and keeps."""
    for name in ("lower", "upper", "max_velocity", "max_effort"):
        getattr(model, name)
    owners = [model, *(x.inertia for x in model.links), *model.joints, *(j.origin for j in model.joints)]
    for owner in owners:
        for value in vars(owner).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
    return model


def _digest(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        parse(path)  # raises an error that says what is wrong
    return blake2b(path.read_bytes()).hexdigest()
