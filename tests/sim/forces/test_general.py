"""Actuators of MJCF with activations, gains that depend on length and velocity, and bounds: beside MuJoCo, and gradients."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch
from casadi import SX
from tests.gradients import check_gradients
from tests.sim.forces.side_by_side import INTEGRATORS, Pair

import costate as cs

D = torch.float64
AGREES = 1e-10
"""Of states along ten steps, relative to the largest change of a state in a step."""

ARM = """
<worldbody>
  <geom type="plane" size="2 2 .1" pos="0 0 -1"/>
  <body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1" LIMIT_A/><geom size=".05" fromto="0 0 0 .3 0 .1" type="capsule"/>
    <body pos=".3 0 .1"><joint name="b" axis="0 0 1" LIMIT_B/><geom size=".05" fromto="0 0 0 .3 0 0" type="capsule"/>
      <body pos=".3 0 0"><joint name="c" axis="1 1 0"/><geom size=".04" fromto="0 0 0 .1 .1 0" type="capsule"/></body>
    </body>
  </body>
</worldbody>
<tendon>
  <fixed name="rope" LIMIT_T><joint joint="a" coef=".5"/><joint joint="b" coef="-.3"/></fixed>
</tendon>
"""


def file(actuators: str, limits: tuple[str, str, str] = ("", "", ""), option: str = "") -> str:
    arm = ARM
    for name, limit in zip("ABT", limits, strict=True):
        arm = arm.replace(f"LIMIT_{name}", f'actuatorfrcrange="{limit}"' if limit else "")
    option = f'<option integrator="INTEGRATOR" timestep="0.004" {option}/>'
    return f"<mujoco>{option}{arm}<actuator>{actuators}</actuator></mujoco>"


ACTIVATED = """
<general joint="a" dyntype="filter" dynprm=".05" gainprm="2"/>
<general joint="a" dyntype="filterexact" dynprm=".05" gainprm="2" ctrlrange="-.5 .5" forcerange="-.6 .6"/>
<intvelocity joint="b" kp="5" kv=".3" actrange="-.2 .6"/>
<general joint="a" dyntype="filter" dynprm=".05" gaintype="affine" gainprm=".2 .5 -.3" biastype="affine" biasprm=".1 -1 -.2"
         actearly="true"/>
<damper joint="c" kv=".05" ctrlrange="0 1"/>
<cylinder joint="b" timeconst=".02" area=".5" bias="0.1 -1 -.2"/>
<position joint="c" kp=".4" kv=".02" timeconst=".1" inheritrange="0"/>
<motor tendon="rope" gear=".3"/>
"""
MUSCLES = """
<muscle joint="a" lengthrange="-.8 .8" force="30"/>
<muscle joint="a" lengthrange="-.8 .8" scale="50" tausmooth=".3" gear="-2" range=".6 1.2"/>
<general joint="b" gaintype="affine" gainprm="1 .5 -.3" biastype="affine" biasprm="0 -1 -.4" gear="1.5" ctrlrange="-.8 .8"/>
<muscle tendon="rope" lengthrange="-.5 .5" force="4" vmax=".5"/>
"""
TOGETHER = """
<position joint="a" kp="2" kv=".3"/><motor joint="a" gear=".5"/>
<position joint="b" kp="2" kv=".3" timeconst=".1"/>
<motor tendon="rope" gear="2"/><position tendon="rope" kp="3" kv=".4" forcerange="-.1 .2"/>
<velocity joint="a" kv=".5" group="2"/><position joint="c" kp="1" timeconst=".1" group="1"/>
"""
FILES = {
    "activations": file(ACTIVATED),
    "muscles": file(MUSCLES),
    "together": file(TOGETHER, ("-.3 .2", "-.1 .1", "-.3 .4"), 'actuatorgroupdisable="1"'),
    "carried": file('<position joint="a" kp="2" kv=".3"/><motor joint="b" gear=".1"/>', ("-.3 .2", "-.1 .1", ""))
    .replace('<body pos="0 0 1">', '<body pos="0 0 1" gravcomp=".7">')
    .replace('<body pos=".3 0 .1">', '<body pos=".3 0 .1" gravcomp=".5">')
    .replace('name="a"', 'name="a" actuatorgravcomp="true"'),
    "alone": file('<position joint="b" kp="2" kv=".3"/>', ("", "-.1 .1", "")),
}


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", FILES)
def test_steps_are_mujocos(name, integrator):
    pair = Pair.of(FILES[name], integrator, collide=lambda a, b: False)
    assert (pair.world.na, pair.world.nu) == (pair.model.na, pair.model.nu)
    assert pair.errors() < AGREES


def test_several_substeps():
    pair = Pair.of(FILES["activations"], collide=lambda a, b: False, substeps=3)
    three = pair.world.step(*_point(pair.world))
    one = Pair.of(FILES["activations"], collide=lambda a, b: False).world
    x, u = _point(one)
    np.testing.assert_allclose(one.rollout(x, u.expand(3, -1))[-1], three, atol=1e-14)


def _point(world: cs.World) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(3)
    x = 0.3 * torch.randn(world.nx, generator=random, dtype=D)
    x[world.nq + world.nv :] = 0.1 + 0.4 * torch.rand(world.na, generator=random, dtype=D)
    return x, 0.3 * torch.rand(world.nu, generator=random, dtype=D)


@pytest.mark.parametrize("name", ["activations", "muscles"])
def test_gradients(name):
    """In positions, velocities, activations and controls; over several steps, as controls act through activations."""
    world = Pair.of(FILES[name], collide=lambda a, b: False).world
    x, u = _point(world)
    check_gradients(lambda x, u: world.rollout(x, u.expand(3, -1))[-1], (x, u), names=("state", "control"), step=1e-5)


def test_a_motion_resumes_and_linearises():
    """The state is all that a motion goes on from; A and B are its derivatives in (q, v, act) and the controls."""
    world = Pair.of(FILES["activations"], "RK4", collide=lambda a, b: False).world
    x, u = _point(world)
    whole = world.rollout(x, u.expand(6, -1))
    assert torch.equal(world.rollout(whole[3], u.expand(3, -1)), whole[3:])
    A, B = world.linearize(x, u)
    assert A.shape == (world.ndx, world.ndx) == (2 * world.nv + world.na,) * 2
    J = torch.autograd.functional.jacobian(lambda x, u: world.step(x, u), (x, u))
    np.testing.assert_allclose(A, J[0], atol=1e-12)
    np.testing.assert_allclose(B, J[1], atol=1e-12)


def test_activations_follow_closed_forms():
    """An exact filter rises as 1 - exp(-t / T); an integrator of 0.5 as t / 2, up to the end of its range."""
    world = Pair.of(FILES["activations"], collide=lambda a, b: False).world
    u = torch.full((50, world.nu), 0.5, dtype=D)
    act = world.rollout(world.initial_state(), u)[:, world.nq + world.nv :]
    t = 0.004 * torch.arange(51, dtype=D)
    np.testing.assert_allclose(act[:, 1], 0.5 * (1 - torch.exp(-t / 0.05)), atol=1e-14)
    fast = world.rollout(world.initial_state(), 10 * u)[:, world.nq + world.nv + 2]
    np.testing.assert_allclose(fast, (5 * t).clamp(max=0.6), atol=1e-14)


def test_any_joint_may_have_one():
    """A muscle of a user's own, on a built-in robot; all contact models carry activations along."""
    muscle = cs.General(muscle=cs.Muscle(force=20.0, lengths=(-1.0, 1.0)), activation="muscle", times=(0.01, 0.04, 0.0))
    ends = []
    for contact in (cs.Hard(), cs.Compliant(), cs.Newton(), None):
        world = cs.World([cs.load_robot("two_link")], actuators={"interArm": muscle}, contact=contact, dt=0.002)
        assert world.nx == world.nq + world.nv + 1
        x = world.rollout(world.initial_state(), torch.ones(20, 1, dtype=D))[-1]
        assert x[-1] > 0.5 and abs(x[1]) > 1e-3
        ends.append(x[-1])
    assert max(ends) == min(ends)  # activations do not ask what the bodies do


def test_numbers_may_be_symbols():
    """Gains and times may be symbols in the laws; their derivatives are those of differences."""
    actuator = cs.General(gain=(2.0, 0.5, -0.3), bias=(0.1, -1.0, -0.2), activation="filterexact", times=0.05)
    names = {"gain": 3, "bias": 3, "times": 1}
    values = np.array([2.0, 0.5, -0.3, 0.1, -1.0, -0.2, 0.05])
    numbers = SX.sym("numbers", sum(names.values()))
    parts = ca.vertsplit(numbers, np.cumsum([0, *names.values()]).tolist())
    for (name, n), part in zip(names.items(), parts, strict=True):
        object.__setattr__(actuator, name, tuple(ca.vertsplit(part)) if n > 1 else part)
    u, act, x, speed = SX(0.7), SX(0.3), SX(0.2), SX(-0.4)
    after = actuator.after(act, actuator.rate(u, act), 0.01)
    found = ca.vertcat(after, actuator.torque(after, x, speed), actuator.resistance(after, x, speed))
    f = ca.Function("f", [numbers], [found])
    J = np.array(ca.Function("J", [numbers], [ca.densify(ca.jacobian(found, numbers))])(values))
    steps = 1e-6 * np.eye(len(values))
    rows = [np.array(f(values + h) - f(values - h)).ravel() / 2e-6 for h in steps]
    np.testing.assert_allclose(J, np.array(rows).T, atol=1e-9)
    assert np.abs(J).max(0).min() > 1e-3  # every number counts here


def test_errors():
    with pytest.raises(ValueError, match="integrator, filter, filterexact, muscle, not 'slow'"):
        cs.General(activation="slow")


def test_ilqr_plans_through_activations():
    """A slow motor is driven to a goal; the plan is better than no control, and its gains have a column for the activation."""
    slow = cs.General(gain=3.0, activation="filterexact", times=0.05)
    world = cs.World([cs.load_robot("two_link")], actuators=slow, contact=None, dt=0.02, gravity=(0.0, 0.0, 0.0))
    goal = torch.tensor([0.3, -0.2], dtype=D)
    cost = cs.optimise.Cost(
        world, stage=lambda p: 0.01 * p.u, final=lambda p: ca.vertcat(10 * p.away(goal), p.v, p.act), least_squares=True
    )
    start = torch.zeros(20, world.nu, dtype=D)
    found = cs.optimise.ilqr(world, cost, world.initial_state(), start)
    end = found.extra["states"][-1]
    assert found.extra["gains"].shape == (20, world.nu, world.ndx)
    assert float((end[:2] - goal).abs().max()) < 1e-2
    assert float(end[world.nq + world.nv :].abs().max()) < 0.2
