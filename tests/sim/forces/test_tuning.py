"""Numbers of actuators as parameters of a world: against worlds that are built with other numbers, and against differences."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.gradients import Tolerances, check_gradients
from tests.sim.forces.test_actuators import INERTIA
from tests.sim.forces.test_own_actuator import Muscle

import costate as cs
from costate.model import Inertia, Joint, Link, Model
from costate.robot import Robot

D = torch.float64


def arm(actuators: Any, parameters: list[str] | None = None, **options: Any) -> cs.World:
    """Two heavy links, one after the other, with an effort limit of 30 N m."""
    body = Inertia(1.0, np.array([0.3, 0.0, 0.0]), 0.02 * np.eye(3))
    links = (Link("base"), Link("upper", body), Link("lower", replace(body, mass=0.5)))
    effort: dict[str, Any] = {"max_effort": np.array([30.0]), "axis": np.array([0.0, 1.0, 0.0])}
    joints = (
        Joint("shoulder", "revolute", "base", "upper", **effort),
        Joint("elbow", "revolute", "upper", "lower", **effort),
    )
    robot = Robot(Model("arm", links, joints))
    given = {"contact": None, "dt": 0.01, **options}
    return cs.World({"arm": robot}, actuators=actuators, parameters=parameters or [], **given)


KINDS = {
    "position": (cs.PositionServo(40.0, 3.0), ["stiffness", "damping"]),
    "position, its own choice": (cs.PositionServo(), ["stiffness", "damping"]),
    "velocity": (cs.VelocityServo(gain=2.0), ["gain"]),
    "motor": (cs.Motor(gear=5.0, armature=2e-3), ["gear", "armature"]),
    "dc": (cs.DCMotor(2.0, 30.0, gear=3.0, armature=1e-3), ["stall_torque", "no_load_speed", "gear", "armature"]),
    "affine": (cs.Affine(3.0, 0.5, 20.0, 1.5), ["gain", "offset", "stiffness", "damping"]),
    "own": (Muscle(2.0, 0.05, friction=0.4), ["area", "lever", "friction"]),
    "position at its limit": (cs.PositionServo(400.0, 3.0, limit=4.0), ["limit"]),
    "torque at its limit": (cs.Torque(limit=0.2), ["limit"]),
    "affine at its limits": (
        cs.Affine(10.0, controls=(-0.2, 0.1), torques=(-1.0, 2.5)),
        ["controls", "torques", "gain"],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_every_actuator(kind: str) -> None:
    """Other values, given as parameters, move the arm as a world that is built with them; gradients are those of differences."""
    actuator, fields = KINDS[kind]
    names = [f"actuator_{f}" for f in fields]
    implicit = "implicit" if isinstance(actuator, cs.Affine) else "semi_implicit"
    world = arm(actuator, names, integrator=implicit)
    state, u = torch.tensor([0.4, -0.7, 0.3, 0.5], dtype=D), torch.tensor([0.6, -0.4], dtype=D)
    defaults = {n: torch.tensor(world.setup.default(n)) for n in names}
    plain = arm(actuator, integrator=implicit).step(state, u)
    torch.testing.assert_close(world.step(state, u), plain, rtol=1e-12, atol=1e-14)
    values = {n: 1.2 * v for n, v in defaults.items()}
    if all(getattr(actuator, f) is not None for f in fields):
        other = {f: _scaled(getattr(actuator, f)) for f in fields}
        built = arm(replace(actuator, **other), integrator=implicit).step(state, u)
        torch.testing.assert_close(world.step(state, u, values), built, rtol=1e-11, atol=1e-13)
        assert (built - plain).abs().max() > 1e-5

    def after(*given: torch.Tensor) -> torch.Tensor:
        x = state.to(given[0].dtype).expand(*given[0].shape[:-1], 4)
        return world.rollout(x, u.to(given[0].dtype).expand(3, 2), params=dict(zip(names, given, strict=True)))[-1]

    report = check_gradients(after, list(values.values()), names=names, step=1e-4)
    assert not report.zeros
    batch = [torch.stack([v, defaults[n]]) for n, v in values.items()]
    several = after(*batch)
    torch.testing.assert_close(several[0], after(*values.values()), rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(several[1], after(*defaults.values()), rtol=1e-12, atol=1e-13)


def _scaled(value: Any) -> Any:
    return tuple(1.2 * x for x in value) if isinstance(value, tuple) else 1.2 * value


@pytest.mark.parametrize("contact", [cs.Hard(), cs.Newton(), cs.Compliant()], ids=["hard", "newton", "soft"])
def test_with_every_contact_model(contact: cs.ContactModel) -> None:
    """A damped servo in a world with joint limits, in a batch with gains of its own for each sample."""
    names = ["actuator_stiffness", "actuator_damping:elbow", "actuator_limit:arm/shoulder"]
    world = arm(cs.PositionServo(40.0, 3.0), names, contact=contact)
    state, u = torch.tensor([0.4, -0.7, 0.3, 0.5], dtype=D), torch.full((4, 2), 0.2, dtype=D)
    values = [torch.tensor(v, dtype=D) for v in ([[40.0, 30.0], [20.0, 50.0]], [[3.0], [2.0]], [[30.0], [2.0]])]

    def after(*given: torch.Tensor) -> torch.Tensor:
        params = dict(zip(names, given, strict=True))
        return world.rollout(state.to(given[0].dtype).expand(2, 4), u.to(given[0].dtype)[:, None], params=params)[-1]

    check_gradients(after, values, names=names, step=1e-3, tolerances=Tolerances(finite_difference=1e-6, float32=1e-3))


def test_closed_forms() -> None:
    """A flywheel: v' = dt gear u / (I + gear^2 rotor); at the limit v' = dt limit / I."""
    link = Link("disk", Inertia(1.0, np.zeros(3), np.eye(3) * INERTIA))
    robot = Robot(Model("wheel", (Link("base"), link), (Joint("axle", "continuous", "base", "disk"),)))
    gear, rotor, dt, u = 5.0, 4e-4, 0.01, 0.1
    world = cs.World(
        [robot], actuators=cs.Motor(gear, rotor), parameters=["actuator_gear", "actuator_limit"], contact=None
    )
    for limit, by_gear, by_limit in (
        (math.inf, dt * u * (INERTIA - gear**2 * rotor) / (INERTIA + gear**2 * rotor) ** 2, 0.0),
        (0.3, -dt * 0.3 * 2 * gear * rotor / (INERTIA + gear**2 * rotor) ** 2, dt / (INERTIA + gear**2 * rotor)),
    ):
        given = [torch.tensor([x], dtype=D, requires_grad=True) for x in (gear, limit)]
        params: dict[str, torch.Tensor] = {"actuator_gear": given[0], "actuator_limit": given[1]}
        v = world.step(world.initial_state(), torch.tensor([u], dtype=D), params)[1]
        found = torch.autograd.grad(v, given)
        assert [float(g) for g in found] == pytest.approx([by_gear, by_limit], rel=1e-12, abs=1e-15)


def test_actuators_of_a_file(tmp_path: Path) -> None:
    """MuJoCo's position and velocity actuators on one joint, whose gains are told apart by their order; against its own steps."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody><body name="b"><joint name="j" axis="0 1 0"/>
      <geom size=".05" pos=".2 0 0"/></body></worldbody>
      <actuator><position joint="j" kp="{kp}"/><velocity joint="j" kv="{kv}"/></actuator></mujoco>"""
    file = tmp_path / "servo.xml"
    file.write_text(text.format(kp=30.0, kv=2.0))
    names = ["actuator_gain", "actuator_stiffness", "actuator_damping"]
    world = cs.World([cs.load_robot(str(file))], actuators="file", contact=cs.Newton(), parameters=names)
    kp, kv = 45.0, 1.3
    data = mujoco.MjData(model := mujoco.MjModel.from_xml_string(text.format(kp=kp, kv=kv)))
    data.ctrl[:] = (0.5, 0.1)
    for _ in range(20):
        mujoco.mj_step(model, data)
    values = [torch.tensor(v, dtype=D) for v in ([kp, kv], [kp, 0.0], [0.0, kv])]
    params = dict(zip(names, values, strict=True))
    found = world.rollout(world.initial_state(), torch.tensor([[0.5, 0.1]], dtype=D).expand(20, 2), params=params)[-1]
    np.testing.assert_allclose(found.numpy(), [data.qpos[0], data.qvel[0]], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("actuator_gear", "have no number of this name; use actuator_limit, actuator_stiffness, actuator_damping"),
        ("actuator_stiffness:wrist", "no actuator acts on 'wrist'; actuated are arm/shoulder, arm/elbow"),
        ("actuator_time_constant", "have no number of this name"),
    ],
)
def test_mistakes(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arm(cs.PositionServo(), [name])


def test_named_twice() -> None:
    world = arm(cs.PositionServo(), ["actuator_limit", "actuator_limit:elbow"])
    with pytest.raises(ValueError, match="'actuator_limit' of 'arm/elbow' is named twice"):
        world.step(world.initial_state())
