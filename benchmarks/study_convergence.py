"""Hard contact against the true problem: stacks, an arch, a gripper, random states, rest, singular states, and other solvers.

    python -m benchmarks.study_convergence [--smoke] [--only PART ...] [--keep FILE] [--dump FOLDER] [--json FILE] [--markdown FILE]
    python -m benchmarks.study_convergence --markdown docs/lab/hard_contact.md          # what the docs show

The residual is that of Signorini's law, Coulomb's cone and the largest dissipation together (benchmarks/convergence/truth.py): in
NumPy, from masses, Jacobian, momenta and impulses, not the solver's own. Goals are written beside what was measured, and what
misses one says so. `--keep` holds what was measured before, so that parts can be measured one after the other.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

import costate as cs
from benchmarks.convergence import dart, gripper, peers, quiet, robots, singular, stacks
from benchmarks.convergence.problems import CHUNK, Recorder
from benchmarks.convergence.truth import residual
from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from benchmarks.validation import arch

COMMAND = "python -m benchmarks.study_convergence --markdown docs/lab/hard_contact.md"
SECTION = "Hard contact against the true problem"
MODELS: dict[str, Callable[[], cs.ContactModel]] = {"Hard": cs.Hard, "PGS": cs.PGS}
SOLVED = 1e-8
"""Speed by which a contact of a solved step may miss its laws [m/s]."""
CREEP = 1e-6
"""Largest creep of a stack in a minute [m]."""
STEADY = 1e-3
"""Largest change of the derivative of a step from step to step, by its size."""
SWEPT = {("even", 1.0), ("alternating", 1e4)}
"""Stacks that `PGS` is measured on, too."""
ROUNDING = 1e-14
"""Energy that counts as rounding, relative to that of a state, or to 1 J."""
GAIN = "largest energy that corrections add beyond what impulses take, by the energy of the state"
SHARES = (0.98, 0.99, 1.01, 1.02)
"""Frictions of the arch, by the one that statics says."""


@dataclass(frozen=True)
class Finding:
    """A row of the table."""

    what: str
    goal: str
    hard: str
    pgs: str
    reached: bool | None
    """True if `Hard` reaches the goal; None: there is none."""

    @property
    def row(self) -> tuple[str, ...]:
        verdict = "" if self.reached is None else "yes" if self.reached else "no"
        return self.what, self.goal, self.hard, verdict, self.pgs


# --- stacks -----------------------------------------------------------------------------------------------------------


def stack_part(chosen: Options) -> list[Finding]:
    """Measure the creep of stacks, and the largest residual of their steps."""
    boxes, seconds = (3, 0.2) if chosen.smoke else (10, 60.0)
    cases = [(order, ratio) for ratio in chosen.rest.ratios for order in stacks.ORDERS if ratio > 1 or order == "even"]
    found = []
    for order, ratio in [("alternating", 1e4)] if chosen.smoke else cases:
        weights, rests = stacks.masses(order, ratio, boxes), {}
        for name in ["Hard"] if chosen.smoke or (order, ratio) not in SWEPT else MODELS:
            rests[name] = stacks.rest(*stacks.stack(weights, MODELS[name]()), seconds)
        texts = {name: f"{_length(r.creep)}, {r.residual:.0e} m/s" for name, r in rests.items()}
        reached = rests["Hard"].creep < CREEP and rests["Hard"].residual < SOLVED
        what = f"{boxes} boxes, 1 : {ratio:g}, {stacks.ORDERS[order]}: creep in {seconds:g} s, largest residual"
        found.append(Finding(what, "1 um, 1e-8 m/s", texts["Hard"], texts.get("PGS", "-"), reached))
        _say(found[-1])
    return found


# --- arch -------------------------------------------------------------------------------------------------------------


def arch_part(chosen: Options) -> list[Finding]:
    """Let an arch stand with a little more, and a little less friction than it needs."""
    own = arch.Arch(3 if chosen.smoke else 7)
    seconds, critical = 0.2 if chosen.smoke else 10.0, arch.critical_friction(own)
    cases: list[tuple[float, int | None]] = [(share * critical, None) for share in SHARES]
    moved = {}
    for name, contact in {"Hard": cs.Hard(), "PGS": cs.PGS(cone="cone")}.items():
        if chosen.smoke and name == "PGS":
            continue
        with TemporaryDirectory() as folder:
            world, state = arch.build(own, Path(folder), contact, 0.01, 5)
            moved[name] = arch.watch(own, world, state, cases, seconds).moved[-1]
    found = []
    for k, share in enumerate(SHARES):
        texts = {
            name: f"{'falls' if far[k] > arch.FELL else 'stands'}, {_length(far[k])}" for name, far in moved.items()
        }
        goal = "stands" if share > 1 else "falls"
        what = f"an arch of {own.stones} stones at {share:g} of the friction that statics says ({critical:.4f}), {seconds:g} s"
        found.append(Finding(what, goal, texts["Hard"], texts.get("PGS", "-"), texts["Hard"].startswith(goal)))
    return found


# --- gripper ----------------------------------------------------------------------------------------------------------


def gripper_part(chosen: Options) -> list[Finding]:
    """Squeeze cubes a little more, and a little less than their weight needs."""
    starts, hold = (2, 0.1) if chosen.smoke else (200, gripper.HOLD)
    models: dict[str, cs.ContactModel] = {"Hard": cs.Hard(friction=gripper.FRICTION)}
    if not chosen.smoke:
        models["PGS"] = cs.PGS(friction=gripper.FRICTION)
    grasps = {name: gripper.grasps(gripper.gripper(model), starts, hold) for name, model in models.items()}
    found = []
    for k, squeeze in enumerate(gripper.SQUEEZES):
        texts = {}
        for name, g in grasps.items():
            low, high = float(g.fallen[k].min()), float(g.fallen[k].max())
            texts[name] = f"{int(g.right[k].sum())} of {starts}; fall {_length(low)} to {_length(high)}"
        verb = "stays" if squeeze > 1 else "is lost"
        struck = f"struck at up to {grasps['Hard'].strikes.max():.2f} m/s"
        what = f"a cube {verb} at {squeeze:g} of the squeeze that its weight needs, {struck}"
        reached = bool(grasps["Hard"].right[k].all())
        found.append(Finding(what, "every time", texts["Hard"], texts.get("PGS", "-"), reached))
    return found


# --- random states ----------------------------------------------------------------------------------------------------


def states_part(chosen: Options) -> list[Finding]:
    """Judge the solutions of random states of robots, a hand and stacks."""
    found, every, reported = [], [], []
    names = list(robots.SCENES)[-1:] if chosen.smoke else list(robots.SCENES)
    for name in names:
        make, count = robots.SCENES[name]
        count = 64 if chosen.smoke else count
        scene = make(cs.Hard())
        states, controls = scene.states(count, CHUNK)
        left, own, impacts = [], [], 0
        recorder = Recorder(scene.world)
        for k, part in enumerate(recorder.problems(states, controls)):
            left.append(np.nan_to_num(residual(part), nan=np.inf))
            own.append(part.residual)
            impacts += len(part)
            if chosen.rest.dump and k < 2:
                chosen.rest.dump.mkdir(parents=True, exist_ok=True)
                part.save(chosen.rest.dump / f"{make.__name__}_{k}.npz")
        every += left
        reported += own
        found.append(_share(f"{name}: {count:,} states", left, own, impacts - count))
        _say(found[-1])
    if len(names) > 1:
        found.append(
            _share("all of these", every, reported, sum(map(len, every)) - sum(robots.SCENES[n][1] for n in names))
        )
    return found


def _share(what: str, left: list[np.ndarray], own: list[np.ndarray], impacts: int) -> Finding:
    x, y = np.concatenate(left), np.concatenate(own)
    share = float((x <= SOLVED).mean())
    text = f"{100 * share:.3f} %, largest {x.max():.0e} m/s (by its own account {100 * (y <= SOLVED).mean():.3f} %, {y.max():.0e})"
    return Finding(
        f"{what}, and {impacts:,} impacts among them: residual below 1e-8 m/s", "99.9 %", text, "-", share >= 0.999
    )


# --- rest -------------------------------------------------------------------------------------------------------------


def rest_part(chosen: Options) -> list[Finding]:
    """Look at derivatives of feet at rest."""
    if chosen.smoke:
        return []
    seconds = 10.0
    changes = {name: quiet.change_of_derivative(MODELS[name](), seconds) for name in MODELS}
    texts = {name: f"{change:.0e}; residual {left:.0e} m/s" for name, (change, left) in changes.items()}
    what = f"a Laikago stands for {seconds:g} s: change of the derivative of a step, from step to step"
    return [Finding(what, "1e-3", texts["Hard"], texts["PGS"], changes["Hard"][0] < STEADY)]


# --- energy -----------------------------------------------------------------------------------------------------------


def energy_part(chosen: Options) -> list[Finding]:
    """Look for energy out of nothing: in random states near a singularity, and in motions that jam."""
    found = []
    worst, states = 0.0, 0
    for name, g in singular.measured(cs.Hard(), 64 if chosen.smoke else None):
        worst, states = max(worst, g.largest), states + len(g.energy)
        moved = f"{100 * (g.pushed != 0).mean():.0f} % of them corrected"
        what = f"{name}, almost straight, tips in the floor: {len(g.energy):,} states, {moved}; {GAIN}"
        found.append(Finding(what, "rounding", f"{g.largest:.0e}", "-", g.largest < ROUNDING))
        _say(found[-1])
    found.append(Finding(f"all of these, {states:,} states", "rounding", f"{worst:.0e}", "-", worst < ROUNDING))
    count, steps = (4, 20) if chosen.smoke else (256, 500)
    for what, make in quiet.JAMS.items():
        flies, jam = what in quiet.FLIES, make(count)
        for restitution in (0.0, 0.5) if flies else (0.0,):
            gain, lost = jam.gain(cs.Hard(restitution=restitution), steps)
            swept = "-"
            if flies and not chosen.smoke:
                swept = f"{max(jam.gain(cs.PGS(restitution=restitution), steps)[0], 0):.0e} J"
            row = f"{what}, restitution {restitution:g}, {count} motions of {steps} steps: energy that contact adds in a step"
            text = f"{max(gain, 0):.0e} J; a motion loses {lost:.2g} J"
            found.append(Finding(row, "none", text, swept, gain <= 1e-9 * max(lost, 1)))
            _say(found[-1])
    return found


PARTS: dict[str, Callable[[Options], list[Finding]]] = {
    "stack": stack_part,
    "arch": arch_part,
    "gripper": gripper_part,
    "states": states_part,
    "rest": rest_part,
    "energy": energy_part,
}


# --- peers ------------------------------------------------------------------------------------------------------------


def peer_table(chosen: Options) -> Table:
    """Give the same problems to other solvers."""
    rows: list[tuple[str | float, ...]] = []
    for what, (recorder, states, controls) in _peer_problems(chosen).items():
        world = recorder.world
        given = next(recorder.problems(states, controls))
        cases = [c for k in range(len(given)) if (c := peers.case(given, k)) is not None]
        points = np.mean([len(c.mu) for c in cases])
        title = f"{what}: {len(cases)} problems of {points:.0f} contact points"
        for batch in (1, len(given)):
            seconds, left = peers.ours(recorder, given, batch)
            rows.append(
                (title, f"Hard, {'one at a time' if batch == 1 else f'{batch} at once'}", *_judged(seconds, left))
            )
        for name, solve in _contestants(chosen).items():
            runs = [peers.run(solve, c, chosen.rest.patience) for c in cases]
            rows.append(
                (title, name, *_judged(np.array([r.seconds for r in runs]), np.array([r.residual for r in runs])))
            )
        torques = np.zeros((len(states), world.nu))
        if world.nu:
            q, v = states[:, 7:19].numpy(), states[:, 25:37].numpy()
            torques = 300 * (controls.numpy() - q) - 10 * v
        runs = peers.mujoco_runs(recorder, states.numpy(), torques)
        seconds, left = (np.array([getattr(r, name) for r in runs]) for name in ("seconds", "residual"))
        rows.append((title, "MuJoCo, stiff, its own contact points", "-", *_judged(seconds, left)[1:]))
        if not world.nu and find_spec("dartpy"):
            cubes = dart.Cubes(world)
            left = np.array([run[1] for x in states.numpy() if (run := cubes.solve(x))])
            rows.append((title, "DART, boxed LCP, its own contact points", "-", *_judged(np.inf, left)[1:]))
        if chosen.rest.dump:
            chosen.rest.dump.mkdir(parents=True, exist_ok=True)
            given.save(chosen.rest.dump / f"peers_{len(rows)}.npz")
    columns = ("problems", "solver", "time to 1e-8, us, median", "reached", "residual, median", "largest")
    note = (
        "The same Delassus matrices, free velocities and friction coefficients for all but MuJoCo, one thread. Each peer gets ever "
        "smaller tolerances until the true residual is below 1e-8 m/s; the time is that of the first solve which is. Hard: its "
        "whole solver from its own start, rescue included. MuJoCo: the same states with solref 2 dt, solimp 0.9999, impratio "
        "1,000, elliptic cones; its problem is a softer one, so its residual is that of the model, not of its solver. DART (`pip "
        "install dartpy`): steps from the same states by its default solver, whose friction is a pyramid."
    )
    return Table("Other solvers on the same problems", columns, tuple(rows), note)


def _peer_problems(chosen: Options) -> dict[str, tuple[Recorder, torch.Tensor, torch.Tensor]]:
    """Return states of stacks that settle, of a robot, and of boxes that tumble, with what keeps their problems; and controls."""
    count = 4 if chosen.smoke else chosen.rest.problems
    found = {}
    for title, order, ratio in (("stack of ten", "even", 1.0), ("stack of ten, 1 : 1e4 in turn", "alternating", 1e4)):
        world, state = stacks.stack(stacks.masses(order, ratio, 3 if chosen.smoke else 10), cs.Hard())
        recorder, states = Recorder(world), [state]
        for _ in range(count - 1):
            states.append(torch.tensor(recorder.call(states[-1][None])["after"][0]))
        found[title] = recorder, torch.stack(states), torch.zeros(count, 0, dtype=state.dtype)
        if chosen.smoke:
            return found
    for title, scene in (
        ("Laikago, kicked", robots.laikago(cs.Hard(joint_limits=False))),
        ("four boxes knocked over", robots.stacks(cs.Hard())),
    ):
        found[title] = Recorder(scene.world), *scene.states(count, count)
    return found


def _contestants(chosen: Options) -> dict[str, peers.Contestant]:
    try:
        found = {
            "Pinocchio ADMM": peers.pinocchio("ADMM"),
            "Pinocchio ADMM, spectral rule": peers.pinocchio("ADMM", admm_update_rule="SPECTRAL"),
            "Pinocchio PGS": peers.pinocchio("PGS"),
        }
    except ImportError:
        return {}
    return dict(list(found.items())[: 1 if chosen.smoke else None])


def _judged(seconds: np.ndarray | float, left: np.ndarray) -> tuple[str, ...]:
    """Return the cells of time, share, and residuals."""
    solved = left <= SOLVED
    all_seconds = np.broadcast_to(seconds, left.shape)
    time = f"{1e6 * float(np.median(all_seconds[solved])):.3g}" if solved.any() else "-"
    return time, f"{int(solved.sum())} of {len(left)}", f"{np.median(left):.0e}", f"{left.max():.0e}"


# --- the page ---------------------------------------------------------------------------------------------------------


def _length(metres: float) -> str:
    if not np.isfinite(metres):
        return "lost"
    x = abs(float(metres))
    return f"{1e3 * x:.3g} mm" if x >= 1e-4 else f"{1e6 * x:.2g} um" if x >= 1e-7 else f"{x:.0e} m"


def _say(found: Finding) -> None:
    print(" | ".join(found.row), flush=True)


def main() -> None:
    chosen = options(__doc__ or "", [*PARTS, "peers"], _more)
    kept: dict[str, list[dict]] = {}
    if chosen.rest.keep and chosen.rest.keep.exists():
        kept = json.loads(chosen.rest.keep.read_text())
    with threads(1):
        for name in chosen.only:
            if name in PARTS:
                found = {f.what: asdict(f) for f in PARTS[name](chosen)}
                kept[name] = list(({f["what"]: f for f in kept.get(name, [])} | found).values())
            else:
                kept[name] = [asdict(peer_table(chosen))]
            if chosen.rest.keep:
                chosen.rest.keep.write_text(json.dumps(kept, indent=1) + "\n")
    rows = tuple(Finding(**f).row for name in PARTS for f in kept.get(name, []))
    columns = ("measured", "goal", "`Hard`", "reached", "`PGS`, 50 sweeps")
    note = (
        "Steps of 2 ms. Residual: the largest speed by which a contact misses Signorini's law, the cone of friction and the "
        "largest dissipation together, computed in NumPy from masses, Jacobian and impulses alone; that of `PGS` is by its own "
        "account: the largest speed by which one more sweep would change a row."
    )
    tables = [Table("Goals", columns, rows, note)] if rows else []
    tables += [Table(**t) for t in kept.get("peers", [])]
    publish(Report(SECTION, COMMAND, machine(), tuple(tables)), chosen)


def _more(parser: ArgumentParser) -> None:
    parser.add_argument("--keep", type=Path, metavar="FILE", help="JSON of what was measured before, and of this run")
    parser.add_argument("--dump", type=Path, metavar="FOLDER", help="save problems as .npz, for other solvers")
    parser.add_argument("--ratios", type=float, nargs="+", default=stacks.RATIOS, help="mass ratios of stacks")
    parser.add_argument("--problems", type=int, default=64, help="problems of each kind that other solvers are given")
    parser.add_argument("--patience", type=float, default=2.0, help="seconds that a peer has for a problem")


if __name__ == "__main__":
    main()
