"""Reading what was written gives the same robot."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.model.strategies import random_models

from costate.model import Joint, Link, Model, Shape, Transform, builtin_names, load_model, read_urdf, write_urdf
from costate.model.base import with_floating_base

# Rotations pass through roll, pitch and yaw: a few roundings. All other numbers are written exactly.
ROTATION = 4e-16 * 4


def assert_same(a: Model, b: Model) -> None:
    assert a.name == b.name
    assert [x.name for x in a.links] == [x.name for x in b.links]
    assert [x.name for x in a.joints] == [x.name for x in b.joints]
    np.testing.assert_array_equal(a.gravity, b.gravity)
    for x, y in zip(a.links, b.links, strict=True):
        assert x.inertia.mass == y.inertia.mass
        np.testing.assert_array_equal(x.inertia.com, y.inertia.com)
        np.testing.assert_array_equal(x.inertia.matrix, y.inertia.matrix)
        for ours, theirs in ((x.visuals, y.visuals), (x.collisions, y.collisions)):
            assert len(ours) == len(theirs)
            for s, t in zip(ours, theirs, strict=True):
                assert_same_shape(s, t)
    for x, y in zip(a.joints, b.joints, strict=True):
        assert_same_joint(x, y)


def assert_same_shape(a: Shape, b: Shape) -> None:
    assert (a.kind, a.name, a.color, a.friction, a.mesh) == (b.kind, b.name, b.color, b.friction, b.mesh)
    np.testing.assert_array_equal(a.size, b.size)
    assert_same_pose(a.pose, b.pose)


def assert_same_joint(a: Joint, b: Joint) -> None:
    assert (a.kind, a.parent, a.child, a.mimic) == (b.kind, b.parent, b.child, b.mimic)
    assert_same_pose(a.origin, b.origin)
    np.testing.assert_allclose(a.axis, b.axis, rtol=0, atol=2e-16)
    for name in (
        "lower",
        "upper",
        "max_velocity",
        "max_effort",
        "damping",
        "friction",
        "armature",
        "stiffness",
        "rest",
    ):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=f"{name} of {a.name}")


def assert_same_pose(a: Transform, b: Transform) -> None:
    np.testing.assert_array_equal(a.translation, b.translation)
    np.testing.assert_allclose(a.rotation, b.rotation, rtol=0, atol=ROTATION)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=random_models(mimic=True, oblique_planar=True, shapes=True))
def test_random_trees_survive(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "random.urdf"
    write_urdf(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left open in a file of ours
        again = read_urdf(path)
    started = with_floating_base(model, None)  # a pose of a floating base is where it starts
    assert_order_free_same(started, again)
    if model.floating_base:
        assert started.home is not None and again.home is not None
        np.testing.assert_allclose(again.home[:7], started.home[:7], rtol=0, atol=ROTATION)


def assert_order_free_same(a: Model, b: Model) -> None:
    """As assert_same, for models whose siblings may be ordered otherwise: reading orders depth first."""
    index = {link.name: i for i, link in enumerate(b.links)}
    assert b.links[0].name == a.links[0].name and len(b.links) == len(a.links)
    order = [index[joint.child] - 1 for joint in a.joints]
    for x, i in zip(a.joints, order, strict=True):
        assert x.name == b.joints[i].name
    shuffled = Model(
        b.name, (b.links[0], *(b.links[i + 1] for i in order)), tuple(b.joints[i] for i in order), b.gravity
    )
    assert_same(a, shuffled)


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_robots_survive(name: str, tmp_path: Path) -> None:
    model = load_model(name)
    write_urdf(model, tmp_path / "robot.urdf")
    assert_same(model, read_urdf(tmp_path / "robot.urdf"))


def test_meshes_are_found_again(tmp_path: Path) -> None:
    below, beside = tmp_path / "robot" / "meshes" / "a.stl", tmp_path / "shared" / "b.stl"
    for mesh in (below, beside):
        mesh.parent.mkdir(parents=True)
        mesh.write_text("solid")
    shapes = [Shape("mesh", np.array([1, 2, 3]), mesh=str(m)) for m in (below, beside)]
    missing = Shape("mesh", np.ones(3), uri="package://nowhere/c.stl")
    model = Model("m", (Link("a", visuals=(*shapes, missing)),), ())
    path = tmp_path / "robot" / "robot.urdf"
    write_urdf(model, path)
    assert 'filename="meshes/a.stl"' in path.read_text()
    with pytest.warns(UserWarning, match="nowhere/c.stl"):
        again = read_urdf(path)
    assert [s.mesh for s in again.links[0].visuals] == [str(below), str(beside), None]
    assert again.links[0].visuals[2].uri == "package://nowhere/c.stl"
