"""Real pendulums: four frames in, 200 out. Physics alone, a network alone, and physics with a network's torque.

python -m benchmarks.study_pendulums FOLDER [--only film double single] [--iterations 150] [--seed 0]

FOLDER holds the files of docs/real_data.md. Films 0 to 3 train, 4 chooses the moment at which the training of a model ends, and 5
judges. Of the tracked double pendulum the first trial trains (its last fifth chooses) and the second judges; of the single one 40 %
train, 20 % choose and 40 % judge.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.identify.pendulum_data import Swing, film, tracked
from benchmarks.identify.pendulum_models import Network, Pendulum, Physics, Scaled
from benchmarks.measure.table import Table, machine

IN, OUT = 4, 200
SOFT = 0.01
"""Error [rad] below which the loss is quadratic."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Windows of a recording that train, choose and judge: (rows, B, n) angles, and which rows were recorded."""

    swing: Swing
    gravity: float
    """Gravity to start from, by the length of the first arm [1/s^2]."""
    train: tuple[Tensor, Tensor]
    choose: tuple[Tensor, Tensor]
    judge: tuple[Tensor, Tensor]
    short: int
    """Number of frames that training predicts."""


def joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    return torch.cat([p[0] for p in parts], 1), torch.cat([p[1] for p in parts], 1)


def films(folder: Path) -> Problem:
    seen = [film(folder / f"ibm_{k}.csv") for k in range(6)]
    rows, short = IN + OUT, 60
    train = joined([s.windows(IN + short, 20) for s in seen[:4]])
    return Problem(seen[5], 108.0, train, seen[4].windows(rows, 200), seen[5].windows(rows, 60), short)


def double(folder: Path) -> Problem:
    first, second = tracked(folder / "schmidt_lipson_real_double_pend_h_1.txt", 2)
    rows, short, part = IN + OUT, 30, len(first.angles) * 4 // 5
    train = first.windows(IN + short, 2, 0, part)
    # What chooses is shorter than what judges: a fifth of the first trial is not long enough for 204 rows.
    return Problem(second, 60.0, train, first.windows(IN + 80, 4, part), second.windows(rows, 6), short)


def single(folder: Path) -> Problem:
    (swing,) = tracked(folder / "schmidt_lipson_real_pend_h_1.txt", 1)
    n, short = len(swing.angles), 40
    train, choose = swing.windows(IN + short, 2, 0, n * 2 // 5), swing.windows(IN + 60, 4, n * 2 // 5, n * 3 // 5)
    return Problem(swing, 1.0, train, choose, swing.windows(IN + OUT, 2, n * 3 // 5), short)


PROBLEMS: dict[str, Callable[[Path], Problem]] = {"film": films, "double": double, "single": single}


def loss_of(model: Pendulum, windows: tuple[Tensor, Tensor], pick: Tensor | slice = slice(None)) -> Tensor:
    """Return the mean error of predicted angles [rad], each at most half a turn."""
    angles, seen = windows[0][:, pick], windows[1][IN:, pick]
    error = model.predict(angles[:IN], len(angles) - IN) - angles[IN:]
    away = torch.sqrt(4 * (error / 2).sin() ** 2 + SOFT**2) - SOFT  # a turn more is no error
    return away.mean(-1)[seen].nan_to_num(nan=2.0).mean()


def taught(network: Network, problem: Problem, steps: int, seed: int) -> None:
    """Teach a network accelerations first: those of parabolas through nine neighbouring frames."""
    angles, seen = problem.train
    t = network.dt * torch.arange(-4.0, 5.0)
    fit = torch.linalg.pinv(torch.stack([torch.ones_like(t), t, t**2 / 2], 1))
    near = angles.unfold(0, 9, 1)[seen.unfold(0, 9, 1).all(-1)]
    place, rate, bend = (near @ fit.T).unbind(-1)
    random, optimizer = torch.Generator().manual_seed(seed), torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        pick = torch.randint(len(place), (512,), generator=random)
        optimizer.zero_grad()
        error = network.acceleration(place[pick], rate[pick]) - bend[pick]
        torch.nn.functional.smooth_l1_loss(error / bend.std(), torch.zeros_like(error)).backward()
        optimizer.step()


def train(model: Pendulum, problem: Problem, iterations: int, rate: float, seed: int, batch: int = 128) -> float:
    """Fit a model by Adam through predictions of four frames; keep what is best in the windows that choose. Returns processor s."""
    clock, random = time.process_time(), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations, rate / 20)
    best, kept = float("inf"), copy.deepcopy(model.state_dict())
    for k in range(iterations + 1):
        if k % 10 == 0:
            with torch.no_grad():
                value = float(loss_of(model, problem.choose))
            if value < best:
                best, kept = value, copy.deepcopy(model.state_dict())
        pick = torch.randperm(problem.train[0].shape[1], generator=random)[:batch]
        optimizer.zero_grad()
        loss = loss_of(model, problem.train, pick)
        loss.backward()
        if torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).isfinite():
            optimizer.step()
        schedule.step()
    model.load_state_dict(kept)
    return time.process_time() - clock


def judged(model: Pendulum, problem: Problem) -> tuple[str, ...]:
    """Return the errors in windows that judge: of angles [rad] and of the tip, root mean square of each window."""
    angles, seen = problem.judge
    with torch.no_grad():
        found = model.predict(angles[:IN], OUT)
    turn = (found - angles[IN:]).square().mean(-1)
    tip = (problem.swing.tips(found) - problem.swing.tips(angles[IN:])).square().sum(-1)
    count = seen[IN:].sum(0)
    rms = [torch.sqrt((x.nan_to_num(nan=4.0) * seen[IN:]).sum(0) / count) for x in (turn, tip)]
    return tuple(f"{float(x):.4g}" for x in (rms[0].mean(), rms[0].median(), rms[1].mean(), rms[1].median()))


def run(name: str, problem: Problem, iterations: int, seed: int) -> list[tuple[str, ...]]:
    """Return the rows of one recording."""
    arms, dt, lengths = len(problem.swing.lengths), problem.swing.dt, problem.swing.lengths
    speed = float(((problem.train[0][1:] - problem.train[0][:-1]) / dt).square().mean().sqrt())
    physics = Physics(arms, dt, lengths, problem.gravity)
    seconds = train(physics, problem, 6 * iterations, 0.05, seed)
    print(
        name,
        {k: [round(float(x), 5) for x in v.detach()] for k, v in physics.params().items() if "inertia" not in k},
        flush=True,
    )
    rows = [(name, "physics", *judged(physics, problem), f"{seconds:.0f}")]
    print(*rows[-1], flush=True)
    alone = Network(arms, dt, Scaled(arms, speed, problem.gravity, 48, seed))
    clock = time.process_time()
    taught(alone, problem, 20 * iterations, seed)
    train(alone, problem, 2 * iterations, 0.003, seed)
    seconds = time.process_time() - clock
    rows.append((name, "network", *judged(alone, problem), f"{seconds:.0f}"))
    print(*rows[-1], flush=True)
    both = Physics(arms, dt, lengths, problem.gravity, Scaled(arms, speed, 0.02 * problem.gravity, 16, seed))
    both.raw.data = physics.raw.data.clone()
    seconds = train(both, problem, iterations, 0.004, seed, batch=64)
    rows.append((name, "physics and network", *judged(both, problem), f"{seconds:.0f}"))
    print(*rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    rows = [row for name in args.only for row in run(name, PROBLEMS[name](args.folder), args.iterations, args.seed)]
    columns = ("recording", "model", "angles [rad]", "median", "tip", "median tip", "processor s")
    print(machine())
    print(
        Table("Four frames in, 200 out: root mean square errors of windows held out", columns, tuple(rows)).markdown()
    )


if __name__ == "__main__":
    main()
