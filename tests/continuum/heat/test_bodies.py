"""Conduction and masses of one step, against matrices that are assembled by other programs, on distorted meshes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.continuum.heat import quadrature
from tests.continuum.heat.parts import BENT, INSULATED, PLAIN, bent, box, still

from costate.continuum.heat.bodies import corner_volumes
from costate.continuum.heat.model import HeatModel

LINE = np.linspace(0, 3e-3, 4)
MESH = bent(box(LINE, LINE, LINE), 0.2)
T = np.random.default_rng(1).uniform(250, 2500, len(MESH.nodes))


@pytest.fixture(scope="module")
def flows() -> np.ndarray:
    """Heat that flows into the nodes in one step of an insulated part [W]."""
    dt = 1e-4
    model = HeatModel(MESH, still(dt), BENT, dt=dt, surroundings=INSULATED, segment=1)
    h = model.run(0.0, torch.as_tensor(T), emissivity=0.0).enthalpy.numpy()
    return (h[1] - h[0]) * quadrature.masses(MESH, BENT.density, 0.0) / dt


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """Differences are rounding: h of 1e6 J/kg is subtracted from itself, in units of dt times 1e4 J/(kg s)."""
    assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()


def test_a_step_conducts_what_numpy_computes(flows: np.ndarray) -> None:
    close(flows, quadrature.conduction(MESH, BENT, T, 0.0))
    assert abs(flows.sum()) <= 1e-10 * np.abs(flows).sum()


def test_a_step_conducts_what_scikit_fem_computes(flows: np.ndarray) -> None:
    pytest.importorskip("skfem")
    from tests.continuum.skfem_assembly import heat_matrices

    k = BENT.conductivity_at(T[MESH.elements].mean(1))  # each element at its mean temperature
    matrices = heat_matrices(MESH.nodes, MESH.elements, T, lambda t: k[:, None] + 0 * t, lambda t: BENT.density + 0 * t)
    close(flows, -matrices.stiffness @ T)
    close(matrices.lumped, quadrature.masses(MESH, BENT.density, 0.0))


def test_masses_are_integrals_of_the_shape_functions() -> None:
    volumes = corner_volumes(MESH.nodes, MESH.elements)
    close(volumes.sum(1), MESH.volumes)
    found = np.zeros(len(MESH.nodes))
    np.add.at(found, MESH.elements, volumes)
    close(BENT.density * found, quadrature.masses(MESH, BENT.density, 0.0))
    assert volumes.min() > 0


def test_a_linear_temperature_conducts_as_fourier_says() -> None:
    """On a distorted mesh, a temperature with one slope everywhere gives no flow into any node inside."""
    slope = np.array([1e5, -2e5, 5e4])
    straight = box(LINE, LINE, LINE).nodes
    inside = ((LINE[0] < straight) & (straight < LINE[-1])).all(1)
    dt = 1e-4
    model = HeatModel(MESH, still(dt), PLAIN, dt=dt, surroundings=INSULATED, segment=1)
    h = model.run(0.0, torch.as_tensor(600 + MESH.nodes @ slope)).enthalpy.numpy()
    change = np.abs(h[1] - h[0])
    assert inside.sum() == 8
    assert change[inside].max() <= 1e-9 * change[~inside].max()
