"""URDF files read as Pinocchio reads them: tree, frames, masses, inertias, limits."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.model.kinematics import link_poses, neutral, total_inertia

from costate.model import Model, ModelError, ModelWarning, read_urdf

pin = pytest.importorskip("pinocchio")
pybullet_data = pytest.importorskip("pybullet_data")
diff_robot_data = pytest.importorskip("diff_robot_data")

BULLET = Path(pybullet_data.getDataPath())
DRM = Path(next(iter(diff_robot_data.__path__)))

# Not well-formed, not a number, no robot in it, or unprocessed xacro: neither Pinocchio nor we read these.
FAULTY = {"bike", "biped2d_pybullet", "humanoid", "husky", "microtaur", "torus_deform"}
# Pinocchio drops a visual with four scale factors and goes on; we refuse the file.
STRICTER = {"racecar_differential"}
# Spherical joints are an extension that Pinocchio does not read.
MORE = {"spherical_joint_limit"}


def files() -> list[Path]:
    """All robots of both packages; of the thousand near-equal random blocks only three."""
    blocks = sorted((BULLET / "random_urdfs").rglob("*.urdf"))[:3]
    return (
        [p for p in sorted(BULLET.rglob("*.urdf")) if "random_urdfs" not in p.parts]
        + blocks
        + sorted(DRM.rglob("*.urdf"))
    )


def quiet(path: Path, **options) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return read_urdf(path, **options)


GOOD = [f for f in files() if f.stem not in FAULTY | STRICTER | MORE]


def test_the_packages_hold_what_we_think() -> None:
    assert len(GOOD) > 90


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_same_robot_as_pinocchio(path: Path, capfd) -> None:
    theirs = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer(), mimic=True)
    ours = quiet(path)
    assert ours.nv == theirs.nv - 6
    assert {j.name for j in ours.joints if j.kind != "fixed"} == set(theirs.names) - {"universe", "root_joint"}
    data = theirs.createData()
    q = pin.neutral(theirs)
    pin.framesForwardKinematics(theirs, data, q)
    poses = link_poses(ours, neutral(ours))
    for link in ours.links:
        frame = data.oMf[theirs.getFrameId(link.name, pin.FrameType.BODY)]
        np.testing.assert_allclose(poses[link.name].translation, frame.translation, rtol=0, atol=1e-12)
        np.testing.assert_allclose(poses[link.name].rotation, frame.rotation, rtol=0, atol=1e-12)
    if ours.total_mass == 0.0:
        assert sum(i.mass for i in theirs.inertias) == 0.0
        return
    total = total_inertia(ours, poses)
    pin.ccrba(theirs, data, q, np.zeros(theirs.nv))
    assert total.mass == pytest.approx(data.Ig.mass, rel=1e-12)
    np.testing.assert_allclose(total.com, data.com[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(total.matrix, data.Ig.inertia, rtol=0, atol=1e-9 * np.abs(data.Ig.inertia).max())


@pytest.mark.parametrize("path", [f for f in GOOD if DRM in f.parents], ids=lambda p: p.stem)
def test_same_limits_and_axes_as_pinocchio(path: Path) -> None:
    theirs = pin.buildModelFromUrdf(str(path), mimic=True)
    ours = quiet(path)
    for joint, start in zip(ours.joints, ours.v_index, strict=True):
        if joint.nv != 1:
            continue
        i = theirs.joints[theirs.getJointId(joint.name)].idx_v
        assert joint.max_velocity[0] == theirs.velocityLimit[i]
        assert joint.max_effort[0] == theirs.upperEffortLimit[i]
        assert ours.max_effort[start] == joint.max_effort[0]
        # dq/dt moves the child frame along the joint's axis: the Jacobian of its own motion in its own frame.
        data = theirs.createData()
        J = pin.computeJointJacobian(theirs, data, pin.neutral(theirs), theirs.getJointId(joint.name))[:, i]
        np.testing.assert_allclose(joint.axis, J[:3] if joint.kind == "prismatic" else J[3:], atol=1e-12)
        if joint.kind in ("revolute", "prismatic"):
            k = theirs.joints[theirs.getJointId(joint.name)].idx_q
            assert (joint.lower[0], joint.upper[0]) == (theirs.lowerPositionLimit[k], theirs.upperPositionLimit[k])


@pytest.mark.parametrize("name", sorted(FAULTY | STRICTER))
def test_faulty_files_are_refused_by_name(name: str) -> None:
    path = next(f for f in files() if f.stem == name)
    with pytest.raises(ModelError, match=f"{name}.urdf"):
        quiet(path)


def test_spherical_joint_of_bullet() -> None:
    model = quiet(next(f for f in files() if f.stem == "spherical_joint_limit"))
    assert [j.kind for j in model.joints if j.nv == 3] == ["spherical"]
    assert (model.nq, model.nv) == (4, 3)


def test_meshes_of_real_robots_are_found() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iiwa = read_urdf(DRM / "kuka_iiwa/urdf/iiwa7.urdf")
    meshes = [s.mesh_file() for link in iiwa.links for s in (*link.visuals, *link.collisions) if s.kind == "mesh"]
    assert len(meshes) >= 14 and all(m.is_file() for m in meshes)


def test_floating_base() -> None:
    path = DRM / "kuka_iiwa/urdf/iiwa7.urdf"
    model = quiet(path, floating_base=True)
    assert (model.nq, model.nv) == (14, 13)
    assert model.links[0].name == "world" and model.joints[0].kind == "floating" and model.floating_base
    assert quiet(path, floating_base=False).nv == 7
