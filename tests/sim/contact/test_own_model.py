"""A contact model of one's own, written outside of the package: it works wherever the package's own ones do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np
import pytest
import torch
from casadi import SX

import costate as cs
from costate.draw.poses import motion_of
from costate.draw.signals import contact_vectors
from costate.sim.contact.rows import constraint_rows
from costate.sim.setup import Symbols
from costate.viewer.live import Live
from costate.viewer.server import start

D = torch.float64
MASS, RADIUS, STIFFNESS = 0.5, 0.1, 400.0


@dataclass(frozen=True)
class Springs(cs.SmoothContact):
    """Linear springs and dampers, with viscous friction."""

    stiffness: float = STIFFNESS
    damping: float = 2.0
    friction: float = 0.3

    parameters: ClassVar[tuple[str, ...]] = ("stiffness",)

    def check(self, integrator: str) -> None:
        super().check(integrator)
        if self.stiffness <= 0:
            raise ValueError(f"Springs(stiffness={self.stiffness}) must be positive [N/m]")

    def forces(self, s: Symbols) -> tuple[SX, SX]:
        rows = constraint_rows(s, s.q, s.contacts(), s.setup.dt)
        found: list[SX] = []
        for row in rows:
            speed = row.J @ s.v
            if row.kind == "normal":
                touches = row.gap < 0
                found.append(ca.if_else(touches, -s.contact_value("stiffness") * row.gap - self.damping * speed, 0))
            else:
                found.append(-self.friction * found[row.contact] * speed)
        total = sum((row.J.T * f for row, f in zip(rows, found, strict=True)), SX(s.setup.nv, 1))
        return total, ca.vertcat(*found)


@pytest.fixture(scope="module")
def world() -> cs.World:
    ball = cs.Body("ball", [cs.shapes.sphere(RADIUS)], MASS)
    ground = cs.Static("ground", cs.shapes.plane())
    return cs.World(bodies=[ball], scenery=[ground], contact=Springs(), dt=0.01, parameters=["stiffness"])


def resting(world: cs.World) -> torch.Tensor:
    state = world.initial_state()
    state[2] = RADIUS - MASS * 9.81 / STIFFNESS
    return state


def test_it_carries_the_weight(world: cs.World) -> None:
    state = resting(world)
    torch.testing.assert_close(world.step(state), state, rtol=0, atol=1e-12)
    found = world.contacts(state)
    assert float(found.forces) == pytest.approx(MASS * 9.81, rel=1e-12)
    assert float(found.residual) == 0
    assert float(world.gaps(state)) == pytest.approx(-MASS * 9.81 / STIFFNESS, rel=1e-12)


def test_linearize_knows_its_stiffness(world: cs.World) -> None:
    A, _ = world.linearize(resting(world))
    assert float(A[world.nv + 2, 2]) == pytest.approx(-0.01 * STIFFNESS / MASS, rel=1e-9)


def test_gradients(world: cs.World) -> None:
    state = resting(world)
    state[world.nq : world.nq + 3] = torch.tensor([0.3, -0.2, -0.1], dtype=D)

    def step(x: torch.Tensor, stiffness: torch.Tensor) -> torch.Tensor:
        return world.step(x, params={"stiffness": stiffness})

    report = cs.gradcheck(step, [state, torch.tensor([STIFFNESS], dtype=D)], names=["x", "stiffness"], step=1e-3)
    assert report.ok, report


def test_report_names_it_and_its_rows(world: cs.World) -> None:
    text = world.report()
    assert "Springs" in text and "3 constraint rows: 1 normal, 2 tangent" in text


def test_its_own_check_speaks() -> None:
    with pytest.raises(ValueError, match=r"Springs\(stiffness=-1.0\) must be positive"):
        cs.World(contact=Springs(stiffness=-1.0))


def test_viewer_shows_it(world: cs.World) -> None:
    states = torch.stack([resting(world), world.initial_state() + torch.eye(world.nx, dtype=D)[2]])
    frames = contact_vectors(world, states, motion_of(world, states))
    assert frames[0][0, 5] > 0 and np.abs(frames[0][0, 3:5]).max() == 0
    assert len(frames[1]) == 0 or np.abs(frames[1][:, 3:]).max() == 0
    server = start(8290)
    live = Live(server, world, state=resting(world))
    live.step()
    torch.testing.assert_close(live.state, resting(world), rtol=0, atol=1e-12)
    server.stop()
