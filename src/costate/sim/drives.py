"""Drives: which joints are actuated, how, and with which gains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import casadi as ca
import numpy as np
from casadi import SX

from costate.model import Joint, Model
from costate.physics import Parameters
from costate.physics.crba import crba
from costate.sim.actuators import Actuator, DCMotor, Motor, PositionServo, Torque, VelocityServo
from costate.sim.setup import Drive

Actuators = Actuator | Mapping[str, Actuator] | None


def drives(model: Model, robots: Iterable[str], actuators: Actuators) -> Iterable[Drive]:
    """One per actuated joint, in the order of the joints."""
    choice = _actuator_of(model, set(robots), actuators)
    inertia: np.ndarray | None = None
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        actuator = choice(j)
        if actuator is None:
            continue
        limit = float(j.max_effort[0]) if actuator.limit is None else actuator.limit
        if isinstance(actuator, Torque | Motor):
            yield Drive(j.name, iq, iv, actuator, 0.0, 0.0, limit)
            continue
        if isinstance(actuator, DCMotor):
            slope = actuator.gear**2 * actuator.stall_torque / actuator.no_load_speed
            yield Drive(j.name, iq, iv, actuator, 0.0, slope, limit)
            continue
        inertia = _home_inertia(model) if inertia is None else inertia
        yield Drive(j.name, iq, iv, actuator, *_gains(actuator, inertia[iv]), limit)


def with_rotors(model: Model, drives: Iterable[Drive]) -> Model:
    """The model whose joints carry the rotors of their motors."""
    motors = {d.joint: d.actuator for d in drives if isinstance(d.actuator, Motor | DCMotor)}
    rotors = {name: m.gear**2 * m.armature for name, m in motors.items() if m.armature}
    if not rotors:
        return model
    return replace(model, joints=tuple(replace(j, armature=j.armature + rotors.get(j.name, 0.0)) for j in model.joints))


def _gains(actuator: VelocityServo | PositionServo, inertia: float) -> tuple[float, float]:
    """Stiffness and damping."""
    t = actuator.time_constant
    if isinstance(actuator, VelocityServo):
        return 0.0, inertia / t if actuator.gain is None else actuator.gain
    k = inertia / t**2 if actuator.stiffness is None else actuator.stiffness
    return k, 2 * inertia / t if actuator.damping is None else actuator.damping


def _home_inertia(model: Model) -> np.ndarray:
    """Diagonal of the mass matrix at home, (nv,)."""
    assert model.home is not None  # merged models have one
    q = SX.sym("q", model.nq)
    diagonal = ca.densify(ca.diag(crba(model, Parameters.of(model), q)))
    return np.array(ca.Function("inertia", [q], [diagonal])(ca.DM(model.home))).ravel()


def _actuator_of(model: Model, robots: set[str], actuators: Actuators) -> Callable[[Joint], Actuator | None]:
    """Joint -> actuator or None."""
    every = [j for j in model.joints if j.nv == 1]
    if not isinstance(actuators, Mapping):
        actuator = Torque() if actuators is None else actuators
        names = {j.name for j in every if j.name.split("/")[0] in robots}
        return lambda j: actuator if j.name in names else None
    by_name: dict[str, Actuator] = {}
    for name, actuator in actuators.items():
        found = [j.name for j in every if name in (j.name, j.name.partition("/")[2], j.name.split("/")[0])]
        if not found:
            raise ValueError(f"no joint '{name}' to actuate; joints are {', '.join(j.name for j in every)}")
        by_name |= dict.fromkeys(found, actuator)
    return lambda j: by_name.get(j.name)
