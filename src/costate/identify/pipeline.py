"""Identification stage by stage: from a log and a robot to parameters, as `cs.identify` does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from costate.core.arrays import Array
from costate.identify import solve
from costate.identify.adam import AdamOptions, train
from costate.identify.base import Base
from costate.identify.checks import check_table, check_torques, check_units, in_radians
from costate.identify.derivatives import differentiate
from costate.identify.log import Columns, Log, from_table
from costate.identify.possible import Progress, solve_possible
from costate.identify.regressor import Regressor
from costate.identify.result import Fit, Identification
from costate.identify.tables import LogError
from costate.model import Model
from costate.robot import Robot, load_robot
from costate.robot.identified import with_parameters
from costate.robot.params import PhysicalInertia, Positive


@dataclass(frozen=True)
class IdentifyOptions:
    """Options of an identification."""

    terms: tuple[str, ...] = ("inertial", "damping", "friction", "armature")
    """Parameters to find: inertial (mass, centre of mass, inertia of links), damping, friction, armature (of joints)."""
    links: tuple[str, ...] | None = None
    """Links whose inertial parameters to find; default: all moving ones that have mass."""
    joints: tuple[str, ...] | None = None
    """Joints whose terms to find; default: all."""
    method: Literal["gauss_newton", "adam"] = "gauss_newton"
    """Method: gauss_newton is exact, on the dynamics regressor; adam takes stochastic gradients, and fits whatever is learnable in
    the robot given, if anything is."""
    physical: bool = True
    """Restriction of masses, inertias, damping, friction and armature to possible values."""
    held_out: float = 0.2
    """Fraction of the log to test on: stretches spread over it."""
    period: float | None = None
    """Period of the motion [s], if it is periodic: positions are then differentiated by Fourier series."""
    drop_bad_rows: bool = False
    """Permission to leave out rows without numbers, with a note, instead of refusing them."""
    check: bool = True
    """Refusal of logs whose units or signs contradict themselves or the robot."""
    epochs: int = 200
    """Number of epochs of Adam."""
    learning_rate: float = 1e-2
    """Learning rate of Adam at the start."""


def identify(
    robot: Robot | str | Path,
    data: str | Path | Log | Mapping[str, Array],
    *,
    columns: Columns | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Identification:
    """Find physical parameters of a robot from logged positions and torques.

    Args:
        robot: The robot, or its file. Its parameters are where the search starts, and what is kept where data say nothing.
        data: A CSV, NPZ or Parquet file, a `Log`, or arrays by name: t (N,), q (N, nq), tau (N, nv), perhaps v and a (N, nv).
            Velocities and accelerations that are missing are found by differentiating.
        columns: Names of columns, where they are not the usual ones (see `costate.identify.log`).
        progress: Called with the iteration and the cost.
        options: Fields of `IdentifyOptions`.
    """
    chosen = IdentifyOptions(**options)
    robot = robot if isinstance(robot, Robot) else load_robot(robot)
    model = robot.model if chosen.method == "adam" and robot.learnable() else robot.identified_model()
    log, notes = _prepare(_log(data, model, columns), model, chosen)
    regressor = Regressor.of(model, chosen.terms, chosen.links, chosen.joints)
    if not regressor.size:
        raise ValueError("there is nothing to identify: no links and no joints are chosen")
    given = _torques(regressor, log, regressor.pi())
    if chosen.check:
        _compare(log, regressor, given)
    train_index, test_index = solve.blocks(len(log), chosen.held_out)
    reduced = _reduce(regressor, log, train_index)
    base, singular = _base(reduced, regressor)
    linear = solve.solve_linear(reduced, base.independent, _scale(log))
    if chosen.method == "adam":
        found, predicted, history, held = _by_adam(robot, regressor, log, train_index, test_index, chosen, progress)
    else:
        pi, history, extra = _by_gauss_newton(regressor, base, reduced, linear, chosen, progress)
        found, predicted = with_parameters(model, regressor.values(pi)), _torques(regressor, log, pi)
        held, notes = [], notes + extra
    return Identification(
        model=found,
        prior=model,
        regressor=regressor,
        base=base,
        beta=linear.beta,
        covariance=linear.covariance,
        sigma=linear.sigma,
        singular_values=singular,
        train=_fit(log, given, predicted, train_index),
        test=_fit(log, given, predicted, test_index) if len(test_index) else None,
        history=history,
        held_out_history=held,
        notes=notes,
        log=log,
        predicted=predicted,
    )


def _log(data: str | Path | Log | Mapping[str, Array], model: Model, columns: Columns | None) -> Log:
    if isinstance(data, Log):
        return data
    if isinstance(data, str | Path):
        return Log.read(data, model, columns)
    return from_table(data, model, columns)


def _prepare(log: Log, model: Model, options: IdentifyOptions) -> tuple[Log, list[str]]:
    """Return a log that is complete: checked, with velocities and accelerations."""
    log, notes = check_table(log, options.drop_bad_rows)
    if options.check:
        check_units(log, model)
    if log.v is not None and log.a is not None:
        return log, notes
    if model.nq != model.nv:
        raise LogError(f"{log.source}: positions with quaternions cannot be differentiated here; log v and a as well")
    assert log.t is not None
    if log.v is None:
        q, v, a = differentiate(log.t, log.q, options.period)
        notes = [*notes, "velocities and accelerations were found by differentiating the positions"]
        return replace(log, q=q, v=v, a=a if log.a is None else log.a), notes
    _, a, _ = differentiate(log.t, log.v, options.period)
    return replace(log, a=a), [*notes, "accelerations were found by differentiating the velocities"]


def _compare(log: Log, regressor: Regressor, given: Array) -> None:
    """Compare the torques with those of the robot as given, also as if angles were degrees."""
    turning = all(j.kind in ("revolute", "continuous", "fixed") for j in regressor.model.joints)
    check_torques(log, given, _torques(regressor, in_radians(log), regressor.pi()) if turning else None)


def _torques(regressor: Regressor, log: Log, pi: Array) -> Array:
    assert log.v is not None and log.a is not None
    return regressor.torques(log.q, log.v, log.a, pi)


def _reduce(regressor: Regressor, log: Log, index: Array) -> solve.Reduced:
    assert log.v is not None and log.a is not None
    return solve.Reduced.of(regressor, log.q[index], log.v[index], log.a[index], log.tau[index])


def _scale(log: Log) -> Array:
    rms = np.sqrt((log.tau**2).mean(0))
    return np.maximum(rms, 1e-6 * max(rms.max(), 1e-12))


def _base(reduced: solve.Reduced, regressor: Regressor) -> tuple[Base, Array]:
    W = np.concatenate(reduced.R)
    norms = np.linalg.norm(W, axis=0)
    singular = np.linalg.svd(W / np.where(norms > 0, norms, 1.0), compute_uv=False)
    return Base.of(W, regressor.names), singular


def _by_gauss_newton(
    regressor: Regressor,
    base: Base,
    reduced: solve.Reduced,
    linear: solve.Linear,
    options: IdentifyOptions,
    progress: Progress | None,
) -> tuple[Array, list[float], list[str]]:
    prior = regressor.pi()
    free = solve.nearest(linear.beta, prior, base.independent, base.dependent, base.K)
    if not options.physical:
        cost = float((reduced.misfit(free) / linear.sigma**2).sum())
        return free, [cost], []
    pi, costs = solve_possible(*reduced.weighted(linear.sigma), regressor, prior, progress)
    loose, bound = reduced.rmse(free), reduced.rmse(pi)
    notes = []
    if (worse := bound > 1.05 * loose + 1e-6 * _level(reduced)).any():
        notes.append(
            f"physically possible parameters fit {np.max(bound[worse] / np.maximum(loose[worse], 1e-300)):.2f} times worse "
            "than any would: the model lacks something, or a sign or unit is wrong"
        )
    return pi, costs, notes


def _level(reduced: solve.Reduced) -> Array:
    """Return the root mean square torque per joint."""
    return reduced.rmse(np.zeros(reduced.R[0].shape[1]))


def _by_adam(
    robot: Robot,
    regressor: Regressor,
    log: Log,
    train_index: Array,
    test_index: Array,
    options: IdentifyOptions,
    progress: Progress | None,
) -> tuple[Model, Array, list[float], list[float]]:
    if not robot.learnable():
        robot = Robot(regressor.model).double()
        for link in regressor.links:
            robot.learn(link, "inertial", PhysicalInertia())
        for joint, term in regressor.joints:
            present = getattr(regressor.model.joint(joint), term)
            robot.learn(joint, term, Positive(init=torch.tensor([max(present, 1e-3)], dtype=torch.float64)))
    adam = AdamOptions(options.epochs, options.learning_rate)
    losses, held = train(robot, log, train_index, test_index, adam, progress)
    assert log.v is not None and log.a is not None
    with torch.no_grad():
        predicted = robot.inverse_dynamics(
            torch.as_tensor(log.q), torch.as_tensor(log.v), torch.as_tensor(log.a)
        ).numpy()
    state_free = not any(e.wants for e in robot.learnable())
    return (robot.identified_model() if state_free else robot.model), predicted, losses, held


def _fit(log: Log, given: Array, predicted: Array, index: Array) -> Fit:
    def rmse(x: Array) -> Array:
        return np.sqrt(((x - log.tau)[index] ** 2).mean(0))

    return Fit(index, rmse(given), rmse(predicted))
