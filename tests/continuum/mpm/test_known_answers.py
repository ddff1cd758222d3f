"""Liquids of particles: the flow between plates, the break of a dam, energy, and a long time in a box."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.measures import elastic_energy, height_energy, kinetic_energy
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.state import MpmHistory, MpmState
from costate.continuum.mpm.walls import MARGIN

G = 9.81
TABLE_2 = np.array(
    [
        (0.41, 1.11), (0.84, 1.22), (1.19, 1.44), (1.43, 1.67), (1.63, 1.89), (1.83, 2.11), (1.98, 2.33), (2.20, 2.56),
        (2.32, 2.78), (2.51, 3.00), (2.65, 3.22), (2.83, 3.44), (2.98, 3.67), (3.11, 3.89), (3.33, 4.11),
    ]
)  # fmt: skip
"""Martin and Moyce 1952, table 2: a column of water of width a = 2 1/4 in and height 2 a; time t (2 g / a)^(1/2), front over a."""
TABLE_6 = np.array(
    [(0.56, 0.94), (0.77, 0.89), (0.93, 0.83), (1.08, 0.78), (1.28, 0.72), (1.46, 0.67), (1.66, 0.61), (1.84, 0.56), (2.00, 0.50)]
)  # fmt: skip
"""Their table 6, the same column: time t (g / a)^(1/2), height at the wall over 2 a."""


def start_up(y: np.ndarray, t: float, push: float, viscosity: float) -> np.ndarray:
    """Return the velocity at y between plates at 0 and 1, a time after a push [m/s^2] began: the parabola minus what decays."""
    u = push / (2 * viscosity) * y * (1 - y)
    for k in range(1, 60, 2):
        decay = np.exp(-((k * np.pi) ** 2) * viscosity * t)
        u = u - 4 * push / (viscosity * np.pi**3 * k**3) * decay * np.sin(k * np.pi * y)
    return u


def test_the_flow_between_plates_is_a_parabola() -> None:
    """A plug of liquid, 10 m long between plates 1 m apart, is pushed along them: in its middle the flow is Poiseuille's, on the
    way to it and there. The error falls with the cells, until that of the ends is left (0.6 %)."""
    early, late = [], []
    for cells in (8, 16):
        dx = 1 / cells
        low = (MARGIN - 1) * dx
        points = fill.box((low + 1, low), (low + 11, low + 1), dx / 2)
        body = SoftBody(points, dx / 2, "liquid", {"density": 1.0, "bulk": 400.0, "gamma": 1.0, "viscosity": 1.0})
        grid = MpmGrid((13 * cells + 6, cells + 2 * MARGIN - 1), dx)
        model = MpmModel(grid, [body], 0.01, gravity=(1.6, 0.0), sides={"-y": "sticky", "+y": "sticky"}, segment=5)
        history = model.run(30)
        middle = torch.as_tensor(np.abs(points[:, 0] - low - 6) < 1)
        for errors, k in ((early, 1), (late, -1)):
            y, u = history.x[k][middle, 1].numpy() - low, history.v[k][middle, 0].numpy()
            want = start_up(y, float(history.times[k]), 1.6, 1.0)
            errors.append(np.sqrt(np.mean((u - want) ** 2)) / want.max())
    assert early[0] < 0.03
    assert early[1] < 0.2 * early[0]
    assert late[1] < 0.01


def dam(cells: int, seconds: float) -> tuple[MpmModel, MpmHistory, float]:
    """Return a column of water that is let go, and its width [m]."""
    a = 0.05715
    dx = a / cells
    low = (MARGIN - 1) * dx
    points = fill.box((low, low), (low + a, low + 2 * a), dx / 2)
    body = SoftBody(points, dx / 2, "liquid", {"bulk": 100 * 1000 * G * 2 * a})
    model = MpmModel(MpmGrid((int(5.2 * cells) + 6, int(2.4 * cells) + 6), dx), [body], 1e-3, segment=4)
    return model, model.run(round(seconds / 1e-3)), a


@pytest.mark.parametrize("cells", [16, pytest.param(32, marks=pytest.mark.study)])
def test_the_break_of_a_dam(cells: int) -> None:
    """The front runs at the measured speed to 5 %. It is early by the same 0.1 to 0.2 units of time all the way, as in other
    computations: in the experiment the water was not free at once. The height at the wall is that measured to 0.04."""
    model, history, a = dam(cells, 3.4 * np.sqrt(0.05715 / (2 * G)))
    dx = model.grid.dx
    low = (MARGIN - 1) * dx
    t = history.times.numpy()
    front = (np.quantile(history.x[..., 0].numpy(), 0.995, axis=1) - low + dx / 4) / a
    T, Z = TABLE_2.T
    found = np.interp(T, t * np.sqrt(2 * G / a), front)
    fast = T > 1.4
    speed, want = np.polyfit(T[fast], found[fast], 1)[0], np.polyfit(T[fast], Z[fast], 1)[0]
    assert abs(speed / want - 1) < 0.05
    early = T - np.interp(Z, front, t * np.sqrt(2 * G / a))
    assert 0.1 < early[fast].min() < early[fast].max() < 0.22
    at_wall = [x[x[:, 0] < low + 0.15 * a, 1].max() for x in history.x.numpy()]
    H = np.interp(TABLE_6[:, 0], t * np.sqrt(G / a), (np.array(at_wall) - low + dx / 4) / (2 * a))
    assert np.abs(H - TABLE_6[:, 1]).max() < 0.04


def test_energy_falls_but_slowly() -> None:
    """Energy of height turns into motion; what is lost until the front has gone two widths is less than 2 % of what was turned."""
    model, _, a = dam(16, 1e-3)
    state = model.start()
    energies, turned = [], []
    for _ in range(10):
        parts = [float(f(model, state)) for f in (height_energy, kinetic_energy, elastic_energy)]
        energies.append(sum(parts))
        turned.append(parts[0])
        state = model.run(12, state).final
    assert float(state.x[:, 0].max()) > 2 * a
    assert (np.diff(energies) < 1e-3 * (turned[0] - turned[-1])).all()
    assert energies[0] - energies[-1] < 0.02 * (turned[0] - turned[-1])


@pytest.mark.study
@pytest.mark.parametrize("dim", [2, 3])
def test_a_long_time_in_a_shaken_box(dim: int) -> None:
    """Water sloshes in a box that is tilted to and fro, 20,000 steps: every particle is in the box, always."""
    n = 24 if dim == 2 else 14
    dx = 1 / n
    low = (MARGIN - 1) * dx
    upper = (1 - 3 * dx,) * (dim - 1) + (0.4,)
    water = SoftBody(fill.box((low,) * dim, upper, dx / 2), dx / 2, "liquid", {"bulk": 5e4})
    model = MpmModel(MpmGrid((n,) * dim, dx), [water], 2e-3, segment=100)
    state: MpmState | None = None
    for k in range(20):
        gravity = torch.zeros(dim, dtype=torch.float64)
        gravity[0], gravity[-1] = 5 * (-1) ** k, -G
        state = model.run(1000, state, gravity=gravity).final
        assert torch.isfinite(state.v).all()
        assert not len(model.grid.outside(state.x.numpy(), MARGIN - 2))
    assert state is not None and state.x.shape == (model.particles, dim)
