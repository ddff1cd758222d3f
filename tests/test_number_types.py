"""One rule for number types (docs/conventions.md): what Costate makes follows torch's default, what it is given is promoted."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import costate as cs

KINDS = (torch.float32, torch.float64)
ROUNDING = {torch.float32: 2e-5, torch.float64: 1e-12}
"""Of a few steps of a small arm."""


@pytest.fixture(params=KINDS, ids=str)
def default(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    """Default type of torch."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


def arm() -> cs.Robot:
    return cs.load_robot("two_link")


def world(robot: cs.Robot | None = None, **options: Any) -> cs.World:
    return cs.World([robot or arm()], contact=None, **options)


MADE: dict[str, Callable[[cs.Robot], Tensor]] = {
    "neutral": lambda r: r.neutral(),
    "neutral batch": lambda r: r.neutral(2, 3),
    "random_configuration": lambda r: r.random_configuration(2, 3),
    "lower": lambda r: r.lower,
    "upper": lambda r: r.upper,
    "max_velocity": lambda r: r.max_velocity,
    "max_effort": lambda r: r.max_effort,
    "list": lambda r: r.forward_kinematics([0.1, 0.2], "arm2").position,  # type: ignore[arg-type]
    "learnable": lambda r: next(copy.deepcopy(r).learn("arm2", "mass").parameters()),
    "inverse kinematics": lambda r: r.inverse_kinematics(
        cs.Pose([0.0, 0.1, 1.9], np.eye(3).tolist()),  # type: ignore[arg-type]
        "arm2",
        attempts=0,
    ),
    "initial_state": lambda r: world(r).initial_state(),
    "initial_state batch": lambda r: world(r).initial_state((2, 3)),
    "step of a list": lambda r: world(r).step([0.1, 0.2, 0.0, 0.0]),  # type: ignore[arg-type]
}
"""Tensors that Costate makes by itself."""


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_follows_the_default(name: str, default: torch.dtype) -> None:
    """At the time of the call, unless the robot was moved."""
    robot, make = arm(), MADE[name]
    assert make(robot).dtype == robot.dtype == default
    other = torch.float64 if default is torch.float32 else torch.float32
    torch.set_default_dtype(other)
    assert make(robot).dtype == other
    torch.set_default_dtype(default)
    for kind in KINDS:
        assert make(robot.to(kind)).dtype == robot.dtype == kind
    assert make(robot.float()).dtype == torch.float32
    assert make(robot.double()).dtype == torch.float64
    assert make(nn.Sequential(robot).float()[0]).dtype == torch.float32  # type: ignore[arg-type]
    for other_robot in (copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        assert make(other_robot).dtype == torch.float32


def test_a_world_moves_what_is_inside(default: torch.dtype) -> None:
    robot = arm()
    mass = robot.learn("arm2", "mass", cs.params.Positive())
    here = world(robot)
    state = here.initial_state(3)
    assert here.dtype == default == state.dtype == next(mass.parameters()).dtype == here.step(state).dtype
    for kind in KINDS:
        assert here.to(kind) is here
        for moved in (here, copy.deepcopy(here), pickle.loads(pickle.dumps(here))):
            assert moved.dtype == moved.initial_state().dtype == kind
        assert robot.dtype == next(mass.parameters()).dtype == kind
    assert world(arm().double()).dtype == torch.float64
    with pytest.raises(TypeError, match=r"expected torch\.float32 or torch\.float64"):
        here.to(torch.float16)
    with pytest.raises(TypeError, match=r"expected torch\.float32 or torch\.float64"):
        robot.half()
    assert here.initial_state(dtype=torch.float32).dtype == robot.neutral(dtype=torch.float32).dtype == torch.float32


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_arguments_are_promoted(default: torch.dtype, batch: tuple[int, ...]) -> None:
    """Every mixture gives what float64 gives, to the rounding of the widest type, and gradients of each argument's own type."""
    robot, here = arm(), world()
    random = torch.Generator().manual_seed(0)
    q, v, u = torch.rand(3, *batch, 2, generator=random, dtype=torch.float64).unbind(0)
    exact = {
        "dynamics": robot.forward_dynamics(q, v, u),
        "step": here.step(torch.cat([q, v], -1), u),
        "rollout": here.rollout(torch.cat([q, v], -1), u.expand(4, *u.shape)),
    }
    for kinds in ((a, b, c) for a in KINDS for b in KINDS for c in KINDS):
        wide = torch.float64 if torch.float64 in kinds else torch.float32
        given = [x.to(kind).requires_grad_() for x, kind in zip((q, v, u), kinds, strict=True)]
        state = torch.cat(given[:2], -1)  # torch promotes this itself
        found = {
            "dynamics": robot.forward_dynamics(given[0], given[1], given[2]),
            "step": here.step(state, given[2]),
            "rollout": here.rollout(state, given[2].expand(4, *u.shape)),
        }
        for name, value in found.items():
            assert value.dtype == wide
            error = ROUNDING[wide if kinds == (wide,) * 3 else torch.float32]
            torch.testing.assert_close(value.double(), exact[name], rtol=error, atol=100 * error)
        gradients = torch.autograd.grad(sum(x.double().sum() for x in found.values()), given)  # type: ignore[arg-type]
        assert [g.dtype for g in gradients] == list(kinds)


def test_arrays_lists_and_numbers(default: torch.dtype) -> None:
    """Plain numbers take the type of the tensors; arrays have one of their own."""
    robot, here = arm(), world(parameters=["mass:two_link/arm2"])
    for kind in KINDS:
        q, x = torch.zeros(2, dtype=kind), torch.zeros(4, dtype=kind)
        for plain in ([0.1, 0.2], (0.1, 0), np.array([0.1, 0.2], "f4")):
            assert robot.forward_dynamics(q, plain, q).dtype == kind  # type: ignore[arg-type]
            assert here.step(x, plain).dtype == kind  # type: ignore[arg-type]
            assert here.energy(x, params={"mass:two_link/arm2": 3.0}).dtype == kind
        assert robot.integrate(q, q, 0.1).dtype == robot.integrate(q, q, torch.tensor(0.1, dtype=torch.float64)).dtype
        assert robot.integrate(q, q, 0.1).dtype == kind
        assert robot.forward_dynamics(q, np.array([0.1, 0.2]), q).dtype == torch.float64  # type: ignore[arg-type]
        assert here.step(x, np.zeros(2)).dtype == torch.float64  # type: ignore[arg-type]
        assert here.step(x, torch.zeros(2, dtype=torch.int64)).dtype == kind
        push = {"two_link/arm2": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]}
        assert here.step(x, wrenches=push).dtype == kind  # type: ignore[arg-type]
    wide = here.step(x.double(), params={"mass:two_link/arm2": 0.1})
    exact = here.step(x.double(), params={"mass:two_link/arm2": torch.tensor([0.1], dtype=torch.float64)})
    assert torch.equal(wide, exact)  # 0.1 is not rounded to float32 on the way


def test_float64_parameters_and_a_float32_state(default: torch.dtype) -> None:
    robot = arm()
    mass = robot.learn("arm2", "mass", cs.params.Positive())
    here = world(robot)
    for kind in KINDS:
        mass.to(kind)
        x = torch.tensor([0.3, 0.2, 0.0, 0.0], dtype=torch.float32, requires_grad=True)
        after = here.step(x)
        assert after.dtype == robot.forward_dynamics(x[:2], x[2:], x[2:]).dtype == kind
        gradients = torch.autograd.grad(after.sum(), [x, *mass.parameters()])
        assert [g.dtype for g in gradients] == [torch.float32, kind]


def test_the_first_loop_of_a_new_user(default: torch.dtype) -> None:
    """A network as torch makes it, controls as torch makes them, in a roll-out and in a loop of one's own."""
    here = world()
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    state = start = here.initial_state(5)
    states = [state]
    for _ in range(4):
        state = here.step(state, policy(state))
        states.append(state)
    assert state.dtype == default
    for found in (
        here.rollout(start, policy, steps=4),
        here.rollout(start, lambda x, t: policy(x), steps=4),
        here.rollout(start, torch.stack([policy(x) for x in states[:-1]])),
    ):
        torch.testing.assert_close(found, torch.stack(states), rtol=0, atol=ROUNDING[default])
    here.rollout(start, policy, steps=4)[-1].sum().backward()
    assert all(p.grad is not None and p.grad.dtype == default for p in policy.parameters())
    assert torch.equal(here.rollout(start, torch.zeros(4, 2)), here.rollout(start, steps=4))
    mixed = here.rollout(start, lambda x, t: torch.zeros(2, dtype=torch.float64), steps=2)
    assert mixed.dtype == torch.float64 and mixed.shape == (3, 5, 4)


@pytest.mark.parametrize("module", ["JointFriction", "TorqueNetwork"])
def test_residuals_follow_the_default(module: str, default: torch.dtype) -> None:
    robot = arm()
    made = getattr(cs.residual, module)(*((2,) if module == "JointFriction" else (2, 2)))
    robot.augment(made)
    assert {p.dtype for p in made.parameters()} == {default}
    for kind in KINDS:
        q = torch.ones(3, 2, dtype=kind)
        assert robot.inverse_dynamics(q, q, q).dtype == torch.promote_types(kind, default)
        assert robot.forward_dynamics(q, q, [1.0, 1.0]).dtype == torch.promote_types(kind, default)  # type: ignore


def test_ilqr_and_sensors(default: torch.dtype) -> None:
    """An optimiser returns the type it is given, and computes in float64: its cost is the same in both."""
    from casadi import vertcat

    here = world(actuators=cs.Torque())
    cost = cs.optimise.Cost(here, lambda s: vertcat(0.1 * s.u, s.v), lambda s: s.q - 0.1)
    found = cs.optimise.ilqr(here, cost, here.initial_state(), torch.zeros(5, 2))
    wide = cs.optimise.ilqr(here, cost, here.initial_state(dtype=torch.float64), torch.zeros(5, 2))
    assert found.x.dtype == found.extra["states"].dtype == default and wide.x.dtype == torch.float64
    assert float(found.loss) == pytest.approx(float(wide.loss), rel=1e-12)
    reading = cs.sensors.LinkPose("two_link/arm2").read(here, here.initial_state(2))
    assert reading.dtype == default


SCRIPT = """
import torch, costate as cs
robot = cs.load_robot("two_link")
world = cs.World([robot], contact=None)
policy = torch.nn.Linear(world.nx, world.nu)
states = world.rollout(world.initial_state(8), policy, steps=3)
states[-1].square().sum().backward()
print(states.dtype, policy.weight.grad.dtype, robot.random_configuration(seed=1).dtype)
"""


def test_a_script_without_settings() -> None:
    """Nothing that is imported changes torch's own default."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["torch.float32"] * 3, done.stderr
