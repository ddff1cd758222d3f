"""Walks, and the loops over long vectors that they come with, against plain loops and differences."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import assert_as_interpreted, uniform
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder

NODES, ROUNDS = 6, 3
LINKS = np.array([[i, (i + 1) % NODES] for i in range(NODES)] + [[0, 3], [4, 1]])
VISITS = len(LINKS)


def links_in_turn() -> Kernel:
    """Nodes at both ends of a link change each other and what the link remembers; energies are summed, and forces read by a map."""
    ends, memory, stiffness, share = (ca.SX.sym(n, m) for n, m in (("ends", 2), ("m", 1), ("k", 1), ("s", 2)))
    pull = ca.sin(ends[0] - ends[1]) * stiffness + 0.2 * memory
    after = [ends + ca.vertcat(-pull, pull) * share, 0.5 * memory + pull, pull**2, ca.vertcat(pull, memory * ends[0])]
    b = ProgramBuilder("links in turn")
    x, m, k, s, f = (b.input(n, w) for n, w in (("x", 6), ("m", 8), ("k", 8), ("s", 6), ("flags", 8)))
    each = np.arange(VISITS)[:, None]
    (x_end, m_end), (energy,), (rows,) = b.walk(
        ca.Function("visit", [ends, memory, stiffness, share], after),
        f,
        states=[(x, LINKS), (m, each)],
        reads=[(k, each[::-1]), (s, LINKS[:, ::-1])],
        sums=[(3, each % 3)],
        rounds=ROUNDS,
    )
    row = ca.SX.sym("row", 2)
    visits = np.arange(2 * VISITS).reshape(VISITS, 2)
    square = ca.Function("square", [row], [ca.sumsqr(row)])
    (_, (total,), _) = b.walk(square, f, [], [(rows, visits)], [(1, np.zeros((VISITS, 1), int))])
    for name, value in (("x_end", x_end), ("m_end", m_end), ("energy", energy), ("first", total)):
        b.output(name, value)
    return b.kernel()


def links_in_turn_torch(flags: Tensor, x0: Tensor, m0: Tensor, k: Tensor, s: Tensor) -> tuple[Tensor, ...]:
    x, m, energy, first = list(x0.unbind(-1)), list(m0.unbind(-1)), [torch.zeros(())] * 3, torch.zeros(())
    for t in range(ROUNDS):
        for i, (a, c) in enumerate(LINKS.tolist()):
            pull = torch.sin(x[a] - x[c]) * k[..., VISITS - 1 - i] + 0.2 * m[i]
            on = flags[:, i] != 0
            energy[i % 3] = energy[i % 3] + torch.where(on, pull**2, 0.0)
            if t == 0:
                first = first + torch.where(on, pull**2 + (m[i] * x[a]) ** 2, 0.0)
            new = x[a] - pull * s[..., c], x[c] + pull * s[..., a], 0.5 * m[i] + pull
            x[a], x[c], m[i] = (torch.where(on, y, z) for y, z in zip(new, (x[a], x[c], m[i]), strict=True))
    return torch.stack(x, -1), torch.stack(m, -1), torch.stack(energy, -1), first[..., None]


def test_walk() -> None:
    """Against loops in torch; lanes that leave instances out, and instances that all leave out."""
    kernel = links_in_turn()
    inputs = [uniform(-1, 1, 7, n, seed=i) for i, n in enumerate((6, 8, 8, 6))]
    flags = torch.ones(7, VISITS)
    flags[:, 2] = flags[3, 4] = flags[0, 0] = 0
    assert_as_interpreted(kernel, [*inputs, flags.double()])

    def walk(*x: Tensor) -> tuple[Tensor, ...]:
        return tuple(kernel.apply([*x, flags.to(x[0].dtype)]))

    check_gradients(walk, inputs, reference=lambda *x: links_in_turn_torch(flags, *x), directions=1)


def test_long_vectors_are_joined_and_added_by_loops() -> None:
    """Parts are made where they will be, also where they are read again later; gradients come back to each."""
    n = 352
    pair = ca.SX.sym("pair", 2)
    twice = ca.Function("twice", [pair], [2 * pair])
    rows = np.arange(n).reshape(-1, 2)
    b = ProgramBuilder("long")
    x, y = b.input("x", n), b.input("y", n)
    (u,), (v,) = (b.map(twice, [(z, rows)], [None]) for z in (x, y))
    both = b.add(b.concat(u, v, x), b.concat(b.zeros(n), u, v))
    for k in range(3):
        b.output(f"part{k}", b.slice(both, k * n, n))
    b.output("again", b.map(twice, [(u, rows)], [None])[0])
    X, Y = uniform(-1, 1, 3, n).requires_grad_(), uniform(-1, 1, 3, n, seed=1).requires_grad_()
    found, expected = tuple(b.kernel()(x=X, y=Y)), (2 * X, 2 * Y + 2 * X, X + 2 * Y, 4 * X)
    assert all(torch.equal(p, q) for p, q in zip(found, expected, strict=True))
    weights = [uniform(-1, 1, 3, n, seed=k) for k in range(4)]
    slopes = (torch.autograd.grad(out, (X, Y), weights) for out in (found, expected))
    torch.testing.assert_close(*slopes)


def test_a_state_must_not_be_there_twice() -> None:
    x = ca.SX.sym("x", 2)
    b = ProgramBuilder("twice")
    with pytest.raises(ValueError, match="an element of a state twice"):
        b.walk(ca.Function("f", [x], [2 * x]), b.input("flags", 1), [(b.input("x", 3), np.array([[1, 1]]))])
    with pytest.raises(ValueError, match="returns the states first"):
        b.walk(ca.Function("f", [x], [x[0]]), b.input("more", 1), [(b.input("y", 3), np.array([[0, 1]]))])
