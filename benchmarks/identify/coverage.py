"""Share of 95 % intervals that hold the truth under noise that goes together from row to row, in robots, contact and matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.measure.table import Table

ROBOTS = {"pendulum2": 4, "ur5": 1, "iiwa7": 1, "fetch_arm": 1}
"""Robot -> its logs, by the number of runs: one with few parameters needs more."""
ROWS, RATE = 4000, 200.0
LEVEL = 0.01
"""Deviation of the noise by the root mean square torque of a joint."""
TOSSED = {"friction": [0.2], "restitution": [0.12], "com": [0.001, -0.0005, 0.002]}
"""True numbers of the box that is tossed."""
Log = dict[str, np.ndarray]


def ar(rho: float) -> Callable[[np.random.Generator, Log], np.ndarray]:
    """Noise of unit variance that forgets at a rate."""
    from costate.tasks.numbers import correlated

    return lambda rng, log: correlated(rng.normal(size=log["tau"].shape), rho)


def rounded(rng: np.random.Generator, log: Log) -> np.ndarray:
    """Error of rounding torques to steps of sqrt(12) deviations, as a coarse converter does, after a tenth of one of noise."""
    level, offset = LEVEL * np.sqrt((log["tau"] ** 2).mean(0)), rng.uniform(size=log["tau"].shape[1])
    x = log["tau"] / level + 0.1 * rng.normal(size=log["tau"].shape)
    return np.sqrt(12) * (np.round(x / np.sqrt(12) + offset) - offset) - log["tau"] / level


def ripple(turns: float) -> Callable[[np.random.Generator, Log], np.ndarray]:
    """Ripple of gears, so many per turn of a joint, and a tenth of its power of white noise."""

    def noise(rng: np.random.Generator, log: Log) -> np.ndarray:
        nv = log["tau"].shape[1]
        wave = np.sin(turns * rng.uniform(0.8, 1.2, nv) * log["q"] + rng.uniform(0, 2 * np.pi, nv))
        return np.sqrt(1.8) * wave + np.sqrt(0.1) * rng.normal(size=log["tau"].shape)

    return noise


def hum(rng: np.random.Generator, log: Log) -> np.ndarray:
    """Sine of 3 to 30 Hz in each joint, and a tenth of its power of white noise."""
    nv = log["tau"].shape[1]
    wave = np.sin(2 * np.pi * rng.uniform(3, 30, nv) * log["t"][:, None] + rng.uniform(0, 2 * np.pi, nv))
    return np.sqrt(1.8) * wave + np.sqrt(0.1) * rng.normal(size=log["tau"].shape)


NOISES = {
    "white": ar(0.0),
    "AR(1) 0.5": ar(0.5),
    "AR(1) 0.9": ar(0.9),
    "AR(1) 0.99": ar(0.99),
    "torques rounded": rounded,
    "positions rounded, white torques": ar(0.0),
    "positions rounded, AR(1) 0.9": ar(0.9),
    "gear ripple, 200 per turn": ripple(200.0),
    "gear ripple, 50 per turn": ripple(50.0),
    "hum": hum,
}


def moved(regressor, seed: int) -> Log:
    """A log without noise: sums of five sines in every joint."""
    rng, t = np.random.default_rng(seed), np.arange(ROWS) / RATE
    shape = regressor.model.nv, 5
    w, phase, size = rng.uniform(0.5, 4.0, shape), rng.uniform(0, 2 * np.pi, shape), rng.uniform(0.1, 0.4, shape)
    angle = w * t[:, None, None] + phase
    q, v, a = ((size * x).sum(-1) for x in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)))
    return {"t": t, "q": q, "v": v, "a": a, "tau": regressor.torques(q, v, a, regressor.pi())}


def robots(runs: int) -> Table:
    """Return coverage of the intervals of `cs.identify`: every run has another motion and another noise."""
    import costate as cs
    from costate.identify import Regressor
    from costate.identify.noise.correlated import intervals
    from costate.robot import Robot

    rows = []
    for name, times in ROBOTS.items():
        model = cs.load_robot(name).model
        regressor = Regressor.of(model)
        for kind, noise in NOISES.items():
            each, plain, worth = [], [], []
            for seed in range(times * runs):
                rng, log = np.random.default_rng(1000 + seed), moved(regressor, seed)
                log["tau"] = log["tau"] + LEVEL * np.sqrt((log["tau"] ** 2).mean(0)) * noise(rng, log)
                if kind.startswith("positions"):
                    log = {"t": log["t"], "q": np.round(log["q"], 4), "tau": log["tau"]}
                found = cs.identify(Robot(model), log, physical=False, repair=False)
                truth = found.base.project(regressor.pi())
                each.append(_held(truth, found.interval))
                alone = found.std * np.sqrt(found.scatter.effective / found.scatter.rows)
                plain.append(_held(truth, intervals(found.beta, alone)))
                worth.append(np.median(found.scatter.effective))
            rows.append(
                (name, kind, len(each), 100 * np.mean(each), _doubt(each), 100 * np.mean(plain), np.median(worth))
            )
            print(*rows[-1], sep="\t", flush=True)
    columns = ("robot", "noise", "logs", "held [%]", "+- over logs", "as if independent [%]", "effective sample size")
    note = f"`cs.identify`: {ROWS:,} rows at {RATE:.0f} Hz, noise of {100 * LEVEL:.0f} % of each joint's torque."
    return Table("Coverage of 95 % intervals of robots", columns, tuple(rows), note)


def records(runs: int) -> Table:
    """Return coverage of the intervals of tasks: contact, heat, cloth, dough."""
    from costate.tasks.additive.identify import ThermocoupleTask
    from costate.tasks.cloth.towel import TowelTask
    from costate.tasks.soft.identify import MaterialTask

    tasks = {
        "heat: thermocouples": ThermocoupleTask,
        "cloth: towel": lambda correlation: TowelTask(points=6, steps=25, correlation=correlation),
        "dough: block": lambda correlation: MaterialTask(cells=20, steps=60, watched=12, correlation=correlation),
    }
    rows = []
    for rho in (0.0, 0.5, 0.9, 0.99):
        for system in ("bounce", "cart_pole"):
            rows.append((f"contact: {system}", rho, *_contact(system, rho, 10 * runs)))
            print(*rows[-1], sep="\t", flush=True)
        for name, make in tasks.items():
            found = [make(correlation=rho).solve(seed, lambda text: None).rows for seed in range(runs)]
            each = [np.mean([float(r["from"]) <= float(r["true"]) <= float(r["to"]) for r in run]) for run in found]
            rows.append((name, rho, runs, 100 * np.mean(each), _doubt(each)))
            print(*rows[-1], sep="\t", flush=True)
    columns = ("task", "correlation of neighbouring readings", "runs", "held [%]", "+- over runs")
    return Table("Coverage of 95 % intervals of other identifications", columns, tuple(rows), "")


def tosses(runs: int) -> Table:
    """Return coverage of `identify_tosses`: a box whose poses have noise that is correlated from row to row."""
    from costate.identify.tosses import TossOptions, identify_tosses

    rows = []
    for rho in (0.0, 0.9):
        each = []
        for seed in range(runs):
            options = TossOptions(unknowns=tuple(TOSSED), train=30, rows=40, seed=seed)
            found = identify_tosses(*_thrown(34, 40, rho, seed), options)
            away = {name: np.abs(found.values[name] - np.array(true)) for name, true in TOSSED.items()}
            each.append(np.mean(np.concatenate([away[name] <= found.half_widths[name] for name in away])))
        rows.append(("tosses of a box, 30 fitted", rho, runs, 100 * np.mean(each), _doubt(each)))
        print(*rows[-1], sep="\t", flush=True)
    columns = ("task", "correlation of neighbouring poses", "runs", "held [%]", "+- over runs")
    return Table("Coverage of 95 % intervals of tosses", columns, tuple(rows), "Noise of 0.1 mm and 1 mrad.")


def _thrown(count: int, steps: int, rho: float, seed: int):
    """Return a box as far as it is known, and simulated tosses of it with the numbers of TOSSED."""
    from costate.identify.tosses import Thrown
    from costate.identify.tosses.log import tosses_of
    from costate.identify.tosses.thrown import parameter
    from costate.identify.tosses.turns import rotated
    from costate.sim.scene import shapes
    from costate.tasks.numbers import correlated

    rng, box, dt = np.random.default_rng(seed), Thrown(shapes.box((0.1, 0.1, 0.1)), 0.4, 0.25, 0.2), 1 / 148
    world = box.world("hard", dt, 1, tuple(TOSSED))
    start = world.initial_state(batch=count, dtype=torch.float64)
    start[:, 2] = 0.15
    start[:, 3:7] = torch.nn.functional.normalize(torch.as_tensor(rng.normal(size=(count, 4))), dim=-1)
    start[:, 7:] = torch.as_tensor(rng.normal(size=(count, 6)) * np.repeat([0.6, 4.0], 3))
    params = {parameter(name): torch.tensor(value, dtype=torch.float64) for name, value in TOSSED.items()}
    x = world.rollout(start, steps=steps - 1, params=params)
    noise = correlated(rng.normal(size=(steps, count, 7)), rho) * np.repeat([1e-4, 5e-4], (3, 4))
    p, q = (x[..., :7] + torch.as_tensor(noise)).split((3, 4), -1)
    q = torch.nn.functional.normalize(q, dim=-1)
    table = torch.cat([p, q[..., [3, 0, 1, 2]], rotated(q, x[..., 7:10]), x[..., 10:]], -1)
    return box, tosses_of(table.movedim(0, 1).reshape(-1, 13).numpy(), np.arange(count + 1) * steps, dt)


def _contact(system: str, rho: float, runs: int) -> tuple[int, float, float]:
    """Fit records by Gauss-Newton from the truth: the intervals are about noise, and not about first guesses."""
    from costate.tasks.identify_contact import IdentifyContact

    task = IdentifyContact(system=system, correlation=rho)
    problems, x = task.problems(range(runs)), task.encode(task.truth).expand(runs, -1).clone()
    for _ in range(4):
        units = torch.eye(x.shape[1]).to(x)
        columns = [torch.func.jvp(problems.residuals, (x,), (e.expand_as(x).contiguous(),))[1] for e in units]
        x = x - torch.linalg.lstsq(torch.stack(columns, -1), problems.residuals(x)[..., None]).solution[..., 0]
    each = ((task.decode(x) - task.truth).abs() <= task.confidence(problems.residuals, x)).double().mean(1).numpy()
    return runs, 100 * float(each.mean()), _doubt(each)


def _held(truth: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> float:
    return float(((ends[0] <= truth) & (truth <= ends[1])).mean())


def _doubt(each) -> float:
    """Standard error of a coverage [%]: runs are independent, intervals of a run are not."""
    return 100 * float(np.std(each, ddof=1) / np.sqrt(len(each)))


STUDIES = {
    "robots": ("Robots", robots),
    "records": ("Contact, heat, cloth, dough", records),
    "tosses": ("Tosses", tosses),
}
"""Name on the command line -> section of the page, and study by the number of runs."""
