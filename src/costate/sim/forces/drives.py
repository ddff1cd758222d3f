"""Drives: which joints and tendons are actuated, how, and with which gains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import casadi as ca
import numpy as np
from casadi import SX

from costate.model import Model
from costate.model import actuation as given
from costate.physics import Parameters
from costate.physics.dynamics.crba import crba
from costate.sim.forces.actuators import Actuator, Affine, Torque
from costate.sim.forces.general import General
from costate.sim.forces.lengths import Length, Sum
from costate.sim.forces.muscle import Muscle
from costate.sim.forces.tendons import Tendon, at_home
from costate.sim.forces.transmissions import length_of
from costate.sim.setup import Drive, Share

Actuators = Actuator | Mapping[str, Actuator] | Literal["file"] | None


def drives(model: Model, robots: Iterable[str], tendons: Sequence[Tendon], actuators: Actuators) -> list[Drive]:
    """Return one drive per actuated joint, in the order of the joints, then one per actuated tendon; or as the robots' files list
    them."""
    lengths = _lengths(model, tendons)
    if isinstance(actuators, str):
        found = [_of_file(model, lengths, a) for a in _of_files(model, actuators)]
    else:
        choice = _chosen(model, robots, tendons, actuators)
        inertia = _Inertia(model)
        found = [_drive(name, *lengths[name], choice[name], inertia) for name in lengths if name in choice]
    return list(_with_activations(found))


def _lengths(model: Model, tendons: Sequence[Tendon]) -> dict[str, tuple[Length, float]]:
    """Return joint or tendon -> its length, and the largest force along it."""
    lengths: dict[str, tuple[Length, float]] = {
        j.name: (Sum(((iq, iv, 1.0),)), float(j.max_effort[0]))
        for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True)
        if j.nv == 1
    }
    return lengths | {t.name: (t.length, t.given.max_effort) for t in tendons}


def _drive(name: str, length: Length, effort: float, actuator: Actuator, inertia: _Inertia) -> Drive:
    limit = effort if actuator.limit is None else actuator.limit
    return Drive(name, length, actuator, *actuator.gains(lambda: inertia.along(length)), limit)


def _with_activations(drives: Iterable[Drive]) -> Iterator[Drive]:
    """Give the drives, and those with an activation its place in the state."""
    n = 0
    for d in drives:
        if isinstance(d.actuator, General) and d.actuator.is_activated:
            yield replace(d, activation=n)
            n += 1
        else:
            yield d


# --- actuators of files -----------------------------------------------------------------------------------------------


def _of_files(model: Model, which: str) -> tuple[given.Actuator | given.GeneralActuator, ...]:
    """Return the actuators of the robots' files, robot after robot."""
    if which != "file":
        raise ValueError(f"actuators must be an actuator, name -> actuator, None or 'file', not '{which}'")
    return model.actuators


def _of_file(
    model: Model, lengths: Mapping[str, tuple[Length, float]], a: given.Actuator | given.GeneralActuator
) -> Drive:
    if isinstance(a, given.GeneralActuator):
        length = length_of(a.on, model, {name: x for name, (x, _) in lengths.items()})
        return Drive(_acted_on(a), length, _general(a), 0.0, 0.0, np.inf)
    name = a.joint or a.tendon
    length, effort = lengths[name]
    span, torques = (a.lower, a.upper), (a.weakest, a.strongest)
    limit = effort if _is_alone(model, name) else np.inf
    return Drive(name, length, Affine(a.gear, a.offset, a.stiffness, a.damping, span, torques), 0.0, 0.0, limit)


def _acted_on(a: given.GeneralActuator) -> str:
    """Return the joint or tendon that an actuator acts on, or its own name where it acts on something else."""
    if isinstance(a.on, given.OnJoint):
        return a.on.joint
    return a.on.tendon if isinstance(a.on, given.OnTendon) else a.name


def _general(a: given.GeneralActuator) -> General:
    count = {"none": 1, "integrator": 1, "filter": 1, "filterexact": 1, "muscle": 3}[a.dynamics]
    return General(
        gain=_affine(a.gain, a.gain_numbers),
        bias=_affine(a.bias, a.bias_numbers),
        activation=a.dynamics,
        times=tuple(a.dynamics_numbers[:count]),
        activations=a.activations,
        early=a.acts_early,
        controls=a.controls,
        forces=a.forces,
        muscle=_muscle(a, a.gain, a.gain_numbers),
        passive=_muscle(a, a.bias, a.bias_numbers),
        is_off=a.is_off,
    )


def _affine(kind: str, numbers: Sequence[float]) -> float | tuple[float, float, float]:
    if kind == "affine":
        return numbers[0], numbers[1], numbers[2]
    return numbers[0] if kind == "fixed" else 0.0


def _muscle(a: given.GeneralActuator, kind: str, numbers: Sequence[float]) -> Muscle | None:
    return Muscle.of(numbers, a.lengths, a.ease) if kind == "muscle" else None


def _is_alone(model: Model, joint: str) -> bool:
    """Return whether one plain actuator is all that acts on a joint, and its range of forces is the same in both directions: then
    the range is the limit of that actuator."""
    own = next((j for j in model.joints if j.name == joint), None)
    if own is None or own.efforts is None:
        return True
    if own.carries:
        return False
    here = [a for a in model.actuators if isinstance(a, given.GeneralActuator) or a.tendon or a.joint == joint]
    return len(here) == 1 and isinstance(here[0], given.Actuator) and own.efforts[0] == -own.efforts[1]


def shares(model: Model, tendons: Sequence[Tendon], actuators: Actuators) -> tuple[Share, ...]:
    """Return the bounds on what the actuators of files do together, those of tendons first."""
    if not isinstance(actuators, str):
        return ()
    found = []
    for t in tendons:
        own = tuple(k for k, a in enumerate(model.actuators) if _tendon_of(a) == t.name)
        if t.given.efforts is not None and own:
            found.append(Share(*t.given.efforts, drives=own))
    for j, iv in zip(model.joints, model.v_index, strict=True):
        if j.efforts is not None and not _is_alone(model, j.name):
            found.append(Share(*j.efforts, v=iv, carries=j.carries))
    return tuple(found)


def _tendon_of(a: given.Actuator | given.GeneralActuator) -> str:
    if isinstance(a, given.Actuator):
        return a.tendon
    return a.on.tendon if isinstance(a.on, given.OnTendon) else ""


def with_rotors(model: Model, drives: Iterable[Drive]) -> Model:
    """Return the model whose joints carry the rotors of their motors."""
    rotors = {d.joint: d.actuator.rotor for d in drives if d.actuator.rotor}
    if not rotors:
        return model
    for name in rotors.keys() - {j.name for j in model.joints}:
        raise ValueError(f"a motor on the tendon '{name}' cannot have an armature: give it to the joints")
    return replace(model, joints=tuple(replace(j, armature=j.armature + rotors.get(j.name, 0.0)) for j in model.joints))


@dataclass(frozen=True, eq=False)
class _Inertia:
    """The inertia that actuators move at the home configuration."""

    model: Model

    @cached_property
    def matrix(self) -> np.ndarray:
        """Mass matrix, (nv, nv)."""
        model = self.model
        assert model.home is not None  # merged models have one
        q = SX.sym("q", model.nq)
        M = ca.Function("inertia", [q], [ca.densify(crba(model, Parameters.of(model), q))])
        return np.array(M(ca.DM(model.home)))

    def along(self, length: Length) -> float:
        """Return the entry of a joint on the diagonal, or the mass a tendon's length has where nothing else holds the joints."""
        if isinstance(length, Sum) and len(length.terms) == 1 and length.terms[0][2] == 1.0:
            return float(self.matrix[length.terms[0][1], length.terms[0][1]])
        row = np.array(at_home(self.model, length.row)).ravel()
        return float(1 / (row @ np.linalg.solve(self.matrix, row)))


def _chosen(
    model: Model, robots: Iterable[str], tendons: Sequence[Tendon], actuators: Actuator | Mapping[str, Actuator] | None
) -> dict[str, Actuator]:
    """Return joint or tendon -> actuator."""
    joints = [j.name for j in model.joints if j.nv == 1]
    if not isinstance(actuators, Mapping):
        actuator = Torque() if actuators is None else actuators
        return {name: actuator for name in joints if name.split("/")[0] in set(robots)}
    every = [(name, {name, name.partition("/")[2], name.split("/")[0]}) for name in joints]
    every += [(t.name, {t.name, t.name.partition("/")[2]}) for t in tendons]
    found: dict[str, Actuator] = {}
    for name, actuator in actuators.items():
        own = [full for full, names in every if name in names]
        if not own:
            raise ValueError(f"no joint '{name}' to actuate; joints are {', '.join(full for full, _ in every)}")
        found |= dict.fromkeys(own, actuator)
    return found
