"""Gradients and trainings with MuJoCo's contact, with the time of landings in the derivatives and without it.

    python -m benchmarks.study_onset --markdown docs/lab/onset.md
    python -m benchmarks.study_onset --only training --tasks hopper_v5 --seeds 0 1 2 --iterations 200

Gradients: that of a mean over robots by a push that all controls get, beside the slope of that mean; so many robots are in all
phases of a step that the slope is the motion's. Training: the same task, seed and options, twice.
"""

from __future__ import annotations

import tempfile
import warnings
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import costate as cs
from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from costate.sim.inputs import derivatives_as_computed
from costate.tasks.locomotion.v5.free import AntV5
from costate.tasks.locomotion.v5.planar import HopperV5
from costate.train.evaluate import evaluate_policy
from costate.train.reinforce.rewarded import DEVIATION
from costate.train.run import Run
from costate.train.trainer import train

COMMAND = "python -m benchmarks.study_onset"
SECTIONS = {"gradients": "Gradients beside slopes", "training": "Short trainings"}
TASKS = {"hopper_v5": HopperV5, "ant_v5": AntV5}
ROBOTS, EPISODES, DIRECTIONS = 2048, 64, 4
"""Robots of a gradient, episodes that judge a policy, and directions in which gradients are compared."""
STEP = 0.05
"""Size of the disturbances whose slope is the motion's, as a part of the range of controls."""


@dataclass(frozen=True, eq=False)
class Case:
    """A motion of many robots, and the number of it whose gradient is asked for."""

    name: str
    world: cs.World
    starts: Tensor
    controls: Tensor
    """Controls (T, B, nu), in [-1, 1]."""
    scale: float
    """Largest control."""
    of: Callable[[Tensor], Tensor]
    """Number of every robot (B,) from its last state (B, nx)."""

    def ends(self, push: Tensor) -> Tensor:
        """Return that number of every robot, where all controls get the same push (nu,), in [-1, 1]."""
        return self.of(self.world.rollout(self.starts, self.scale * (self.controls + push))[-1])


def walker(task: Any, steps: int) -> Case:
    """Return a robot of gymnasium under random controls: how far it comes."""
    made, random = task(), torch.Generator().manual_seed(0)
    starts = made.start(ROBOTS, random).double()
    held = torch.rand(-(-steps // 5), ROBOTS, made.world.nu, generator=random, dtype=torch.float64) - 0.5
    controls = held.repeat_interleave(5, 0)[:steps]
    return Case(made.name, made.world, starts, controls, 1.0, lambda x: x[:, 0])


def hand(steps: int) -> Case:
    """Return an Allegro hand on which a cube falls: how far it is moved along x."""
    cube = cs.Body("cube", [cs.shapes.box((0.05, 0.05, 0.05))], mass=0.1)
    robot, random = cs.load_robot("allegro_hand"), torch.Generator().manual_seed(0)
    world = cs.World({"hand": robot}, [cube], contact=cs.Newton(), self_collision=True, dt=0.002, check=False)
    starts = world.initial_state(ROBOTS // 8, dtype=torch.float64)
    starts[:, 16:19] = torch.tensor([0.035, 0.003, 0.05]) + 0.01 * torch.rand(len(starts), 3, generator=random)
    starts[:, 19:22] = 0.1 * torch.randn(len(starts), 3, generator=random)
    starts[:, 19:23] /= starts[:, 19:23].norm(dim=-1, keepdim=True)
    controls = 0.5 * torch.randn(1, len(starts), world.nu, generator=random, dtype=torch.float64)
    return Case("Allegro hand, cube", world, starts, controls.expand(steps, -1, -1), 0.05, lambda x: 1e3 * x[:, 16])


def gradients(chosen: Options) -> Table:
    cases = {
        "hopper_v5": lambda: walker(HopperV5, 40),
        "ant_v5": lambda: walker(AntV5, 8),
        "hand": lambda: hand(60),
    }
    rows = []
    for name in chosen.rest.tasks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = cases[name]()
        random = torch.Generator().manual_seed(1)
        for k in range(1 if chosen.smoke else DIRECTIONS):
            push = torch.nn.functional.normalize(
                torch.randn(case.world.nu, generator=random, dtype=torch.float64), dim=0
            )
            rows.append((f"{case.name}, direction {k + 1}", *_compared(case, push)))
            print(" | ".join(rows[-1]), flush=True)
    note = (
        f"Of a mean over {ROBOTS} robots (hands: an eighth), by a push of all controls along a random direction: the slope of the "
        f"motion, between pushes of {STEP:g} and -{STEP:g}; how far the mean gradient is from it, with the standard error of that "
        "over robots. Robots: how far they come [m], after 0.32 s and 0.4 s; hand: the cube's way along x [mm], 0.12 s."
    )
    return Table(
        "Gradients", ("", "slope of the motion", "without the times: off by", "with them: off by"), tuple(rows), note
    )


def _compared(case: Case, push: Tensor) -> tuple[str, str, str]:
    zero = torch.zeros_like(push)
    with derivatives_as_computed():
        blind = torch.func.jvp(case.ends, (zero,), (push,))[1]
    timed = torch.func.jvp(case.ends, (zero,), (push,))[1]
    slope = (case.ends(STEP * push) - case.ends(-STEP * push)) / (2 * STEP)
    first, second = (
        f"{float((x - slope).mean()):.3f} ± {float((x - slope).std() / len(x) ** 0.5):.3f}" for x in (blind, timed)
    )
    return f"{float(slope.mean()):.3f}", first, second


def training(chosen: Options) -> Table:
    rows = []
    for name in (n for n in chosen.rest.tasks if n in TASKS):
        for seed in chosen.rest.seeds[: 1 if chosen.smoke else None]:
            found = [_trained(TASKS[name], seed, chosen, times) for times in (False, True)]
            rows.append((name, str(seed), *(cell for pair in zip(*found, strict=True) for cell in pair)))
            print(" | ".join(rows[-1]), flush=True)
    columns = ("task", "seed", "return without", "with", "processor time [s] without", "with")
    note = f"Returns: mean and standard deviation of {EPISODES} new episodes after {chosen.rest.iterations} iterations."
    return Table("Trainings", columns, tuple(rows), note)


def _trained(task: Any, seed: int, chosen: Options, times: bool) -> tuple[str, str]:
    """Return what a policy earns after a short training, and its time."""
    practice = {**task.practice, "contact": cs.Newton(event_times=times)}
    own = type(task.__name__, (task,), {"practice": practice})
    iterations = 2 if chosen.smoke else chosen.rest.iterations
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", own, replace(task.training, iterations=iterations, seed=seed))
        train(run)
        judged = evaluate_policy(task(), run.policy, 2 if chosen.smoke else EPISODES).metrics.as_dict()
        seconds = run.metrics()[-1]["processor_seconds"]
    return f"{judged['return']:.0f} ± {judged[DEVIATION]:.0f}", f"{seconds:.0f}"


def main() -> None:
    chosen = options(__doc__ or "", ["gradients", "training"], _more)
    facts = machine()
    with threads(1):
        for name, study in (("gradients", gradients), ("training", training)):
            if name in chosen.only:
                publish(Report(SECTIONS[name], f"{COMMAND} --only {name}", facts, (study(chosen),)), chosen)


def _more(parser: ArgumentParser) -> None:
    parser.add_argument("--tasks", nargs="+", choices=(*TASKS, "hand"), default=[*TASKS, "hand"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--iterations", type=int, default=200, help="iterations of a training")


if __name__ == "__main__":
    main()
