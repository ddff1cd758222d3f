"""Your own task in one file: a pendulum with a motor stands up from anywhere near hanging, and stays upright.

    python examples/12_own_task.py [--out FOLDER]        # train it, judge it, write a report
    costate train examples/12_own_task.py --help         # the same file as a task of the command line

A task is a world and four methods: draw random episodes, observe, the terms of the loss, judge. docs/own_task.md explains them.
"""

import argparse
import os
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch

import costate as cs
from costate.report.run_report import run_report
from costate.train import Episodes, Run, Trainable, TrainOptions, Verdict, train
from costate.train.episode import rollout
from costate.train.evaluate import evaluate
from costate.train.progress import Screen

QUICK = bool(os.environ.get("COSTATE_QUICK"))


@dataclass(frozen=True)
class StandUpOptions:
    """Options of the task; the command line has them as --task.NAME."""

    steps: int = 75
    """Control steps of an episode."""
    strength: float = 10.0
    """Largest torque of the motor [N m]; to hold the pendulum level takes 4.9."""


class StandUp(Trainable):
    name = "stand_up"
    summary = "a pendulum with a motor stands up"
    unit, tolerance = "rad", 0.1
    trails = ("pendulum/tip",)
    options = StandUpOptions()
    training = TrainOptions(iterations=150, batch=128, learning_rate=1e-2, hidden=32, watch_interval=50)

    @cached_property
    def world(self):
        motor = cs.Torque(limit=self.options.strength)
        return cs.World([cs.load_robot("pendulum")], actuators=motor, contact=None, dt=0.02, substeps=2)

    def draw(self, batch, generator, dtype=torch.float32):
        """Start near hanging (q = 0), at any speed up to 1 rad/s."""
        return Episodes((2 * torch.rand(batch, 2, generator=generator, dtype=torch.float64) - 1).to(dtype))

    def observe(self, state, step, episodes):
        q, v = state[..., :1], state[..., 1:]
        return torch.cat([q.sin(), q.cos(), v / 5], -1)

    def loss(self, trajectory, iteration):
        q, v = trajectory.states.unbind(-1)
        last = slice(-20, None)
        return {
            "height": (1 + q.cos()).mean(0),
            "upright": torch.log1p(100 * (1 + q[last].cos())).mean(0),
            "rest": 0.1 * v[last].square().mean(0),
            "effort": 0.01 * trajectory.actions.square().mean((0, -1)),
        }

    def judge(self, trajectory):
        q, v = trajectory.states[-20:].unbind(-1)
        error = torch.acos((-q.cos()).clamp(-1, 1)).amax(0)  # from upright, q = pi
        return Verdict((error < 0.1) & (v.abs().amax(0) < 0.5), error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out") / "12_own_task")
    out = parser.parse_args().out
    shutil.rmtree(out, ignore_errors=True)
    options = replace(StandUp.training, iterations=60) if QUICK else StandUp.training
    run = Run.create(out, StandUp, options)
    with Screen(run) as screen:  # a table on a terminal, else a line now and then
        train(run, screen)
    found = evaluate(run, episodes=200 if QUICK else 2000)
    print(f"{found['success']:.1%} of {found['episodes']} new starts end upright, off by {found['error_mean']:.3f} rad")
    print("wrote", run_report(run, episodes=20 if QUICK else 500).save(out / "report.html"))
    with torch.no_grad():
        motion = rollout(run.task, run.policy, run.task.draw(4, torch.Generator().manual_seed(0)))
    cs.render(
        run.task.world, motion.states, out.with_suffix(".png"), size=(640, 400), trails=run.task.trails, samples=4
    )
    assert found["success"] > (0.5 if QUICK else 0.95), "it should have learnt to stand up"


if __name__ == "__main__":
    main()
