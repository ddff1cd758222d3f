"""`costate identify ROBOT LOG`: find a robot's parameters from logged motion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from costate.identify import Identification


@dataclass(frozen=True)
class Options:
    robot: Annotated[str, tyro.conf.Positional]
    """Built-in name, or URDF or MJCF file."""
    log: Annotated[Path, tyro.conf.Positional]
    """CSV, NPZ or Parquet file with columns t, q_JOINT, tau_JOINT and perhaps v_JOINT, a_JOINT (or numbers for JOINT)."""
    out: Path = Path("identified")
    """Folder for the report (report.html), the identified robot as URDF and MJCF, and plots."""
    terms: tuple[str, ...] = ("inertial", "damping", "friction", "armature")
    """Parameters to find."""
    method: Literal["gauss_newton", "adam"] = "gauss_newton"
    """gauss_newton: exact, on the dynamics regressor. adam: stochastic gradients."""
    physical: bool = True
    """True: masses, inertias, damping, friction and armature must be physically possible."""
    held_out: float = 0.2
    """Fraction of the log to test on."""
    period: float | None = None
    """Period of the motion [s], if it is periodic."""
    drop_bad_rows: bool = False
    """Leave out rows without numbers, and say so, instead of refusing them."""
    check: bool = True
    """Refuse logs whose units or signs contradict themselves or the robot."""
    repair: bool = True
    """Repair the log where something is wrong with it, and say what: clock, repeated rows, units, signs, order of joints."""
    hold: tuple[str, ...] = ()
    """Joints that were not logged and stood still, with their positions: JOINT=VALUE [rad or m]."""
    gains: tuple[float, ...] = ()
    """Torque per logged unit of each joint, if the log has motor currents [N m/A]."""
    loaded: Path | None = None
    """Log of currents with a payload on the last link, from which the gains are found."""
    payload: float = 0.0
    """Mass of that payload [kg]."""
    friction: Literal["coulomb_viscous", "offset", "stribeck", "load", "lugre", "monotone", "combined", "auto"] = (
        "coulomb_viscous"
    )
    """Law of friction; auto: the one with the least error in cross-validation."""
    elastic: tuple[str, ...] = ()
    """Joints whose gears twist, or all: their stiffness is found from a log of the motors' positions."""
    validate: Path | None = None
    """Another log, to test the result on."""
    header: str | None = None
    """Names of the columns of a CSV file without a header line, such as 't q1-6 v1-6 current1-6'."""
    epochs: int = 200
    """Epochs of Adam."""
    learning_rate: float = 1e-2
    """Learning rate of Adam."""
    inertia: Literal["refuse", "keep", "repair"] = "refuse"
    """Answer to inertias that no body can have; where data say nothing, those of the file stay."""
    plots: bool = True
    """Write plots."""


def run(options: Options) -> None:
    from dataclasses import asdict

    from rich.progress import Progress

    from costate.identify import identify
    from costate.robot import load_robot

    chosen = asdict(options)
    for name in ("robot", "log", "out", "inertia", "plots"):
        del chosen[name]
    chosen["hold"] = dict(_held(text) for text in options.hold)
    chosen["gains"] = options.gains or None
    with Progress(transient=True) as bar:
        task = bar.add_task(
            options.method.replace("_", "-"), total=options.epochs if options.method == "adam" else None
        )
        result = identify(
            load_robot(options.robot, inertia=options.inertia),
            options.log,
            progress=lambda k, cost: bar.update(task, completed=k + 1, description=f"cost {cost:.6g}"),
            **chosen,
        )
    print(result.summary())
    options.out.mkdir(parents=True, exist_ok=True)
    print("\nwrote", *_write(result, options), sep="\n  ")


def _write(result: Identification, options: Options) -> list[Path]:
    """Write the robot, the report and the plots; returns their paths."""
    from costate.model.mjcf.writer import write_mjcf
    from costate.report.identification.robot import identification_report

    files = {"identified.urdf": "the robot with the parameters found", "report.txt": "this report as text"}
    result.save_urdf(options.out / "identified.urdf")
    (options.out / "report.txt").write_text(result.summary() + "\n")
    if not any(joint.mimic for joint in result.model.joints):
        write_mjcf(result.model, options.out / "identified.xml")
        files["identified.xml"] = "the same for MuJoCo: dynamics and simple shapes"
    plots = result.plot(options.out) if options.plots else []
    page = identification_report(result, files).save(options.out / "report.html")
    return [page, *(options.out / name for name in files), *plots]


def _held(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"--hold {text}: expected JOINT=VALUE, such as --hold finger_joint=0.02") from None
