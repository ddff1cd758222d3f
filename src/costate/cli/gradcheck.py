"""`costate gradcheck ROBOT|WORLD.py`: check every gradient of a robot or world; exit code 1 if one is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from costate.audit.audit import Audit


@dataclass(frozen=True)
class Options:
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ROBOT|WORLD.py")] = ""
    """Built-in robot, URDF or MJCF file; or a Python file that defines `world` or make_world(), and maybe `state` and `control`."""
    functions: tuple[str, ...] = ()
    """Of a robot; default: all."""
    second_order: bool | None = None
    """Check second derivatives; default: for robots, not for worlds."""
    float32: bool | None = None
    """Compare float32 with float64; default: for robots, not for worlds."""
    steps: int = 20
    """Length of a world's rollout."""
    report: Path | None = None
    """HTML file to write."""


def run(options: Options) -> int:
    if not options.source:
        raise ValueError("name a robot, a file, or a Python file with a world: costate gradcheck ur5")
    audit = _of_world(options) if options.source.endswith(".py") else _of_robot(options)
    audit.print()
    if options.report:
        print(audit.page().save(options.report))
    return 0 if audit.ok else 1


def _of_robot(options: Options) -> Audit:
    from costate.audit.robots import audit_robot
    from costate.robot import load_robot

    robot = load_robot(options.source)
    return audit_robot(
        robot, options.source, options.functions, options.second_order is not False, options.float32 is not False
    )


def _of_world(options: Options) -> Audit:
    from costate.audit.worlds import audit_world, load_world

    world, state, control = load_world(Path(options.source))
    return audit_world(
        world, state, control, options.steps, second_order=bool(options.second_order), float32=bool(options.float32)
    )
