"""Compiles MJCF files by MuJoCo: here if a file is plain, else in a process of its own, with limits of time and memory."""

from __future__ import annotations

import json
import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.core.confined import RefusedError, run_confined
from costate.core.extras import needs
from costate.core.limits import excess, limit
from costate.model.errors import Assumptions, ModelError
from costate.model.mjcf.inertia import repair_inertias
from costate.model.mjcf.limits import Content, numbers
from costate.model.urdf.inertia import Faulty

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

ELEMENTS = 2000
"""Largest number of elements of a plain file."""
ASSET_BYTES = 2 * 2**20
"""Largest size of all its meshes and textures; the hull of a mesh of 3 MB can take seconds."""
_ROWS = 3000
"""Largest number in <size>, but for those of the stack."""
_TAGS = frozenset(
    (
        *("mujoco", "mujocoinclude", "include", "compiler", "option", "flag", "size", "statistic", "default"),
        *("visual", "global", "quality", "headlight", "map", "scale", "rgba"),
        *("asset", "texture", "material", "layer", "mesh", "hfield"),
        *("worldbody", "body", "inertial", "joint", "freejoint", "geom", "site", "camera", "light", "frame"),
        *("contact", "pair", "exclude", "equality", "connect", "weld", "tendon", "fixed", "spatial", "pulley"),
        *("actuator", "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "adhesion"),
        *("sensor", "custom", "numeric", "text", "tuple", "element", "keyframe", "key"),
    )
)
_LARGEST = {
    "texture": (("width", "height"), 4_000_000),
    "hfield": (("nrow", "ncol"), 1_000_000),
    "numeric": (("size",), 100_000),
}
"""Attributes whose product is bounded, and the bound, by element."""


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


def is_plain(content: Content) -> bool:
    """Tell whether all of a file is of kinds whose cost is known, and small."""
    if content.asset_bytes > ASSET_BYTES or content.count > ELEMENTS:
        return False
    return all(_plain(element) for root in content.roots for element in root.iter(etree.Element))


def _plain(element: Any) -> bool:
    parent = element.getparent()
    sensor = parent is not None and parent.tag == "sensor" and element.tag not in ("plugin", "user")
    if element.tag not in _TAGS and not sensor:
        return False
    # Muscles are simulated for their range of lengths; delays need room for samples; built-in meshes are made to order.
    if "nsample" in element.attrib or "muscle" in element.attrib.values() or "octree_maxdepth" in element.attrib:
        return False
    if element.tag == "mesh" and "builtin" in element.attrib:
        return False
    if element.tag == "size":
        return all(max([0.0, *numbers(v)]) <= _ROWS for a, v in element.attrib.items() if a not in ("nstack", "memory"))
    attributes, most = _LARGEST.get(element.tag, ((), math.inf))
    return math.prod(max([1.0, *numbers(element.get(a, ""))]) for a in attributes) <= most
