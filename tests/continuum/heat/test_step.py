"""The orders with which errors fall: two in space, one in time, on a problem with properties that change with temperature."""

from __future__ import annotations

import numpy as np
import torch
from tests.continuum.heat.parts import INSULATED, box, still

from costate.continuum.heat.model import HeatModel
from costate.continuum.materials import Material
from costate.continuum.mesh import HexMesh

DENSITY, ALPHA = 8000.0, 5e-6
"""Density [kg/m^3] and diffusivity [m^2/s]."""
SLOPE = 2e-3
"""Slope of the properties of EVEN, relative to those at 300 K [1/K]."""
EVEN = Material(
    "even",
    DENSITY,
    ((300, 500.0), (1300, 500.0 * (1 + 1000 * SLOPE))),
    ((300, 20.0), (1300, 20.0 * (1 + 1000 * SLOPE))),
    5e3,
    5e3 + 1,
    emissivity=0.0,
)
"""Material whose specific heat and conductivity rise alike, so that the diffusivity is ALPHA at all temperatures.

The integral w = d + SLOPE d^2 / 2 of its relative properties over d = T - 300 K then obeys the linear equation (Kirchhoff).
"""
SIDE = 8e-3
WAVE = np.array([1, 1, 2]) * np.pi / SIDE
RATE = float(ALPHA * (WAVE @ WAVE))


def smooth(x: np.ndarray, t: float) -> np.ndarray:
    """Return temperatures [K] at x (..., 3) of an insulated cube of EVEN at a time: a wave along each axis that fades."""
    w = 500 + 300 * np.cos(x * WAVE).prod(-1) * np.exp(-RATE * t)
    return 300 + (np.sqrt(1 + 2 * SLOPE * w) - 1) / SLOPE


def wavy(n: int) -> HexMesh:
    """Return a cube of n x n x 2n elements whose nodes inside are moved by a smooth field."""
    line = np.linspace(0, SIDE, n + 1)
    mesh = box(line, line, np.linspace(0, SIDE, 2 * n + 1))
    s = np.sin(np.pi * mesh.nodes / SIDE)
    moved = 0.08 * SIDE * s.prod(1)[:, None] * np.array([1.0, -0.7, 0.5])
    return HexMesh(mesh.nodes + moved, mesh.elements, mesh.birth)


def wave(mesh: HexMesh, steps: int, segment: int) -> np.ndarray:
    """Return the temperatures after the wave has faded to 1/e."""
    t = 1 / RATE
    model = HeatModel(mesh, still(t), EVEN, dt=t / steps, surroundings=INSULATED, segment=segment)
    return model.run(0.0, torch.as_tensor(smooth(mesh.nodes, 0.0))).T[-1].numpy()


def test_errors_fall_with_the_square_of_the_element_size() -> None:
    errors = []
    for n, steps in ((3, 40), (6, 160), (12, 640)):
        mesh = wavy(n)
        # Extrapolated to steps of length 0, so that what remains is the error in space.
        T = 2 * wave(mesh, 2 * steps, steps) - wave(mesh, steps, steps)
        errors.append(np.abs(T - smooth(mesh.nodes, 1 / RATE)).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.abs(orders - 2).max() < 0.1


def test_errors_fall_with_the_length_of_the_step() -> None:
    mesh = wavy(3)
    T = [wave(mesh, steps, 40) for steps in (40, 80, 160, 2560)]
    errors = [np.abs(t - T[-1]).max() for t in T[:-1]]
    # The finest run has an error as well, which is 1/64 of that of the first, if the order is one: add it.
    exact = np.array(errors) / (1 - np.array([40, 80, 160]) / 2560)
    orders = np.log2(exact[:-1] / exact[1:])
    assert np.abs(orders - 1).max() < 0.05
