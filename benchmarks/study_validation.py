"""Contact against known answers and against MuJoCo: a stack, an arch, a gripper, bowling, an ant and a humanoid.

python -m benchmarks.study_validation --markdown docs/validation.md --plots docs/plots     (`make study-contact`)
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from benchmarks.validation import arch, bowling, gripper, plots, robots, stack
from benchmarks.validation.twins import Comparison

COMMAND = "make study-contact"
THROWS = 1000
SHOWN = 0.5
"""Time at which the picture of the arch is taken [s]."""


def stack_study(chosen: Options) -> Table:
    boxes, seconds = (3, 2.0) if chosen.smoke else (10, 60.0)
    motions = {name: stack.rest(setting, seconds, boxes) for name, setting in stack.SETTINGS.items()}
    rows = []
    for name, motion in motions.items():
        creep = float(motion.creep.max())
        stood = "yes" if creep < stack.ALLOWED else "no" if creep < stack.EDGE / 2 else "no: it fell"
        rows.append((name, _millimetres(motion.settling), _millimetres(creep), stood))
    note = (
        f"Boxes of {stack.EDGE} m and {stack.MASS} kg on each other, {seconds:g} s. Settles: largest displacement of any box in "
        f"the first {stack.SETTLED:g} s. Creep: largest displacement of any box after that; a stack that creeps by less than 1 mm "
        f"is at rest.{_picture(chosen, 'stack', lambda file: plots.stack_plot(motions, file))}"
    )
    columns = ("contact model, step", "settles, mm", "creep, mm", "at rest")
    return Table(f"{boxes} boxes at rest", columns, tuple(rows), note)


def arch_study(chosen: Options) -> Table:
    own = arch.Arch(5 if chosen.smoke else 7)
    seconds, critical = 1.0 if chosen.smoke else 10.0, arch.critical_friction(own)
    cases: list[tuple[str, float, int | None]] = [
        ("whole", arch.FRICTION, None),
        *(("whole", share * critical, None) for share in (1.5, 0.95, 0.7)),
        ("without the keystone", arch.FRICTION, own.stones // 2),
        ("without a stone of the side", arch.FRICTION, 1),
    ]
    scan = critical * np.arange(0.92, 1.5, 0.02)
    fates = {}
    with TemporaryDirectory() as folder:
        for name, (contact, dt, substeps) in arch.MODELS.items():
            world, state = arch.build(own, Path(folder), contact, dt, substeps)
            tried = [case[1:] for case in cases] + [(friction, None) for friction in scan.tolist()]
            fates[name] = arch.watch(own, world, state, tried, seconds)
    rows = []
    for k, (name, friction, missing) in enumerate(cases):
        expected = "stands" if arch.can_stand(own, friction, missing) else "falls"
        found = [f"{'falls' if f.fell[k] else 'stands'}, {_millimetres(f.moved[-1, k])}" for f in fates.values()]
        rows.append((f"{name}, friction {friction:.3f}", expected, *found))
    fell = [f.fell[len(cases) :] for f in fates.values()]
    rows.append(("falls below a friction of", f"{critical:.3f}", *(f"{scan[x].max(initial=0):.3f}" for x in fell)))
    titles = [f"{name}, friction {friction:.2f}" for name, friction, _ in cases]
    shown = fates[next(iter(fates))]
    picture = _picture(chosen, "arch", lambda file: plots.arch_plot(own, shown, titles, SHOWN, file))
    note = (
        f"Convex hulls, thickness {own.thickness:g} of the radius, {seconds:g} s; how far a stone has moved, mm. "
        f"By statics: a linear program finds out if there are forces between the stones that push, stay within the friction "
        f"bound and carry the weights. It gives {critical:.4f} as the least friction, and {arch.critical_thickness(200):.4f} of "
        f"the radius as the least thickness of an arch of 200 stones that cannot slide (Milankovitch, 1907: 0.1075). "
        f"The picture shows the first model after {SHOWN:g} s.{picture}"
    )
    return Table(f"A semicircle of {own.stones} stones", ("arch", "by statics", *fates), tuple(rows), note)


def gripper_study(chosen: Options) -> Table:
    rows, shown = [], {}
    for name in list(gripper.MODELS)[: 1 if chosen.smoke else None]:
        world = gripper.gripper(name)
        shown[name] = gripper.try_frictions(world, gripper.CRITICAL * np.linspace(0.8, 1.2, 41))
        found = gripper.critical_friction(world)
        error = f"{100 * (found / gripper.CRITICAL - 1):+.2f} %"
        held = _millimetres(float(shown[name].fallen[-1, -1]))
        rows.append((name, f"{found:.4f}", error, f"{shown[name].pressure.mean():.3f}", held))
    picture = _picture(chosen, "gripper", lambda file: plots.gripper_plot(shown, file))
    note = (
        f"Two fingers, the right one coupled to the left (`Couple`), driven by one force of {gripper.FORCE:.2f} N. Closed form: "
        f"each pad presses with {gripper.FORCE / 2:.2f} N, and the cube is lost below a friction of m g / force = "
        f"{gripper.CRITICAL:g}. Lost: it falls more than {1e3 * gripper.LOST:g} mm in {gripper.HOLD:g} s.{picture}"
    )
    columns = ("contact model", "lost below", "error", "force of a pad, N", "falls in that time at friction 0.6, mm")
    return Table(f"A cube of {gripper.MASS:g} kg between two fingers", columns, tuple(rows), note)


def bowling_study(chosen: Options) -> Table:
    pins, count = (3, 40) if chosen.smoke else (10, chosen.rest.throws)
    twins = bowling.alley(pins)
    start = bowling.throws(twins, THROWS)[:count]
    ours, theirs = (bowling.bowl(twins, start, engine) for engine in ("ours", "theirs"))
    slow = bowling.bowl(twins, bowling.throws(twins, THROWS, seed=1, speed=(3.6, 7.2))[: count // 4], "ours")
    pairs = {
        "pins down": Comparison(ours.down, theirs.down),
        f"all {pins} down": Comparison(1.0 * (ours.down == pins), 1.0 * (theirs.down == pins)),
        "speed of the ball afterwards, m/s": Comparison(ours.speed, theirs.speed),
        "pins down, ours 10 % slower": Comparison(slow.down, theirs.down),
        "speed of the ball, ours 10 % slower": Comparison(slow.speed, theirs.speed),
    }
    same = 100 * float((ours.down == theirs.down).mean())
    near = 100 * float((np.abs(ours.speed - theirs.speed) < 1e-3).mean())
    picture = _picture(chosen, "bowling", lambda file: plots.bowling_plot(ours, theirs, pins, file))
    note = (
        f"A ball of {bowling.BALL_MASS:g} kg into pins of {bowling.PIN_MASS:g} kg at random speeds, places and directions, the "
        f"same throws in both engines, {bowling.SECONDS:g} s each; one MJCF file. In {same:.1f} % of the throws the same number of "
        f"pins falls in both, in {near:.1f} % the ball's speed agrees to 1 mm/s. In the last two rows our engine makes a "
        f"quarter of the throws, 10 % slower, to show which differences the comparison can detect.{picture}"
    )
    return _compared(f"{count:,} throws at {pins} pins", pairs, note)


def robots_study(chosen: Options) -> Table:
    count, seconds = (8, 1.0) if chosen.smoke else (128, 10.0)
    found, pairs, moments = {}, {}, []
    for name in robots.CASES:
        found[name] = robots.episodes(name, robots.robot(name), count, seconds)
        pairs |= {f"{name}: {k}": c for k, c in found[name].compare(seconds / 2).items()}
        own = found[name].moments
        moments.append(f"{name} {np.median(own):.0e}, at most {own.max():.0e}")
    picture = _picture(chosen, "robots", lambda file: plots.robots_plot(found, file))
    note = (
        f"gymnasium's files under random torques, the same starts and controls in both engines, Euler's method in both; means over "
        f"the second half of each episode. Started from the same state, the engines differ after {robots.MOMENT:g} s in any "
        f"coordinate or velocity by (median of all episodes, restarted at five times) {'; '.join(moments)}.{picture}"
    )
    return _compared(f"{count} episodes of {seconds:g} s", pairs, note)


def _compared(title: str, pairs: dict[str, Comparison], note: str) -> Table:
    rows = tuple(
        (
            name,
            f"{c.ours.mean():.3f} ± {c.errors[0]:.3f}",
            f"{c.theirs.mean():.3f} ± {c.errors[1]:.3f}",
            f"{c.apart:+.2f}",
            f"{c.p:.2g}",
        )
        for name, c in pairs.items()
    )
    columns = (
        "",
        "ours, mean ± its standard error",
        "MuJoCo",
        "difference by its standard error",
        "p of Kolmogorov-Smirnov",
    )
    return Table(title, columns, rows, note)


def _millimetres(metres: float) -> str:
    x = 1e3 * metres
    return f"{x:,.0f}" if x >= 100 else f"{x:.3f}" if x >= 1e-3 else f"{x:.0e}"


def _picture(chosen: Options, name: str, draw: Callable[[Path], None]) -> str:
    """Drawn, and as Markdown to show it; nothing where no folder was given."""
    folder: Path | None = chosen.rest.plots
    if folder is None:
        return ""
    draw(folder / f"validation_{name}.png")
    return f"\n\n![{name}](plots/validation_{name}.png)"


STUDIES: dict[str, tuple[str, Callable[[Options], Table]]] = {
    "stack": ("Stack", stack_study),
    "arch": ("Arch", arch_study),
    "gripper": ("Gripper", gripper_study),
    "bowling": ("Bowling", bowling_study),
    "robots": ("Ant and humanoid", robots_study),
}
"""Name -> section of the page, and what fills it."""


def main() -> None:
    chosen = options(__doc__ or "", list(STUDIES), _more)
    part = f" (this run: the first {chosen.rest.throws} throws, `--throws {chosen.rest.throws}`)"
    facts = machine(mujoco=mujoco.__version__)
    with threads(1):
        for name in chosen.only:
            section, study = STUDIES[name]
            table = study(chosen)
            if name == "bowling" and chosen.rest.throws < THROWS:
                table = replace(table, title=table.title + part)
            publish(Report(section, COMMAND, facts, (table,)), chosen)


def _more(parser: ArgumentParser) -> None:
    parser.add_argument("--plots", type=Path, help="folder of the pictures")
    parser.add_argument("--throws", type=int, default=THROWS, help="bowling: only the first so many")


if __name__ == "__main__":
    main()
