"""Inertias in MJCF files that no body can have: MuJoCo refuses them, unless they are repaired before it compiles the file."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.model.urdf.inertia import is_possible, nearest_inertia

_MARGIN = 1e-9
"""Share of the trace by which repaired moments are raised: MuJoCo checks them without any tolerance."""
_ROWS, _COLUMNS = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
"""Places of the six numbers of `fullinertia` in a matrix."""


def repair_inertias(spec: Any) -> list[str]:
    """Replace those inertias of a MuJoCo specification that no body can have by the nearest ones that a body can have; return the
    names of their bodies."""
    found = []
    for body in spec.bodies:
        given = _matrix(body) if body.explicitinertial else None
        if given is None or not np.isfinite(given).all() or is_possible(given):
            continue
        repaired = nearest_inertia(given)
        repaired += _MARGIN * np.trace(repaired) * np.eye(3)
        if np.isnan(body.fullinertia[0]):
            body.inertia = np.diag(repaired)  # its axes are those of the given one
        else:
            body.fullinertia = repaired[_ROWS, _COLUMNS]
        found.append(body.name or "a body without a name")
    return found


def _matrix(body: Any) -> np.ndarray:
    """Return the inertia (3, 3) that the file gives for a body, in the axes it gives it in."""
    if np.isnan(body.fullinertia[0]):
        return np.diag(body.inertia)
    matrix = np.zeros((3, 3))
    matrix[_ROWS, _COLUMNS] = body.fullinertia
    return matrix + np.triu(matrix, 1).T
