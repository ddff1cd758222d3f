"""MJCF files read as MuJoCo compiles them: poses of all bodies at random configurations, masses, joints."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.model.kinematics import link_poses

from costate.model import Actuator, Model, ModelError, ModelWarning, load_model, read_mjcf
from costate.model.tendon import FixedTendon

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"

ALL_JOINTS = """<mujoco model="zoo"><option gravity="0 1 -2"/>
<compiler angle="degree"/>
<worldbody>
  <geom name="floor" type="plane" size="1 1 1" rgba="1 0 0 1"/>
  <body name="box" pos="1 2 3" euler="10 20 30">
    <freejoint name="free"/> <geom name="cube" type="box" size="1 2 3" mass="2" pos="0.1 0 0"/>
    <body name="ball" pos="0 0 1" euler="40 0 0">
      <joint name="ball" type="ball" pos="0.1 0.2 0.3"/>
      <geom type="capsule" size="0.1 0.4" euler="0 30 0" contype="0" conaffinity="0"/>
    </body>
    <body name="many" pos="0 1 0" euler="0 0 20">
      <joint name="slide" type="slide" axis="1 1 0" ref="0.2" pos="1 1 1" range="-1 2"/>
      <joint name="hinge" axis="0 1 2" ref="15" pos="0.3 0 0.1" range="-30 60" stiffness="3" springref="10"/>
      <joint name="last" axis="1 0 0" pos="0 0.2 0.1" damping="0.5" armature="0.25" frictionloss="0.125"/>
      <geom type="ellipsoid" size="0.1 0.2 0.3" group="3"/>
      <inertial pos="0.1 0 0" mass="3" fullinertia="1 2 2.5 0.1 0 0.2"/>
      <body name="frame" pos="0 0 0.5"/>
    </body>
  </body>
</worldbody>
<actuator><motor name="m" joint="last" gear="5" ctrlrange="-2 3" ctrllimited="true"/></actuator>
</mujoco>"""


def quiet(path: Path, **options) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return read_mjcf(path, **options)


def our_q(mj, qpos: np.ndarray) -> np.ndarray:
    """MuJoCo's configuration in our order: quaternions x, y, z, w."""
    parts = [np.zeros(0)]
    for j in range(mj.njnt):
        start, kind = mj.jnt_qposadr[j], int(mj.jnt_type[j])
        q = qpos[start : start + {0: 7, 1: 4}.get(kind, 1)]
        parts.append(np.r_[q[:-4], q[-3:], q[-4]] if kind < 2 else q)
    return np.concatenate(parts)


def assert_same_as_mujoco(path: Path) -> None:
    model, mj = quiet(path), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(mj)
    assert (model.nq, model.nv) == (mj.nq, mj.nv)
    np.testing.assert_array_equal(model.gravity, mj.opt.gravity)
    assert model.home is not None
    np.testing.assert_allclose(model.home, our_q(mj, mj.qpos0), atol=1e-15)
    names = [mj.body(b).name or f"body{b}" for b in range(mj.nbody)]
    rng = np.random.default_rng(1)
    for _ in range(3):
        data.qpos = mj.qpos0 + rng.uniform(-1, 1, mj.nq)
        mujoco.mj_normalizeQuat(mj, data.qpos)
        mujoco.mj_forward(mj, data)
        poses = link_poses(model, our_q(mj, data.qpos))
        for b, name in enumerate(names):
            np.testing.assert_allclose(poses[name].translation, data.xpos[b], atol=1e-13)
            np.testing.assert_allclose(poses[name].rotation, data.xmat[b].reshape(3, 3), atol=1e-13)
            inertia, R = model.link(name).inertia, poses[name].rotation
            assert inertia.mass == (mj.body_mass[b] if b else 0.0)
            if b:
                np.testing.assert_allclose(R @ inertia.com + poses[name].translation, data.xipos[b], atol=1e-13)
                principal = data.ximat[b].reshape(3, 3)
                expected = principal @ np.diag(mj.body_inertia[b]) @ principal.T
                np.testing.assert_allclose(R @ inertia.matrix @ R.T, expected, atol=1e-13)


@pytest.mark.parametrize("path", sorted(ASSETS.glob("*.xml")), ids=lambda p: p.stem)
def test_same_robot_as_mujoco(path: Path) -> None:
    assert_same_as_mujoco(path)


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    path = tmp_path / "zoo.xml"
    path.write_text(ALL_JOINTS)
    return path


def test_anchors_references_and_joints_in_a_row(zoo: Path) -> None:
    assert_same_as_mujoco(zoo)


def test_joint_parameters(zoo: Path) -> None:
    model = quiet(zoo)
    kinds = [(j.name, j.kind) for j in model.joints if j.kind != "fixed"]
    assert kinds == [("free", "floating"), ("ball", "spherical"), ("slide", "prismatic"), ("hinge", "revolute"),
                     ("last", "revolute")]  # fmt: skip
    hinge, last = model.joint("hinge"), model.joint("last")
    np.testing.assert_allclose(np.degrees([hinge.lower[0], hinge.upper[0], hinge.rest]), [-30, 60, 10])
    assert hinge.stiffness == 3
    assert (last.damping, last.armature, last.friction) == (0.5, 0.25, 0.125)
    assert (last.lower[0], last.upper[0]) == (-np.inf, np.inf)
    assert [link.inertia.mass for link in model.links if "/" in link.name] == [
        0.0
    ] * 4  # between joints, and at anchors
    (motor,) = model.actuators
    assert isinstance(motor, Actuator)
    assert (motor.joint, motor.gear, motor.lower, motor.upper) == ("last", 5, -2, 3)


def test_geoms(zoo: Path) -> None:
    model = quiet(zoo)
    world, cube = model.links[0], model.link("box").collisions[0]
    assert [(s.kind, s.name, s.color) for s in world.collisions] == [("plane", "floor", (1, 0, 0, 1))]
    np.testing.assert_array_equal(cube.size, [2, 4, 6])
    np.testing.assert_allclose(cube.pose.translation, [0.1, 0, 0])
    assert cube.friction == 1.0
    ball, many = model.link("ball"), model.link("many")
    assert [len(ball.visuals), len(ball.collisions)] == [1, 0]
    np.testing.assert_allclose(ball.visuals[0].size, [0.1, 0.8])
    np.testing.assert_allclose(
        ball.visuals[0].pose.rotation[:, 2], [np.sin(np.pi / 6), 0, np.cos(np.pi / 6)], atol=1e-12
    )
    assert [len(many.visuals), len(many.collisions)] == [0, 1]
    assert many.collisions[0].kind == "ellipsoid"


def test_mesh_pose_is_that_of_the_file(tmp_path: Path) -> None:
    """MuJoCo moves meshes to their principal frame; our pose is for the vertices as they are in the file."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]]) + np.array([5, 6, 7])
    faces = ["1 3 2", "1 2 4", "1 4 3", "2 3 4"]
    obj = "".join(f"v {x} {y} {z}\n" for x, y, z in vertices) + "".join(f"f {f}\n" for f in faces)
    (tmp_path / "tetra.obj").write_text(obj)
    path = tmp_path / "mesh.xml"
    path.write_text(
        '<mujoco><asset><mesh name="m" file="tetra.obj" scale="2 2 2"/></asset><worldbody><body pos="0 0 1">'
        '<freejoint/><geom type="mesh" mesh="m" pos="1 2 3" euler="10 20 30"/></body></worldbody></mujoco>'
    )
    mj = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    expected = mj.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0] - [0, 0, 1]
    (shape,) = read_mjcf(path).links[1].visuals
    got = (vertices * shape.size) @ shape.pose.rotation.T + shape.pose.translation
    assert Path(str(shape.mesh)).name == "tetra.obj"
    for point in got:  # float32 in MuJoCo, and in an order of its own
        assert np.abs(expected - point).max(axis=1).min() < 1e-5


def test_what_is_left_out_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(
        '<mujoco><worldbody><site name="s"/><body><joint name="j"/><geom size="1"/><site name="t"/></body></worldbody>'
        '<tendon><spatial name="cable" armature="0.1"><site site="s"/><site site="t"/></spatial></tendon>'
        '<actuator><general name="own" joint="j" gaintype="user"/><motor name="heavy" joint="j" armature="0.1"/>'
        '<motor name="kept" tendon="cable"/></actuator></mujoco>'
    )
    with pytest.warns(ModelWarning, match="armature, yield and nonlinear .* of tendons, left out: cable") as warned:
        model = read_mjcf(path)
    texts = [str(w.message) for w in warned]
    assert any("actuators with a gaintype other than fixed, affine, muscle, left out: own" in text for text in texts)
    assert any("actuators with armature, left out: heavy" in text for text in texts)
    assert [a.name for a in model.actuators] == ["kept"]


def test_tendons_and_actuators() -> None:
    model = quiet(ASSETS / "humanoid.xml")
    assert {t.name: dict(t.joints) for t in model.tendons if isinstance(t, FixedTendon)} == {
        f"{side}_hipknee": {f"{side}_hip_y": -1.0, f"{side}_knee": 1.0} for side in ("left", "right")
    }
    assert len(model.actuators) == 17


def test_faults(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    with pytest.raises(ModelError, match=r"robot\.xml: MuJoCo refuses"):
        read_mjcf(path)
    path.write_text('<robot name="r"/>')
    with pytest.raises(ModelError, match="not MJCF"):
        read_mjcf(path)
    path.write_text('<!DOCTYPE x [<!ENTITY a "b">]><mujoco/>')
    with pytest.raises(ModelError, match="entities are refused"):
        load_model(path)


def test_fixed_base() -> None:
    model = quiet(ASSETS / "ant.xml", floating_base=False)
    assert model.nv == 8 and model.home is not None and model.home.shape == (8,)


def test_only_a_single_body_of_the_world_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "two.xml"
    body = '<body name="{}"><geom size="0.1"/></body>'
    path.write_text(f"<mujoco><worldbody>{body.format('a')}</worldbody></mujoco>")
    assert quiet(path, floating_base=True).nv == 6
    path.write_text(f"<mujoco><worldbody>{body.format('a')}{body.format('b')}</worldbody></mujoco>")
    with pytest.raises(ModelError, match=r"single body.*freejoint"):
        quiet(path, floating_base=True)


def test_mujoco_is_imported_only_when_needed() -> None:
    code = "import sys, costate.model; sys.exit('mujoco' in sys.modules or 'trimesh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=600, check=False).returncode == 0


def test_missing_mujoco_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match=r"needs mujoco: .*\[mjcf\]"):
        read_mjcf(ASSETS / "ant.xml")
