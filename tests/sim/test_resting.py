"""Meshes, height fields and convex parts in worlds: bodies at rest without jitter, balls that roll, beside MuJoCo."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.collision.mesh.test_fields import write_trough
from tests.sim.mujoco_states import Twin

import costate as cs

trimesh = pytest.importorskip("trimesh")
mujoco = pytest.importorskip("mujoco")
pytest.importorskip("coacd")

RADIUS = 0.04


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("shapes")
    write_trough(path / "trough.obj")
    trimesh.creation.cylinder(0.1, 0.08, sections=6).export(path / "prism.obj")
    return path


@pytest.fixture(scope="module")
def world(folder: Path) -> cs.World:
    """Three that come to rest: a box on a box, a hexagonal prism on another, turned, and a ball in a trough of convex parts."""
    s = cs.shapes
    prism = folder / "prism.obj"
    parts = s.decomposition(folder / "trough.obj", threshold=0.05)
    bodies = [
        cs.Body("box", [s.box((0.2, 0.2, 0.1))], mass=1.0),
        cs.Body("prism", [s.mesh(prism)], mass=1.0),
        cs.Body("ball", [s.sphere(RADIUS)], mass=0.2),
    ]
    walls = [cs.Static(f"wall{k}", part) for k, part in enumerate(parts)]
    scenery = [cs.Static("table", s.box((0.3, 0.3, 0.1))), cs.Static("stand", s.mesh(prism)), *walls]
    collide = [("box", "table"), ("prism", "stand"), *(("ball", w.name) for w in walls)]
    return cs.World(bodies=bodies, scenery=scenery, collide=collide, dt=0.005, contact=cs.Hard())


def test_bodies_come_to_rest_and_stay(world: cs.World) -> None:
    """Dropped from 1 cm; after 2 s box and prism do not move by a micrometre, for 8 s more. The ball, which may roll, is on the
    trough's floor, which the hull of the whole would cover."""
    state = world.initial_state(batch=1)
    starts = {name: world.coordinates(name)[0].start for name in ("box", "prism", "ball")}
    turn = torch.tensor([0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    for name, height in (("box", 0.11), ("prism", 0.09), ("ball", 0.02 + RADIUS + 0.01)):
        k = starts[name]
        state[0, k : k + 3] = torch.tensor([0.013, -0.02, height])
        state[0, k + 3 : k + 7] = turn
    states = world.rollout(state, torch.zeros(2000, 1, world.nu, dtype=state.dtype))[:, 0]
    for name, height in (("box", 0.1), ("prism", 0.08), ("ball", 0.02 + RADIUS)):
        path = states[:, starts[name] : starts[name] + 7]
        assert abs(float(path[-1, 2]) - height) < 5e-4, name
        if name != "ball":
            assert float((path[400:] - path[400]).abs().max()) < 1e-6, name


def test_the_size_of_a_mesh_is_no_input(folder: Path) -> None:
    prism = cs.Static("stand", cs.shapes.mesh(folder / "prism.obj"))
    with pytest.raises(ValueError, match=r"size:stand.*is a mesh.*position and orientation"):
        cs.World(
            scenery=[prism], bodies=[cs.Body("ball", [cs.shapes.sphere(RADIUS)], mass=0.2)], parameters=["size:stand"]
        )


SLOPE = 0.1
HFIELD = """
<mujoco>
  <option timestep="0.002"/>
  <asset>
    <hfield name="hill" nrow="5" ncol="5" size="2 2 {height} 0.1" elevation="{elevation}"/>
    <mesh name="prism" file="prism.obj"/>
  </asset>
  <worldbody>
    <geom name="hill" type="hfield" hfield="hill"/>
    <body name="ball" pos="0 0 0.5"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
    <body name="prism" pos="1 1 0.5"><freejoint/><geom type="mesh" mesh="prism" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def test_mjcf_meshes_and_height_fields_beside_mujoco(folder: Path) -> None:
    """A ball rolls down a slope as in MuJoCo and as a formula says, a prism of a mesh file stays where friction holds it."""
    x = np.linspace(0, 1, 5)
    elevation = " ".join(f"{v:.6f}" for _ in range(5) for v in x)
    path = folder / "hill.xml"
    path.write_text(HFIELD.format(height=4 * SLOPE, elevation=elevation))
    twin = Twin.of(path, "elliptic", self_collision=False)
    tilt = np.arctan(SLOPE)
    normal = np.array([-np.sin(tilt), 0, np.cos(tilt)])
    turned = [np.cos(tilt / 2), 0, -np.sin(tilt / 2), 0]
    for (i, _), (x0, y0), lift in zip(twin.free_joints(), ((0.5, 0.0), (0.3, 1.0)), (0.1, 0.04), strict=True):
        twin.data.qpos[i : i + 3] = [x0, y0, 2 * SLOPE + SLOPE * x0] + lift * normal
        twin.data.qpos[i + 3 : i + 7] = turned
    state = torch.tensor(twin.state())
    steps = 400
    ours = twin.world.rollout(state[None], torch.zeros(steps, 1, twin.world.nu, dtype=torch.float64))[-1, 0].numpy()
    for _ in range(steps):
        mujoco.mj_step(twin.model, twin.data)
    theirs = twin.state()
    time = steps * 0.002
    rolled = 5 / 7 * 9.81 * np.sin(tilt) * time**2 / 2
    for found in (ours, theirs):
        assert abs(np.linalg.norm(found[:2] - [0.5 - 0.1 * np.sin(tilt), 0]) / np.cos(tilt) - rolled) < 0.02 * rolled
    assert np.abs(ours[:3] - theirs[:3]).max() < 0.01 * rolled
    sunk = normal @ (ours[7:10] - state[7:10].numpy())
    assert -3e-4 < sunk < 0
    assert (
        np.abs(ours[7:10] - theirs[7:10]).max() < 1e-3
    )  # MuJoCo's prism sinks deeper: it has one place per cell of the field
