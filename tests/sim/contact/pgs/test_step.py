"""Projected Gauss-Seidel against the exact solution of the complementarity problem, its residual, and warm start."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch

import costate as cs


def lcp(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x >= 0, A x + b >= 0, x . (A x + b) = 0, by trying every set of rows that act."""
    for acting in product((False, True), repeat=len(b)):
        on = np.array(acting)
        x = np.zeros(len(b))
        if on.any():
            x[on] = np.linalg.lstsq(A[np.ix_(on, on)], -b[on], rcond=None)[0]
        if x.min() > -1e-12 and (A @ x + b).min() > -1e-9:
            return x
    raise AssertionError("no solution")


def rods(contact: cs.ContactModel, substeps: int = 1) -> cs.World:
    """A ball pressed into a corner of three smooth walls by another one."""
    balls = [cs.Body(f"ball{k}", [cs.shapes.sphere(0.1, friction=0.0)], 1.0 + k) for k in range(2)]
    turn = np.pi / 2 - 0.3
    walls = [
        cs.Static("floor", cs.shapes.plane(friction=0.0)),
        cs.Static("left", cs.shapes.plane((-0.1, 0, 0), (0, turn, 0), friction=0.0)),
        cs.Static("back", cs.shapes.plane((0, -0.1, 0), (-turn, 0, 0), friction=0.0)),
    ]
    return cs.World(bodies=balls, scenery=walls, contact=contact, dt=0.01, substeps=substeps, check=False)


def start(world: cs.World) -> torch.Tensor:
    """Touching everything, moving into it."""
    x = world.initial_state(32)
    random = torch.Generator().manual_seed(0)
    x[:, 0:3] = torch.tensor([0.02, 0.03, 0.0999])
    x[:, 7:10] = x[:, 0:3] + 0.115 * torch.tensor([1.0, 1.0, 1.0])
    x[:, 14:] = torch.randn(32, 12, dtype=torch.float64, generator=random)
    x[:, 20:23] -= 2.0  # the second ball strikes the first
    return x


def test_many_sweeps_are_exact() -> None:
    """Impulses and velocities of frictionless contacts that come as near as touching, against enumeration of all sets of contacts
    that act."""
    world = rods(cs.PGS(sweeps=2000, cfm=0.0, impacts=0))
    x = start(world)
    found = world.contacts(x)
    after = world.step(x)
    turned = world.setup.scene.model.v_index
    masses = np.repeat([1.0, 2.0], 3)
    acting = 0
    for i in range(len(x)):
        J = np.zeros((len(found.pairs), 6))
        for k, pair in enumerate(found.pairs):
            for link, sign in zip(pair, (1, -1), strict=True):
                if link != "world":
                    at = 3 * int(link[4])
                    J[k, at : at + 3] = sign * found.normals[i, k].numpy()
        free = np.concatenate([x[i, 14 + t : 17 + t].numpy() for t in turned]) + 0.01 * np.tile([0, 0, -9.81], 2)
        gap = found.gaps[i].numpy()
        target = np.where(gap > 0, -gap / 0.01, np.minimum(np.maximum(-gap - 1e-4, 0) * 0.2 / 0.01, 2.0))
        impulse = lcp(J / masses @ J.T, J @ free - target)
        velocity = free + J.T @ impulse / masses
        moved = (after[i, [0, 1, 2, 7, 8, 9]] - x[i, [0, 1, 2, 7, 8, 9]]).numpy() / 0.01
        np.testing.assert_allclose(moved, velocity, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.forces[i].numpy() * 0.01, impulse, rtol=0, atol=1e-9)
        acting += int((impulse > 0).sum())
    assert acting > 40 and found.residual.max() < 1e-10


def test_residual_says_how_far_it_is() -> None:
    """Fewer sweeps leave more; after enough nothing is left."""
    left = [rods(cs.PGS(sweeps=n)).contacts(start(rods(cs.PGS()))).residual.max() for n in (2, 10, 50)]
    assert left[0] > 5 * left[1] > 25 * left[2]


def test_warm_start() -> None:
    """A box at rest on its corners, with few sweeps per substep: starting from the last impulses it stays nearer to rest."""
    box = cs.Body("box", [cs.shapes.box((0.4, 0.2, 0.1))], 1.0)

    def speed(contact: cs.PGS, grad: bool = False) -> torch.Tensor:
        ground = cs.Static("ground", cs.shapes.plane())
        world = cs.World(bodies=[box], scenery=[ground], contact=contact, dt=0.02, substeps=10)
        x = world.initial_state()
        x[2] = 0.05
        x.requires_grad_(grad)
        after = world.step(x)[world.nq :].norm()
        if grad:
            (found,) = torch.autograd.grad(after, x)
            assert found.isfinite().all() and found.abs().max() > 0
        return after.detach()

    cold, warm = speed(cs.PGS(sweeps=3)), speed(cs.PGS(sweeps=3, warm_start=True), grad=True)
    assert warm < cold / 5
