"""`costate robots`: the robots that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costate.model import Model


@dataclass(frozen=True)
class Options:
    joints: bool = False
    """Name the moving joints of each robot instead of counting them."""


def run(options: Options) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape  # brackets are text here, not style
    from rich.table import Table

    from costate.model import builtin_names, load_model

    columns = ("name", "joints", "nq", "nv", "links", "mass [kg]", "source")
    table = Table(*map(escape, columns), box=box.SIMPLE)
    for name in builtin_names():
        table.add_row(*map(escape, [name, *_cells(load_model(name), options)]))
    Console().print(table)


def _cells(model: Model, options: Options) -> list[str]:
    moving = [joint.name for joint in model.joints if joint.nv]
    mass = sum(link.inertia.mass for link in model.links)
    joints = "\n".join(moving) if options.joints else str(len(moving))
    return [joints, str(model.nq), str(model.nv), str(len(model.links)), f"{mass:.2f}", model.source]
