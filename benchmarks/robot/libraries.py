"""The same robot in other libraries, loaded from a URDF that we write."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
import torch

from benchmarks.peers.subject import spell_out
from costate.model import Model, write_urdf


def bare(model: Model) -> Model:
    """Remove damping, friction and springs, which Pinocchio does not have, and shapes."""
    joints = tuple(replace(j, damping=0.0, friction=0.0, stiffness=0.0) for j in model.joints)
    return replace(model, joints=joints, links=tuple(replace(x, visuals=(), collisions=()) for x in model.links))


def write(model: Model, folder: str) -> Path:
    path = Path(folder) / "robot.urdf"
    write_urdf(bare(model), path)
    return path


class Pinocchio:
    """Pinocchio on a batch of states: called from Python sample by sample, or looped over in its own C++."""

    def __init__(self, model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray):
        with tempfile.TemporaryDirectory() as folder:
            self.model = pin.buildModelFromUrdf(str(write(model, folder)))
        self.data = self.model.createData()
        self.q, self.v, self.tau = self._in_their_order(model, q, v, tau)
        self.samples = list(zip(self.q, self.v, self.tau, strict=True))
        self.pool = pin.ModelPool(self.model, 1)
        self.columns = [np.asfortranarray(x.T) for x in (self.q, self.v, self.tau)]
        self.out = np.zeros((self.model.nv, len(q)), order="F")

    def _in_their_order(self, model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> list[np.ndarray]:
        """Pinocchio visits children by name; quaternions are x, y, z, w in both."""
        index = {j.name: i for i, j in enumerate(model.joints)}
        ours = [index[name] for name in list(self.model.names)[1:]]
        rows_q = [k for i in ours for k in range(model.q_index[i], model.q_index[i] + model.joints[i].nq)]
        self.order = [k for i in ours for k in range(model.v_index[i], model.v_index[i] + model.joints[i].nv)]
        return [np.ascontiguousarray(x) for x in (q[:, rows_q], v[:, self.order], tau[:, self.order])]

    def from_python(self, function: str) -> Callable[[], None]:
        """Run a function on all samples, one call each."""
        m, d = self.model, self.data
        last = m.nframes - 1
        calls: dict[str, Callable[[Any, Any, Any], Any]] = {
            "pose": lambda q, v, tau: (pin.forwardKinematics(m, d, q), pin.updateFramePlacement(m, d, last)),
            "forward_kinematics": lambda q, v, tau: pin.framesForwardKinematics(m, d, q),
            "inverse_dynamics": lambda q, v, tau: pin.rnea(m, d, q, v, tau),
            "mass_matrix": lambda q, v, tau: pin.crba(m, d, q),
            "forward_dynamics": lambda q, v, tau: pin.aba(m, d, q, v, tau),
            "gradient": lambda q, v, tau: pin.computeABADerivatives(m, d, q, v, tau),
        }
        call = calls[function]

        def run() -> None:
            for q, v, tau in self.samples:
                call(q, v, tau)

        return run

    def in_cpp(self, function: str) -> Callable[[], None] | None:
        """Run a function on all samples in one call: Pinocchio has loops of its own for two of them."""
        loops = {"inverse_dynamics": pin.rneaInParallel, "forward_dynamics": pin.abaInParallel}
        if function not in loops:
            return None
        return lambda: loops[function](1, self.pool, *self.columns, self.out)

    def jacobians(self) -> list[np.ndarray]:
        """Return d a/d q, d a/d v and d a/d tau in our order, each (batch, nv, nv)."""
        found = [np.empty((len(self.samples), self.model.nv, self.model.nv)) for _ in range(3)]
        for k, x in enumerate(self.samples):
            pin.computeABADerivatives(self.model, self.data, *x)
            inverse = np.triu(self.data.Minv) + np.triu(self.data.Minv, 1).T
            for target, J in zip(found, (self.data.ddq_dq, self.data.ddq_dv, inverse), strict=True):
                target[k][np.ix_(self.order, self.order)] = J
        return found

    def accelerations(self) -> np.ndarray:
        """Return accelerations in our order, (batch, nv)."""
        result = np.empty((len(self.samples), self.model.nv))
        result[:, self.order] = [pin.aba(self.model, self.data, *x) for x in self.samples]
        return result


class DifferentiableRobotModel:
    """differentiable-robot-model, in single precision, which is all it has."""

    def __init__(self, model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray):
        from differentiable_robot_model.robot_model import DifferentiableRobotModel as Theirs

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            self.robot = Theirs(str(spell_out(write(model, folder))))
        self.q, self.v, self.tau = (torch.tensor(x, dtype=torch.float32) for x in (q, v, tau))

    def accelerations(self) -> torch.Tensor:
        with torch.no_grad():
            return self.robot.compute_forward_dynamics(self.q, self.v, self.tau)

    def gradient(self) -> None:
        leaves = [x.clone().requires_grad_() for x in (self.q, self.v, self.tau)]
        self.robot.compute_forward_dynamics(leaves[0], leaves[1], leaves[2]).sum().backward()
