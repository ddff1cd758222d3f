"""The results of a run as tables, for a terminal and for a page of the documentation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.measure.table import Table
from benchmarks.peers import roofline
from benchmarks.peers.peer import PEERS
from benchmarks.peers.plan import FUNCTIONS, QUANTITIES
from benchmarks.peers.results import Result, Results, peers_in

COMMAND = "python -m benchmarks.peers --markdown docs/peers.md --plots docs/plots"
REMARKS = {
    "mjx": "The gradient of the roll-out explodes. One iteration of its solver does not converge; whether that is the cause was "
    "not tested. Functions run without XLA's fusion emitters, which make the kinematics of an arm hundreds of times slower.",
    "mujoco": "Its gradient of the roll-out consists of finite differences of every step, some across a change of contact: its "
    "length differs from run to run.",
    "newton": "The gradient of its roll-out is not finite: its time says what the computation costs, not that it is of use.",
    "genesis": "In its differentiable mode the robot falls through the ground, so that its gradient is that of another motion.",
}
"""Peer -> what to know of its rows before trusting them."""
HEADS = {"ur5": "UR5, fixed base, 6 joints", "laikago": "Laikago, floating base, 12 joints"}


def tables(results: Results) -> list[Table]:
    """Return the tables for which there are numbers."""
    made = [*(_functions(results, name) for name in HEADS), _throughput(results), _steps(results), _rollouts(results)]
    made += [_cold(results), _memory(results), _agreement(results)]
    made += [roofline.table(results.roofline)] if results.roofline else []
    made += [_peers(results), _remarks(results), _missing(results)]
    return [t for t in made if t.rows]


# --- cells ------------------------------------------------------------------------------------------------------------


def _titles(rows: list[Result]) -> dict[str, str]:
    """Peers with a number among the rows."""
    found = peers_in(r for r in rows if r.value is not None)
    return {name: PEERS[name].title for name in PEERS if name in found}


def _time(row: Result | None, ours: Result | None, unit: float) -> str:
    """A time, and how many times ours it is."""
    if row is None:
        return "-"
    if row.value is None:
        return "none (below)"
    value = row.value * unit
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    if row is ours or ours is None or not ours.value:
        return text
    ratio = row.value / ours.value
    return f"{text} ({ratio:,.0f}x)" if ratio >= 9.5 else f"{text} ({ratio:.2g}x)"


# --- tables -----------------------------------------------------------------------------------------------------------


def _functions(results: Results, subject: str) -> Table:
    largest = {q: max((r.batch for r in results.find(q, subject=subject)), default=0) for q in FUNCTIONS}
    batches = {q: _table_batch(results, q, subject) or largest[q] for q in FUNCTIONS}
    found = [r for q in FUNCTIONS for r in results.find(q, subject=subject, batch=batches[q])]
    titles, rows = _titles(found), []
    for quantity, title in FUNCTIONS.items():
        of = {p: results.one(p, quantity, subject=subject, batch=batches[quantity]) for p in titles}
        if any(of.values()):
            rows.append((title, *(_time(of[p], of.get("costate"), 1e9) for p in titles)))
    note = (
        f"Nanoseconds per sample, one thread, batch {max(batches.values()):,}; in brackets: relative to Costate. A gradient "
        "is that of the sum of all results with respect to all inputs, the value included; Pinocchio's and "
        "MuJoCo's are whole Jacobians."
    )
    return Table(HEADS[subject], ("", *titles.values()), tuple(rows), note)


def _table_batch(results: Results, quantity: str, subject: str) -> int | None:
    """The batch at which all functions were measured."""
    common = results.find("inverse_dynamics", subject=subject) or results.find("kinematics", subject=subject)
    batch = common[0].batch if common else None
    return batch if results.find(quantity, subject=subject, batch=batch) else None


def _throughput(results: Results) -> Table:
    found = results.find("forward_dynamics", subject="ur5")
    batches = sorted({r.batch for r in found})
    if len(batches) < 2:
        return Table("", (), ())
    titles = _titles(found)
    rows = []
    for batch in batches:
        of = {p: results.one(p, "forward_dynamics", subject="ur5", batch=batch) for p in titles}
        rows.append((f"batch {batch:,}", *(_time(of[p], of.get("costate"), 1e9) for p in titles)))
    note = "Nanoseconds per sample, one thread.\n\n![Forward dynamics: batch against throughput](plots/peers_forward_dynamics.png)"
    return Table("Forward dynamics of a UR5, by batch", ("", *titles.values()), tuple(rows), note)


def _steps(results: Results) -> Table:
    found = results.find("steps")
    titles, rows = _titles(found), []
    for batch, threads in sorted({(r.batch, r.threads) for r in found}, key=lambda x: (x[1], x[0])):
        of = {p: results.one(p, "steps", batch=batch, threads=threads) for p in titles}
        label = f"batch {batch:,}" + (f", {threads} threads" if threads > 1 else "")
        rows.append((label, *(_time(of[p], of.get("costate"), 1e6) for p in titles)))
    ends = {p: next((r.values[0] for r in results.find("steps", peer=p) if r.values), None) for p in titles}
    rows += [("trunk at the end [m]", *("-" if z is None else f"{z:.4f}" for z in ends.values()))] if rows else []
    note = (
        "Microseconds per robot and step of 2 ms: a Laikago stands on four foot spheres, held by a spring and a "
        "damper in every joint, under random torques. What has no batch of its own is measured with one robot.\n\n"
        "![Steps: batch against throughput](plots/peers_steps.png)"
    )
    return Table("Steps with contact", ("", *titles.values()), tuple(rows), note)


def _rollouts(results: Results) -> Table:
    found = results.find("rollout_gradient")
    batches, titles = sorted({r.batch for r in found}), _titles(found)
    rows = []
    for p, title in titles.items():
        of = [results.one(p, "rollout_gradient", batch=b) for b in batches]
        ours = [results.one("costate", "rollout_gradient", batch=b) for b in batches]
        values = next((r.values for r in of if r and r.values), ())
        ends = (
            (f"{values[0]:.4f}", f"{values[1]:.3g}" if np.isfinite(values[1]) else "not finite")
            if values
            else ("-", "-")
        )
        rows.append((title, *(_time(r, o, 1e6) for r, o in zip(of, ours, strict=True)), *ends))
    steps = max((r.steps for r in found), default=0)
    note = (
        f"The same robot, {steps:,} steps; the height of its trunk at the end and its gradient with respect to all "
        "torques. Microseconds per robot and step, forward and backward together, one thread, when everything is "
        "compiled. Contact models differ (hard, soft, compliant), and so do the gradients' lengths."
    )
    columns = ("", *(f"batch {b:,}" for b in batches), "trunk at the end [m]", "length of the gradient [m/(N m)]")
    return Table(f"Gradient of a roll-out of {steps:,} steps", columns, tuple(rows), note)


def _cold(results: Results) -> Table:
    found = results.find("first_gradient")
    subjects = list(dict.fromkeys(r.subject for r in found))
    rows = []
    for p, title in _titles(found).items():
        cells: list[str] = []
        for s in subjects:
            total, compiling = results.one(p, "first_gradient", subject=s), results.one(p, "compile", subject=s)
            cells += [_time(total, total, 1.0), _time(compiling, compiling, 1.0)]
        rows.append((title, *cells))
    heads = {"ur5": "forward dynamics, UR5", "standing laikago": "roll-out of 1,000 steps, Laikago"}
    columns = ("", *(c for s in subjects for c in (heads.get(s, s), "of it, building and compiling")))
    note = (
        "Seconds from the start of the interpreter, with empty caches on disk, to the first gradient, all cores "
        "allowed. Building and compiling: what a second call does not need again."
    )
    return Table("Time to the first gradient", columns, tuple(rows), note)


def _memory(results: Results) -> Table:
    found = results.find("memory")
    steps = sorted({r.steps for r in found})
    rows = []
    for p, title in _titles(found).items():
        of = [results.one(p, "memory", steps=n) for n in steps]
        rows.append(
            (title, *("-" if r is None else "none (below)" if r.value is None else r.value / 2**20 for r in of))
        )
    note = (
        "Megabytes that a gradient of one robot's roll-out needs at most, beyond what the process has when all is "
        "loaded and compiled; arguments and results count.\n\n![Memory: steps against peak "
        "memory](plots/peers_memory.png)"
    )
    return Table("Peak memory", ("", *(f"{n:,} steps" for n in steps)), tuple(rows), note)


def _agreement(results: Results) -> Table:
    """Largest relative difference of what was computed."""
    found = [r for q in FUNCTIONS for r in results.find(q) if r.values]
    titles = {p: t for p, t in _titles(found).items() if p != "costate"}
    rows = []
    for subject in HEADS:
        for quantity, title in FUNCTIONS.items():
            cells = [_difference(results, p, quantity, subject) for p in titles]
            if any(c != "-" for c in cells):
                rows.append((f"{subject}: {title}", *cells))
    note = (
        "Largest difference from Costate's values, relative to the largest value, over the first samples: a library that "
        "computes something else does not count as fast. Gradients are compared where all libraries define them alike: with "
        "respect to joint angles, accelerations and torques."
    )
    return Table("Agreement", ("", *titles.values()), tuple(rows), note)


def _difference(results: Results, peer: str, quantity: str, subject: str) -> str:
    for theirs in results.find(quantity, peer=peer, subject=subject):
        ours = results.one("costate", quantity, subject=subject, batch=theirs.batch)
        if ours and ours.values and len(ours.values) == len(theirs.values):
            x, y = np.array(ours.values), np.array(theirs.values)
            return f"{np.abs(x - y).max() / np.abs(x).max():.1e}"
    return "-"


def _peers(results: Results) -> Table:
    rows = []
    for name, versions in results.versions.items():
        given = ", ".join(f"{k} {v}" for k, v in versions.items())
        rows.append((PEERS[name].title, given, results.precision.get(name, ""), PEERS[name].how))
    rows += [(PEERS[name].title, "not measured", "", reason) for name, reason in results.absent.items()]
    return Table("Who, which version, how", ("", "versions", "numbers", "use"), tuple(rows))


def _remarks(results: Results) -> Table:
    rows = [(PEERS[peer].title, text) for peer, text in REMARKS.items() if results.find("rollout_gradient", peer=peer)]
    return Table("Rows to read with care", ("", "why"), tuple(rows))


def _missing(results: Results) -> Table:
    """Cases of the same peer and reason share a row."""
    cases: dict[tuple[str, str], list[str]] = {}
    for r in results.rows:
        if r.reason:
            cases.setdefault((PEERS[r.peer].title, r.reason.replace("|", "/")), []).append(_case(r))
    rows = [(peer, "; ".join(dict.fromkeys(what)), why) for (peer, why), what in cases.items()]
    return Table("What could not be measured", ("", "what", "why"), tuple(rows))


def _case(r: Result) -> str:
    size = f", {r.steps:,} steps" if r.steps > 1 else ""
    return f"{QUANTITIES.get(r.quantity, r.quantity)} ({r.subject}, batch {r.batch:,}{size})"


# --- page -------------------------------------------------------------------------------------------------------------


def markdown(results: Results) -> str:
    facts = "; ".join(f"{key} {value}" for key, value in results.machine.items())
    head = (
        "# Comparison with other libraries\n\n"
        "How fast Costate is beside ten other libraries, and whether they compute the same. One command measures all of them:\n\n"
        f"    {COMMAND}\n\n"
        "Each library runs in a virtual environment of its own, which the command\ncreates. All of them are running at the same "
        "time and take turns in every case, so that other load on the "
        "machine affects\nall of them alike; the best round of each counts. All read the same robot, as URDF or MJCF, and work on "
        "the same states, and\ntheir results are compared. `python -m benchmarks.peers --list` shows libraries and quantities; "
        "`python -m benchmarks.peers --gate` fails if a committed set of ratios is missed by more than half.\n\nMeasured on: "
        f"{facts}."
    )
    made = tables(results)
    if results.roofline:
        made = [_with_picture(t) if t.title == "Roofline" else t for t in made]
    return "\n\n".join([head, *(t.markdown().replace("### ", "## ", 1) for t in made)]) + "\n"


def _with_picture(table: Table) -> Table:
    note = f"{table.note}\n\n![Kernels under the roof](plots/peers_roofline.png)"
    return Table(table.title, table.columns, table.rows, note)


def save(results: Results, file: Path) -> Path:
    file.write_text(markdown(results))
    return file
