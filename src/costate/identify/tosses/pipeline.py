"""Identification from tosses, stage by stage: from a recording to the numbers of a body."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from costate.core.arrays import Array
from costate.identify.tosses.fit import STAGES, Progress, Raws, Stage, Trial, covariance, fit
from costate.identify.tosses.log import Tosses, read_tosses
from costate.identify.tosses.networks import add_networks, take_over
from costate.identify.tosses.result import Errors, TossResult, errors_of
from costate.identify.tosses.thrown import Thrown, start_of, usual_unknowns


@dataclass(frozen=True)
class TossOptions:
    """Options of an identification from tosses."""

    contact: Literal["hard", "newton"] = "hard"
    """Contact model: hard (friction, restitution), or newton: soft as in MuJoCo (friction, solref, solimp)."""
    unknowns: tuple[str, ...] = ()
    """Numbers to find: friction, restitution, solref, solimp, size, position, com, inertia, gravity, floor; none given: all that
    the contact model has."""
    train: int = 100
    """Number of tosses to fit, drawn at random; all others are held out."""
    rows: int = 80
    """Number of rows of a toss that are predicted and judged; shorter tosses are left out."""
    first_rows: int = 6
    """Number of rows that the start of a stretch is estimated from; 1: the first row's pose and velocities as logged."""
    iterations: int = 80
    """Number of gradients."""
    substeps: int = 1
    """Physics steps per row."""
    networks: tuple[str, ...] = ()
    """Quantities of contacts that a network adds to, after the numbers alone have been found: friction_coefficient, restitution,
    normal_force, friction_force. Numbers and weights are fitted together, with as many gradients again."""
    seed: int = 0
    """Seed of the draw of tosses."""


def identify_tosses(
    thrown: Thrown,
    data: str | Path | Tosses,
    options: TossOptions = TossOptions(),  # noqa: B008
    progress: Progress | None = None,
) -> TossResult:
    """Find friction, restitution, inertia, centre of mass and geometry of a body from recorded tosses.

    Args:
        thrown: The body as far as it is known: where the search starts.
        data: A file (see `read_tosses`), or tosses.
        options: What to find, and from how much.
        progress: Called with the iteration and the loss.
    """
    tosses = data if isinstance(data, Tosses) else read_tosses(data)
    train, test = _split(tosses, options)
    unknowns = options.unknowns or usual_unknowns(options.contact, thrown.shape)
    world = thrown.world(options.contact, tosses.dt, options.substeps, unknowns)
    trial = Trial(world, tosses, thrown.length, options.rows, options.first_rows)
    begin, stages, clock = start_of(world, unknowns), _stages(options), time.process_time()
    raws, losses = fit(trial, begin, train, stages, options.seed, progress)
    scatter = covariance(trial, raws, trial.stretches(train, stages[0], trial.values(raws)))
    seconds = time.process_time() - clock
    errors, predicted = _judge(trial, {"as given": begin, "found": raws}, test)
    result = TossResult(
        thrown, options.contact, world, raws, scatter, tosses, train, test, errors, predicted, losses, seconds
    )
    return learn_networks(result, options, progress) if options.networks else result


def learn_networks(result: TossResult, options: TossOptions, progress: Progress | None = None) -> TossResult:
    """Continue the fit of a result with networks on its contacts, and judge it beside what was found without.

    Without any networks in the options the numbers alone are fitted further: what as many more gradients are worth.
    """
    clock, tosses = time.process_time(), result.tosses
    world = result.thrown.world(result.contact, tosses.dt, options.substeps, tuple(result.raws))
    weights = add_networks(world, result.thrown, options.networks)
    trial = Trial(world, tosses, result.thrown.length, options.rows, options.first_rows)
    raws, losses = fit(trial, {**result.raws, **weights}, result.train, _stages(options), options.seed, progress)
    take_over(world, raws)
    name = "found with networks" if options.networks else "found, fitted longer"
    errors, _ = _judge(trial, {name: raws}, result.test)
    return replace(
        result,
        errors={**result.errors, **errors},
        losses=[*result.losses, *losses],
        seconds=result.seconds + time.process_time() - clock,
        augmented=world,
        learnt=raws,
    )


def _split(tosses: Tosses, options: TossOptions) -> tuple[Array, Array]:
    enough = np.flatnonzero(tosses.lengths >= options.rows)
    if not 2 <= options.train < len(enough):
        raise ValueError(
            f"{tosses.source}: {len(enough)} tosses have {options.rows} rows or more (--rows), of which {options.train} are to be "
            "fitted (--train); at least one must be held out, and two be fitted"
        )
    if not 1 <= options.first_rows < options.rows:
        raise ValueError(f"first_rows is {options.first_rows}; expected 1 to {options.rows - 1}")
    order = enough[np.random.default_rng(options.seed).permutation(len(enough))]
    return np.sort(order[: options.train]), np.sort(order[options.train :])


def _stages(options: TossOptions) -> tuple[Stage, ...]:
    """Return the stages with their share of the iterations, none longer than what is judged."""
    total = sum(stage.iterations for stage in STAGES)
    return tuple(
        replace(s, iterations=max(1, s.iterations * options.iterations // total), rows=min(s.rows, options.rows - 1))
        for s in STAGES
    )


def _judge(trial: Trial, models: dict[str, Raws], index: Array) -> tuple[dict[str, Errors], Tensor]:
    """Return the errors in some tosses: of each model, from the first row as logged, and from the first rows together."""
    rows, errors, predicted = trial.tosses.windows(index, 0, trial.rows), {}, torch.zeros(0)
    with torch.no_grad():
        for name, raws in models.items():
            known = trial.values(raws)
            predicted = trial.world.rollout(rows[0], steps=trial.rows - 1, params=known)
            errors[f"{name}, from the first row"] = errors_of(predicted, rows, trial.length)
            if trial.first_rows > 1:
                states = trial.world.rollout(trial.start(rows, known), steps=trial.rows - 1, params=known)
                seen = trial.first_rows
                errors[f"{name}, from {seen} rows"] = errors_of(states, rows, trial.length, seen)
    return errors, predicted
