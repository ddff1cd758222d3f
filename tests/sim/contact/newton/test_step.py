"""The Newton contact model against MuJoCo, which reads the same file: states after a step and contact forces."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import costate as cs
from costate.model.surface import Softness, Surface, mix

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
from tests.sim.mujoco_states import Twin, random_rotation, same_sign  # noqa: E402

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
AGREES = 1e-5
"""Of changes of velocities and of forces, relative to the largest. States of the bodies with elliptic cones: 2e-14."""

BODIES = """
<mujoco>
  <option timestep="0.004" impratio="3"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" condim="1" friction="0.7 0.03 0.01" margin="0.002" solref="0.03 0.8"/>
    <body pos="0 0 1"><freejoint/><geom name="ball" size="0.1" mass="2" condim="6" friction="0.4 0.05 0.02"
      solimp="0.8 0.9 0.01 0.3 3" priority="1"/></body>
    <body pos="1 0 1"><freejoint/><geom name="box" type="box" size="0.1 0.2 0.15" mass="3" condim="3" solref="-4000 -80"/></body>
    <body pos="2 0 1"><freejoint/><geom name="rod" type="capsule" size="0.1 0.2" mass="1" condim="4" solmix="3" gap="0.01"/></body>
    <body pos="3 0 1"><freejoint/><geom name="smooth" type="capsule" size="0.05 0.1" mass="1" condim="1"/></body>
    <body pos="1 0 3">
      <joint name="hinge" type="hinge" axis="0 1 0" range="-30 20" frictionloss="0.3" damping="0.2" solreflimit="0.01 1"/>
      <geom name="bob" pos="0 0 -0.3" size="0.05" mass="1" contype="0" conaffinity="0"/></body>
  </worldbody>
</mujoco>
"""


def lying(twin: Twin, random: np.random.Generator) -> None:
    """Bodies turned at random, just above or in the floor."""
    m, d = twin.model, twin.data
    mujoco.mj_resetData(m, d)
    for i, _ in twin.free_joints():
        d.qpos[i + 3 : i + 7] = random_rotation(random)
    mujoco.mj_forward(m, d)
    for geom, (i, _) in zip(("ball", "box", "rod", "smooth"), twin.free_joints(), strict=True):
        above = mujoco.mj_geomDistance(m, d, m.geom("floor").id, m.geom(geom).id, 10, None)
        d.qpos[i + 2] -= above + random.uniform(-0.004, 0.01)
    d.qpos[-1] = random.uniform(-0.7, 0.5)
    d.qvel[:] = random.normal(size=m.nv) * random.choice([0.02, 1.0])


def falling(twin: Twin, random: np.random.Generator) -> None:
    """A robot in the middle of a fall under random torques."""
    m, d = twin.model, twin.data
    mujoco.mj_resetData(m, d)
    d.qpos[2] = random.uniform(0.3, 0.8) * m.qpos0[2]
    d.qpos[3:7] = random_rotation(random)
    d.qvel[:] = random.normal(size=m.nv)
    exact, m.opt.tolerance = m.opt.tolerance, 1e-8
    for _ in range(int(random.integers(0.3 / m.opt.timestep, 2.0 / m.opt.timestep))):
        d.ctrl[:] = random.uniform(-0.4, 0.4, m.nu)
        mujoco.mj_step(m, d)
    m.opt.tolerance = exact


def samples(twin: Twin, place: Callable[[Twin, np.random.Generator], None], count: int):
    random = np.random.default_rng(0)
    found = []
    for _ in range(count):
        place(twin, random)
        found.append(twin.step())
    x, torques, y = (np.array([f[k] for f in found]) for k in range(3))
    return x, torques, y, [f[3] for f in found]


def check_step(twin: Twin, x: np.ndarray, torques: np.ndarray, y: np.ndarray) -> None:
    ours = same_sign(twin, twin.world.step(torch.tensor(x), twin.controls(torques)).numpy(), y)
    scale = np.abs(y - x).max(1, keepdims=True)
    assert (np.abs(ours - y) / scale).max() < AGREES


def check_forces(twin: Twin, x: np.ndarray, torques: np.ndarray, contacts: list[dict]) -> int:
    """Forces and torques per pair of shapes; returns how many pairs pushed."""
    found = twin.world.contacts(torch.tensor(x), twin.controls(torques))
    force = found.forces[..., None] * found.normals + found.friction
    ours: dict[tuple[int, int], np.ndarray] = {}
    colliders = {c.name: c for c in twin.world.setup.scene.colliders}
    for k, names in enumerate(found.shapes):
        geoms = [twin.model.geom(getattr(colliders[n].shape, "name", "")).id for n in names]
        wrench = torch.cat([force[:, k], found.torques[:, k]], -1).numpy()
        sign = -1 if geoms[0] < geoms[1] else 1  # ours acts on the first shape, MuJoCo's on the second
        pair = min(geoms), max(geoms)
        ours[pair] = ours.get(pair, np.zeros(6)) + sign * wrench
    pushing = 0
    for i, theirs in enumerate(contacts):
        scale = max([np.abs(w).max() for w in theirs.values()], default=0.0) or 1.0
        for pair, wrench in ours.items():
            other = theirs.get(pair, np.zeros(6))
            if pair not in theirs and pair[::-1] in theirs:
                other = -theirs[pair[::-1]]
            assert np.abs(wrench[i] - other).max() < AGREES * scale
            pushing += bool(np.abs(other).max() > 0)
    return pushing


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mjcf") / "bodies.xml"
    path.write_text(BODIES)
    return path


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_bodies(bodies: Path, cone: str) -> None:
    """Sphere, box and capsules on a plane, all dimensions of friction; a joint limit and joint friction; every MJCF parameter."""
    twin = Twin.of(bodies, cone, self_collision=False)
    x, torques, y, contacts = samples(twin, lying, 100)
    check_step(twin, x, torques, y)
    assert check_forces(twin, x, torques, contacts) > 250
    assert twin.world.contacts(torch.tensor(x)).residual.max() < 1e-6


def test_ant() -> None:
    twin = Twin.of(ASSETS / "ant.xml", "pyramidal")
    x, torques, y, contacts = samples(twin, falling, 100)
    check_step(twin, x, torques, y)
    assert check_forces(twin, x, torques, contacts) > 25


def test_humanoid() -> None:
    """126 pairs of shapes, most of them its own limbs."""
    twin = Twin.of(ASSETS / "humanoid.xml", "elliptic")
    x, torques, y, contacts = samples(twin, falling, 60)
    check_step(twin, x, torques, y)
    assert sum(0 not in pair for c in contacts for pair in c) >= 5  # limbs that touch each other


def test_pairs_are_those_of_mujoco() -> None:
    """contype and conaffinity, and no contact between a body and its parent."""
    twin = Twin.of(ASSETS / "humanoid.xml", "pyramidal")
    m, scene = twin.model, twin.world.setup.scene
    ours = {frozenset(m.geom(scene.colliders[k].shape.name).id for k in pair) for pair in scene.pairs}  # type: ignore[union-attr]
    parent = {b: m.body_weldid[m.body_parentid[m.body_weldid[b]]] for b in range(m.nbody)}
    theirs = set()
    for g in range(m.ngeom):
        for h in range(g):
            a, b = (m.body_weldid[m.geom_bodyid[k]] for k in (g, h))
            related = a == b or (a and b and (parent[a] == b or parent[b] == a))
            if not related:
                theirs.add(frozenset((g, h)))
    assert ours == theirs and len(ours) == 126


def test_mixing() -> None:
    a = Surface((0.5, 0.1, 0.2), 3, Softness((0.02, 1.0)), 0.01, solmix=3.0)
    b = Surface((0.8, 0.0, 0.3), 4, Softness((0.04, 0.5)), 0.02)
    both = mix(a, b)
    assert both.friction == (0.8, 0.1, 0.3) and both.condim == 4
    assert both.softness.solref == pytest.approx((0.025, 0.875)) and both.margin == pytest.approx(0.03)
    assert mix(a, Surface((0.1, 0.0, 0.0), 1, priority=1)).friction == (0.1, 0.0, 0.0)


def test_wrong_options() -> None:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    with pytest.raises(ValueError, match="integrator"):
        cs.World(bodies=[ball], contact=cs.Newton(), integrator="explicit")
    with pytest.raises(ValueError, match="cone"):
        cs.World(bodies=[ball], contact=cs.Newton(cone="round"))
    with pytest.raises(ValueError, match="condim"):
        cs.World(bodies=[ball], contact=cs.Newton(condim=2))
