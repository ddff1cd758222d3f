"""The contestants: each trains a network with one hidden layer of 256 units, without a guide, and writes its curve.

All train in the world without contact, in which the loss, or reward, tells where the socket is; with contact they come to rest on
its edge. PPO and SAC (stable-baselines3) begin with a wide socket, which narrows whenever four in five bottles, in the world with
contact, end within half its clearance of their seat. All their control steps and all their time count, but for looks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.race.coordinates import Coordinates, CoordinatesInsertion
from benchmarks.race.curve import HELD_OUT, WATCHED, Curve, look, tried
from benchmarks.race.rewarded import RewardedInsertion
from costate.tasks.insertion import Insertion, InsertionOptions, judge
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.training import ALONE
from costate.train.episode import Controller
from costate.train.policy import acting
from costate.train.reinforce.shac import ShacOptions
from costate.train.run import Run
from costate.train.trainer import train

WIDER = (0.02, 0.01, 0.005, 0.0025)
"""Clearances of the wider sockets of the curriculum [m]."""
HIGHEST = 0.99
"""Success rate at which a training has nothing left to learn."""
ENOUGH = 0.8
"""Part of the episodes that must end within half the clearance before the socket narrows."""


@dataclass(frozen=True)
class Setting:
    """The conditions of a training."""

    options: InsertionOptions
    iterations: int
    """Iterations of back-propagation."""
    seconds: float
    """Processor time of each training [s]."""
    seed: int
    tolerance: float = 1.0
    """Factor of the errors, speeds and overlaps that are allowed."""
    smoke: bool = False


class Over(Exception):  # noqa: N818  (not an error)
    pass


# --- gradients through the simulator ----------------------------------------------------------------------------------


def back_propagation(kind: type[Insertion], shorter: int = 1) -> Callable[[Setting, Curve], None]:
    """Return the contestant that trains through whole episodes, as `costate train insertion --no-guide` does.

    kind: the task, which gives the policy; shorter: the part of the setting's iterations that it needs, as a divisor.
    """

    def method(setting: Setting, curve: Curve) -> None:
        iterations = 50 if setting.smoke else setting.iterations // shorter
        options = replace(ALONE, iterations=iterations, interval=20, threads=1, seed=setting.seed)
        task = kind(setting.options)
        _trained(task, task, options, setting, curve)

    return method


def shac(setting: Setting, curve: Curve) -> None:
    """Train by short-horizon actor-critic, from dense rewards."""
    options = replace(SHAC, iterations=20 if setting.smoke else SHAC.iterations, seed=setting.seed)
    task = Insertion(setting.options)
    _trained(RewardedInsertion(task, RewardOptions(SHAC_WEIGHTS)), task, options, setting, curve)


SHAC_WEIGHTS = replace(ALONE.weights, far=0.1, funnel=1.0, floor=0.1, slope=1.0)
SHAC = ShacOptions(
    iterations=2000,
    batch=128,
    horizon=20,
    actor=(256,),
    critic=(128, 128),
    learning_rate=2e-3,
    calming=True,
    interval=40,
    threads=1,
)
"""Settings of SHAC; its layer is normalised, and has ELU instead of tanh."""


def _trained(learnt: Any, task: Insertion, options: Any, setting: Setting, curve: Curve) -> None:
    """Train with one of the package's trainers, and look between the rows of its metrics."""
    spent, begun = 0.0, time.process_time()

    def watch(row: dict[str, Any]) -> None:
        nonlocal spent, begun
        spent += time.process_time() - begun
        controller = acting(training.policy)
        curve.add(steps=row["control_steps"], seconds=spent, **look(task, controller, setting.tolerance))
        begun = time.process_time()
        if spent > setting.seconds or curve.settled(HIGHEST):
            raise Over

    with TemporaryDirectory() as folder:
        training = Run.create(f"{folder}/run", learnt, replace(options, watch_interval=0))
        try:
            train(training, watch)
        except Over:
            print(f"{curve.file.stem}: ended early")
        curve.final = look(task, acting(training.policy), setting.tolerance, HELD_OUT, "held out")
    curve.save()


# --- stable-baselines3 ------------------------------------------------------------------------------------------------

REWARDS = RewardOptions(replace(ALONE.weights, far=0.1, funnel=4.0, floor=0.1, slope=1.0))
"""The terms of the loss, with weights that suit a search by trial: a pull from afar, and less fear of the floor."""


@dataclass(frozen=True)
class Peer:
    """Settings of an algorithm of stable-baselines3."""

    make: Callable[[Any, int], Any]
    """Function of environments and seed that makes the model."""
    environments: int
    rewarded: float
    """Factor of the rewards: those of an episode are of order one."""
    chunk: int
    """Episodes of each environment from one look to the next."""
    learning_rate: float
    """Learning rate at the start; it falls linearly over the budget, to a twentieth."""
    calm: Callable[[Any, float], None] = lambda model, progress: None
    """Function of a model and the part of the budget that is spent, which sets the noise of its actions."""


def _ppo(env: Any, seed: int) -> Any:
    from stable_baselines3 import PPO

    network = {"net_arch": [256], "activation_fn": torch.nn.Tanh}
    steps = env.batch.length
    kwargs = {
        "n_steps": steps,
        "batch_size": 2048,
        "n_epochs": 5,
        "gamma": 0.97,
        "policy_kwargs": network,
    }
    return PPO("MlpPolicy", env, 1e-3, device="cpu", seed=seed, **kwargs)


NOISE = (-1.0, -4.5)
"""Logarithms of the standard deviations of actions, at the start and at the end: whoever shakes keeps off the floor."""


def _noise(progress: float) -> float:
    return NOISE[0] + (NOISE[1] - NOISE[0]) * min(progress, 1.0)


def _calm_ppo(model: Any, progress: float) -> None:
    with torch.no_grad():
        model.policy.log_std.fill_(_noise(progress))


def _calm_sac(model: Any, progress: float) -> None:
    """Set the entropy that is aimed at to that of a Gaussian with such deviations."""
    model.target_entropy = 6 * (_noise(progress) + 0.5 * math.log(2 * math.pi * math.e))


def _sac(env: Any, seed: int) -> Any:
    from stable_baselines3 import SAC

    network = {"net_arch": {"pi": [256], "qf": [256, 256]}}
    kwargs = {"buffer_size": 300_000, "learning_starts": 4000, "batch_size": 256, "gradient_steps": 4, "gamma": 0.95}
    return SAC("MlpPolicy", env, 1e-3, ent_coef="auto_0.01", policy_kwargs=network, device="cpu", seed=seed, **kwargs)


PPO = Peer(_ppo, 256, 0.1, 8, 1e-3, _calm_ppo)
SAC = Peer(_sac, 128, 0.5, 4, 1e-3, _calm_sac)


def peer(settings: Peer) -> Callable[[Setting, Curve], None]:
    """Return the contestant of an algorithm of stable-baselines3."""

    def method(setting: Setting, curve: Curve) -> None:
        from benchmarks.race.scaled import ScaledEnvironment

        torch.manual_seed(setting.seed)
        stages = [Insertion(replace(setting.options, clearance=c)) for c in clearances(setting.options)]
        task, spent = stages[-1], 0.0
        coordinates = Coordinates(task)

        def environment() -> Any:
            return ScaledEnvironment(stages[0], settings.environments, setting.seed, REWARDS, settings.rewarded)

        def controller(observation: torch.Tensor) -> torch.Tensor:
            known = observation.nan_to_num()  # an episode that has been lost has failed
            chosen = model.predict(coordinates.seen(known).numpy(), deterministic=True)[0]
            return coordinates.acted(torch.from_numpy(chosen), known)

        model = settings.make(environment(), setting.seed)
        while spent < setting.seconds and not curve.settled(HIGHEST):
            rate = settings.learning_rate * max(1 - spent / setting.seconds, 0.05)
            model.lr_schedule = lambda _, rate=rate: rate
            settings.calm(model, spent / setting.seconds)
            begun = time.process_time()
            model.learn(settings.chunk * settings.environments * task.steps, reset_num_timesteps=False)
            spent += time.process_time() - begun
            error, clearance = _error(stages[0], controller), stages[0].options.clearance
            now = {"clearance": 1e3 * clearance, "error there": 1e3 * float(error.median())}
            curve.add(steps=model.num_timesteps, seconds=spent, **look(task, controller, setting.tolerance), **now)
            if len(stages) > 1 and float((error < clearance / 2).double().mean()) > ENOUGH:
                stages.pop(0)
                model.set_env(environment())
            if setting.smoke:
                break
        curve.final = look(task, controller, setting.tolerance, HELD_OUT, "held out")
        curve.save()

    return method


def _error(task: Insertion, controller: Controller) -> torch.Tensor:
    """Return errors (B,) when the bottle should be seated [m]."""
    return judge(task, tried(task, controller, WATCHED, "watch", 1)).error


def clearances(options: InsertionOptions) -> list[float]:
    """Return the clearances of the curriculum [m], down to that of the task."""
    return [c for c in WIDER if c > options.clearance] + [options.clearance]


METHODS: dict[str, Callable[[Setting, Curve], None]] = {
    "back-propagation": back_propagation(Insertion),
    "back-propagation, same coordinates": back_propagation(CoordinatesInsertion, 2),
    "SHAC": shac,
    "PPO": peer(PPO),
    "SAC": peer(SAC),
}
"""Name -> contestant."""
