"""Newton contact pair by pair: the same accelerations as by rows of one system, hands beside MuJoCo, gradients by differences."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.sim.contact.newton.points import AS_IN_MUJOCO

SAME = 1e-9
"""Of states and forces by both storages, relative to the largest: their sums have another order."""
FLOOR = cs.Static("floor", cs.shapes.plane())


def tumbling(contact: cs.Newton) -> cs.World:
    """Two balls and a rod on a plane, near to each other."""
    s = cs.shapes
    solids = {"ball": s.sphere(0.08), "rod": s.capsule(0.05, 0.2), "marble": s.sphere(0.06)}
    bodies = [cs.Body(name, [solid], mass=1.0, inertia=0.003 * np.eye(3)) for name, solid in solids.items()]
    return cs.World(bodies=bodies, scenery=[FLOOR], contact=contact, dt=0.004)


def heap(world: cs.World, count: int, seed: int = 0) -> torch.Tensor:
    """Bodies turned at random in a small space, near the plane."""
    random = np.random.default_rng(seed)
    n = world.nq // 7
    place = np.array([[0.12 * (k % 3), 0.12 * (k // 3), 0.08] for k in range(n)])
    x = np.zeros((count, world.nq + world.nv))
    for row in x:
        turns = random.normal(size=(n, 4))
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        row[: world.nq] = np.hstack([place + 0.02 * random.normal(size=(n, 3)), turns]).ravel()
        row[world.nq :] = random.normal(size=world.nv)
    return torch.tensor(x)


@pytest.mark.parametrize(
    "contact", [cs.Newton(), cs.Newton(cone="elliptic", condim=4, margin=0.01)], ids=["pyramid", "cone"]
)
def test_same_as_rows(contact: cs.Newton) -> None:
    """States, forces and gradients do not depend on how contacts are stored."""
    worlds = [tumbling(replace(contact, mapped=mapped)) for mapped in (False, True)]
    x, u = heap(worlds[0], 24), torch.zeros(24, 0, dtype=torch.float64)
    seen = [w.contacts(x, u) for w in worlds]
    pushing = (seen[0].forces > 0).sum(1).double().mean()
    assert pushing > 2
    weights = torch.linspace(1, 2, x.shape[1], dtype=x.dtype)
    results = []
    for w, s in zip(worlds, seen, strict=True):
        start = x.clone().requires_grad_()
        after = w.step(start, u)
        (gradient,) = torch.autograd.grad((after * weights).sum(), start)
        touching = s.gaps < 0.01  # of pairs that are far apart, rows only know bounding spheres
        places = [torch.where(touching, s.gaps, 0), torch.where(touching[..., None], s.points, 0)]
        results.append((after.detach(), gradient, s.forces, s.friction, s.torques, *places))
    for a, b in zip(*results, strict=True):
        assert (a - b).abs().max() <= SAME * a.abs().max()
    assert seen[1].residual.max() < 1e-6


def test_hand_against_mujoco(tmp_path: Path) -> None:
    """The Shadow hand closes around a ball, with all pairs whose contact points are MuJoCo's: ten steps of both engines."""
    pytest.importorskip("mujoco")
    from benchmarks.mjcf.twin import Twin
    from benchmarks.sim.hands import hand
    from benchmarks.sim.mujoco_scene import Options, mjcf

    ball = cs.Body("cube", [cs.shapes.sphere(0.03)], mass=0.1)
    gravity = (0.0, 9.81, 0.0)
    world = cs.World(
        {"hand": cs.load_robot("shadow_hand")},
        [ball],
        contact=cs.Newton(),
        self_collision=True,
        gravity=gravity,
        dt=0.002,
    )
    root = ET.fromstring(mjcf(world, Options(cone="pyramidal", friction=1.0, implicit_damping=True)))
    kinds = {g.get("name"): g.get("type") for g in root.iter("geom")}
    (pairs,) = root.iter("contact")
    for pair in list(pairs):
        if frozenset(kinds[pair.get(k)] for k in ("geom1", "geom2")) not in AS_IN_MUJOCO:
            pairs.remove(pair)
    assert len(pairs) > 100
    path = tmp_path / "hand.xml"
    path.write_text(ET.tostring(root, encoding="unicode"))
    h = hand("shadow_hand", path, batch=8, steps=10)
    assert h.contacts > 2
    exact = Twin.of(path)
    contact = exact.world.setup.contact
    assert isinstance(contact, cs.Newton) and contact.mapped is None and len(exact.world.setup.scene.pairs) > 100
    starts = h.theirs[:, 1:]
    theirs = np.array([exact.theirs(x, u)[0] for x, u in zip(starts, h.controls, strict=True)]).swapaxes(0, 1)
    ours = exact.ours(starts, h.controls.swapaxes(0, 1))
    assert exact.errors(ours, theirs).max() < 1e-6


def grasp() -> tuple[cs.World, torch.Tensor]:
    """An Allegro hand whose fingers press a cube, solved pair by pair, and a state."""
    cube = cs.Body("cube", [cs.shapes.box((0.05, 0.05, 0.05))], mass=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world = cs.World(
            {"hand": cs.load_robot("allegro_hand")}, [cube], contact=cs.Newton(), self_collision=True, dt=0.002
        )
    x = world.initial_state()
    x[16:19] = torch.tensor([0.0345, 0.003, 0.03])  # on palm and fingers
    x[19:23] = torch.tensor([0.02, 0.03, 0.01, 1.0])
    x[19:23] /= x[19:23].norm()
    x[39:42] = torch.tensor([-0.05, 0.02, 0.01])
    return world, x


def test_gradients_of_a_grasp() -> None:
    """Of a state after ten steps in contact, by state and controls, against differences."""
    world, x = grasp()
    u = 0.01 * torch.ones(10, world.nu, dtype=x.dtype)
    assert (world.contacts(x, u[0]).forces > 0).sum() >= 2
    check_gradients(lambda x, u: world.rollout(x, u)[-1], (x, u), names=("state", "controls"), step=1e-6)


def test_float32_and_batches() -> None:
    """Float32 follows float64, and a sample's result does not depend on its neighbours."""
    world, x = grasp()
    many = x + 1e-3 * torch.randn(11, len(x), dtype=x.dtype, generator=torch.Generator().manual_seed(0))
    u = torch.zeros(11, world.nu, dtype=x.dtype)
    after = world.step(many, u)
    assert torch.equal(after[3], world.step(many[3], u[3]))
    single = world.step(many.float(), u.float()).double()
    assert (single - after).abs().max() < 1e-3 * (after - many).abs().max()


def test_what_cannot_be_mapped() -> None:
    """Worlds that are not plain are refused by name where pairs are asked for, and solved by rows otherwise."""
    s = cs.shapes
    composed = cs.Body("tube", [s.difference(s.box((0.1, 0.1, 0.1)), s.sphere(0.04))], mass=1.0, inertia=np.eye(3))
    for mapped in (True, None):
        world = cs.World(bodies=[composed], scenery=[FLOOR], contact=cs.Newton(mapped=mapped), dt=0.004)
        if mapped:
            with pytest.raises(ValueError, match=r"tube.*composition"):
                world.step(world.initial_state(), torch.zeros(0))
        else:
            world.step(world.initial_state(), torch.zeros(0, dtype=torch.float64))
