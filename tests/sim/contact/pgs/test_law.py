"""The law of one contact: impulses that its visits come to rest at push or part, and rub against the sliding within their bound."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from casadi import SX

from costate.sim.contact.pgs.law import block_numbers, contact_law

VISITS, MU = 200, 0.5


def visit(cone: str) -> ca.Function:
    """(u, A, last impulses) -> impulses."""
    u, A, old = SX.sym("u", 3), SX.sym("A", 3, 3), SX.sym("old", 3)
    return ca.Function("visit", [u, A, old], [contact_law(u, block_numbers(A, 1e-12), old, SX(MU), cone)])


@pytest.mark.parametrize("cone", ["box", "cone"])
def test_impulses_obey_the_law(cone: str) -> None:
    """Of 200 contacts with random mobilities and speeds; those that stick, slide and part all occur."""
    law, random, kinds = visit(cone), np.random.default_rng(0), []
    for _ in range(200):
        root, u = random.normal(size=(3, 4)), random.normal(size=3) * [1.0, 0.5, 0.5] - [0.5, 0, 0]
        A = root @ root.T + np.diag([4.0, 1.0, 1.0])  # friction does not jam: mu |A_nt| < A_nn
        p = np.zeros(3)
        for _ in range(VISITS):
            p = np.asarray(law(u, A, p)).ravel()
        v, bound = u + A @ p, MU * p[0]
        assert p[0] >= 0 and v[0] > -1e-9 and abs(p[0] * v[0]) < 1e-9
        rub, slip = p[1:], v[1:]
        sticks, slides = p[0] > 0 and np.hypot(*slip) < 1e-9, p[0] > 0 and np.hypot(*slip) > 1e-6
        kinds.append("sticks" if sticks else "slides" if slides else "parts")
        if cone == "cone":
            assert np.hypot(*rub) < bound + 1e-9
            assert not slides or np.abs(rub + bound * slip / np.hypot(*slip)).max() < 1e-6
        else:
            assert np.abs(rub).max() < bound + 1e-9
            assert all(abs(s) < 1e-9 or abs(r + bound * np.sign(s)) < 1e-9 for r, s in zip(rub, slip, strict=True))
    assert all(kinds.count(k) > 10 for k in ("sticks", "slides", "parts"))
