"""Two checkouts of Costate in turns: does a change cost speed?

    git clone . ../before && (cd ../before && git checkout COMMIT)
    python -m benchmarks.study_turns ../before

Both checkouts run in processes of their own and measure each case in turns, in processor time; the best round counts. Only public
names are used. A ratio above 1 means that this checkout is slower. Exit code 1 if one is above --limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

import costate as cs

ROOT = Path(__file__).parent.parent
ROUNDS, REPEATS, SLICE = 8, 5, 0.04


def cases() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield names and calls: functions of an arm, steps and gradients of a quadruped, and a floor with boxes."""
    torch.set_default_dtype(torch.float64)
    arm, generator = cs.load_robot("ur5"), torch.Generator().manual_seed(0)
    q = arm.random_configuration(1024, generator=generator)
    v, tau = (torch.randn(1024, 6, dtype=torch.float64, generator=generator) for _ in range(2))
    yield "kinematics", lambda: arm.forward_kinematics(q, "tool0").position
    yield "inverse dynamics", lambda: arm.inverse_dynamics(q, v, tau)
    yield "forward dynamics", lambda: arm.forward_dynamics(q, v, tau)
    yield "forward dynamics, gradient", lambda: gradient(q, lambda x: arm.forward_dynamics(x, v, tau))
    yield "forward dynamics, batch 1", lambda: arm.forward_dynamics(q[0], v[0], tau[0])
    for name, contact in (("Hard", cs.Hard()), ("Newton", cs.Newton())):
        yield from dog_cases(name, contact)
    bodies = [cs.Body(f"b{k}", [cs.shapes.box((0.1, 0.12, 0.09))], 0.5, pose=shifted(k)) for k in range(12)]
    floor = cs.Static("floor", cs.shapes.plane())
    boxes = cs.World(bodies=bodies, scenery=[floor], contact=cs.PGS(sweeps=20), dt=0.005)
    start = boxes.initial_state(16)
    yield "12 boxes, step", lambda: boxes.step(start)


def dog_cases(name: str, contact: cs.ContactModel) -> Iterator[tuple[str, Callable[[], object]]]:
    floor = cs.Static("floor", cs.shapes.plane())
    world = cs.World(
        [cs.load_robot("laikago")], scenery=[floor], contact=contact, actuators=cs.PositionServo(300, 10), dt=0.002,
        collide=lambda a, b: "toe" in a or "toe" in b,
    )  # fmt: skip
    state = world.initial_state(256)
    hold = state[:, 7:19].clone()
    for _ in range(150):  # until it stands
        state = world.step(state, hold)
    yield f"Laikago, {name}, step", lambda: world.step(state, hold)
    yield f"Laikago, {name}, gradient", lambda: gradient(state, lambda x: world.step(x, hold))
    few, controls = state[:1], hold[:1].expand(100, 1, 12)
    yield f"Laikago, {name}, 100 steps, gradient", lambda: gradient(few, lambda x: world.rollout(x, controls)[-1])


def gradient(x: torch.Tensor, fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    fn(x.detach().clone().requires_grad_()).sum().backward()


def shifted(k: int) -> cs.model.Transform:
    return cs.model.Transform(translation=np.array([0.15 * (k % 4), 0.15 * (k // 4), 0.046]))


def work() -> None:
    """Compile all cases, say so, then answer each name on standard input with the seconds of a call."""
    torch.set_num_threads(1)
    found = dict(cases())
    for call in found.values():
        call()
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        call, best = found[line.strip()], float("inf")
        for _ in range(REPEATS):
            count, begun = 0, time.process_time()
            while time.process_time() - begun < SLICE:
                call()
                count += 1
            best = min(best, (time.process_time() - begun) / count)
        print(best, flush=True)


def start(checkout: Path) -> subprocess.Popen[str]:
    environment = dict(os.environ, PYTHONPATH=str(checkout / "src"))
    command = [sys.executable, str(Path(__file__)), "--work"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin and process.stdout
    print(name, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def compare(before: Path, limit: float) -> int:
    processes = [start(before.resolve()), start(ROOT)]
    names, _ = (json.loads(p.stdout.readline() if p.stdout else "[]") for p in processes)
    best = {name: [float("inf")] * 2 for name in names}
    for _ in range(ROUNDS):
        for name in names:
            for k, process in enumerate(processes):
                best[name][k] = min(best[name][k], ask(process, name))
    for name, (old, new) in best.items():
        print(f"{name:40s} {1e6 * old:10.1f} us before {1e6 * new:10.1f} us after   ratio {new / old:.3f}")
    for process in processes:
        process.terminate()
    return int(max(new / old for old, new in best.values()) > limit)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="another checkout of Costate")
    parser.add_argument("--limit", type=float, default=1.05, help="largest ratio of after to before")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return 0
    if options.before is None or not (options.before / "src" / "costate").is_dir():
        parser.error(f"{options.before} is not a checkout of Costate: give the folder that holds src/costate")
    return compare(options.before, options.limit)


if __name__ == "__main__":
    sys.exit(main())
