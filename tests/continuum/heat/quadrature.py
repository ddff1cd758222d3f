"""Heat flows of a growing part by plain NumPy: an independent computation that tests compare with.

It shares no code with the model. Elements are integrated by 2 x 2 x 2 Gauss points and faces by 2 x 2, as the model says it does;
faces are found by counting those of the elements that are alive.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costate.continuum.materials import Material
from costate.continuum.mesh import HexMesh

Array = NDArray[np.float64]
G = 1 / np.sqrt(3)
LOW = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
"""Corners of the unit cube in the order of an element's nodes."""
OUTSIDE = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
"""Faces of an element, counter-clockwise seen from outside."""


def trilinear(r: Array) -> tuple[Array, Array]:
    """Return the shape functions (8,) and their slopes (8, 3) at a point of the unit cube."""
    corners = np.array(LOW)
    linear = np.where(corners, r, 1 - r)
    sign = np.where(corners, 1.0, -1.0)
    others = np.stack([linear[:, [1, 2]], linear[:, [0, 2]], linear[:, [0, 1]]], 1).prod(2)
    return linear.prod(1), sign * others


def gauss(dimensions: int) -> list[Array]:
    """Return the Gauss points of the unit square or cube; each has the weight 1 / 2^d."""
    return [np.array(p) for p in itertools.product(((1 - G) / 2, (1 + G) / 2), repeat=dimensions)]


def masses(mesh: HexMesh, density: float, time: float) -> Array:
    """Return the masses of nodes at a time [kg]: integrals of density times shape function over the elements alive."""
    found = np.zeros(len(mesh.nodes))
    for element in mesh.elements[mesh.birth <= time]:
        for r in gauss(3):
            n, slopes = trilinear(r)
            found[element] += density * n * np.linalg.det(mesh.nodes[element].T @ slopes) / 8
    return found


def conduction(mesh: HexMesh, material: Material, T: Array, time: float, factor: float = 1.0) -> Array:
    """Return the heat that flows into the nodes by conduction [W]: -K(T) T, each element at its mean temperature."""
    flow = np.zeros(len(mesh.nodes))
    for element in mesh.elements[mesh.birth <= time]:
        k = factor * float(material.conductivity_at(T[element].mean()))
        for r in gauss(3):
            _, slopes = trilinear(r)
            J = mesh.nodes[element].T @ slopes
            B = slopes @ np.linalg.inv(J)
            flow[element] -= B @ (B.T @ T[element]) * k * np.linalg.det(J) / 8
    return flow


def exposed(mesh: HexMesh, time: float) -> list[tuple[int, ...]]:
    """Return the faces that are exposed at a time, found as those that only one of the elements alive has."""
    owners: dict[frozenset[int], list[tuple[int, ...]]] = defaultdict(list)
    for element in mesh.elements[mesh.birth <= time]:
        for side in OUTSIDE:
            corners = tuple(int(element[i]) for i in side)
            owners[frozenset(corners)].append(corners)
    return [faces[0] for faces in owners.values() if len(faces) == 1]


@dataclass(frozen=True)
class Sun:
    """What faces take in and give off."""

    spot: Array
    power: float
    radius: float
    factor: float
    ambient: float
    convection: float
    emissivity: float
    ball: bool = False

    def flux(self, x: Array, normal: Array, T: float) -> float:
        """Return what flows into a face at a point [W/m^2], with the unit normal that looks outwards."""
        away = (x - self.spot) if self.ball else (x - self.spot)[:2]
        seen = 1.0 if self.ball else max(normal[2], 0.0)
        light = self.factor * self.power / (np.pi * self.radius**2)
        light *= seen * np.exp(-self.factor * (away @ away) / self.radius**2)
        lost = self.convection * (T - self.ambient) + 5.670374419e-8 * self.emissivity * (T**4 - self.ambient**4)
        return float(light - lost)

    def flow(self, mesh: HexMesh, T: Array, time: float) -> Array:
        """Return the heat that flows into the nodes through the faces exposed at a time [W]."""
        found = np.zeros(len(mesh.nodes))
        for face in exposed(mesh, time):
            X = mesh.nodes[list(face)]
            for u, v in gauss(2):
                n = np.array([(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v])
                along = np.array([v - 1, 1 - v, v, -v]) @ X
                across = np.array([u - 1, -u, u, 1 - u]) @ X
                normal = np.cross(along, across)
                area = float(np.linalg.norm(normal))
                found[list(face)] += n * self.flux(n @ X, normal / area, float(n @ T[list(face)])) * area / 4
        return found
