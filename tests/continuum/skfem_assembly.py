"""Matrices of heat conduction on hexahedra, assembled by scikit-fem: an established code on the same mesh.

Quadrature is 2 x 2 x 2 Gauss in elements and 2 x 2 on faces, as in explicit codes for additive manufacturing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from skfem import Basis, BilinearForm, ElementHex1, FacetBasis, LinearForm, MeshHex
from skfem.refdom import RefHex

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
"""Nodes of an element of ours in the unit cube: bottom face counter-clockwise, then top face."""
EXACT = 3
"""Degree that 2 Gauss points per direction integrate exactly."""
Law = Callable[[np.ndarray], np.ndarray]
"""Function of temperature."""


def one(T: np.ndarray) -> np.ndarray:
    """Return ones: the law of a material with unit coefficients."""
    return np.ones_like(T)


@dataclass(frozen=True)
class HeatMatrices:
    """Matrices of a mesh at a temperature; rows and columns are its nodes."""

    stiffness: Any
    """Conduction K [W/K]: -K T is the heat that flows into the nodes."""
    mass: Any
    """Consistent capacity M [J/K]."""

    @property
    def lumped(self) -> np.ndarray:
        """Lumped capacity (N,) [J/K]: the sums of M's rows."""
        return np.asarray(self.mass.sum(axis=1)).ravel()


def skfem_mesh(nodes: np.ndarray, elements: np.ndarray) -> MeshHex:
    """Return the mesh in scikit-fem's order of the corners."""
    order = [int(np.flatnonzero((corner == CORNERS).all(1))[0]) for corner in RefHex.p.T]
    return MeshHex(np.ascontiguousarray(nodes.T), np.ascontiguousarray(elements[:, order].T), sort_t=False)


def heat_matrices(
    nodes: np.ndarray, elements: np.ndarray, T: np.ndarray | None = None, conductivity: Law = one, capacity: Law = one
) -> HeatMatrices:
    """Assemble conduction and capacity at temperatures T (N,).

    conductivity [W/(m K)] and capacity per volume [J/(m^3 K)] are functions of the temperature at the Gauss points.
    """
    basis = Basis(skfem_mesh(nodes, elements), ElementHex1(), intorder=EXACT)
    assert basis.X.shape[-1] == 8
    at_points = np.asarray(basis.interpolate(np.zeros(len(nodes)) if T is None else T))
    K = BilinearForm(lambda u, v, w: w.k * sum(u.grad[c] * v.grad[c] for c in range(3)))
    M = BilinearForm(lambda u, v, w: w.c * u * v)
    return HeatMatrices(K.assemble(basis, k=conductivity(at_points)), M.assemble(basis, c=capacity(at_points)))


def face_loads(
    nodes: np.ndarray, elements: np.ndarray, faces: np.ndarray, flux: Callable[[np.ndarray, np.ndarray], np.ndarray], T: np.ndarray
) -> np.ndarray:  # fmt: skip
    """Return the heat [W] that enters each node (N,) through boundary faces (F, 4).

    flux(T, x) [W/m^2]: function of temperatures and positions (3, ...) at the Gauss points.
    """
    mesh = skfem_mesh(nodes, elements)
    assert mesh.facets is not None
    place = {tuple(sorted(face)): n for n, face in enumerate(mesh.facets.T.tolist())}
    basis = FacetBasis(
        mesh, ElementHex1(), facets=np.array([place[tuple(sorted(f))] for f in faces.tolist()]), intorder=EXACT
    )
    q = flux(np.asarray(basis.interpolate(T)), np.asarray(basis.global_coordinates()))
    return LinearForm(lambda v, w: w.q * v).assemble(basis, q=q)
