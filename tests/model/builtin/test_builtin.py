"""The built-in robots are the published ones, joint by joint."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.model.kinematics import link_poses, neutral, total_inertia

from costate.model import Model, ModelError, ModelWarning, builtin, builtin_names, load_model
from costate.model.actuation import Actuator
from costate.model.builtin import ROBOTS

# Files print pi/2 as 1.5708 or 1.57079: their rotations are this inexact, ours are not.
PRINTED_ANGLE = 1e-5
EXACT = 1e-9

FILES = {
    "iiwa7": ("diff_robot_data", "kuka_iiwa/urdf/iiwa7.urdf"),
    "panda": ("diff_robot_data", "panda_description/urdf/panda.urdf"),
    "fetch_arm": ("diff_robot_data", "fetch_description/urdf/fetch_arm_no_gripper.urdf"),
    "allegro_hand": ("diff_robot_data", "allegro/urdf/allegro_hand_description_left_small_damping.urdf"),
    "two_link": ("diff_robot_data", "2link_robot.urdf"),
    "laikago": ("pybullet_data", "laikago/laikago_toes_zup.urdf"),
    "racecar": ("pybullet_data", "racecar/racecar.urdf"),
    "ant": ("gymnasium", "envs/mujoco/assets/ant.xml"),
}


def published(name: str) -> Model:
    package, path = FILES[name]
    folder = Path(next(iter(pytest.importorskip(package).__path__)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_model(folder / path)


@pytest.mark.parametrize("name", FILES)
def test_joints_are_the_published_ones(name: str) -> None:
    ours, theirs = load_model(name), published(name)
    assert [j.name for j in ours.joints if j.name != "floating_base"] == [j.name for j in theirs.joints]
    for b in theirs.joints:
        a = ours.joint(b.name)
        assert (a.nv, a.mimic) == (b.nv, b.mimic), b.name
        np.testing.assert_allclose(a.origin.translation, b.origin.translation, rtol=0, atol=EXACT, err_msg=b.name)
        np.testing.assert_allclose(a.origin.rotation, b.origin.rotation, rtol=0, atol=PRINTED_ANGLE, err_msg=b.name)
        np.testing.assert_allclose(a.axis, b.axis, rtol=0, atol=EXACT, err_msg=b.name)
        assert (a.damping, a.armature) == (b.damping, b.armature), b.name


@pytest.mark.parametrize("name", FILES)
def test_masses_are_the_published_ones(name: str) -> None:
    ours, theirs = load_model(name), published(name)
    for b in theirs.joints:
        x, y = ours.link(ours.joint(b.name).child).inertia, theirs.link(b.child).inertia
        assert x.mass == pytest.approx(y.mass, rel=EXACT), b.child
        np.testing.assert_allclose(x.com, y.com, rtol=0, atol=EXACT, err_msg=b.child)
        if name != "panda":  # the file has 0.1 kg m^2 for all links, fingers too
            np.testing.assert_allclose(x.matrix, y.matrix, rtol=0, atol=EXACT, err_msg=b.child)


@pytest.mark.parametrize("name", ["iiwa7", "panda", "fetch_arm", "allegro_hand", "two_link"])
def test_limits_are_the_published_ones(name: str) -> None:
    ours, theirs = load_model(name), published(name)
    for key in ("lower", "upper", "max_velocity", "max_effort"):
        np.testing.assert_allclose(getattr(ours, key), getattr(theirs, key), rtol=0, atol=EXACT, err_msg=key)


def test_limits_of_laikago_ant_and_racecar() -> None:
    folder = Path(next(iter(pytest.importorskip("pybullet_data").__path__)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        limited = load_model(folder / "laikago/laikago_toes_limits.urdf")
    laikago, ant, gym = load_model("laikago"), load_model("ant"), published("ant")
    for joint in limited.joints:
        if joint.nv:
            ours = laikago.joint(joint.name)
            assert (ours.lower[0], ours.upper[0]) == (joint.lower[0], joint.upper[0]), joint.name
    np.testing.assert_allclose(ant.lower, gym.lower, atol=EXACT)
    np.testing.assert_allclose(ant.upper, gym.upper, atol=EXACT)
    gears = [{a.joint: a.gear for a in m.actuators if isinstance(a, Actuator)} for m in (ant, gym)]
    assert len(gears[0]) == len(gym.actuators) and gears[0] == gears[1]
    car = load_model("racecar").joint("left_steering_hinge_joint")
    assert (car.lower[0], car.upper[0]) == (-1.0, 1.0)


def test_panda_inertias_are_possible_and_near_the_shapes() -> None:
    """Principal moments obey the triangle inequality and their radii of gyration lie within the link's shapes."""
    for link in load_model("panda").links:
        if link.inertia.mass:
            low, middle, high = np.linalg.eigvalsh(link.inertia.matrix)
            assert low > 0 and low + middle >= high
            reach = max(np.linalg.norm(s.pose.translation) + np.max(s.size) for s in link.collisions)
            assert np.sqrt(high / link.inertia.mass) < reach


def test_ur5_has_the_figures_of_its_maker() -> None:
    model = load_model("ur5")
    offsets = [j.origin.translation for j in model.joints[:6]]
    expected = [(0, 0, 0.089159), (0, 0.13585, 0), (0, -0.1197, 0.425), (0, 0, 0.39225), (0, 0.093, 0), (0, 0, 0.09465)]
    np.testing.assert_array_equal(offsets, expected)
    assert np.linalg.norm(model.joint("tool0_fixed_joint").origin.translation) == 0.0823
    masses = [link.inertia.mass for link in model.links[:7]]
    assert masses == [4.0, 3.7, 8.393, 2.275, 1.219, 1.219, 0.1879]
    assert model.max_velocity.tolist() == [3.15] * 3 + [3.2] * 3
    assert model.max_effort.tolist() == [150.0] * 3 + [28.0] * 3


def test_ur5_tool_pose_from_denavit_hartenberg() -> None:
    """Universal Robots' own table (theta, a, d, alpha) at random angles gives the pose of tool0 in the frame "base"."""
    table = [(0, 0.089159, np.pi / 2), (-0.425, 0, 0), (-0.39225, 0, 0), (0, 0.10915, np.pi / 2),
             (0, 0.09465, -np.pi / 2), (0, 0.0823, 0)]  # fmt: skip
    q = np.random.default_rng(3).uniform(-3, 3, 6)
    T = np.eye(4)
    for angle, (a, d, alpha) in zip(q, table, strict=True):
        (ct, st), (ca, sa) = (np.cos(angle), np.sin(angle)), (np.cos(alpha), np.sin(alpha))
        T = T @ [[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]]
    half_turn = np.diag([-1.0, -1.0, 1.0])  # from the maker's "base" to base_link
    tool = link_poses(load_model("ur5"), q)["tool0"]
    np.testing.assert_allclose(tool.translation, half_turn @ T[:3, 3], atol=1e-12)
    np.testing.assert_allclose(tool.rotation, half_turn @ T[:3, :3], atol=1e-12)


def test_shadow_hand_has_24_joints_in_reach_of_the_thumb() -> None:
    model = load_model("shadow_hand")
    assert (model.nq, model.nv) == (24, 24)
    assert (
        sum(j.name.startswith("TH") for j in model.joints) == 5 and sum(j.name[:2] == "LF" for j in model.joints) == 5
    )
    poses = link_poses(model, neutral(model))
    # Stretched middle finger: forearm 256, wrist 34, knuckle 99, bones 45 + 25, tip 26 mm, all along z.
    np.testing.assert_allclose(poses["mftip"].translation, [0.011, 0, 0.256 + 0.034 + 0.099 + 0.045 + 0.025 + 0.026])
    assert model.total_mass == pytest.approx(4.911, abs=1e-3)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_pendulum(n: int) -> None:
    for name in (f"pendulum{n}", f"pendulum({n})"):
        model = load_model(name)
        assert (model.nq, model.nv, model.total_mass) == (n, n, n)
    poses = link_poses(model, neutral(model))
    np.testing.assert_allclose(poses["tip"].translation, [0, 0, -n])
    # One thin rod of n metres and n kilograms: n^3 / 12, and the thickness of radius r: n r^2 / 4.
    assert total_inertia(model, poses).matrix[1, 1] == pytest.approx(n**3 / 12 + n * 0.05**2 / 4)


@pytest.mark.parametrize("name", builtin_names())
def test_every_robot_is_whole(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load_model(name)
    assert model.source and model.total_mass > 0
    for link in model.links:
        assert np.linalg.eigvalsh(link.inertia.matrix)[0] >= 0, link.name
    assert any(link.collisions for link in model.links)
    if model.home is not None:
        scalar = [(j, model.home[i]) for j, i in zip(model.joints, model.q_index, strict=True) if j.nv == 1]
        assert all(j.lower[0] <= q <= j.upper[0] for j, q in scalar)


@pytest.mark.parametrize(
    "name, feet", [("laikago", ("toeFR", "toeFL", "toeRR", "toeRL")), ("racecar", ()), ("ant", ())]
)
def test_walkers_start_on_the_ground(name: str, feet: tuple[str, ...]) -> None:
    """The lowest point of all round shapes at home is at height 0, give or take a millimetre."""
    model = load_model(name)
    assert model.floating_base and model.home is not None
    poses = link_poses(model, model.home)
    lowest = {}
    for link in model.links:
        for shape in link.collisions:
            pose = poses[link.name] @ shape.pose
            half = abs(pose.rotation[2, 2]) * shape.size[1] / 2 if shape.kind == "capsule" else 0.0
            if shape.kind in ("sphere", "capsule"):
                lowest[link.name] = pose.translation[2] - half - shape.size[0]
    assert min(lowest.values()) == pytest.approx(0.0, abs=1e-3)
    for foot in feet:
        assert lowest[foot] == pytest.approx(0.0, abs=1e-3)
        assert [s.kind for s in model.link(foot).collisions] == ["sphere"]


def test_base_of_walkers_can_be_fixed_and_that_of_arms_freed() -> None:
    assert load_model("laikago", floating_base=False).nv == 12
    assert load_model("ur5", floating_base=True).nv == 12
    assert load_model("ur5", floating_base=True).links[0].name == "world"


def test_every_file_has_a_row_and_every_row_a_file() -> None:
    assert sorted(p.stem for p in Path(builtin.__file__).parent.glob("*.urdf")) == sorted(ROBOTS)


def test_unknown_names_are_answered_with_close_ones() -> None:
    with pytest.raises(ModelError, match="did you mean 'ur5'"):
        load_model("ur5e")
    with pytest.raises(ModelError, match="built in are ur5, iiwa7"):
        load_model("qqqqqq")
    with pytest.raises(ModelError, match="at least one link"):
        load_model("pendulum0")
    with pytest.raises(ModelError, match="no such file"):
        load_model("some/where.urdf")


def test_documented_sizes() -> None:
    table = (Path(__file__).parents[3] / "docs/robots.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|.*\| (\w+) \|$", table, re.MULTILINE)
    assert [row[0] for row in rows] == list(builtin_names())
    for name, nq, nv, base in rows:
        model = load_model(name)
        assert (model.nq, model.nv, model.floating_base) == (int(nq), int(nv), base == "floating")
