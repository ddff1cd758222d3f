"""Loads a robot from a built-in name or a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from costate.core.names import did_you_mean
from costate.model.base import with_floating_base
from costate.model.builtin import builtin, builtin_names
from costate.model.document import parse
from costate.model.errors import ModelError
from costate.model.mjcf import read_mjcf
from costate.model.model import Model
from costate.model.urdf import Faulty, read_urdf
from costate.model.urdf.inertia import check_answer


def load_model(
    source: str | Path,
    floating_base: bool | None = None,
    package_dirs: Sequence[str | Path] = (),
    inertia: Faulty = "refuse",
) -> Model:
    """Return the robot of a built-in name ("ur5", "pendulum7"), or in a URDF or MJCF file.

    floating_base: True lets the base float, False fixes it to the world, None takes it as it is.
    package_dirs: folders in which the packages of a URDF's package://... meshes are looked for.
    inertia: what to do with negative principal moments: "refuse" the file, "keep" them, or "repair" all inertias that no body
        can have. MuJoCo, which reads MJCF, keeps none of them.
    """
    check_answer(inertia)
    if not isinstance(source, str | Path):
        kind = type(source).__name__
        raise TypeError(f"a robot is loaded from a built-in name or the path of a file, not from a {kind}")
    if isinstance(source, str) and (model := builtin(source, inertia)):
        return with_floating_base(model, floating_base)
    path = Path(source).expanduser()
    if not path.exists() and path.name == str(source) and not path.suffix:
        hint = did_you_mean(str(source), builtin_names(), cutoff=0.4) or f"built in are {', '.join(builtin_names())}"
        raise ModelError(f"{str(source)!r} is neither a built-in robot nor a file; {hint}")
    root = parse(path)
    if root.tag == "mujoco":
        return read_mjcf(path, floating_base, inertia)
    if root.tag == "robot":
        return read_urdf(path, floating_base, package_dirs, inertia)
    root.fail("is not a robot; the root element must be <robot> (URDF) or <mujoco> (MJCF)")
