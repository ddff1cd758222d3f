"""Compiles MJCF files by MuJoCo: here if a file is plain, else in a process of its own, with limits of time and memory."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from costate.core.confined import RefusedError, run_confined
from costate.core.extras import needs
from costate.core.limits import excess, limit
from costate.model.errors import Assumptions, ModelError
from costate.model.mjcf.limits import Content
from costate.model.mjcf.plain import is_plain
from costate.model.urdf.inertia import Faulty, is_possible, nearest_inertia

SCRIPT = Path(__file__).with_name("compile_file.py")
_FINITE = (
    *(
        "gravity",
        "qpos0",
        "qpos_spring",
        "body_pos",
        "body_quat",
        "body_ipos",
        "body_iquat",
        "body_mass",
        "body_inertia",
    ),
    *("geom_pos", "geom_quat", "geom_size", "geom_friction", "geom_rgba", "geom_solref", "geom_solimp"),
    *("jnt_pos", "jnt_axis", "jnt_stiffness", "jnt_margin", "jnt_solref", "jnt_solimp"),
    *("dof_damping", "dof_frictionloss", "dof_armature", "dof_solref", "dof_solimp"),
    *("actuator_gear", "actuator_gainprm", "actuator_biasprm"),
    *("wrap_prm", "tendon_stiffness", "tendon_damping", "tendon_frictionloss", "tendon_lengthspring", "tendon_margin"),
)
"""Arrays that must be finite; MuJoCo only warns."""
_MEND = '. It has no way to keep an inertia that no body can have: mend it, or load the file with inertia="repair"'
_MARGIN = 1e-9
"""Share of the trace by which repaired moments are raised: MuJoCo checks them without any tolerance."""
_ROWS, _COLUMNS = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
"""Places of the six numbers of `fullinertia` in a matrix."""


def compile_mjcf(path: Path, content: Content, inertia: Faulty, assumed: Assumptions) -> Any:
    """Return the MjModel of a file. inertia: what to do about inertias that no body can have."""
    try:
        import mujoco
    except ImportError:
        raise ModelError(needs(f"{path}: reading MJCF", "mujoco", "mjcf")) from None
    try:
        if is_plain(content) or not limit("read_seconds"):
            spec = mujoco.MjSpec.from_file(str(path))  # pyright: ignore[reportAttributeAccessIssue]
            repaired = repair_inertias(spec) if inertia == "repair" else []
            mj = spec.compile()
        else:
            mj, repaired = _compile_apart(mujoco, path, content, inertia)
    except ModelError:
        raise
    except ValueError as error:
        faulty = inertia != "repair" and "inertia" in str(error)
        raise ModelError(f"{path}: MuJoCo refuses this file: {error}{_MEND if faulty else ''}") from None
    for name in repaired:
        assumed.note("inertias that no body can have, repaired", name)
    for name in _FINITE:
        if not np.isfinite(getattr(mj.opt if name == "gravity" else mj, name)).all():
            raise ModelError(f"{path}: {name} is not finite; look for nan, inf and very large numbers in the file")
    return mj


def _compile_apart(mujoco: Any, path: Path, content: Content, inertia: Faulty) -> tuple[Any, list[str]]:
    """Compile a file in a process of its own, and read the binary model that it leaves, and what it repaired."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "model.mjb"
        try:
            found = json.loads(run_confined(SCRIPT, [path, result, inertia]).splitlines()[-1])
        except RefusedError:
            raise
        except ValueError as error:
            raise ModelError(f"{path}: {error}") from None
        if problem := excess("mjcf_copies", found["elements"] - content.count):
            raise ModelError(f"{path}: {problem}")
        for message in found["warnings"]:
            warnings.warn(message, stacklevel=4)
        return mujoco.MjModel.from_binary_path(str(result)), found["repaired"]


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
