"""A UR5 puts a bottle into a socket: train a controller through the simulator, judge it, use it, export it.

A guide made for this task leads the arm, and succeeds alone; the network that is trained corrects it.

    python examples/09_insertion.py [--out FOLDER] [--iterations N]

The training is that of `costate train insertion`, about a minute on two cores.
Then try `costate report FOLDER` and `costate play FOLDER`.
"""

import argparse
import os
import shutil
import time
from pathlib import Path

import numpy as np
import torch

import costate as cs
from costate.export import write_c_header
from costate.report.run_report import run_report
from costate.tasks.insertion import Insertion, InsertionTraining
from costate.tasks.insertion.described import raw_observation
from costate.train.evaluate import evaluate
from costate.train.progress import Screen
from costate.train.run import Run
from costate.train.trainer import train

QUICK = bool(os.environ.get("COSTATE_QUICK"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out") / "09_insertion")
    parser.add_argument("--iterations", type=int, default=20 if QUICK else 200)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)

    # 1. Train: a folder, a task, options, and back-propagation through every step of every episode.
    options = InsertionTraining(
        iterations=arguments.iterations,
        batch=64 if QUICK else 256,
        hidden=64 if QUICK else 256,
        warm_up=5 if QUICK else 50,
        watch_interval=0,
        interval=5 if QUICK else 25,
    )
    run = Run.create(arguments.out, Insertion, options)
    with Screen(run) as screen:  # a table on a terminal, else a line now and then
        train(run, screen)

    # 2. Judge: episodes it has never seen, in the world with contact.
    found = evaluate(run, episodes=100 if QUICK else 2000)
    print(
        f"success {found['success']:.1%}, error {found['error_mean']:.2f} mm on average, {found['error_95']:.2f} mm (95 %)"
    )
    guide = found["compared"]["weights at zero"]
    print(f"the guide alone: success {guide['success']:.1%}, error {guide['error_mean']:.2f} mm on average")

    # 3. Use: no task, no simulator, no torch behind this.
    policy = cs.load_policy(run.path)
    state = np.zeros(18)  # q of the six joints and of the socket (x, y, angle), then the velocities of the same
    state[:6], state[6:8] = run.task.start.numpy(), run.task.options.center
    command = policy.action(state, step=0)  # it remembers what it did until `policy.begin()`
    begun = time.perf_counter()
    for step in range(1000):
        policy.action(state, step % 30)
    microseconds = 1e3 * (time.perf_counter() - begun)
    print(f"first command {np.round(command, 3)} rad/s; one takes {microseconds:.0f} us")

    # 4. Take it elsewhere: a C header (and, with `costate export`, an ONNX file) that takes measurements in SI units.
    network = run.task.exported(run.policy)
    print("wrote", write_c_header(network, run.path / "costate_policy.h"))

    # 5. Look at it: a page with replays, and the end of an episode as a picture.
    print("wrote", run_report(run, episodes=20 if QUICK else 500).save(run.path / "report.html"))
    at = run.task.sample(1, torch.Generator().manual_seed(4), torch.float64)[0]
    policy.begin()
    for step in range(run.task.steps):
        at = run.task.shown().step(at, torch.as_tensor(policy.action(at, step)))
    cs.render(run.task.shown(), at, arguments.out.with_suffix(".png"), size=(640, 400))

    assert found["error_mean"] < 0.5, "bottles should be within half a millimetre of their seats"
    assert found["success"] > 0.9, "most episodes should succeed"
    measured = raw_observation(torch.from_numpy(state), 0).numpy()
    assert np.allclose(network(measured), command, atol=1e-6), "what is exported does the same"


if __name__ == "__main__":
    main()
