"""`costate gradcheck ROBOT|FILE.py`: check every gradient of a robot or world; with `--matrix`, of everything that there is.

The exit code is 0 if all are right, 1 if one is wrong, and 3 if none is wrong but some could not be compared.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from costate.scale.choose import Cluster

if TYPE_CHECKING:
    from costate.audit.audit import Audit


@dataclass(frozen=True, kw_only=True)
class Options(Cluster):
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ROBOT|FILE.py")] = ""
    """Built-in robot, URDF or MJCF file; or a Python file that sets `world` (and maybe `state` and `control`), or `functions`,
    name -> (function, inputs)."""
    functions: tuple[str, ...] = ()
    """Functions of a robot; default: all."""
    second_order: bool | None = None
    """Check second derivatives; default: not for worlds."""
    float32: bool | None = None
    """Compare float32 with float64; default: not for worlds."""
    full: bool = False
    """Check everything of a large robot too, which may take minutes to compile."""
    steps: int = 20
    """Length of a world's rollout."""
    inertia: Literal["refuse", "keep", "repair"] = "refuse"
    """Answer to inertias that no body can have."""
    report: Path | None = None
    """HTML file to write; with --matrix, a page in Markdown, beside which an interrupted run keeps what it has found."""
    matrix: bool = False
    """Check all functions, joints, shapes, contact models, integrators and parameters instead: the accuracy matrix. It needs a
    checkout of the repository, takes hours, and is what --cluster and --workers share."""
    sample: int | None = None
    """Number of parts of the matrix to compute, evenly picked; default: all of them."""
    minutes: float = float("inf")
    """Time after which no further part of the matrix is begun."""


def run(options: Options) -> int:
    if options.matrix:
        return _matrix(options)
    if not options.alone:
        raise ValueError("--cluster and --workers share the accuracy matrix: costate gradcheck --matrix --workers 2")
    if not options.source:
        raise ValueError("name a robot, a file, or a Python file with a world: costate gradcheck ur5")
    audit = _of_file(options) if options.source.endswith(".py") else _of_robot(options)
    audit.print()
    if options.report:
        print(audit.page().save(options.report))
    return audit.exit_code


def _matrix(options: Options) -> int:
    import costate

    checkout = Path(costate.__file__).parents[2]
    if options.source or not (checkout / "benchmarks" / "matrix").is_dir():
        given = f"{options.source!r} was named" if options.source else f"{checkout} is none"
        raise ValueError(
            f"--matrix checks everything, in a checkout of the repository: {given}. Try costate gradcheck ur5"
        )
    sys.path.insert(0, str(checkout))  # workers are given it, too
    matrix = import_module("benchmarks.matrix.matrix").make_matrix(
        options.sample, options.report, options.minutes, watch, options
    )
    matrix.print()
    if options.report:
        print(matrix.save(options.report))
    return 0 if matrix.ok else 1


def _of_robot(options: Options) -> Audit:
    from costate.model import load_model

    model = load_model(options.source, inertia=options.inertia)  # said before anything heavy is loaded if there is none
    from costate.audit.budget import BUDGET, Checks
    from costate.audit.robots import audit_robot
    from costate.robot import Robot

    robot = Robot(model)
    wanted = Checks(True, options.second_order is not False, options.float32 is not False)
    budget = float("inf") if options.full else BUDGET
    return audit_robot(robot, options.source, options.functions, wanted, budget, watch=watch)


def _of_file(options: Options) -> Audit:
    from costate.audit.files import audit_file

    return audit_file(Path(options.source), options.second_order, options.float32, options.steps, watch)


def watch(names: Sequence[str], doing: str) -> Iterable[str]:
    """Show a progress bar; nothing where the output is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(doing, total=len(names))
        for name in names:
            bar.update(task, description=f"{doing} {name}")
            yield name
            bar.advance(task)
