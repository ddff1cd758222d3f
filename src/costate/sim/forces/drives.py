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
from costate.physics import Parameters
from costate.physics.dynamics.crba import crba
from costate.sim.forces.actuators import Actuator, Affine, Torque
from costate.sim.forces.tendons import Length, Tendon
from costate.sim.setup import Drive

Actuators = Actuator | Mapping[str, Actuator] | Literal["file"] | None


def drives(model: Model, robots: Mapping[str, Model], tendons: Sequence[Tendon], actuators: Actuators) -> list[Drive]:
    """Return one drive per actuated joint, in the order of the joints, then one per actuated tendon; or as the robots' files list
    them."""
    lengths = {
        j.name: (Length(((iq, iv, 1.0),)), float(j.max_effort[0]))
        for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True)
        if j.nv == 1
    }
    lengths |= {t.name: (t.length, t.given.max_effort) for t in tendons}
    if isinstance(actuators, str):
        chosen = list(_of_files(robots, actuators))
    else:
        choice = _chosen(model, robots, tendons, actuators)
        chosen = [(name, choice[name]) for name in lengths if name in choice]
    inertia = _Inertia(model)
    return [_drive(name, *lengths[name], actuator, inertia) for name, actuator in chosen]


def _drive(name: str, length: Length, effort: float, actuator: Actuator, inertia: _Inertia) -> Drive:
    limit = effort if actuator.limit is None else actuator.limit
    return Drive(name, length, actuator, *actuator.gains(lambda: inertia.along(length)), limit)


def _of_files(robots: Mapping[str, Model], which: str) -> Iterator[tuple[str, Affine]]:
    """Give the actuators of the robots' files, robot after robot."""
    if which != "file":
        raise ValueError(f"actuators must be an actuator, name -> actuator, None or 'file', not '{which}'")
    for robot, model in robots.items():
        for a in model.actuators:
            span, torques = (a.lower, a.upper), (a.weakest, a.strongest)
            yield f"{robot}/{a.joint or a.tendon}", Affine(a.gear, a.offset, a.stiffness, a.damping, span, torques)


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
        if len(length.terms) == 1 and length.terms[0][2] == 1.0:
            return float(self.matrix[length.terms[0][1], length.terms[0][1]])
        row = np.zeros(len(self.matrix))
        for _, iv, c in length.terms:
            row[iv] += c
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
