"""Worlds from files, against MuJoCo's motion of the same file."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from benchmarks.mjcf.twin import Twin
from costate.model import ModelWarning

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
SLOW = ("humanoid", "humanoidstandup")
"""Files with hundreds of pairs, which take half a minute to compile."""
FILES = [pytest.param(f.stem, marks=[pytest.mark.slow] * (f.stem in SLOW)) for f in sorted(ASSETS.glob("*.xml"))]
ONE_STEP, MANY_STEPS = 1e-12, 1e-10
"""Largest errors of states relative to their size. Rounding grows with the steps: measured are 2e-14 and 7e-13."""


def errors(twin: Twin, starts: np.ndarray, controls: np.ndarray) -> tuple[float, float]:
    """The largest relative errors after the first step, and over all of them. controls: (t, n, nu)."""
    theirs = np.array([twin.theirs(x, controls[:, k])[0] for k, x in enumerate(starts)]).swapaxes(0, 1)
    ours = twin.ours(starts, controls)
    return twin.errors(ours[:2], theirs[:2]).max(), twin.errors(ours, theirs).max()


@pytest.mark.parametrize("name", [f for f in FILES if f.values != ("point",)])
def test_moves_as_in_mujoco(name: str):
    twin, random = Twin.of(ASSETS / f"{name}.xml"), np.random.default_rng(1)
    starts = twin.starts(8)
    controls = np.array([[twin.controls(random) for _ in starts] for _ in range(50)])
    first, all_of_them = errors(twin, starts, controls)
    assert first < ONE_STEP
    assert all_of_them < MANY_STEPS


def test_point_moves_straight_as_in_mujoco():
    """The ball of point.xml touches the floor at a distance of exactly zero, where nothing acts. When it turns, MuJoCo finds a
    distance of plus or minus 1e-16, and rounding decides whether friction acts: see docs/validation.md."""
    twin, random = Twin.of(ASSETS / "point.xml"), np.random.default_rng(0)
    starts = np.zeros((8, 6))
    starts[:, [0, 3]] = random.normal(size=(8, 2))  # along x, and without turning
    controls = np.zeros((50, 8, 2))
    controls[..., 0] = random.uniform(-1, 1, (50, 8))
    assert max(errors(twin, starts, controls)) < ONE_STEP


@pytest.mark.parametrize("height", [0.499, 0.501])
def test_point_apart_and_in_contact(height: float, tmp_path: Path):
    path = tmp_path / "point.xml"
    path.write_text((ASSETS / "point.xml").read_text().replace('pos="0 0 0.5"', f'pos="0 0 {height}"'))
    twin, random = Twin.of(path), np.random.default_rng(1)
    starts = twin.starts(8)
    controls = np.array([[twin.controls(random) for _ in starts] for _ in range(50)])
    assert max(errors(twin, starts, controls)) < MANY_STEPS


def test_the_floor_counts_once():
    """As scenery and by self collision, and brought by a second robot of the same file."""
    file = ASSETS / "hopper.xml"
    robot = cs.load_robot(file)
    (floor,) = robot.model.links[0].collisions
    given = {"contact": cs.Newton(), "actuators": "file", "self_collision": True}
    recipe = cs.World([robot], scenery=[cs.Static("floor", floor)], **given)
    world = cs.load_world(file)
    x = world.initial_state() + torch.tensor([0, -0.02, 0.1, 0.0, 0, 0, 1, -1, 0, 0, 0, 0])
    assert len(recipe.setup.scene.pairs) == len(world.setup.scene.pairs)
    assert torch.equal(recipe.step(x), world.step(x))
    two = cs.load_world(file, robots=[robot])
    floors = [two.shape_names[k] for pair in two.setup.scene.pairs for k in pair if "/foot" not in two.shape_names[k]]
    assert [n for n in two.shape_names if "world" in n] == []
    assert floors.count("floor") == 2 * 4  # four links of each


# --- what a file says, and what is said instead -----------------------------------------------------------------------

EVERYTHING = """
<mujoco model="cart">
  <option timestep="0.004" gravity="0 0 -5" integrator="implicitfast" cone="elliptic"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="mark" type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0" pos="0 0 3"/>
    <geom type="box" size="0.1 0.1 0.1" pos="2 0 0" group="3"/>
    <body name="ball" pos="0 0 0.5" quat="1 1 0 0">
      <freejoint name="free"/>
      <geom name="ball" size="0.1"/>
      <body name="arm" pos="0.2 0 0"><joint name="hinge" axis="0 1 0"/><geom name="arm" type="capsule" size="0.02 0.1"/></body>
    </body>
  </worldbody>
  <actuator><general name="lazy" joint="hinge" dyntype="filter" dynprm="0.1" gainprm="3"/></actuator>
  <keyframe>
    <key name="low" qpos="1 2 0.1 0.5 0.5 0.5 0.5 0.3" qvel="1 2 3 0.1 0.2 0.3 0.4" act="0.7" ctrl="-0.2"/>
    <key qpos="0 0 1 2 0 0 0 0"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    path = tmp_path / "everything.xml"
    path.write_text(EVERYTHING)
    return path


def test_a_file_gives_everything(everything: Path):
    world = cs.load_world(everything)
    assert (world.dt, world.setup.integrator, world.setup.contact.name) == (0.004, "implicit", "Newton")
    assert world.setup.scene.model.gravity.tolist() == [0, 0, -5]
    assert (world.nu, world.na, world.actuated) == (1, 1, ["cart/hinge"])
    assert [n for n in world.shape_names if "/" not in n] == ["floor", "geom1", "mark"]
    names = {frozenset(world.shape_names[k].split("/")[-2:][0] for k in pair) for pair in world.setup.scene.pairs}
    assert names == {frozenset((a, b)) for a in ("ball", "arm") for b in ("floor", "geom1")}
    assert [s.name for s in world.setup.scene.model.links[0].visuals] == ["floor", "mark"]  # group 3 is not drawn
    assert repr(world) == (
        "World(robots: cart; scenery: floor, geom1, mark; nq=8, nv=7, nu=1, na=1; 4 pairs may touch; "
        "Newton, implicit, dt = 0.004 s)"
    )


def test_keyframes_are_mujocos(everything: Path):
    world = cs.load_world(everything)
    assert world.keyframes == ["low", "1"]
    model = mujoco.MjModel.from_xml_path(str(everything))
    data = mujoco.MjData(model)
    twin = Twin(world, model, data, ())
    for k, name in enumerate(world.keyframes):
        mujoco.mj_resetDataKeyframe(model, data, k)
        state, control = world.initial_state(batch=2, keyframe=name), world.keyframe_control(name)
        assert control.tolist() == data.ctrl.tolist()
        for _ in range(5):
            mujoco.mj_step(model, data)
            state = world.step(state, control)
        theirs = np.concatenate([data.qpos, data.qvel, data.act])
        assert twin.errors(state[None].numpy(), np.stack([theirs, theirs])[None]).max() < ONE_STEP
    aside = cs.load_world(everything, poses={"cart": ((1, 0, 0), (0, 0, np.pi / 2))})  # moves with its robot
    assert aside.initial_state(keyframe="low")[:7].tolist() == pytest.approx([-1, 1, 0.1, 0, 0.5**0.5, 0.5**0.5, 0])
    assert torch.equal(aside.initial_state(keyframe="low")[7:], world.initial_state(keyframe="low")[7:])
    with pytest.raises(ValueError, match=r"unknown keyframe 'lo' \(did you mean 'low'"):
        world.initial_state(keyframe="lo")
    with pytest.raises(ValueError, match="have none"):
        cs.World([cs.load_robot("two_link")]).initial_state(keyframe="home")
    with pytest.raises(ValueError, match='actuators="file"'):
        cs.load_world(everything, actuators={}).keyframe_control("low")


def test_options_take_the_place_of_what_a_file_says(everything: Path):
    box = cs.Body("box", [cs.shapes.box((0.1, 0.1, 0.1))], mass=1.0)
    wall = cs.Static("wall", cs.shapes.plane(rpy=(0, 1.5, 0)))
    world = cs.load_world(everything, contact=cs.Hard(), substeps=2, bodies=[box], scenery=[wall], gravity=(0, 0, -1))
    assert (world.dt, world.setup.dt, world.setup.integrator) == (0.008, 0.004, "semi_implicit")
    assert {"box/body/0", "wall", "floor"} <= set(world.shape_names)
    assert cs.load_world(everything, dt=0.1).dt == 0.1
    with pytest.raises(TypeError, match="no_such"):
        cs.load_world(everything, no_such=1)
    with pytest.raises(ValueError, match="its own ground"):
        cs.load_world(everything, ground=True)


def test_robots_stand_on_a_ground():
    assert cs.load_world("laikago").shape_names[-1] == "ground"
    assert "ground" not in cs.load_world("laikago", ground=False).shape_names
    assert "ground" not in cs.load_world("two_link").shape_names
    arm = cs.load_world("two_link", ground=True)
    assert "ground" in arm.shape_names
    assert arm.nu == 2
    two = cs.load_world("two_link", robots=[cs.load_robot("two_link")], poses={"two_link_2": cs.model.Transform()})
    assert (two.nq, list(two._inputs.robots)) == (4, ["two_link", "two_link_2"])


# --- what a world does not use ----------------------------------------------------------------------------------------


def said(make) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    return [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]


def test_a_world_says_what_it_leaves_aside():
    robot = cs.load_robot(ASSETS / "hopper.xml")
    floor = cs.Static("ground", cs.shapes.plane())
    first, second = said(lambda: cs.World([robot]))
    assert "'floor'" in first and "cs.load_world" in first and "scenery=" in first
    assert "'actuator0', 'actuator1', 'actuator2'" in second and 'actuators="file"' in second
    assert said(lambda: cs.load_world(ASSETS / "hopper.xml")) == []
    assert said(lambda: cs.World([robot], scenery=[floor], actuators="file")) == []
    assert said(lambda: cs.World([robot], self_collision=True, actuators=cs.Torque())) == []
    assert said(lambda: cs.World([robot], contact=None, actuators=cs.Torque())) == []
    assert len(said(lambda: cs.World([cs.load_robot(ASSETS / "ant.xml")], self_collision=True))) == 2
    with pytest.warns(ModelWarning) as caught:
        cs.World([robot])
    assert {w.filename for w in caught} == {__file__}  # the line of the user
