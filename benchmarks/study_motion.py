"""Derivatives of whole roll-outs against derivatives of the true motion, at steps of 10, 1 and 0.1 ms; and soft landings.

python -m benchmarks.study_motion --markdown docs/motion.md --record docs/motion.json     (`make study-motion`)
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from benchmarks.measure.share import add_cluster, cluster_of, shared
from benchmarks.motion.answers import ANSWERS, Answer
from benchmarks.motion.compare import ALLOWED, DIFFERENCES, EVENTS, STEPS, UNSURE, Scene, compare
from benchmarks.motion.ours import slopes, world_of
from benchmarks.motion.scenes import kinds
from benchmarks.motion.soft import COMPLIANT, LANDINGS
from benchmarks.motion.soft import slopes as slopes_of

COMMAND = "make study-motion"
SCENES = 500
SECTION = "Against the motion"
SOFT, SOFT_COMMAND = "Soft contact", "python -m benchmarks.study_motion --only soft --markdown docs/motion.md"
SOFT_STEPS = (2e-3, 5e-4, 1e-4)
"""Steps of soft contact [s]."""


def answers_study(chosen: Options) -> Table:
    rows = []
    for scene in ANSWERS[: 1 if chosen.smoke else None]:
        found = scene()
        world = world_of(found[0].kind)
        for answer in found:
            rows.append(_answer_row(answer, [_of_step(answer, world, dt) for dt in STEPS]))
            print(" | ".join(rows[-1]), flush=True)
    note = (
        "Exact: closed forms for the dropped ball and the bounces, else an event-driven computation of its own in NumPy, which "
        "solves the time of every impact and carries derivatives by complex steps. Relative errors are in parentheses."
    )
    columns = ("scene", "derivative", "exact", *(_milliseconds(dt) for dt in STEPS))
    return Table("Known answers", columns, tuple(rows), note)


def _of_step(answer: Answer, world, dt: float) -> float:
    _, slope = slopes(answer.kind, world, dt, [(answer.start, answer.by)])
    return answer.scale * float(slope[0, answer.at])


def _answer_row(answer: Answer, found: Sequence[float]) -> tuple[str, ...]:
    exact = answer.exact
    return answer.scene, answer.derivative, f"{exact:.4f}", *(f"{x:.4f} ({_error(x, exact)})" for x in found)


def _error(found: float, exact: float) -> str:
    return f"{abs(found - exact) / abs(exact):.0e}"


def random_study(chosen: Options) -> list[Table]:
    table = kinds()
    if chosen.smoke:
        table = {"ball on ground": table["ball on ground"]}
    total = 3 if chosen.smoke else chosen.rest.scenes
    found: list[Scene] = []
    cases = [(name, list(range(k, total, len(table))), not chosen.smoke) for k, name in enumerate(table)]
    if chosen.rest.read:
        found, cases, table = [Scene(**s) for s in json.loads(chosen.rest.read.read_text())], [], {}
    for name, scenes in zip(table, shared(scenes_of, cases, cluster_of(chosen.rest)), strict=True):
        found += [Scene(**s) for s in scenes]
        print(f"{name}: {_summary(found[-len(scenes) :])}", flush=True)
    if chosen.rest.record:
        chosen.rest.record.write_text("[\n" + ",\n".join(json.dumps(asdict(s)) for s in found) + "\n]\n")
    return [_by_kind(found, list(dict.fromkeys(s.kind for s in found))), _laws(found), _causes(found)]


def scenes_of(name: str, seeds: Sequence[int], fine: bool) -> list[dict[str, Any]]:
    """Return what was found about scenes of a kind."""
    return [asdict(scene) for scene in compare(kinds()[name], seeds, fine=fine)]


def _by_kind(found: Sequence[Scene], names: Sequence[str]) -> Table:
    rows = []
    for name in (*names, "all"):
        own = [s for s in found if name in (s.kind, "all")]
        for reference in (EVENTS, DIFFERENCES):
            some = [s for s in own if s.reference == reference]
            if not some:
                continue
            errors = np.array([s.errors for s in some])
            middle, worst = np.median(errors, axis=0), np.quantile(errors, 0.9, axis=0)
            cells = [f"{a:.0e}, {b:.0e}" for a, b in zip(middle, worst, strict=True)]
            rows.append((name, reference, str(len(some)), *cells, f"{sum(s.falls for s in some)}"))
        lost = [s for s in own if not s.compared]
        if lost:
            rows.append((name, "none: " + _reasons(lost), str(len(lost)), *("-" for _ in STEPS), "-"))
    steps = [f"{_milliseconds(dt)}: median, 90 % below" for dt in STEPS]
    note = (
        "Random places, turns, spins, restitutions (0 to 1), frictions (0 to 1), with gravity and without, and a random direction "
        "in all of these at once; chosen by seed. The error is that of the derivative of all positions and velocities at the end, "
        f"relative to its largest entry. It converges if it is below {100 * ALLOWED:g} % at the shortest step and fell by half. "
        "Where bodies come to rest or slide on, the reference of events ends; differences of the same world at steps of 1.6 us, "
        "extrapolated in the step and in the size of the difference, take its place."
    )
    return Table(
        f"{len(found)} random scenes", ("scene", "compared with", "number", *steps, "converge"), tuple(rows), note
    )


def _laws(found: Sequence[Scene]) -> Table:
    rows = []
    for law, where in (("energy", "elastic, without friction"), ("momentum", "without ground and gravity")):
        errors = np.array([[at[law] for at in s.laws] for s in found if s.laws and law in s.laws[0]])
        if len(errors):
            cells = [f"{np.median(e):.0e}, {e.max():.0e}" for e in errors.T]
            rows.append((f"{law} ({where})", str(len(errors)), *cells))
    note = (
        "The derivative of what a motion keeps is the same at its start and at its end, whatever happens between them."
    )
    steps = [f"{_milliseconds(dt)}: median, largest" for dt in STEPS]
    return Table("Energy and momentum", ("law", "scenes", *steps), tuple(rows), note)


def _causes(found: Sequence[Scene]) -> Table:
    failed = sorted((s for s in found if s.compared and not s.falls), key=lambda s: -s.errors[-1])
    rows = [
        (s.kind, str(s.seed), s.reference, s.reason or f"{s.impacts} impacts", s.cause, *(f"{e:.1e}" for e in s.errors),
         f"{s.values[-1]:.0e}", f"{s.local:.0e}")
        for s in failed
    ]  # fmt: skip
    columns = ("scene", "seed", "compared with", "what happens", "cause", *(_milliseconds(dt) for dt in STEPS))
    columns += ("end, 0.1 ms", "differences of the program, 0.1 ms")
    counts = ", ".join(f"{n} x {cause}" for cause, n in Counter(s.cause for s in failed).most_common())
    kinks = [s for s in found if s.kink > UNSURE]
    note = (
        f"All {len(failed)} scenes whose derivatives do not converge: {counts or 'none'}. "
        f"{len(kinks)} of {len(found)} motions have a kink at their start (derivatives from either side differ by more than "
        f"{UNSURE:.0%}): there the nearer side counts. End: error of the end of the motion [m or m/s]. Differences of the program: "
        "by how much the derivative is off that of the program itself over a tenth of a micrometre."
    )
    return Table("Derivatives that do not converge", columns, tuple(rows), note)


def soft_study(chosen: Options) -> Table:
    rows = []
    steps = SOFT_STEPS[: 1 if chosen.smoke else None]
    for scene in LANDINGS[: 1 if chosen.smoke else None]:
        models = {"Newton, event_times=False": replace(scene.newton, event_times=False), "Newton": scene.newton}
        models |= {"Compliant": COMPLIANT} if scene.compliant else {}
        for model, contact in models.items():
            found = [slopes_of(scene, contact, dt) for dt in steps]
            for what in scene.of:
                cells = [f"{at[what].mean:.3g} ({at[what].deviation:.1g}), {at[what].motion:.3g}" for at in found]
                rows.append((scene.name, what, model, *cells))
                print(" | ".join(rows[-1]), flush=True)
    note = (
        "Derivatives by the start: mean and, in parentheses, standard deviation over 400 starts in random phases of a step, over a "
        "range of many steps; then the slope of the motion over the same range. Newton's motion has the same bits with the times "
        "and without them."
    )
    columns = ("landing", "derivative of", "contact", *(_milliseconds(dt) for dt in steps))
    return Table("Landings", columns, tuple(rows), note)


def _summary(scenes: Sequence[Scene]) -> str:
    compared = [s for s in scenes if s.compared]
    lost = _reasons([s for s in scenes if not s.compared])
    return f"{sum(s.falls for s in compared)} of {len(compared)} converge; not compared: {lost or 'none'}"


def _reasons(scenes: Sequence[Scene]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in Counter(s.reason for s in scenes).most_common())


def _milliseconds(dt: float) -> str:
    return f"{1e3 * dt:g} ms"


def main() -> None:
    chosen = options(__doc__ or "", ["answers", "random", "soft"], _more)
    facts, tables = machine(), []
    with threads(1):
        if "answers" in chosen.only:
            tables.append(answers_study(chosen))
        if "random" in chosen.only:
            tables += random_study(chosen)
        if tables:
            publish(Report(SECTION, COMMAND, facts, tuple(tables)), chosen)
        if "soft" in chosen.only:
            publish(Report(SOFT, f"{COMMAND}` or `{SOFT_COMMAND}", facts, (soft_study(chosen),)), chosen)


def _more(parser: ArgumentParser) -> None:
    parser.add_argument("--scenes", type=int, default=SCENES, help="number of random scenes")
    parser.add_argument(
        "--read", type=Path, metavar="FILE", help="take scenes from such a file instead of computing them"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="write what was found about every scene as JSON")
    add_cluster(parser)


if __name__ == "__main__":
    main()
