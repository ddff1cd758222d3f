"""From a robot to a walking policy: a Laikago learns to trot by gradients through its simulation (SHAC), in less than a minute.

    python examples/15_walking_robot.py [--out FOLDER]           # train it, judge it, draw it
    costate train examples/15_walking_robot.py --help            # the same file as a task of the command line

The class is all that a robot of your own takes: a world, random starts, and formulas for observation, reward and fall. It is an
environment of gymnasium, too: see `main`. docs/reinforcement_learning.md explains it.
"""

import os
import shutil
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
    training = ShacOptions(iterations=900, batch=64, horizon=24, critic_passes=8, calming=True, watch_interval=50)

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


def main(out: Path = Path("out") / "15_walking_robot") -> None:
    """Train, judge and draw it. out: run folder."""
    shutil.rmtree(out, ignore_errors=True)
    run = Run.create(out, Trot, replace(Trot.training, iterations=12, interval=6) if QUICK else Trot.training)
    with Screen(run) as screen:  # a table on a terminal, else a line now and then
        train(run, screen)
    found = evaluate(run, episodes=8 if QUICK else 200)
    print(f"{found['success']:.1%} of {found['episodes']} new starts stay up; return {found['return']:.0f} of 1,500")
    print("wrote", run_report(run, episodes=4).save(out / "report.html"))
    # The same class is an environment: a batch of robots, differentiable with torch.
    envs = Batch(run.task, 4)
    seen, states = envs.reset(), []
    for _ in range(20 if QUICK else 150):
        outcome = envs.step(run.policy(seen).detach())
        seen = outcome.observation.detach()
        states.append(envs.states[-1].detach())
    moments = torch.stack(states)[None, ::40, 0]  # one robot, again and again
    cs.render(run.task.world, moments, out.with_suffix(".png"), size=(640, 400), samples=4, spacing=0)
    assert found["return"] > (50 if QUICK else 1200), "it should have learnt to walk"


if __name__ == "__main__":
    tyro.cli(main)
