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
from costate.identify.checks import check_torques, in_radians
from costate.identify.drives.elastic import Elastic, fit_elastic
from costate.identify.drives.fit import Drive, fit_drive
from costate.identify.drives.gains import drive_gains
from costate.identify.filter import Filter
from costate.identify.log import Columns, Log, first_row, from_table, unlogged
from costate.identify.noise.correlated import Scatter, intervals
from costate.identify.noise.positions import Corrected, correct
from costate.identify.possible import Progress, solve_possible
from costate.identify.regressor import Regressor
from costate.identify.repair.hold import held
from costate.identify.repair.prepare import Prepared, prepare
from costate.identify.result import Fit, Identification, Validation
from costate.identify.tables import read_table
from costate.model import Model
from costate.physics.integrate import neutral
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
    repair: bool = True
    """Repair of what is wrong with the log, with notes: repeated rows, clock, units, signs, order of joints, single wrong rows."""
    hold: Mapping[str, float] | None = None
    """Joints that were not logged, and the positions where they stood still [rad or m]."""
    gains: tuple[float, ...] | None = None
    """Torque per measured unit of each joint, if motor currents were logged [N m/A or N/A]."""
    loaded: str | Path | Mapping[str, Array] | None = None
    """Log of currents of another run, with a payload, from which gains are found where none are given."""
    payload: float = 0.0
    """Mass of that payload on the last link [kg]."""
    friction: str = "coulomb_viscous"
    """Law of friction beside damping and Coulomb friction: offset, stribeck, load, lugre, monotone, combined, or auto: the one with
    the least error in cross-validation."""
    elastic: tuple[str, ...] = ()
    """Joints whose gears twist, or all: their stiffness is found, if the log has the positions of the motors."""
    validate: str | Path | Mapping[str, Array] | None = None
    """Another log, to test the result on."""
    header: str | None = None
    """Names of the columns of a CSV file without a header line: "t q1-6 v1-6 current1-6"; further columns are not read."""
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
    chosen, robot = IdentifyOptions(**options), robot if isinstance(robot, Robot) else load_robot(robot)
    model = robot.model if chosen.method == "adam" and robot.learnable() else robot.identified_model()
    regressor, ready, notes = _begin(robot, model, data, columns, chosen)
    log, given = ready.log, _torques(regressor, ready.log, regressor.pi())
    train_index, test_index = solve.blocks(len(log), chosen.held_out)
    kept = ready.filter.within(train_index)
    reduced = _reduce(regressor, log, kept)
    base, singular = _base(reduced, regressor)
    elastic, drive, beyond = _beyond(chosen, regressor, ready, train_index, base)
    log = replace(log, tau=log.tau - beyond) if elastic is not None or drive.weights.size else log
    reduced = reduced if log is ready.log else _reduce(regressor, log, kept)
    linear = solve.solve_linear(reduced, base.independent, _scale(log))
    corrected = _correct(ready, regressor, base, linear, train_index) if log is ready.log else None
    scatter = _scatter(corrected, drive, elastic, linear, base, _equations(regressor, log, kept))
    if chosen.method == "adam":
        found, predicted, history, unseen = _by_adam(robot, regressor, log, train_index, test_index, chosen, progress)
    else:
        pi, history, extra = _by_gauss_newton(regressor, base, reduced, linear, chosen, progress)
        found, predicted = with_parameters(model, regressor.values(pi)), _torques(regressor, log, pi) + beyond
        unseen, notes = [], notes + extra
    return Identification(
        model=found,
        prior=model,
        regressor=regressor,
        base=base,
        beta=linear.beta if corrected is None else corrected.beta,
        scatter=scatter,
        sigma=linear.sigma,
        singular_values=singular,
        train=_fit(ready, given, predicted, train_index),
        test=_fit(ready, given, predicted, test_index) if len(test_index) else None,
        history=history,
        held_out_history=unseen,
        notes=notes + scatter.notes(),
        log=ready.log,
        predicted=predicted,
        drive=drive,
        elastic=elastic,
        validation=_validate(chosen, model, columns, regressor, regressor.pi(found), drive, elastic),
        filter=ready.filter,
        clock=ready.clock,
    )


def _find_gains(
    robot: Robot, data: str | Path | Log | Mapping[str, Array], columns: Columns | None, options: IdentifyOptions
) -> tuple[IdentifyOptions, list[str]]:
    """Return the options with gains from a run with a payload, if there is one."""
    if options.loaded is None:
        return options, []
    if not options.payload > 0 or isinstance(data, Log):
        raise ValueError(
            f"loaded= needs files or arrays and the payload's mass (--payload KG), which is {options.payload:g}"
        )
    found = drive_gains(robot, data, options.loaded, options.payload, columns=columns, header=options.header)
    high = intervals(found.values, found.std, found.effective)[1]
    text = ", ".join(f"{k:.4g} +- {h - k:.2g}" for k, h in zip(found.values, high, strict=True))
    return replace(options, gains=tuple(found.values)), [
        f"drives: gains from a payload of {options.payload:g} kg: {text}"
    ]


def _begin(
    robot: Robot,
    model: Model,
    data: str | Path | Log | Mapping[str, Array],
    columns: Columns | None,
    chosen: IdentifyOptions,
) -> tuple[Regressor, Prepared, list[str]]:
    """Return the parameters to be found, the log ready to be fitted, and notes."""
    if chosen.hold and robot.learnable():
        raise ValueError(
            "hold= is for robots without learnable parameters: fix these joints in the robot's file instead"
        )
    chosen, found_gains = _find_gains(robot, data, columns, chosen)
    log, hold, notes = _log(data, model, columns, chosen)
    regressor = Regressor.of(held(model, hold), chosen.terms, chosen.links, chosen.joints)
    if not regressor.size:
        raise ValueError("there is nothing to identify: no links and no joints are chosen")
    ready = _prepared(log, regressor, chosen)
    if chosen.check:
        _compare(ready.log, regressor, _torques(regressor, ready.log, regressor.pi()))
    return regressor, ready, found_gains + notes + ready.notes


def _beyond(
    options: IdentifyOptions, regressor: Regressor, ready: Prepared, index: Array, base: Base
) -> tuple[Elastic | None, Drive, Array]:
    """Return the elasticity of joints, if it is asked for, their friction, and the torques that both add (N, nv)."""
    log, elastic, twist = ready.log, None, np.zeros_like(ready.log.tau)
    if options.elastic:
        if options.method != "gauss_newton":
            raise ValueError(f"elastic joints are found by method gauss_newton, not {options.method}")
        elastic = fit_elastic(options.elastic, regressor, log, ready.filter.within(index), base, options.period)
        twist = elastic.torques(regressor, log)
        log = replace(log, tau=log.tau - twist)
    drive = fit_drive(options.friction, regressor, log, ready.filter, index, base)
    return elastic, drive, twist + drive.torques(regressor, log)


def _scatter(
    corrected: Corrected | None,
    drive: Drive,
    elastic: Elastic | None,
    linear: solve.Linear,
    base: Base,
    data: solve.Equations,
) -> Scatter:
    if corrected is not None:
        return corrected.scatter
    found = drive.scatter or (elastic and elastic.scatter)
    return found.first(base.rank) if found else data.scatter(base.independent, linear.beta, linear.sigma)


def _correct(ready: Prepared, regressor: Regressor, base: Base, linear: solve.Linear, index: Array) -> Corrected | None:
    """Return base parameters corrected for noise of the positions, where everything comes from these."""
    if ready.halves is None or ready.measured is None:
        return None
    used = ready.filter.within(index)
    return correct(regressor, base, linear, ready.log, ready.measured, ready.halves, used)


def _prepared(log: Log, regressor: Regressor, options: IdentifyOptions) -> Prepared:
    return prepare(
        log,
        regressor,
        repair=options.repair,
        check=options.check,
        drop_bad_rows=options.drop_bad_rows,
        period=options.period,
    )


def _validate(
    options: IdentifyOptions,
    model: Model,
    columns: Columns | None,
    regressor: Regressor,
    pi: Array,
    drive: Drive,
    elastic: Elastic | None,
) -> Validation | None:
    """Return the errors in another log."""
    if options.validate is None:
        return None
    ready = _prepared(_log(options.validate, model, columns, options)[0], regressor, options)
    log = ready.log
    assert log.v is not None
    error = log.tau - _torques(regressor, log, pi) - drive.torques(regressor, log)
    if elastic is not None:
        error = error - elastic.torques(regressor, log)
    return Validation.of(error, log.tau, log.v)


def _log(
    data: str | Path | Log | Mapping[str, Array], model: Model, columns: Columns | None, options: IdentifyOptions
) -> tuple[Log, Mapping[str, float], list[str]]:
    """Return the log, the joints that stand still, and notes on those that nobody asked for."""
    hold = options.hold or {}
    if isinstance(data, Log):
        return _with_gains(data, options.gains), hold, []
    table, source, first, notes = dict(data) if isinstance(data, Mapping) else {}, "the data", 0, []
    if not isinstance(data, Mapping):
        path = Path(data)
        table, notes = read_table(path, options.header)
        source, first = str(data), first_row(path) - (options.header is not None)
    guessed = unlogged(table, held(model, hold), columns)
    notes += [
        f"'{name}' was not logged: held at {value:g} (choose with hold=, --hold {name}=VALUE)"
        for name, value in guessed.items()
    ]
    hold = {**hold, **guessed}
    log = from_table(table, held(model, hold), columns, source, first)
    return _with_gains(log, options.gains), hold, notes


def _with_gains(log: Log, gains: tuple[float, ...] | None) -> Log:
    if gains is None:
        return log
    if len(gains) != log.tau.shape[1]:
        raise ValueError(
            f"{len(gains)} gains given; the log has torques of {log.tau.shape[1]} joints: one gain for each"
        )
    return replace(log, tau=log.tau * np.array(gains))


def _compare(log: Log, regressor: Regressor, given: Array) -> None:
    """Compare the torques with those of the robot as given, also as if angles were degrees."""
    turning = all(j.kind in ("revolute", "continuous", "fixed") for j in regressor.model.joints)
    check_torques(log, given, _torques(regressor, in_radians(log), regressor.pi()) if turning else None)


def _torques(regressor: Regressor, log: Log, pi: Array) -> Array:
    assert log.v is not None and log.a is not None
    return regressor.torques(log.q, log.v, log.a, pi)


def _reduce(regressor: Regressor, log: Log, filtered: Filter) -> solve.Reduced:
    return solve.Reduced.of(_equations(regressor, log, filtered))


def _equations(regressor: Regressor, log: Log, filtered: Filter) -> solve.Equations:
    assert log.v is not None and log.a is not None
    return solve.Equations(regressor, log.q, log.v, log.a, log.tau, filtered)


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
    pi, costs = solve_possible(*reduced.weighted(linear.sigma), regressor, prior, progress, _moved(regressor))
    loose, bound = reduced.rmse(free), reduced.rmse(pi)
    notes = []
    if (worse := bound > 1.05 * loose + 1e-6 * _level(reduced)).any():
        notes.append(
            f"physically possible parameters fit {np.max(bound[worse] / np.maximum(loose[worse], 1e-300)):.2f} times worse "
            "than any would: the model lacks something, or a sign or unit is wrong"
        )
    return pi, costs, notes


def _moved(regressor: Regressor) -> Array:
    """Return the inertia that the joint of each armature term moves in the robot as given [kg m^2 or kg]; 0 for other terms."""
    model = regressor.model
    q = torch.as_tensor(neutral(model)).double()
    own = torch.diagonal(Robot(model).mass_matrix(q)).numpy()
    at = {j.name: own[i : i + j.nv].mean() for j, i in zip(model.joints, model.v_index, strict=True) if j.nv}
    return np.array([at[joint] if term == "armature" else 0.0 for joint, term in regressor.joints])


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


def _fit(ready: Prepared, given: Array, predicted: Array, index: Array) -> Fit:
    part = ready.filter.within(index)
    span = part.span()

    def rmse(x: Array) -> Array:
        return np.sqrt((part.apply((x - ready.log.tau)[span], span.start) ** 2).mean(0))

    raw = np.sqrt(((predicted - ready.log.tau)[index] ** 2).mean(0))
    return Fit(index, rmse(given), rmse(predicted), raw)
