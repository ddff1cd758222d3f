"""Contact pairs and exclusions of MJCF: which shapes touch, and how, as in MuJoCo."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import costate as cs

mujoco = pytest.importorskip("mujoco")

AGREES = 1e-9
"""Of changes of a state in a step, relative to the largest."""

# The arm's base is in the way of its first link, the tool and the peg touch nothing but what a pair says.
MJCF = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="peg" size="0.06" pos="0.45 0 0.05" contype="0" conaffinity="0"/>
    <body name="base"><geom name="foot" size="0.08" pos="0 0 0.1"/></body>
    <body name="upper" pos="0 0 0.2"><joint name="a" axis="0 1 0"/>
      <geom name="upper" type="capsule" fromto="0 0 -0.05 0.2 0 0.02" size="0.04"/>
      <body name="middle" pos="0.2 0 0"><joint name="b" axis="0 1 0"/>
        <geom name="middle" type="capsule" fromto="0.04 0 0 0.1 0 0" size="0.04"/>
        <body name="hand" pos="0.1 0 0"><joint name="c" axis="0 1 0"/><geom name="hand" size="0.04" pos="0.05 0 0"/>
          <geom name="tool" size="0.05" pos="0.1 0 0" contype="0" conaffinity="0"/></body></body></body>
    <body name="ball" pos="0.3 0 0.26"><joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/>
      <geom name="ball" size="0.05"/></body>
  </worldbody>
  <contact>
    <exclude body1="base" body2="upper"/>
    <exclude body1="hand" body2="ball"/>
    <exclude body1="hand" body2="world"/>
    <pair geom1="tool" geom2="peg" condim="1" solref="0.05 0.9" margin="0.01"/>
    <pair geom1="tool" geom2="floor" friction="0.3 0.3 0.01 0.001 0.001" solimp="0.8 0.9 0.01 0.5 2"/>
    <pair geom1="ball" geom2="middle" friction="0.1 0.1 0.01 0.001 0.001"/>
  </contact>
</mujoco>
"""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "robot.xml"
    path.write_text(MJCF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out
        return cs.load_robot(path)


def pairs_of(world: cs.World) -> set[frozenset[str]]:
    scene = world.setup.scene
    return {frozenset(scene.colliders[k].shape.name for k in pair) for pair in scene.pairs}


EXPECTED = {
    *(frozenset(p) for p in (("upper", "floor"), ("middle", "floor"), ("ball", "floor"), ("tool", "floor"))),
    *(frozenset(p) for p in (("tool", "peg"), ("upper", "hand"), ("foot", "middle"), ("foot", "hand"))),
    *(frozenset(p) for p in (("foot", "ball"), ("upper", "ball"), ("middle", "ball"))),
}


def test_steps_are_mujocos(robot):
    m = mujoco.MjModel.from_xml_path(robot.model.source)
    m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations, m.opt.ls_tolerance = 0.0, 100, 100, 1e-10
    d = mujoco.MjData(m)
    world = cs.World({"robot": robot}, contact=cs.Newton(), self_collision=True, check=False)
    assert pairs_of(world) == EXPECTED
    random = np.random.default_rng(0)
    x, y, met = [], [], set()
    for _ in range(400):
        mujoco.mj_resetData(m, d)
        d.qpos[:] = random.uniform([-0.3, -2.5, -2.5, -0.25, -0.35], [1.3, 2.5, 2.5, 0.1, 0.2])
        d.qvel[:] = 0.3 * random.normal(size=m.nv)
        before = np.concatenate([d.qpos, d.qvel])
        mujoco.mj_step(m, d)
        pushing = {
            frozenset(m.geom(int(g)).name for g in c) for c, gap in zip(d.contact.geom, d.contact.dist, strict=True)
        }
        met |= pushing
        x.append(before)
        y.append(np.concatenate([d.qpos, d.qvel]))
    x, y = np.array(x), np.array(y)
    assert met == EXPECTED
    ours = world.step(torch.tensor(x)).numpy()
    assert (np.abs(ours - y) / np.abs(y - x).max(1, keepdims=True)).max() < AGREES


@pytest.mark.filterwarnings("ignore:robot. its file")
def test_other_models_keep_to_the_lists(robot):
    world = cs.World({"robot": robot}, self_collision=True)
    assert pairs_of(world) == EXPECTED
    tool = next(t for t in world._contacts if "peg" in {c.shape.name for c in _shapes(world, t)})
    assert float(tool.friction) == 1.0  # the pair's, not the larger of the two
    rub = next(t for t in world._contacts if {c.shape.name for c in _shapes(world, t)} == {"tool", "floor"})
    assert float(rub.friction) == 0.3
    assert pairs_of(cs.World({"robot": robot})) == set()  # all of them are its own


def _shapes(world: cs.World, contact) -> list:
    return [c for c in world.setup.scene.colliders if c.name in contact.shapes]


def test_scenery_of_a_floating_robot(tmp_path: Path):
    """Its floor is scenery: lists of the file mean it too; scenery of others is not meant."""
    path = tmp_path / "robot.xml"
    path.write_text("""<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
      <body name="one"><freejoint/><geom name="one" size="0.1"/><geom name="feeler" size="0.2" contype="0" conaffinity="0"/></body>
    </worldbody><contact><exclude body1="one" body2="world"/><pair geom1="feeler" geom2="floor" condim="1"/></contact></mujoco>""")
    robot = cs.load_robot(path)
    wall = cs.Static("wall", cs.shapes.plane())
    world = cs.World([robot], scenery=[cs.Static("ground", robot.model.links[0].collisions[0]), wall])
    scene = world.setup.scene
    names = {frozenset(scene.colliders[k].name.split("/")[-1] for k in pair) for pair in scene.pairs}
    assert names == {frozenset(("1", "ground")), frozenset(("0", "wall"))}
