"""Tendons through space: lengths and Jacobians beside MuJoCo's, steps, closed forms, gradients."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from math import acos, sqrt

import casadi as ca
import mujoco
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.sim.forces.side_by_side import INTEGRATORS, Pair

import costate as cs
from costate.model import Inertia, Joint, Link, Model, ModelError
from costate.robot import Robot
from costate.sim.setup import Symbols

D = torch.float64
AGREES = 1e-10

ARM = """
<worldbody>
  <site name="w" pos="-.1 .02 1.25"/><site name="w2" pos="-.3 -.1 1.05"/>
  <site name="k" pos=".12 0 1"/><site name="core" pos=".01 0 1"/>
  <body pos="0 0 1">
    <joint name="a" axis="0 1 0" damping=".1"/><geom size=".03" fromto="0 0 0 .3 0 0" type="capsule"/>
    <site name="s1" pos=".15 .03 .1"/><geom name="ball" type="sphere" size=".07"/>
    <body pos=".3 0 0">
      <joint name="b" axis="0 1 0"/><joint name="b2" axis="0 0 1"/><geom size=".03" fromto="0 0 0 .3 0 0" type="capsule"/>
      <site name="s2" pos=".15 .02 .08"/><site name="over" pos="0 .01 .12"/><site name="in" pos="0 0 .01"/>
      <site name="under" pos="0 0 -.12"/><geom name="roll" type="cylinder" size=".06 .1" euler="80 0 10"/>
      <body pos=".3 0 0">
        <joint name="c" axis="1 1 0"/><geom size=".04" fromto="0 0 0 .1 .1 0" type="capsule"/><site name="s3" pos=".1 .05 .1"/>
      </body>
    </body>
  </body>
</worldbody>
"""
SITE, AROUND = '<site site="{}"/>'.format, '<geom geom="{}"/>'.format
AT_SIDE = '<geom geom="{}" sidesite="{}"/>'.format
PATHS = {
    "straight": SITE("w") + SITE("s1") + SITE("s2"),
    "sphere": SITE("w2") + AROUND("ball") + SITE("s1") + SITE("s3"),
    "sphere, side": SITE("w2") + AT_SIDE("ball", "k") + SITE("s1") + SITE("s3"),
    "cylinder": SITE("s1") + AROUND("roll") + SITE("s2"),
    "cylinder, side": SITE("s1") + AT_SIDE("roll", "over") + SITE("s2"),
    "cylinder, other side": SITE("s1") + AT_SIDE("roll", "under") + SITE("s2"),
    "cylinder, inside": SITE("s1") + AT_SIDE("roll", "in") + SITE("s2"),
    "sphere, inside": SITE("w2") + AT_SIDE("ball", "core") + SITE("s1"),
    "pulleys": SITE("w") + SITE("s1") + '<pulley divisor="2"/>' + SITE("s1") + AT_SIDE("roll", "over") + SITE("s2")
    + '<pulley divisor="3"/>' + SITE("s2") + SITE("w2"),
}  # fmt: skip


def file(tendons: str, more: str = "") -> str:
    option = '<option integrator="INTEGRATOR" timestep="0.002"><flag contact="disable"/></option>'
    return f"<mujoco>{option}{ARM}<tendon>{tendons}</tendon>{more}</mujoco>"


@pytest.mark.parametrize("name", PATHS)
def test_lengths_are_mujocos(name):
    """Lengths and Jacobians at random configurations, of which some wrap and some do not. J is the derivative of the length."""
    pair = Pair.of(file(f'<spatial name="t">{PATHS[name]}</spatial>'), collide=lambda a, b: False)
    m, random = pair.model, np.random.default_rng(0)
    s = Symbols(pair.world.setup)
    length, c = pair.world.setup.tendons[0].length, s.at(s.q)
    x = length.of(c)
    ours = ca.Function("ours", [s.q], [x, *map(ca.densify, (length.row(c), ca.jacobian(x, s.q)))])
    wrapped = []
    for _ in range(100):
        d = pair.random(random, spread=0.8)
        mujoco.mj_forward(m, d)
        theirs = np.zeros((1, m.nv))
        mujoco.mju_sparse2dense(theirs, d.ten_J.ravel(), m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind.ravel())
        l, J, slope = map(np.array, ours(d.qpos))
        assert abs(l.item() - d.ten_length[0]) < 1e-13
        # MuJoCo finds the point inside of a shape to 1e-6 rad only; its length hardly feels that, its Jacobian does.
        assert np.abs(J - theirs).max() < (1e-7 if "inside" in name else 1e-13)
        assert np.abs(J - slope).max() < 1e-12
        wrapped.append(int(d.ten_wrapnum[0]))
    assert name == "straight" or len(set(wrapped)) > 1


SPRINGS = file(
    f'<spatial name="t" stiffness="30" damping=".7" springlength=".3 .5">{PATHS["cylinder, side"]}</spatial>'
    f'<spatial name="p" stiffness="20" damping=".2">{PATHS["pulleys"]}</spatial>'
    f'<spatial name="held" actuatorfrcrange="-.3 .4">{PATHS["sphere"]}</spatial>',
    '<actuator><position tendon="t" kp="3" kv=".4" gear="2"/><muscle tendon="t" force="5" lengthrange=".2 .5"/>'
    '<position tendon="p" kp="3" kv=".4" timeconst=".03"/><motor tendon="held" gear="2"/>'
    '<position tendon="held" kp="3" kv=".4" forcerange="-.1 .2"/></actuator>',
)
BOUNDS = file(
    f'<spatial name="t" range=".3 .4" margin=".05" solreflimit=".03 .8">{PATHS["cylinder, other side"]}</spatial>'
    f'<spatial name="r" frictionloss=".3">{PATHS["sphere, side"]}</spatial>'
    f'<spatial name="e">{PATHS["sphere"]}</spatial><fixed name="f"><joint joint="a" coef=".1"/></fixed>',
    '<equality><tendon tendon1="e" tendon2="f" polycoef=".1 .5 -.2 0 0" solref=".05 1"/></equality>',
)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("xml", [SPRINGS, BOUNDS], ids=["springs", "bounds"])
def test_steps_are_mujocos(xml, integrator):
    """Springs, dampers, muscles and servos; limits, friction and an equality."""
    assert Pair.of(xml, integrator, collide=lambda a, b: False).errors() < AGREES


@pytest.mark.parametrize("name", ["cylinder, side", "sphere, inside", "pulleys"])
def test_gradients(name):
    """Of a spring with a damper, a muscle and a limit, in all of the state and the controls."""
    tendon = f'<spatial name="t" stiffness="30" damping=".7" range="0 .1">{PATHS[name]}</spatial>'
    muscle = '<actuator><muscle tendon="t" force="5" lengthrange=".2 .5"/></actuator>'
    world = Pair.of(file(tendon, muscle), collide=lambda a, b: False).world
    random = torch.Generator().manual_seed(5)
    x = 0.2 * torch.randn(world.nx, generator=random, dtype=D)
    u = 0.3 * torch.rand(world.nu, generator=random, dtype=D)
    x[world.nq + world.nv :] = 0.3
    check_gradients(lambda x, u: world.step(x, u), (x, u), names=("state", "control"), step=1e-5)


# --- closed forms -----------------------------------------------------------------------------------------------------

RADIUS, HIGH = 0.3, 0.2


def lift(path, **options) -> cs.World:
    """A weight of 2 kg on a vertical slide at x = 1."""
    weight = Link("weight", Inertia(2.0, np.zeros(3), np.eye(3) * 1e-3))
    robot = Robot(Model("lift", (Link("base"), weight), (Joint("height", "prismatic", "base", "weight"),)))
    tendon = cs.SpatialTendon("rope", path, **options)
    return cs.World({"lift": robot}, tendons=[tendon], actuators={"rope": cs.Motor()}, contact=None, integrator="rk4")


def test_a_rope_over_a_wheel():
    """The length is tangent + arc + tangent, known by its angles."""
    wheel = cs.Wrap("base", RADIUS, "cylinder", cs.model.Transform(np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])))
    world = lift([cs.Via("base", (-1, 0, -HIGH)), wheel, cs.Via("weight", (1, 0, 0))])
    s = Symbols(world.setup)
    length = ca.Function("length", [s.q], [world.setup.tendons[0].length.of(s.at(s.q))])
    for z in (-0.3, 0.0, 0.3):
        near, far = sqrt(1 + HIGH**2), sqrt(1 + z * z)
        between = acos((-1 - HIGH * z) / (near * far))
        arc = RADIUS * (between - acos(RADIUS / near) - acos(RADIUS / far))
        straight = sqrt(near**2 - RADIUS**2) + sqrt(far**2 - RADIUS**2)
        assert float(length(z)) == pytest.approx(straight + arc, abs=1e-13)


def test_a_pull_of_a_rope():
    """A force F along a rope from above lifts a weight below it as a plain force F does; on a pulley with half of it."""
    straight = lift([cs.Via("base", (1, 0, 5)), cs.Via("weight", (1, 0, 0))])
    divided = lift([cs.Pulley(2.0), cs.Via("base", (1, 0, 5)), cs.Via("weight", (1, 0, 0))])
    x, dt = straight.initial_state(), straight.dt
    for world, share in ((straight, 1.0), (divided, 0.5)):
        pulled = world.step(x, torch.tensor([-30.0], dtype=D))
        assert float(pulled[1]) == pytest.approx(dt * (30.0 * share / 2.0 - 9.81), rel=1e-12)


def test_energy_is_kept():
    """A weight swings on an elastic rope that wraps around a sphere: spring, weight and motion keep their energy."""
    path = [cs.Via("base", (-1, 0, -0.2)), cs.Wrap("base", RADIUS), cs.Via("weight", (1, 0, 0))]
    world = lift(path, stiffness=200.0, rest=1.9)
    states = world.rollout(world.initial_state(), torch.zeros(200, 1, dtype=D))
    energy = world.energy(states)
    assert float(states[:, 0].min()) < -0.1
    assert float((energy - energy[0]).abs().max()) < 1e-4 * 2.0 * 9.81


def test_errors():
    end = cs.Via("base")
    for path in ([], [end], [end, cs.Wrap("base", 0.1)], [end, cs.Pulley(), end], [end, cs.Wrap("base", 0), end]):
        with pytest.raises(ModelError, match="tendon 'rope'"):
            cs.SpatialTendon("rope", path)
    with pytest.raises(ValueError, match="tendon 'rope': there is no link 'nowhere'"):
        lift([cs.Via("nowhere"), cs.Via("weight")])
