"""The step of particles that engines are compared on: MLS-MPM with quadratic weights, as in DiffTaichi's diffmpm.

2D: fixed corotated solid with four muscles along y, 128 x 128 nodes. 3D: neo-Hookean solid, 64 x 64 x 64 nodes. Walls stop what
moves into them at the sides; the floor has friction. Mass and volume of a particle are 1 in both, as in diffmpm. This file imports
nothing but numpy: the interpreters of all engines read it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

DT = {2: 1e-3, 3: 2e-3}
MODULUS = 10.0
"""Both of Lame's constants."""
GRAVITY, FRICTION, BOUND, STRENGTH, MUSCLES = -3.8, 0.5, 3, 4.0, 4


@dataclass(frozen=True, eq=False)
class MpmProblem:
    """Particles on their way: positions, velocities, affine parts, deformation gradients, muscles, and weights of a loss."""

    nodes: int
    """Nodes along each axis of a square or cube of 1 m."""
    x: np.ndarray
    v: np.ndarray
    C: np.ndarray
    F: np.ndarray
    muscle: np.ndarray
    """Number of the muscle of each particle."""
    act: np.ndarray
    """Actuation of each muscle."""
    weights: np.ndarray
    """Gradient of the loss by the positions after the step."""

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.x.shape[1]

    def save(self, file: Path) -> None:
        """Write an .npz."""
        np.savez(file, **asdict(self))

    @staticmethod
    def load(file: str | Path) -> MpmProblem:
        """Read an .npz."""
        with np.load(file) as found:
            arrays: dict[str, Any] = {k: found[k] for k in found.files}
        arrays["nodes"] = int(arrays["nodes"])
        return MpmProblem(**arrays)


def problem(dim: int, count: int) -> MpmProblem:
    """Return a block of particles in motion, half a cell apart."""
    nodes = 128 if dim == 2 else 64
    edge = round(count ** (1 / dim))
    sides = [edge] * (dim - 1)
    sides.append(-(-count // edge ** (dim - 1)))
    axes = np.meshgrid(*(np.arange(n) for n in sides), indexing="ij")
    lattice = np.stack(axes, -1).reshape(-1, dim)[:count]
    rng = np.random.default_rng(0)
    low = np.array([0.2] * (dim - 1) + [BOUND / nodes + 0.01])
    x = low + (lattice + 0.5 + 0.2 * rng.uniform(-1, 1, lattice.shape)) * 0.5 / nodes
    v = np.array([1.0] + [0.3] * (dim - 2) + [-0.5]) + 0.1 * rng.normal(size=x.shape)
    C = rng.normal(size=(count, dim, dim))
    F = np.eye(dim) + 0.02 * rng.normal(size=(count, dim, dim))
    muscle = np.minimum(MUSCLES * lattice[:, 0] // sides[0], MUSCLES - 1)
    return MpmProblem(nodes, x, v, C, F, muscle, rng.uniform(-1, 1, MUSCLES), rng.normal(size=x.shape))
