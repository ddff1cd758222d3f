"""The solver of hard contact against enumeration, against the laws themselves, and where Newton's method does not converge."""

from __future__ import annotations

import casadi as ca
import numpy as np
import torch
from tests.gradients import Tolerances, check_gradients
from tests.sim.contact.pgs.test_step import lcp, rods, start

import costate as cs
from costate.kernel import ProgramBuilder
from costate.sim.contact.hard.law import Block
from costate.sim.contact.hard.problem import Problem
from costate.sim.contact.hard.solve import EXACT, Solver

D = torch.float64
TWICE = Tolerances(second_order=1e-4)
"""Gradients are known to 1e-8: closed rows are held by springs 1e8 times as stiff as their bodies are heavy."""
NAMES = ("m", "p", "j", "t", "mu", "v", "start")


def kernel(solver: Solver):
    """The solver as a kernel of its own: (numbers of a problem, what to start from) -> v, l, residual."""
    b = ProgramBuilder("solver")
    given = [b.input(name, n) for name, n in zip(NAMES, solver.sizes[1:], strict=True)]
    for name, value in zip(("v", "l", "residual"), solver.add(b, given[:-2], *given[-2:]), strict=True):
        b.output(name, value)
    return b.kernel()


def corners(count: int) -> tuple[Problem, dict[str, torch.Tensor]]:
    """A body on four corners: more points than it has ways to move, thrown in random directions."""
    random = np.random.default_rng(0)
    points = np.array([[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.2, 0.2)])
    turn = [np.array([[0, r[2], -r[1]], [-r[2], 0, r[0]], [r[1], -r[0], 0]]) for r in points]
    J = np.concatenate([np.hstack([np.eye(3), t])[[2, 0, 1]] for t in turn])
    problem = Problem(
        ca.Sparsity.diag(6),
        ca.Sparsity.dense(12, 6),
        tuple(Block("contact", (3 * k, 3 * k + 1, 3 * k + 2), 1.0) for k in range(4)),
    )
    m = np.array([1.0, 1.0, 1.0, 0.02, 0.02, 0.03])
    v = random.normal(size=(count, 6))
    target = np.zeros((count, 12))
    target[:, ::3] = random.normal(scale=0.3, size=(count, 4))
    numbers = [
        np.tile(m, (count, 1)), m * v - [0, 0, 0.1, 0, 0, 0], np.tile(J.T.ravel(), (count, 1)), target,
        random.uniform(0.1, 1.0, (count, 4)), v, np.zeros((count, 12)),
    ]  # fmt: skip
    return problem, {name: torch.tensor(x) for name, x in zip(NAMES, numbers, strict=True)}


def misses(numbers: dict[str, torch.Tensor], v: np.ndarray, l: np.ndarray) -> dict[str, float]:
    """By how much Newton's law of motion, Signorini's and Coulomb's are broken, each in words of its own."""
    m, p, t, mu = (numbers[k].numpy() for k in ("m", "p", "t", "mu"))
    J = numbers["j"].numpy().reshape(-1, 6, 12).transpose(0, 2, 1)
    u = np.einsum("bij,bj->bi", J, v)
    n, s, normal = (u - t)[:, ::3], np.stack([u[:, 1::3], u[:, 2::3]], -1), l[:, ::3]
    f = np.stack([l[:, 1::3], l[:, 2::3]], -1)
    size, speed = np.linalg.norm(f, axis=-1), np.linalg.norm(s, axis=-1)
    slides = speed > 1e-6
    against = np.where(slides, np.abs((f * s).sum(-1) + mu * normal * speed), 0)
    return {
        "momentum": np.abs(m * v - p - np.einsum("bij,bi->bj", J, l)).max(),
        "overlap": max(-n.min(), 0),
        "pull": max(-normal.min(), 0),
        "push of what parts": np.abs(normal * n).max(),
        "cone": (size - mu * normal).max(),
        "friction against the sliding": against.max(),
    }


def test_frictionless_contacts_against_enumeration() -> None:
    """A ball pressed into a corner by another one: impulses of all sets of contacts that could act."""
    world = rods(cs.Hard(impacts=0))
    x = start(world)
    found = world.contacts(x)
    masses = np.repeat([1.0, 2.0], 3)
    for i in range(len(x)):
        J = np.zeros((len(found.pairs), 6))
        for k, pair in enumerate(found.pairs):
            for link, sign in zip(pair, (1, -1), strict=True):
                if link != "world":
                    J[k, 3 * int(link[4]) : 3 * int(link[4]) + 3] = sign * found.normals[i, k].numpy()
        free = np.concatenate([x[i, 14:17].numpy(), x[i, 20:23].numpy()]) + 0.01 * np.tile([0, 0, -9.81], 2)
        gap = found.gaps[i].numpy()
        impulse = lcp(J / masses @ J.T, J @ free - np.where(gap > 1e-5, -gap / 0.01, -np.maximum(gap, -1e-4) / 0.5))
        np.testing.assert_allclose(found.forces[i].numpy() * 0.01, impulse, rtol=0, atol=1e-7)
    assert found.residual.max() < 1e-8


def test_redundant_corners_obey_every_law() -> None:
    """By Newton's method, which does not solve all of them; with the rounds of its rescue all; by the rounds almost alone all but
    one."""
    problem, numbers = corners(200)
    alone, both, rounds = (
        kernel(solver)(**numbers)
        for solver in (Solver(problem), Solver(problem, rounds=100), Solver(problem, limit=1, rounds=100))
    )
    assert 0 < (~(alone.residual <= 1e-8)).sum() < 20
    assert both.residual.max() < 1e-8
    assert (rounds.residual > 1e-8).sum() <= 1 and rounds.residual.max() < 1e-3
    for law, miss in misses(numbers, both.v.numpy(), both.l.numpy()).items():
        assert miss < 1e-6, law


def test_gradients_of_a_solution() -> None:
    """By everything that a problem has, velocities and impulses, first and second order, tangents and adjoints."""
    problem, numbers = corners(12)
    problem = Problem(problem.M, ca.Sparsity.dense(3, 6), problem.blocks[:1])
    solve = kernel(Solver(problem, wanted=EXACT))
    m, p, j, t, mu = (numbers[k].clone() for k in NAMES[:5])
    j, t, mu = j.reshape(-1, 6, 12)[:, :, :3].reshape(-1, 18), t[:, :3], mu[:, :1]
    p[:, 2] -= 3  # pressed
    start = {"v": torch.zeros(12, 6, dtype=D), "start": torch.ones(12, 3, dtype=D)}

    def found(p: torch.Tensor, j: torch.Tensor, t: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
        out = solve(m=m.to(p.dtype), p=p, j=j, t=t, mu=mu, **{name: x.to(p.dtype) for name, x in start.items()})
        return torch.cat([out.v, out.l], -1)

    out = found(p, j, t, mu)
    slides = out[:, 7:9].norm(dim=-1) > mu[:, 0] * out[:, 6] - 1e-6
    assert 2 < slides.sum() < 12 and (out[:, 6] > 0).all()
    check_gradients(found, (p, j, t, mu), names=("p", "j", "t", "mu"), second_order=True, tolerances=TWICE)


def test_impulses_of_a_hard_blow_cause_the_velocities() -> None:
    """A foot of a gram under a heavy robot: rounding of stiff rows leaves momentum over, which their laws do not notice."""
    problem = Problem(
        ca.Sparsity.diag(3), ca.Sparsity.dense(3, 3), (Block("contact", (0, 1, 2), 1 / 3.0),), (1000.0, 1.0, 1.0)
    )
    random = torch.Generator().manual_seed(0)
    m = torch.tensor([0.001, 1.0, 1.0], dtype=D)
    v = torch.randn(64, 3, dtype=D, generator=random)
    J = torch.eye(3, dtype=D) + 0.3 * torch.randn(64, 3, 3, dtype=D, generator=random)
    numbers = {"p": m * v, "j": J.flatten(1), "t": torch.zeros(64, 3, dtype=D), "mu": torch.full((64, 1), 0.8, dtype=D)}
    start = {"v": v, "start": torch.ones(64, 3, dtype=D)}
    out = kernel(Solver(problem, rounds=100))(m=m, **numbers, **start)
    J = J.flatten(1).reshape(64, 3, 3).mT  # its numbers stand column by column
    left = m * out.v - m * v - torch.einsum("bij,bi->bj", J, out.l)
    assert (out.l[:, 0] > 1e-4).sum() > 16 and (left / m).abs().max() < 2e-9 and out.residual.max() < 2e-9
