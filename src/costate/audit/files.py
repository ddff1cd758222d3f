"""Audit of a Python file: of the world that it builds, and of functions that it lists."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from costate.audit.audit import Audit, Watch, silent
from costate.audit.gradcheck import gradcheck
from costate.audit.worlds import audit_world
from costate.sim import World

NAMES = "`world` or make_world(), or `functions`, a dictionary of name -> (function, inputs)"


def audit_file(path: Path, second_order: bool | None, float32: bool | None, steps: int, watch: Watch = silent) -> Audit:
    """Check what a Python file defines.

    The file sets `world` or defines make_world(), and may set `state` and `control` to start from. It may also set `functions`, a
    dictionary of name -> (function of tensors, inputs). Unless they are asked for, second order and float32 are checked for
    functions only.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    names = runpy.run_path(str(path), run_name="costate_gradcheck")
    world = names.get("world") or (names["make_world"]() if "make_world" in names else None)
    functions = names.get("functions", {})
    if not isinstance(world, World) and not functions:
        raise ValueError(f"{path} defines nothing to check: it should set {NAMES}")
    own = _audit_functions(functions, path, second_order is not False, float32 is not False, watch)
    if not isinstance(world, World):
        return own
    state, control = names.get("state"), names.get("control")
    found = audit_world(
        world, state, control, steps, second_order=bool(second_order), float32=bool(float32), watch=watch
    )
    return Audit(f"costate gradcheck {path.name}", {**found.rows, **own.rows}, found.notes)


def _audit_functions(functions: Any, path: Path, second_order: bool, float32: bool, watch: Watch) -> Audit:
    if not isinstance(functions, Mapping) or not all(isinstance(f, tuple) and len(f) == 2 for f in functions.values()):
        raise ValueError(f"{path}: `functions` should be a dictionary of name -> (function, inputs)")
    rows = {}
    for name in watch(tuple(functions), "checking"):
        fn, inputs = functions[name]
        rows[name] = gradcheck(fn, inputs, second_order=second_order, float32=float32)
    return Audit(f"costate gradcheck {path.name}", rows)
