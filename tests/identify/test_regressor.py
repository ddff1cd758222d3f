"""The dynamics regressor against inverse dynamics and against Pinocchio's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.physics.strategies import random_inertia, random_models, random_state

from costate.identify import Regressor
from costate.identify.base import Base
from costate.identify.regressor import inertia_of, inertial_vector
from costate.model import Model, load_model, write_urdf
from costate.robot import Robot


def states(model: Model, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [random_state(model, seed + k) for k in range(n)]
    q, v, a = (np.stack(x) for x in zip(*rows, strict=True))
    return q, v, a


@settings(max_examples=15)
@given(random_models(max_joints=5), st.integers(0, 1000))
def test_it_gives_inverse_dynamics(model: Model, seed: int) -> None:
    if not model.nv:
        return
    regressor = Regressor.of(model)
    q, v, a = states(model, 3, seed)
    expected = Robot(model).inverse_dynamics(*(torch.as_tensor(x) for x in (q, v, a))).numpy()  # pyright: ignore
    ours = regressor.torques(q, v, a, regressor.pi())
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max()))


def test_part_of_the_parameters() -> None:
    model = load_model("ur5")
    regressor = Regressor.of(model, ["inertial", "friction"], links=["forearm_link"], joints=["elbow_joint"])
    assert regressor.size == 11
    q, v, a = states(model, 4)
    expected = Robot(model).inverse_dynamics(*(torch.as_tensor(x) for x in (q, v, a))).numpy()  # pyright: ignore
    np.testing.assert_allclose(regressor.torques(q, v, a, regressor.pi()), expected, atol=1e-11)


@pytest.mark.parametrize("name", ["ur5", "iiwa7"])
def test_against_pinocchio(name: str, tmp_path) -> None:
    pin = pytest.importorskip("pinocchio")
    model = load_model(name)
    write_urdf(model, tmp_path / "robot.urdf")
    theirs = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    data = theirs.createData()
    regressor = Regressor.of(model, ["inertial"])
    joints = [theirs.getJointId(next(j.name for j in model.joints if j.child == link)) for link in regressor.links]
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # Pinocchio: m, mc, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
    q, v, a = states(model, 5)
    Y, _ = regressor.rows(q, v, a)
    for k in range(5):
        full = pin.computeJointTorqueRegressor(theirs, data, q[k], v[k], a[k])
        expected = np.concatenate([full[:, 10 * (j - 1) : 10 * j][:, order] for j in joints], 1)
        np.testing.assert_allclose(Y[k], expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize(("name", "inertial"), [("ur5", 36), ("iiwa7", 43)])
def test_number_of_base_parameters(name: str, inertial: int) -> None:
    """36 for a UR5 and 43 for an iiwa with inertial parameters alone, as published for these arms."""
    regressor = Regressor.of(load_model(name), ["inertial"])
    Y, _ = regressor.rows(*states(regressor.model, 100))
    assert Base.of(Y.reshape(-1, regressor.size), regressor.names).rank == inertial


def test_base_parameters_give_the_same_torques() -> None:
    regressor = Regressor.of(load_model("iiwa7"))
    Y, _ = regressor.rows(*states(regressor.model, 60))
    W = Y.reshape(-1, regressor.size)
    base = Base.of(W, regressor.names)
    pi = np.random.default_rng(0).normal(size=regressor.size)
    np.testing.assert_allclose(W[:, base.independent] @ base.project(pi), W @ pi, atol=1e-9 * np.abs(W @ pi).max())
    assert base.rank + len(base.indistinct()) == regressor.size


def test_inertial_vectors_go_back_and_forth() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        inertia = random_inertia(rng)
        again = inertia_of(inertial_vector(inertia))
        assert again.mass == pytest.approx(inertia.mass)
        np.testing.assert_allclose(again.com, inertia.com, atol=1e-14)
        np.testing.assert_allclose(again.matrix, inertia.matrix, atol=1e-13)


def test_what_does_not_exist_is_refused() -> None:
    model = load_model("ur5")
    with pytest.raises(ValueError, match="inertial, damping"):
        Regressor.of(model, ["colour"])
    with pytest.raises(ValueError, match=r"'base_link' does not move"):
        Regressor.of(model, links=["base_link"])
    with pytest.raises(KeyError, match="elbow_joint"):
        Regressor.of(model, joints=["elbow"])
