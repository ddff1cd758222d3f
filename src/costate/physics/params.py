"""The physical parameters of a robot, each a number or a symbol.

A number is folded into the code of a kernel; a symbol becomes one of its inputs. So only parameters that are learnt, or
that differ between samples, cost time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.model.joint import Joint
from costate.model.model import Link, Model

# Parameter -> (kind of its owner, shape). Units and frames: see `Joint` and `Inertia` in costate.model.
KINDS: dict[str, tuple[str, tuple[int, int]]] = {
    "mass": ("link", (1, 1)),
    "com": ("link", (3, 1)),
    "inertia": ("link", (3, 3)),  # about the centre of mass, link axes
    "rotation": ("joint", (3, 3)),  # of the joint frame in the parent link
    "translation": ("joint", (3, 1)),
    "axis": ("joint", (3, 1)),  # need not be a unit vector when symbolic
    "damping": ("joint", (1, 1)),
    "friction": ("joint", (1, 1)),
    "armature": ("joint", (1, 1)),
    "stiffness": ("joint", (1, 1)),
    "rest": ("joint", (1, 1)),
    "gravity": ("model", (3, 1)),
}

# Entries of rotations this close to 0 or +-1 are rounded to them: cos(pi / 2) is 6e-17 in floating point.
ROTATION_ROUNDOFF = 1e-15

Key = tuple[str, str]
"""Parameter and name of its link or joint; the name is "" for gravity."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """All physical parameters of one model, by (parameter, owner's name)."""

    values: Mapping[Key, SX]

    @staticmethod
    @lru_cache(maxsize=32)
    def of(model: Model) -> Parameters:
        """Return the parameters of a model, all of them constant. Cached, so that functions of a robot share one `Tree`."""
        values: dict[Key, SX] = {("gravity", ""): _constant(model.gravity)}
        for link in model.links:
            values.update({(kind, link.name): _constant(x) for kind, x in _of_link(link).items()})
        for joint in model.joints:
            values.update({(kind, joint.name): _constant(x) for kind, x in _of_joint(joint).items()})
        return Parameters(values)

    def __getitem__(self, key: Key) -> SX:
        return self.values[self._known(key)]

    def replace(self, values: Mapping[Key, SX | ca.DM | NDArray | float]) -> Parameters:
        """Return a copy in which some parameters have other values: numbers, or expressions of any symbols."""
        if not values:
            return self
        changed = {}
        for key, value in values.items():
            shape = KINDS[self._known(key)[0]][1]
            new = value if isinstance(value, SX) else _constant(value)
            if new.shape != shape:
                raise ValueError(f"parameter {key}: got shape {new.shape}, expected {shape}")
            changed[key] = new
        return Parameters({**self.values, **changed})

    def symbolic(self, keys: Iterable[Key]) -> tuple[Parameters, dict[str, SX]]:
        """Turn some parameters into inputs: return the new parameters, and the symbols by name such as "mass:forearm"."""
        symbols = {key: SX.sym(":".join(key).rstrip(":"), *KINDS[self._known(key)[0]][1]) for key in keys}
        return self.replace(symbols), {":".join(key).rstrip(":"): x for key, x in symbols.items()}

    def number(self, key: Key) -> NDArray[np.float64]:
        """Return the value of a constant parameter, with the shape that KINDS lists."""
        value = self[key]
        if not value.is_constant():
            raise ValueError(f"parameter {key} is symbolic: it has no single value")
        return np.array(ca.DM(ca.densify(value)))

    def _known(self, key: Key) -> Key:
        if key not in self.values:
            owners = sorted(name for kind, name in self.values if kind == key[0])
            hint = f"it exists for {owners}" if owners else f"parameters are {sorted(KINDS)}"
            raise KeyError(f"the robot has no parameter {key}: {hint}")
        return key


def _of_link(link: Link) -> dict[str, object]:
    return {"mass": link.inertia.mass, "com": link.inertia.com, "inertia": link.inertia.matrix}


def _of_joint(joint: Joint) -> dict[str, object]:
    scalars = {kind: getattr(joint, kind) for kind in ("damping", "friction", "armature", "stiffness", "rest")}
    return {
        "rotation": exact_rotation(joint.origin.rotation),
        "translation": joint.origin.translation,
        "axis": joint.axis,
        **scalars,
    }


def exact_rotation(R: NDArray) -> NDArray:
    """Remove rounding errors near 0 and +-1, so that quarter turns are exact and their zeros structural."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) < ROTATION_ROUNDOFF, nearest, R)


def _constant(value: object) -> SX:
    """Return a constant expression whose zeros are structural."""
    return SX(ca.sparsify(ca.DM(np.asarray(value, float))))
