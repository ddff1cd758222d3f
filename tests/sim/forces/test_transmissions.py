"""Actuators on spherical and floating joints, sites, slider-cranks and bodies: beside MuJoCo, and gradients."""

from __future__ import annotations

import pickle

import pytest
import torch
from tests.gradients import check_gradients
from tests.sim.forces.side_by_side import INTEGRATORS, Pair

D = torch.float64
AGREES = 1e-10

SCENE = """
<worldbody>
  <site name="w" pos=".2 .3 1.4" euler="20 30 40"/>
  <body pos="0 0 1">
    <joint name="a" axis="0 1 0" damping=".1"/><geom size=".05" fromto="0 0 0 .3 0 .1" type="capsule"/>
    <site name="s1" pos=".1 .05 0" euler="10 20 30"/>
    <body pos=".3 0 .1">
      <joint name="b" type="ball"/><geom size=".05" fromto="0 0 0 .3 0 0" type="capsule"/>
      <site name="s2" pos=".1 .05 .1" euler="-10 20 60"/>
      <body pos=".3 0 0">
        <joint name="c" axis="1 1 0"/><geom size=".04" fromto="0 0 0 .1 .1 0" type="capsule"/>
        <site name="s3" pos=".1 .05 .1" euler="-10 20 60"/>
      </body>
    </body>
  </body>
  <body pos="2 0 1">
    <joint name="crank" axis="0 1 0"/><geom size=".05" fromto="0 0 0 .2 0 0" type="capsule"/><site name="cs" pos=".2 0 0"/>
  </body>
  <body pos="2.6 0 1">
    <joint name="tilt" axis="0 1 0"/><geom size=".05" mass="3"/><geom size=".1" pos=".2 0 0"/><site name="sl" euler="0 -90 0"/>
  </body>
  <body pos="1 0 1">
    <freejoint name="f"/><geom size=".1 .2 .15" type="ellipsoid"/><site name="s4" pos=".1 .05 .1" euler="-10 70 60"/>
  </body>
</worldbody>
"""
LAW = 'gaintype="affine" gainprm="1 .3 -.2" biastype="affine" biasprm=".05 -.6 -.15"'
WRENCH = 'gear=".5 -.3 .8 .02 .03 -.05"'
ON = f"""
<general joint="b" gear=".05 -.03 .08" {LAW}/>
<general jointinparent="b" gear=".05 -.03 .08" {LAW}/>
<general site="s3" {WRENCH} {LAW}/>
<general site="s3" refsite="s1" {WRENCH} {LAW}/>
<general site="s2" refsite="w" gear="0 0 0 .02 .03 -.05" {LAW}/>
<general site="w" refsite="s2" gear=".2 .3 -.5 0 0 0" {LAW}/>
<general cranksite="cs" slidersite="sl" cranklength=".55" gear="1.5" {LAW}/>
<general cranksite="cs" slidersite="sl" cranklength=".05" gear=".1" {LAW}/>
<general joint="f" {WRENCH} {LAW}/>
<general jointinparent="f" {WRENCH} {LAW}/>
<general site="s4" refsite="s2" {WRENCH} {LAW}/>
"""


def file() -> str:
    option = '<option integrator="INTEGRATOR" timestep="0.002"><flag contact="disable"/></option>'
    return f"<mujoco>{option}{SCENE}<actuator>{ON}</actuator></mujoco>"


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_steps_are_mujocos(integrator):
    """A crank whose rod is long enough, and one whose rod is too short; joints that carry both a site and its reference."""
    pair = Pair.of(file(), integrator, collide=lambda a, b: False)
    assert pair.world.nu == pair.model.nu
    assert pair.errors() < AGREES


def test_gradients():
    world = Pair.of(file(), collide=lambda a, b: False).world
    random = torch.Generator().manual_seed(1)
    x = world.initial_state() + 0.1 * torch.randn(world.nx, generator=random, dtype=D)
    u = torch.randn(world.nu, generator=random, dtype=D)
    check_gradients(lambda x, u: world.step(x, u), (x, u), names=("state", "control"), step=1e-5)


SUCTION = """
<mujoco>
  <option integrator="INTEGRATOR" timestep="0.002" cone="CONE"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" margin=".003"/>
    <body name="hand" pos="0 0 .08"><freejoint/><geom size=".05 .06 .08" type="box"/><geom size=".03" pos=".05 0 .1"/></body>
    <body name="ball" pos=".05 0 .21"><freejoint/><geom size=".03"/></body>
  </worldbody>
  <actuator>
    <adhesion body="hand" ctrlrange="0 1" gain="5"/><adhesion body="ball" ctrlrange="0 1" gain="3"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize(
    ("integrator", "cone"), [("Euler", "pyramidal"), ("implicit", "pyramidal"), ("RK4", "elliptic")]
)
def test_adhesion_is_mujocos(integrator, cone):
    """A box that sticks to the floor by four corners and to a ball by one point, partly apart."""
    pair = Pair.of(SUCTION.replace("CONE", cone), integrator, self_collision=True)
    assert pair.errors(spread=0.005, speed=0.1) < AGREES


def test_worlds_can_be_pickled():
    world = Pair.of(file(), collide=None).world
    x, u = world.initial_state(), torch.ones(world.nu, dtype=D)
    assert torch.equal(pickle.loads(pickle.dumps(world)).step(x, u), world.step(x, u))
