"""The contestants: each trains a network with one hidden layer of 256 units, without a guide, and writes its curve.

All train in the world without contact, in which the loss, or reward, tells where the socket is; with contact they come to rest on
its edge. PPO and SAC (stable-baselines3) begin with a wide socket, which narrows whenever four in five bottles, in the world with
contact, end within half its clearance of their seat. All their control steps and all their time count, but for looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.race.curve import HELD_OUT, WATCHED, Curve, look, tried
from benchmarks.race.rewarded import RewardedInsertion
from costate.tasks.insertion import Insertion, InsertionOptions
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.training import ALONE
from costate.train.policy import acting
from costate.train.reinforce.shac import ShacOptions
from costate.train.run import Run
from costate.train.trainer import train

CLEARANCES = (0.02, 0.01, 0.005, 0.0025, 0.001)
"""Clearances of the sockets of the curriculum [m]."""
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
    smoke: bool = False


class OutOfTime(Exception):  # noqa: N818  (not an error)
    pass


# --- gradients through the simulator ----------------------------------------------------------------------------------


def back_propagation(setting: Setting, curve: Curve) -> None:
    """Train through whole episodes, as `costate train insertion --no-guide` does."""
    iterations = 50 if setting.smoke else setting.iterations
    options = replace(ALONE, iterations=iterations, interval=10, watch_interval=10, threads=1, seed=setting.seed)
    task = Insertion(setting.options)
    _trained(task, task, options, setting, curve)


def shac(setting: Setting, curve: Curve) -> None:
    """Train by short-horizon actor-critic, from dense rewards."""
    options = replace(SHAC, iterations=20 if setting.smoke else SHAC.iterations, seed=setting.seed)
    task = Insertion(setting.options)
    _trained(RewardedInsertion(task, RewardOptions(SHAC_WEIGHTS)), task, options, setting, curve)


SHAC_WEIGHTS = replace(ALONE.weights, far=0.1, funnel=1.0, floor=0.1, slope=1.0)
SHAC = ShacOptions(
    iterations=3000,
    batch=128,
    horizon=20,
    actor=(256,),
    critic=(128, 128),
    learning_rate=2e-3,
    calming=True,
    interval=20,
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
        curve.add(steps=row["control_steps"], seconds=spent, **look(task, controller))
        begun = time.process_time()
        if spent > setting.seconds:
            raise OutOfTime

    with TemporaryDirectory() as folder:
        training = Run.create(f"{folder}/run", learnt, replace(options, watch_interval=0))
        try:
            train(training, watch)
        except OutOfTime:
            print(f"{curve.file.stem}: out of time")
        curve.final = look(task, acting(training.policy), HELD_OUT, "held out")
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
    kwargs = {"n_steps": steps, "batch_size": 2048, "n_epochs": 5, "gamma": 0.97, "policy_kwargs": network}
    return PPO("MlpPolicy", env, 1e-3, device="cpu", seed=seed, **kwargs)


NOISE = (-1.0, -4.0)
"""Logarithms of PPO's standard deviations of actions, at the start and at the end: whoever shakes keeps off the floor."""


def _calm(model: Any, progress: float) -> None:
    with torch.no_grad():
        model.policy.log_std.fill_(NOISE[0] + (NOISE[1] - NOISE[0]) * min(progress, 1.0))


def _sac(env: Any, seed: int) -> Any:
    from stable_baselines3 import SAC

    network = {"net_arch": {"pi": [256], "qf": [256, 256]}}
    kwargs = {"buffer_size": 500_000, "learning_starts": 4000, "batch_size": 512, "gradient_steps": 4, "gamma": 0.9}
    return SAC("MlpPolicy", env, 1e-3, ent_coef="auto_0.01", policy_kwargs=network, device="cpu", seed=seed, **kwargs)


PPO = Peer(_ppo, 256, 0.1, 4, 1e-3, _calm)
SAC = Peer(_sac, 32, 0.5, 4, 1e-3)


def peer(settings: Peer) -> Callable[[Setting, Curve], None]:
    """Return the contestant of an algorithm of stable-baselines3."""

    def method(setting: Setting, curve: Curve) -> None:
        from benchmarks.race.scaled import ScaledEnvironment, acted, by_tool

        torch.manual_seed(setting.seed)
        stages = [Insertion(replace(setting.options, clearance=c)) for c in CLEARANCES]
        task, by = Insertion(setting.options), by_tool(stages[0])

        def environment(stage: int) -> Any:
            return ScaledEnvironment(stages[stage], settings.environments, setting.seed, REWARDS, settings.rewarded, by)

        stage, spent = 0, 0.0
        model = settings.make(environment(0), setting.seed)

        def controller(observation: torch.Tensor) -> torch.Tensor:
            known = observation.nan_to_num()  # an episode that has been lost has failed
            return acted(model.predict(known.numpy(), deterministic=True)[0], by)

        while spent < setting.seconds:
            rate = settings.learning_rate * max(1 - spent / setting.seconds, 0.05)
            model.lr_schedule = lambda _, rate=rate: rate
            settings.calm(model, spent / setting.seconds)
            begun = time.process_time()
            model.learn(settings.chunk * settings.environments * stages[0].steps, reset_num_timesteps=False)
            spent += time.process_time() - begun
            error = tried(stages[stage], controller, WATCHED, "watch", 1).error
            now = {"clearance": 1e3 * CLEARANCES[stage], "error there": 1e3 * float(error.median())}
            curve.add(steps=model.num_timesteps, seconds=spent, **look(task, controller), **now)
            if float((error < CLEARANCES[stage] / 2).double().mean()) > ENOUGH and stage < len(stages) - 1:
                stage += 1
                model.set_env(environment(stage))
            if setting.smoke:
                break
        curve.final = look(task, controller, HELD_OUT, "held out")
        curve.save()

    return method


METHODS: dict[str, Callable[[Setting, Curve], None]] = {
    "back-propagation": back_propagation,
    "SHAC": shac,
    "PPO": peer(PPO),
    "SAC": peer(SAC),
}
"""Name -> contestant."""
