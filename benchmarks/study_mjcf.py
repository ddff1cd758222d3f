"""Every MJCF file of gymnasium, dm_control and gymnasium-robotics that is installed, moved by Costate and by MuJoCo.

python -m benchmarks.study_mjcf --markdown docs/validation.md     (`make study-mjcf`)
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import mujoco

from benchmarks.measure.harness import ROOT, Options, Report, Table, machine, options, publish
from benchmarks.mjcf.compare import AGREES, STATES, STEPS, Result
from benchmarks.mjcf.files import PACKAGES, mjcf_files
from benchmarks.mjcf.twin import SETTLE

COMMAND = "make study-mjcf"
SMOKE = ("inverted_pendulum.xml", "swimmer.xml", "reacher.xml")
VERDICTS = {
    "agrees": "agrees",
    "apart": "agrees where contact is switched off; with contact not compared",
    "lacks": "differs, as a warning says",
    "differs": "differs",
    "undecided": "a contact at a distance of exactly zero: rounding decides whether it acts",
    "static": "nothing moves",
    "refused": "MuJoCo refuses the file",
    "diverges": "MuJoCo's own motion diverges",
    "failed": "refused by Costate",
    "late": "not finished in time",
    "left": "not compared in this run",
}
"""Verdict -> what the table says."""
MOVED = ("agrees", "apart", "lacks", "differs", "undecided")


def one(path: Path, minutes: float) -> Result:
    """Compare a file in a process of its own, which may take so many minutes; 0: not at all."""
    if not minutes:
        return Result("left")
    command = [sys.executable, "-m", "benchmarks.mjcf.compare", str(path)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60 * minutes, check=False)
    except subprocess.TimeoutExpired:
        return Result("late", said=(f"building the world takes more than {minutes:g} minutes",))
    if done.returncode:
        return Result("failed", said=(done.stderr.strip().splitlines()[-1][:200],))
    return Result(**json.loads(done.stdout.strip().splitlines()[-1]))


def package_table(package: str, chosen: Options) -> Table:
    """Compare all files of a package."""
    files = [f for f in mjcf_files(package) if not chosen.smoke or f[1].name in SMOKE]
    rows, count, kept = [], Counter(), _kept(chosen.rest.results)
    for name, path in files:
        result = kept.get(name) or one(path, chosen.rest.minutes)
        print(f"{name}: {result.verdict} {result.error}", file=sys.stderr, flush=True)
        if chosen.rest.results and name not in kept and result.verdict != "left":
            with chosen.rest.results.open("a") as file:
                file.write(json.dumps({"name": name, **asdict(result)}) + "\n")
        count[result.verdict] += 1
        if result.verdict not in ("static", "refused"):
            rows.append(_row(name.removeprefix(f"{package}/"), result))
    summary = "; ".join(f"{VERDICTS[v]}: {n}" for v, n in count.most_common())
    note = f"{len(files)} files. {summary}." if files else "Not installed."
    columns = ("file", "velocities", "constrained states", "largest error", "verdict", "warnings")
    return Table(package, columns, tuple(rows), note)


def _kept(file: Path | None) -> dict[str, Result]:
    """Return the results of an earlier run, by name."""
    if file is None or not file.exists():
        return {}
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return {x.pop("name"): Result(**x) for x in found}


def _row(name: str, r: Result) -> tuple[str, ...]:
    error = f"{r.error:.0e}" if r.error is not None else "-"
    constrained = f"{r.constrained} of {STATES}" if r.verdict in MOVED else "-"
    said = "; ".join(text.replace("|", "/") for text in r.said) or ("nothing" if r.verdict in MOVED else "-")
    return name, str(r.nv or "-"), constrained, error, VERDICTS[r.verdict], said


HOW = (
    f"Each file is loaded, and moved from {STATES} random states for {STEPS} steps under random controls, by MuJoCo and by the "
    f"world that `cs.load_world` makes of it. States: qpos0 or a keyframe, joints "
    f"moved by up to a tenth of their range (0.1 without limits) and velocities of 0.3, then up to {SETTLE:g} s of MuJoCo's motion "
    f"under random controls; where that motion is not finite, the disturbance is halved. MuJoCo solves with a tolerance of zero. "
    f"Constrained: states in which a contact, a limit, joint friction or an equality acted. Error: the largest of positions, and "
    f"of velocities and activations, relative to the largest one of that motion, or to 1; up to {AGREES:g} it agrees. Warnings: "
    f"those given when the file was loaded and the world made. Files in which nothing moves, or that MuJoCo refuses, are counted "
    f"but not listed."
)


def main() -> None:
    chosen = options(__doc__ or "", PACKAGES, _more)
    first, *rest = (package_table(package, chosen) for package in chosen.only)
    first = replace(first, note=f"{HOW}\n\n{first.note}")
    publish(Report("MJCF files", COMMAND, machine(mujoco=mujoco.__version__), (first, *rest)), chosen)


def _more(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="longest time for one file; 0: only what --results has"
    )
    parser.add_argument(
        "--results", type=Path, help="keep every result in this file, and do not compare again what it has"
    )


if __name__ == "__main__":
    main()
