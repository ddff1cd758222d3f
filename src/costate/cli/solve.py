"""`costate solve TASK`: solve random problems of a task, and write a report with a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from costate.core.display import number
from costate.core.names import unknown

if TYPE_CHECKING:
    from costate.optimise.solution import Record
    from costate.report import Report
    from costate.train.solve import Outcome


WATCHED = 2.0
"""A replay takes about this long at least [s]: short motions are shown slowly."""


@dataclass(frozen=True)
class Options:
    task: Annotated[str, tyro.conf.Positional] = "list"
    """Task to solve: throw, golf, racecar, pendulum1 to pendulum7, push, identify_contact, reach, am_history,
    smoke_target, inhand, ...; "list" shows all."""
    starts: Annotated[int | None, tyro.conf.arg(aliases=["--episodes"])] = None
    """Number of random problems; default: 20, or 1 for am_, smoke_, soft_, plasticine_ and, without --policy,
    cloth_ tasks."""
    first: int = 0
    """Number of the first one."""
    method: str | None = None
    """gauss_newton, ilqr, lbfgs, search or direct; default: what suits the task."""
    iterations: int | None = None
    """Largest number of iterations; default: as the task says."""
    out: Path = Path("out")
    """Folder for the report."""
    show: int = 3
    """Number of motions that the replay shows."""
    size: str | None = None
    """Part of the am_ tasks: small, fine, medium or published; grid of the smoke_ tasks: small, medium or published; default: as
    the task says."""
    single: bool = False
    """Compute am_, smoke_, soft_ and plasticine_ tasks in float32: half the memory and time."""
    policy: bool = False
    """Train a network that acts on what it sees, instead of a search: in every step of plasticine_ tasks; from what is known of a
    problem of cloth_ tasks, whose policy is written beside the report and judged with problems it has not met."""


LISTED: dict[str, tuple[str, str]] = {
    "throw": ("a 9-DoF arm throws a ball to a target", "gauss_newton, search"),
    "throw_knots": ("a 9-DoF arm throws a ball to a target", "gauss_newton, search"),
    "throw_fine": ("a 9-DoF arm throws a ball to a target", "gauss_newton, search"),
    "golf": ("a linkage hits a ball that comes to rest at a target", "gauss_newton, search"),
    "racecar": ("find the friction with which a braking car stops at a target", "gauss_newton, search"),
    "pendulum1": ("n links swing up and balance", "ilqr, search"),
    "pendulum2": ("n links swing up and balance", "ilqr, search"),
    "pendulum3": ("n links swing up and balance", "ilqr, search"),
    "pendulum4": ("n links swing up and balance", "ilqr, search"),
    "pendulum5": ("n links swing up and balance", "ilqr, search"),
    "pendulum6": ("n links swing up and balance", "ilqr, search"),
    "pendulum7": ("n links swing up and balance", "ilqr, search"),
    "push": ("a finger pushes a box to a pose", "ilqr, gauss_newton, search"),
    "identify_contact": ("friction, restitution and masses from recorded motion", "gauss_newton, search"),
    "identify_cart_pole": ("friction, restitution and masses from recorded motion", "gauss_newton, search"),
    "identify_double_pendulum": ("friction, restitution and masses from recorded motion", "gauss_newton, search"),
    "reach": ("a Panda reaches a pose among obstacles", "gauss_newton, search"),
    "insertion_bound": ("the fastest insertions that the arm's motors allow", "direct"),
    "insertion_bound_moving": ("the fastest insertions that the arm's motors allow", "direct"),
}
"""Name of a task -> what is to be done, and the methods that do it: what `costate solve list` says, without loading anything."""
PRINTED: dict[str, tuple[str, str]] = {
    "am_history": ("power over time that gives a printed part a wanted temperature history", "adam"),
    "am_treatment": ("power over time that keeps a printed part in a window of temperatures", "adam"),
    "am_meltpool": ("power over time that holds the depth of the melt pool", "adam"),
    "am_identify": (
        "conductivity, absorptivity and convection of a printing process from thermocouples",
        "gauss_newton",
    ),
}
"""The same for tasks of printed parts (`costate.tasks.additive`)."""
FLOWS: dict[str, tuple[str, str]] = {
    "smoke_target": ("velocity at the beginning with which a puff of smoke becomes a letter", "adam"),
    "smoke_jet": ("strength of two fans over time that brings a rising plume to a place", "adam"),
    "smoke_drag": ("outline of a given area that a stream pushes least", "adam"),
}
"""The same for tasks of fluids (`costate.tasks.smoke`)."""
SOFT: dict[str, tuple[str, str]] = {
    "soft_walker": ("a soft robot in 2D walks as far as possible (DiffTaichi's diffmpm)", "adam"),
    "soft_crawler": ("a soft robot in 3D crawls as far as possible", "adam"),
    "soft_worm": ("a soft worm in 2D crawls as far as possible", "adam"),
    "soft_rolling": ("a soft wheel in 2D rolls as far as possible", "adam"),
    "soft_finger": ("a soft finger in 2D, standing on the floor, brings its tip to a place and holds it there", "adam"),
    "soft_arm": ("a soft arm in 2D, hanging from the ceiling, brings its tip to a place and holds it there", "adam"),
    "soft_arm_3d": ("a soft arm in 3D, hanging from the ceiling, brings its tip to a place and holds it there", "adam"),
    "soft_codesign": ("stiffness and actuation of a walking soft robot, found together", "adam"),
    "soft_identify": ("Young's modulus and Poisson's ratio of a block from its fall, with intervals", "gauss_newton"),
    "soft_identify_plasticine": (
        "Young's modulus and yield stress of plasticine from its fall, with intervals",
        "gauss_newton",
    ),
    "soft_identify_liquid": ("stiffness and viscosity of a liquid from its fall, with intervals", "gauss_newton"),
    "soft_knead": ("a UR5 flattens dough with a pin, by targets of its joints", "adam"),
    "soft_lift": ("a Panda lifts a soft ball, and neither drops nor crushes it", "adam"),
    "soft_scoop": ("a UR5 scoops sand out of a box", "adam"),
    "soft_pour": ("a UR5 pours a liquid from a jug into a cup", "adam"),
    "plasticine_move": ("two fingers move a ball of plasticine to another place", "adam"),
    "plasticine_triple_move": ("six fingers move three blocks to other places", "adam"),
    "plasticine_torus": ("a ring is pressed into a block at another place", "adam"),
    "plasticine_rope": ("two fingers bend a rope around a pillar", "adam"),
    "plasticine_writer": ("a pen writes two strokes into a block", "adam"),
    "plasticine_pinch": ("a finger presses two pits into a cube", "adam"),
    "plasticine_rolling_pin": ("a rolling pin flattens a block", "adam"),
    "plasticine_chopsticks": ("chopsticks pick up a rope, lift it and turn it", "adam"),
    "plasticine_assembly": ("two fingers put a ball onto a stand", "adam"),
    "plasticine_table": ("a finger pushes a leg of a table outwards", "adam"),
}
"""The same for tasks of soft bodies (`costate.tasks.soft`)."""
CLOTH: dict[str, tuple[str, str]] = {
    "cloth_towel": (
        "friction and bending stiffness of a towel from its fall over a ball, with intervals",
        "gauss_newton, lbfgs, search",
    ),
    "cloth_hat": ("two hands put a hat onto a head: the way that each of them goes", "gauss_newton, lbfgs, search"),
    "cloth_flag": (
        "the cut (rest shape) of a flag of stretchy cloth with which it hangs as a rectangle",
        "gauss_newton, lbfgs, search",
    ),
    "cloth_thread": (
        "fingers thread a rope, whose tip droops, through a ring, and stay in front of it",
        "gauss_newton, lbfgs, search",
    ),
    "cloth_fold": (
        "a UR5 folds a towel that lies anywhere in front of it, from corner to corner",
        "gauss_newton, lbfgs, search",
    ),
    "cloth_hang": (
        "a UR5 hangs a towel onto a bar, as much of it on one side as on the other",
        "gauss_newton, lbfgs, search",
    ),
    "cloth_stretch": (
        "two UR5 stretch a towel that hangs between them until it is flat, and no further",
        "gauss_newton, lbfgs, search",
    ),
}
"""The same for tasks of cloth (`costate.tasks.cloth`)."""
NETWORKS = (
    *(name for name in SOFT if name.startswith("plasticine_")),
    *("cloth_hat", "cloth_thread", "cloth_fold", "cloth_hang", "cloth_stretch"),
)
"""Tasks that have a policy."""
HANDS: dict[str, tuple[str, str]] = {
    "inhand": ("an Allegro hand turns a cube on its palm, replanned at every step, judged by MuJoCo", "gauss_newton"),
    "inhand_shadow": ("the same with a Shadow hand", "gauss_newton"),
}
"""The same for hands that are replanned (`costate.tasks.inhand`)."""


def run(options: Options) -> None:
    own = PRINTED | FLOWS | SOFT | CLOTH
    every = LISTED | own | HANDS
    if options.task == "list":
        width = max(map(len, every))
        for name, (summary, methods) in every.items():
            print(f"{name:<{width}}  {summary} ({methods})")
        return
    if options.task not in every:
        raise ValueError(unknown("task", options.task, every))
    starts = _starts(options)
    if options.policy and options.task not in NETWORKS:
        raise ValueError(
            f"--policy is given, but '{options.task}' has no network; leave it out, or choose one of {', '.join(NETWORKS)}"
        )
    if options.task in own | HANDS:
        from costate.cli.additive import solve_printed
        from costate.cli.cloth import solve_cloth_task
        from costate.cli.soft import solve_soft

        solvers = dict.fromkeys(PRINTED | FLOWS, solve_printed) | dict.fromkeys(SOFT, solve_soft)
        solvers |= dict.fromkeys(CLOTH, solve_cloth_task)
        with _shown(options.task) as tell:
            page, text = solvers.get(options.task, _solve_in_hand)(options, starts, tell)
        print(text)
        print(page.save(options.out / f"{options.task}.html"))
        return
    from costate.train.solve import solve

    changes: dict[str, Any] = {} if options.iterations is None else {"iterations": options.iterations}
    numbers = range(options.first, options.first + starts)
    with _shown(options.task) as tell:
        outcome = solve(options.task, numbers, options.method, changes | {"callback": lambda r: tell(progress_text(r))})
        tell("writing the report")
        page = report(options.task, outcome, options.show)
    print(outcome)
    for name, value in outcome.facts.items():
        print(f"  {name}: {value if isinstance(value, str) else number(value, 6)}")
    print(page.save(options.out / f"{options.task}.html"))


def _solve_in_hand(options: Options, starts: int, tell: Callable[[str], None]) -> tuple[Report, str]:
    from costate.tasks.inhand.solve import solve_inhand

    if options.method is not None:
        raise ValueError(f"--method is {options.method!r}; in-hand manipulation has one of its own: leave it out")
    numbers = range(options.first, options.first + starts)
    return solve_inhand(options.task, numbers, tell, options.show, options.iterations)


def _starts(options: Options) -> int:
    """Return the number of problems."""
    slow = options.task in PRINTED | FLOWS | SOFT or (options.task in CLOTH and not options.policy)
    starts = options.starts if options.starts is not None else 1 if slow else 20
    if starts < 1:
        raise ValueError(f"--starts is {starts}; at least one problem is needed")
    return starts


@contextmanager
def _shown(name: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done, and for how long; yields what changes the text."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(f"{name}: compiling", total=None)
        yield lambda text: bar.update(shown, description=f"{name}: {text}")


def progress_text(record: Record) -> str:
    """Return how far an optimiser is, in words."""
    loss = record.loss.detach().double().reshape(-1)
    most = f", worst {number(loss.max())}" if len(loss) > 1 else ""
    return f"iteration {record.iteration}, loss {number(loss.median())}{most}"


def report(name: str, outcome: Outcome, show: int = 3) -> Report:
    """Return a page with numbers, losses over iterations, the motions found, and a table of all problems."""
    from costate.report import Report
    from costate.report.joints import joints_table

    task = outcome.task
    page = Report(f"costate solve {name}", task.summary)
    page.facts(
        {
            "solved": f"{int(outcome.solved.sum())} of {len(outcome.numbers)}",
            f"tolerance [{task.unit}]": task.tolerance,
            "method": outcome.method.replace("_", "-"),
            "iterations, median": float(outcome.iterations.median()),
            "seconds, all": round(outcome.total_seconds, 2),
            **outcome.facts,
        }
    )
    _replay(page, outcome, show)
    with page.row():
        _progress(page, outcome, show)
        page.table(_rows(outcome), caption="All problems")
    if outcome.states.shape[-1] == task.world.nx:
        joints_table(page, task.world, outcome.states)
    _landscape(page, task)
    return page


def _replay(page: Report, outcome: Outcome, show: int) -> None:
    """Show some motions side by side, slowly enough to be watched."""
    from costate.draw.recording import record
    from costate.report.replay import SPEEDS

    task = outcome.task
    world = task.shown(outcome.numbers[0])
    links = [link for link in task.trails if link in world.link_names]
    together = min(show, outcome.states.shape[1]) if world is task.world else 1  # else each has surroundings of its own
    seconds = (len(outcome.states) - 1) * task.world.dt
    speed = max((s for s in SPEEDS if s <= min(1.0, seconds / WATCHED)), default=SPEEDS[0])
    page.recording(record(world, outcome.states, samples=together, trails=links), speed=speed, play=True)


def _progress(page: Report, outcome: Outcome, show: int) -> None:
    least_time = outcome.method == "direct"
    title = "Duration [s]; a motion only in the end" if least_time else "Loss"
    few = len(outcome.solution.history) < 40
    page.plot(_losses(outcome, show), title=title, x_label="iteration", log_y=not least_time, markers=few)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    from costate.report.table import Beyond

    return [
        {
            "problem": problem,
            f"error [{outcome.task.unit}]": Beyond(error) if not outcome.solved[k] else error,
            "solved": "yes" if bool(outcome.solved[k]) else "no",
            "iterations": float(outcome.iterations[k]),
        }
        | {name: float(values[k]) for name, values in outcome.columns.items()}
        for k, (problem, error) in enumerate(zip(outcome.numbers, outcome.error.tolist(), strict=True))
    ]


def _losses(outcome: Outcome, show: int) -> dict[str, Any]:
    losses = outcome.solution.losses()
    if losses.dim() == 1:
        return {"slowest problem": losses}
    return {"median": losses.median(-1).values} | {f"try {k}": losses[:, k] for k in range(min(show, losses.shape[1]))}


def _landscape(page: Report, task: Any) -> None:
    """Plot the loss over the unknown, for tasks with a single one."""
    if not hasattr(task, "landscape"):
        return
    import torch

    frictions = torch.linspace(0.02, 1.0, 99, dtype=torch.float64)
    loss, slope = task.landscape(frictions)
    with page.row():
        page.plot({"loss [m^2]": loss}, frictions, title="Loss over friction", x_label="friction", log_y=True)
        page.plot({"slope [m^2]": slope}, frictions, title="Its derivative", x_label="friction")
