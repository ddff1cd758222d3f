"""Options, flags, passive forces and limits of MJCF files: ten steps beside MuJoCo from random states, and gradients."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.model import ModelWarning

mujoco = pytest.importorskip("mujoco")
from benchmarks.mjcf.twin import Twin  # noqa: E402

AGREES = 1e-10
STATES, STEPS = 8, 10
PLANE = '<geom name="floor" type="plane" size="3 3 1" {}/>'


def arm(option: str = "", first: str = "", second: str = "", rest: str = "", flag: str = "", world: str = "") -> str:
    """Two hinges, the second a little crooked."""
    return f"""<mujoco><compiler angle="radian"/><option {option}><flag {flag}/></option><worldbody>{world}
      <body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0" {first}/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/>
        <body name="b" pos=".3 0 0" gravcomp=".7"><joint name="j2" axis="0 1 .2" {second}/>
          <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".04"/></body></body>
    </worldbody>{rest}</mujoco>"""


def free(
    option: str = "", joint: str = "", geom: str = 'type="box" size=".1 .2 .15"', flag: str = "", world: str = ""
) -> str:
    """A free body near the ground."""
    return f"""<mujoco><option {option}><flag {flag}/></option><worldbody>{world}
      <body pos="0 0 .12" quat=".5 .5 .2 .1"><joint type="free" {joint}/><geom name="g" {geom}/></body>
    </worldbody></mujoco>"""


def ball(joint: str, option: str = "") -> str:
    """A ball joint that carries a hinge."""
    return f"""<mujoco><compiler angle="radian"/><option {option}/><worldbody>
      <body pos="0 0 1" euler=".3 .2 .1"><joint name="ball" type="ball" {joint}/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".05"/>
        <body pos=".3 .1 0"><joint axis="0 1 0"/><geom type="box" size=".1 .05 .03" pos=".1 0 0"/></body></body>
    </worldbody></mujoco>"""


FLUID = 'density="100" viscosity="2" wind="1 2 .5"'
OVERRIDE = 'o_margin=".02" o_solref=".03 .7" o_solimp=".8 .9 .01 .5 2" o_friction=".3 .3 .02 .01 .01"'
CASES = {
    "gravity": arm('gravity="1 2 -3"'),
    "fluid": arm(FLUID),
    "fluid, implicitfast": free(f'{FLUID} integrator="implicitfast"'),
    "free body, implicitfast": free('integrator="implicitfast"', 'damping=".3"'),
    "free body, RK4": free('integrator="RK4"', 'stiffness="20" damping=".3"'),
    "arm, implicit": arm('integrator="implicit"', 'damping=".1"'),
    "armature, friction and spring of a free joint": free(
        "", 'armature=".7" frictionloss=".7" stiffness="20" damping=".3"'
    ),
    "ball": ball('damping=".1" armature=".02" frictionloss=".05" stiffness="3"', 'integrator="implicit"'),
    "limit of a ball": ball('range="0 .2" margin=".15" solreflimit=".03 .8" solimplimit=".8 .9 .01 .4 3"'),
    "limits whose margins overlap": arm("", 'range="-.05 .05" margin=".2"', 'range="-.3 .05" margin=".2"'),
    "override": free(OVERRIDE, world=PLANE.format('margin=".005"'), flag='override="enable"'),
    "margin and gap": free(
        "", geom='type="capsule" size=".1 .2" margin=".02"', world=PLANE.format('margin=".1" gap=".05"')
    ),
    "cylinder on a plane": free("", geom='type="cylinder" size=".1 .1"', world=PLANE.format("")),
    "neighbours that touch": arm(flag='filterparent="disable"'),
    "no passive forces": arm('density="30"', 'damping=".2" stiffness="2"', flag='spring="disable" damper="disable"'),
}
FLAGS = ("constraint", "equality", "frictionloss", "limit", "contact", "spring", "damper", "gravity", "clampctrl")
CASES |= {
    f"without {flag}": arm(
        'timestep=".005" density="30"',
        'range="-.05 .05" frictionloss=".1" damping=".2" stiffness="2" armature=".01"',
        world=PLANE.format('pos="0 0 .9"'),
        rest='<equality><joint joint1="j1" joint2="j2" polycoef="0 .5 0 0 0"/></equality>'
        '<actuator><motor joint="j2" ctrlrange="-.1 .1" gear="2"/></actuator>',
        flag=f'{flag}="disable"',
    )
    for flag in (*FLAGS, "actuation", "eulerdamp")
}


def twin(tmp_path: Path, text: str) -> Twin:
    path = tmp_path / "robot.xml"
    path.write_text(text)
    return Twin.of(path)


def largest_error(both: Twin) -> float:
    starts, random = both.starts(STATES), np.random.default_rng(1)
    controls = np.array([[both.controls(random) for _ in starts] for _ in range(STEPS)])
    theirs = np.array([both.theirs(x, controls[:, k])[0] for k, x in enumerate(starts)]).swapaxes(0, 1)
    assert np.abs(theirs[-1] - theirs[0]).max() > 1e-3
    return float(both.errors(both.ours(starts, controls), theirs).max())


@pytest.mark.parametrize("name", CASES)
def test_beside_mujoco(tmp_path: Path, name: str) -> None:
    both = twin(tmp_path, CASES[name])
    assert both.lacks == ()
    assert largest_error(both) < AGREES


@pytest.mark.parametrize("flag", ["contact", "limit", "gravity", "spring", "eulerdamp"])
def test_flags_are_not_idle(tmp_path: Path, flag: str) -> None:
    """What a flag switches off does act where it is on: the case can fail."""
    without, own = (
        twin(tmp_path, CASES[f"without {flag}"]),
        twin(tmp_path, CASES[f"without {flag}"].replace("disable", "enable")),
    )
    x = without.starts(STATES)
    still = np.zeros((STEPS, STATES, 1))
    assert np.abs(without.ours(x, still) - own.ours(x, still)).max() > 1e-5


@pytest.mark.parametrize("name", ["fluid, implicitfast", "limit of a ball", "arm, implicit", "free body, RK4"])
def test_gradients(tmp_path: Path, name: str) -> None:
    both = twin(tmp_path, CASES[name])
    x = torch.tensor(both.to_ours(both.starts(1)[0]))
    check_gradients(lambda x: both.world.step(x), (x,), names=("state",), float32=False)


SAID = {
    "noslip": (free('noslip_iterations="3"'), "options that are not followed: noslip_iterations"),
    "diagexact": (free(flag='diagexact="enable"'), "flags that are not followed: diagexact"),
    "refsafe": (arm("", 'range="0 1" solreflimit=".001 1"', flag='refsafe="disable"'), "not followed: refsafe"),
    "poly": (arm("", 'stiffness="3 1 .5"'), "nonlinear springs, of which only the linear part is kept: j1"),
    "fluidshape": (free('density="10"', geom='size=".1" fluidshape="ellipsoid"'), "ellipsoid model of fluids"),
    "box on box": (
        free(geom='type="box" size=".1 .1 .1"', world='<geom type="box" size=".5 .5 .05"/>'),
        r"contact points and so the motion may differ from MuJoCo's: box and box \(1 pair\)",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_not_followed_is_said_before(tmp_path: Path, name: str) -> None:
    text, words = SAID[name]
    path = tmp_path / "robot.xml"
    path.write_text(text)
    with pytest.warns(ModelWarning, match=words):
        robot = cs.load_robot(path)
        ground = [cs.Static(f"g{k}", s) for k, s in enumerate(robot.model.links[0].collisions)]
        cs.World([robot], scenery=ground, contact=cs.Newton())


def test_gravity_of_files(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(arm('gravity="0 0 -1"'))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        light = cs.load_robot(path)
    assert cs.World([light], contact=None).setup.scene.model.gravity.tolist() == [0, 0, -1]
    assert cs.World([light], gravity=(0, 0, -2)).setup.scene.model.gravity.tolist() == [0, 0, -2]
    with pytest.raises(ValueError, match=r"choose one with World\(gravity="):
        cs.World([light, cs.load_robot("two_link")])
