"""Cloth against MuJoCo's flex: the same mesh, the same membrane (St. Venant-Kirchhoff) and the same masses, in both engines."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from costate.continuum.cloth.body import Cloth
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.step import Solver

COUNT, SPACING, POISSON, DENSITY = (7, 5), 0.05, 0.3, 0.3
SHEET = """<mujoco><option timestep="1e-4" gravity="{gravity}" integrator="Euler"/><worldbody>
<flexcomp name="sheet" type="grid" dim="2" count="7 5 1" spacing="0.05 0.05 0.05" mass="1" radius="0.001" dof="full">
<elasticity young="{young}" poisson="0.3" thickness="0.001" damping="0" elastic2d="stretch"/>
<contact contype="0" conaffinity="0" selfcollide="none"/><edge equality="false"/><pin id="0 1 2 3 4"/>
</flexcomp></worldbody></mujoco>"""
STRETCH = 50.0
"""Young's modulus times thickness [N/m]."""


def engines(gravity: tuple[float, float, float], dt: float) -> tuple[mujoco.MjModel, mujoco.MjData, ClothModel]:
    """Return a sheet in both engines, held along an edge."""
    text = SHEET.format(gravity=" ".join(map(str, gravity)), young=STRETCH / 1e-3)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    triangles = np.array(m.flex_elem).reshape(-1, 3)
    points = np.array(d.flexvert_xpos)
    shear = STRETCH / (2 * (1 + POISSON))
    parameters: Any = {"warp": STRETCH, "weft": STRETCH, "poisson": POISSON, "shear": shear, "bending": 0.0}
    cloth = Cloth(points, triangles, parameters)
    model = ClothModel([cloth], dt=dt, gravity=gravity, pins=range(COUNT[1]), solver=Solver(1e-6))
    mass = model.fixed(torch.float64, None, None, None, 0.0)["own"][:, 0].numpy()
    free = m.flex_vertbodyid > 0
    m.body_mass[m.flex_vertbodyid[free]] = mass[free]
    mujoco.mj_setConst(m, d)
    return m, d, model


def test_a_sheet_stretches_as_in_mujoco() -> None:
    """It hangs from an edge in its plane, and is pulled sideways a little: its end moves by 5 % of the length."""
    m, d, model = engines((60.0, 15.0, 0.0), 0.1)
    m.dof_damping[:] = 0.01
    for _ in range(20_000):
        mujoco.mj_step(m, d)
    assert np.abs(d.qvel).max() < 1e-6
    ours = model.run(60).final
    assert ours.v.abs().max() < 1e-6
    moved = np.abs(d.flexvert_xpos - model.scene.points).max()
    assert moved > 0.01
    assert np.abs(ours.x.numpy() - d.flexvert_xpos).max() < 1e-3 * moved


def test_a_sheet_swings_as_in_mujoco() -> None:
    """It falls from level, 0.12 s long. Our steps are implicit: errors are of the first order in dt, and vanish with it."""
    found = []
    for dt in (2e-3, 1e-3):
        m, d, model = engines((0.0, 0.0, -9.81), dt)
        for _ in range(1200):
            mujoco.mj_step(m, d)
        ours = model.run(round(0.12 / dt)).final.x.numpy()
        found.append(np.abs(ours - d.flexvert_xpos).max())
    assert found[1] < 1e-3
    assert found[1] == pytest.approx(found[0] / 2, rel=0.3)
