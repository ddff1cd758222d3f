"""From a robot to a walking policy: a Laikago learns to trot by gradients through its simulation (SHAC), in a minute or two.

    python examples/15_walking_robot.py [--out FOLDER]           # train it, judge it, draw it
    costate train examples/15_walking_robot.py --help            # the same file as a task of the command line

The class is all that a robot of your own takes: a world, random starts, and formulas for observation, reward and fall. It is an
environment of gymnasium, too: see `main`. docs/reinforcement_learning.md explains it.
"""

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import casadi as ca
import torch
import tyro

import costate as cs
from costate.envs import Batch
from costate.physics.algebra.quaternion import to_rotation
from costate.report.run_report import run_report
from costate.train import Run, train
from costate.train.evaluate import evaluate
from costate.train.progress import Screen
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.reinforce.shac import ShacOptions

QUICK = bool(os.environ.get("COSTATE_QUICK"))


class Trot(RewardedTask):
    name, summary, length = "trot", "a Laikago trots along x", 500
    training = ShacOptions(iterations=600, batch=64, horizon=24, critic_passes=8, actor=(128, 64, 32))

    @cached_property
    def world(self):
        return cs.World(
            robots={"laikago": cs.load_robot("laikago")},
            scenery=[cs.Static("ground", cs.shapes.plane())],
            actuators=cs.PositionServo(stiffness=120.0, damping=4.0),
            contact=cs.Compliant(stiffness=1e4, damping=0.2, friction=0.8, friction_speed=0.2, joint_limits=False),
            collide=lambda a, b: "ground" in (a, b) and "toe" in a,
            dt=0.02,
            substeps=16,
            check=False,
        )

    @cached_property
    def home(self):
        return self.world.initial_state().float()

    @cached_property
    def action_scale(self):
        return self.home[7:19].double(), torch.full((12,), 0.5, dtype=torch.float64)  # targets of the servos [rad]

    def start(self, batch, generator):
        noise = 0.05 * torch.randn(batch, len(self.home), generator=generator, dtype=torch.float32)
        noise[:, 3:7] = 0  # the trunk stays level
        return self.home + noise

    def observation_of(self, x, action, time):
        R = to_rotation(x[3:7])
        return ca.vertcat(x[2], R[2, :].T, R[0, 0], x[19:25], x[7:19], 0.1 * x[25:], action)

    def reward_of(self, x, action, after, time):
        R = to_rotation(after[3:7])
        speed = (R @ after[19:22])[0]
        return ca.fmin(speed, 1.0) + R[2, 2] + R[0, 0] - 0.05 * ca.sumsqr(action)

    def margin_of(self, x):
        return ca.fmin(x[2] - 0.25, to_rotation(x[3:7])[2, 2] - 0.5)


def main(out: str = "out") -> None:
    torch.set_default_dtype(torch.float32)
    task, folder = Trot(), Path(out) / "trot"
    options = replace(Trot.training, iterations=4, batch=8, interval=2) if QUICK else Trot.training
    run = Run.create(folder, Trot, options)
    with Screen(run) as screen:
        train(run, screen)
    found = evaluate(run, episodes=8 if QUICK else 200)
    print({name: text for name, text in task.rows(found).items()})
    print("wrote", run_report(run, 4).save(Path(out) / "trot.html"))

    # The same class as an environment: 16 robots at once, differentiable with torch.
    envs = Batch(task, 16)
    seen = envs.reset()
    outcome = envs.step(run.policy(seen))
    print(f"rewards of {len(outcome.reward)} robots after one step: {outcome.reward.mean().item():.2f} on average")


if __name__ == "__main__":
    tyro.cli(main)
