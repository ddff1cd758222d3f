"""What the URDF reader makes of each element, on small files written here."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import costate as cs
from costate.model import Model, ModelError, ModelWarning, read_urdf

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="2" velocity="3"/>'


def robot(*links: str, joints: str = "", extra: str = "") -> str:
    body = "".join(f'<link name="{name}">{INERTIAL}</link>\n' for name in links)
    return f'<?xml version="1.0"?>\n<robot name="r">\n{extra}{body}{joints}</robot>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = LIMIT) -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>\n'


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str, **options) -> Model:
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        return read_urdf(path, **options)

    return read


def test_links_in_any_order_come_out_parents_first(read) -> None:
    joints = joint("j2", "revolute", "b", "c") + joint("j1", "revolute", "a", "b") + joint("j3", "fixed", "a", "d", "")
    model = read(robot("c", "d", "b", "a", joints=joints))
    assert [link.name for link in model.links] == ["a", "b", "c", "d"]
    assert [j.name for j in model.joints] == ["j1", "j2", "j3"]
    assert model.parents == (-1, 0, -1)


def test_axes_are_normalised_and_default_to_x(read) -> None:
    joints = joint("j1", "revolute", "a", "b", LIMIT + '<axis xyz="0 3 4"/>') + joint("j2", "revolute", "b", "c")
    model = read(robot("a", "b", "c", joints=joints))
    np.testing.assert_allclose(model.joint("j1").axis, [0, 0.6, 0.8], atol=1e-16)
    np.testing.assert_array_equal(model.joint("j2").axis, [1, 0, 0])


def test_inertial_frame_is_rotated_into_the_link(read) -> None:
    inertial = """<inertial><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><mass value="2"/>
      <inertia ixx="1" iyy="2" izz="2.5" ixy="0.1"/></inertial>"""
    model = read(f'<robot name="r"><link name="a">{inertial}</link></robot>')
    R = Rotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix()
    given = np.array([[1, 0.1, 0], [0.1, 2, 0], [0, 0, 2.5]])
    np.testing.assert_allclose(model.links[0].inertia.matrix, R @ given @ R.T, atol=1e-15)
    np.testing.assert_array_equal(model.links[0].inertia.com, [1, 2, 3])


def test_mimic_chains_lead_to_their_root(read) -> None:
    joints = (
        joint("j3", "prismatic", "c", "d", LIMIT + '<mimic joint="j2" multiplier="-2" offset="0.5"/>')
        + joint("j2", "revolute", "b", "c", LIMIT + '<mimic joint="j1" multiplier="3" offset="0.1"/>')
        + joint("j1", "revolute", "a", "b")
    )
    model = read(robot("a", "b", "c", "d", joints=joints))
    mimic = model.joint("j3").mimic
    assert mimic and mimic.joint == "j1"
    # q3 = -2 (3 q1 + 0.1) + 0.5
    assert (mimic.multiplier, mimic.offset) == pytest.approx((-6.0, 0.3))
    assert model.nv == 1 and model.q_index == (0, 0, 0)
    assert len(model.lower) == 1


def test_dynamics_and_limits(read) -> None:
    inside = LIMIT + '<dynamics damping="0.1" friction="0.2" armature="0.3" stiffness="4" rest="-0.5"/>'
    j = read(robot("a", "b", joints=joint("j", "revolute", "a", "b", inside))).joint("j")
    assert (j.damping, j.friction, j.armature, j.stiffness, j.rest) == (0.1, 0.2, 0.3, 4, -0.5)
    assert (j.lower[0], j.upper[0], j.max_effort[0], j.max_velocity[0]) == (-1, 1, 2, 3)
    j = read(robot("a", "b", joints=joint("j", "revolute", "a", "b", LIMIT + '<armature value="0.7"/>'))).joint("j")
    assert j.armature == 0.7


@pytest.mark.parametrize("given, expected", [('upper="2"', (0.0, 2.0)), ('lower="-2"', (-2.0, 0.0))])
def test_one_limit_alone_leaves_the_other_at_zero(read, given: str, expected: tuple[float, float]) -> None:
    model = read(robot("a", "b", joints=joint("j", "revolute", "a", "b", f'<limit {given} effort="1" velocity="1"/>')))
    assert (model.lower[0], model.upper[0]) == expected


@pytest.mark.parametrize("kind, nq, nv", [("floating", 7, 6), ("planar", 3, 3), ("spherical", 4, 3), ("ball", 4, 3)])
def test_joints_with_several_coordinates(read, kind: str, nq: int, nv: int) -> None:
    model = read(robot("a", "b", joints=joint("j", kind, "a", "b", '<axis xyz="0 0 2"/>')))
    assert (model.nq, model.nv) == (nq, nv)
    assert np.all(model.upper == np.inf) and model.upper.shape == (nv,)


def test_shapes_and_colours(read) -> None:
    def visual(form: str, material: str = "") -> str:
        return f'<visual><origin xyz="0 0 1"/><geometry>{form}</geometry>{material}</visual>'

    shapes = (
        visual('<sphere radius="1"/>', '<material name="red"/>')
        + visual('<box size="1 2 3"/>', '<material name="own"><color rgba="0 0 1 0.5"/></material>')
        + visual('<cylinder radius="1" length="2"/>', '<material name="own"/>')
        + visual('<capsule radius="0.5" length="2"/>')
        + '<collision name="foot" friction="0.7"><geometry><sphere radius="0.1"/></geometry></collision>'
        + "<collision><geometry><plane/></geometry></collision>"
        + '<contact><lateral_friction value="0.9"/></contact>'
    )
    red = '<material name="red"><color rgba="1 0 0 1"/></material>'
    link = read(f'<robot name="r">{red}<link name="a">{shapes}</link></robot>').links[0]
    assert [s.kind for s in link.visuals] == ["sphere", "box", "cylinder", "capsule"]
    assert [s.color for s in link.visuals] == [(1, 0, 0, 1), (0, 0, 1, 0.5), (0, 0, 1, 0.5), None]
    np.testing.assert_array_equal(link.visuals[1].size, [1, 2, 3])
    np.testing.assert_array_equal(link.visuals[3].size, [0.5, 2])
    np.testing.assert_array_equal(link.visuals[0].pose.translation, [0, 0, 1])
    assert [(s.kind, s.name, s.friction) for s in link.collisions] == [("sphere", "foot", 0.7), ("plane", "", 0.9)]


def mesh_link(uri: str) -> str:
    collision = f'<collision><geometry><mesh filename="{uri}"/></geometry></collision>'
    return f'<robot name="r"><link name="a">{collision}</link></robot>'


@pytest.mark.parametrize(
    "uri, where",
    [
        ("meshes/a.stl", "pkg/urdf/meshes/a.stl"),
        ("../meshes/a.stl", "pkg/meshes/a.stl"),
        ("package://pkg/meshes/a.stl", "pkg/meshes/a.stl"),
        ("package://other/a.stl", "other/a.stl"),
        ("package://far/a.stl", "elsewhere/far/a.stl"),
        ("file://{root}/x/a.stl", "x/a.stl"),
        ("{root}/x/a.stl", "x/a.stl"),
    ],
)
def test_meshes_are_found(tmp_path: Path, uri: str, where: str) -> None:
    mesh, path = tmp_path / where, tmp_path / "pkg/urdf/robot.urdf"
    for file in (mesh, path):
        file.parent.mkdir(parents=True, exist_ok=True)
    mesh.write_text("solid")
    path.write_text(mesh_link(uri.format(root=tmp_path)))
    shape = read_urdf(path, package_dirs=[tmp_path / "elsewhere"]).links[0].collisions[0]
    assert shape.mesh_file() == mesh.resolve()


def test_a_missing_mesh_is_an_error_only_when_it_is_used(read) -> None:
    with pytest.warns(ModelWarning, match=r"package://gone/a.stl \(link 'a'\)"):
        model = read(mesh_link("package://gone/a.stl"))
    shape = model.links[0].collisions[0]
    assert shape.mesh is None
    with pytest.raises(ModelError, match=r"package://gone/a\.stl.*package_dirs"):
        shape.mesh_file()


@pytest.mark.parametrize(
    "what, text",
    [
        ("revolute joints without <limit>.*: j", robot("a", "b", joints=joint("j", "revolute", "a", "b", ""))),
        (
            "neither lower nor upper.*: j",
            robot("a", "b", joints=joint("j", "revolute", "a", "b", '<limit effort="1" velocity="1"/>')),
        ),
        (
            "lower limit is above the upper.*: j",
            robot("a", "b", joints=joint("j", "revolute", "a", "b", '<limit lower="1" upper="0"/>')),
        ),
        (
            "moving links without <inertial>.*: tip",
            robot("a", joints=joint("j", "revolute", "a", "tip"), extra='<link name="tip"/>'),
        ),
        (
            "move no mass.*: j",
            robot("a", joints=joint("j", "revolute", "a", "tip"), extra='<link name="tip"/>'),
        ),
        (
            "inertias that no body can have.*: a",
            '<robot name="r"><link name="a"><inertial><mass value="1"/>'
            '<inertia ixx="1" iyy="1" izz="3"/></inertial></link></robot>',
        ),
        (
            "shapes of an unknown kind.*<cone> .link 'a'",
            '<robot name="r"><link name="a"><visual><geometry><cone/></geometry></visual></link></robot>',
        ),
    ],
)
def test_assumptions_are_warned_of_once(read, what: str, text: str) -> None:
    with pytest.warns(ModelWarning) as caught:
        read(text)
    assert sum(bool(re.search(what, str(w.message))) for w in caught) == 1


def test_gravity_extension_and_ignored_tags(read) -> None:
    extra = '<gravity xyz="0 -1 0"/><transmission name="t"/><gazebo reference="a"/><sensor name="s"/>'
    np.testing.assert_array_equal(read(robot("a", extra=extra)).gravity, [0, -1, 0])


def test_floating_base_takes_over_a_world_link(read) -> None:
    text = robot("a", extra='<link name="world"/>', joints=joint("hold", "fixed", "world", "a", ""))
    model = read(text, floating_base=True)
    assert [(j.name, j.kind) for j in model.joints] == [("hold", "floating")]


@pytest.mark.parametrize(
    "links, moving, names",
    [
        (("a", "b"), joint("floating_base", "fixed", "a", "b", ""), ("world", "floating_base_2")),
        (("a", "world"), joint("j", "revolute", "a", "world"), ("world_2", "floating_base")),
        (("world", "b"), joint("floating_base", "revolute", "world", "b"), ("world_2", "floating_base_2")),
        (
            ("world", "b", "world_2"),
            joint("j", "fixed", "world", "b", "") + joint("k", "revolute", "world", "world_2"),
            ("world_3", "floating_base"),
        ),
    ],
)
def test_floating_base_finds_names_that_are_free(read, links, moving, names) -> None:
    fixed, model = read(robot(*links, joints=moving)), read(robot(*links, joints=moving), floating_base=True)
    assert model.floating_base and (model.links[0].name, model.joints[0].name) == names
    assert model.links[1:] and [link.name for link in model.links[1:]] == [link.name for link in fixed.links]
    assert [j.name for j in model.joints[1:]] == [j.name for j in fixed.joints]
    assert (model.nv, model.total_mass) == (fixed.nv + 6, fixed.total_mass)


def test_a_massless_floating_base_is_warned_of(read) -> None:
    moving = joint("turn", "revolute", "base", "arm")
    light = robot("arm", extra='<link name="base"/>', joints=moving)
    with pytest.warns(ModelWarning, match="floating base 'base' has no mass"):
        model = read(light, floating_base=True)
    q, v = torch.tensor([0.0, 0, 0, 0, 0, 0, 1, 0], dtype=torch.float64), torch.zeros(7, dtype=torch.float64)
    M = cs.Robot(model).mass_matrix(q)
    assert torch.linalg.matrix_rank(M) == 6 and not cs.Robot(model).forward_dynamics(q, v, v).isfinite().all()


@pytest.mark.parametrize("options", [{}, {"floating_base": True}])
def test_no_warning_where_the_base_is_fixed_or_has_mass(read, options) -> None:
    """A base without mass that stands, and one with a body fixed to it, are sound."""
    body = joint("turn", "revolute", "base", "arm") + joint("hold", "fixed", "base", "body", "") * bool(options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(robot("arm", *["body"] * bool(options), extra='<link name="base"/>', joints=body), **options)


def shaped(form: str, origin: str = "") -> str:
    return f'<robot name="r"><link name="a"><collision>{origin}<geometry>{form}</geometry></collision></link></robot>'


def test_bars_may_be_given_by_their_ends(read) -> None:
    turned = '<origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/>'
    shape = read(shaped('<capsule radius="0.1" from="1 2 3" to="1 5 7"/>', turned)).links[0].collisions[0]
    np.testing.assert_allclose(shape.size, [0.1, 5.0])
    half = 2.5 * shape.pose.rotation[:, 2]
    np.testing.assert_allclose(shape.pose.translation - half, [-1, 1, 3], atol=1e-15)
    np.testing.assert_allclose(shape.pose.translation + half, [-4, 1, 7], atol=1e-15)


@pytest.mark.parametrize(
    "form, message",
    [
        ('<capsule radius="0.1" from="1 2 3" to="1 2 3"/>', "that differ"),
        ('<capsule radius="0.1" from="1 2 3"/>', "that differ"),
        ('<capsule radius="-0.1" from="1 2 3" to="0 0 0"/>', "not negative"),
        ('<capsule radius="0.1" length="1" from="1 2 3" to="0 0 0"/>', 'without "length"'),
        ('<sphere radius="0.1" from="1 2 3" to="0 0 0"/>', "only a cylinder or capsule"),
    ],
)
def test_ends_that_make_no_bar_are_refused(read, form: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(shaped(form))
