"""`costate tosses LOG`: find friction, restitution, inertia and geometry of a body from recorded tosses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from costate.identify.tosses.pipeline import TossOptions


@dataclass(frozen=True)
class Options:
    log: Annotated[Path, tyro.conf.Positional]
    """NPZ file with state, starts and dt, or CSV or Parquet file with columns toss, t, x, y, z, qw, qx, qy, qz."""
    sizes: tuple[float, ...]
    """Sizes of the shape [m]: edges of a box, radius (and length) of a sphere (cylinder, capsule), scale of a mesh."""
    mass: float
    """Mass [kg]; tosses do not tell it."""
    shape: Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "mesh"] = "box"
    mesh: Path | None = None
    """File of a mesh, whose convex hull touches the floor."""
    width: float | None = None
    """Unit of the errors of positions [m]; default: an edge of a box, the diameter of a round shape."""
    friction: float = 0.3
    """Friction coefficient to start from."""
    restitution: float = 0.1
    """Restitution to start from."""
    inertia: float | None = None
    """Moment of inertia about every axis to start from [kg m^2]; default: that of the shape, even all over."""
    out: Path = Path("tosses")
    """Folder for the report and the numbers found."""
    fit: TossOptions = field(default_factory=TossOptions)
    """Options of the fit: numbers to find, tosses and rows to use, contact model."""


def run(options: Options) -> None:
    import json

    import numpy as np
    from rich.progress import Progress

    from costate.identify.tosses import Thrown, identify_tosses
    from costate.report.identification.tosses import toss_report
    from costate.sim.scene import shapes

    shape = shapes.mesh(options.mesh) if options.mesh else shapes.shape(options.shape, options.sizes)
    inertia = None if options.inertia is None else options.inertia * np.eye(3)
    thrown = Thrown(shape, options.mass, options.friction, options.restitution, inertia, options.width)
    with Progress(transient=True) as bar:
        task = bar.add_task("fit", total=options.fit.iterations)  # networks begin anew
        result = identify_tosses(
            thrown,
            options.log,
            options.fit,
            lambda k, loss: bar.update(task, completed=k, description=f"loss {loss:.4g}"),
        )
    print(result.summary())
    options.out.mkdir(parents=True, exist_ok=True)
    numbers = {name: [float(x) for x in value] for name, value in result.values.items()}
    (options.out / "found.json").write_text(json.dumps(numbers, indent=2) + "\n")
    (options.out / "report.txt").write_text(result.summary() + "\n")
    toss_report(result).save(options.out / "report.html")
    names = ["found.json", "report.txt", "report.html"]
    if result.augmented is not None:
        result.augmented.save_networks(options.out / "networks")
        names += ["networks.json", "networks.safetensors"]
    print("\nwrote", *(options.out / name for name in names), sep="\n  ")
