"""Formulas of an element and of a face: conduction, and heat that surfaces take in and give off.

Hexahedra have eight nodes and 2 x 2 x 2 Gauss points, faces four nodes and 2 x 2. Geometry does not change, so it is integrated
once: an element then is 28 conductances, one per pair of its nodes, and a face four points with areas. What flows from one node to
another is one number, so heat cannot get lost. An element has the conductivity of its mean temperature.
"""

from __future__ import annotations

import itertools

import casadi as ca
import numpy as np

STEFAN_BOLTZMANN = 5.670374419e-8
"""Radiation of a black body [W/(m^2 K^4)]."""
CORNERS = np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]])
"""Nodes of a hexahedron in its own coordinates."""
POINTS = np.array(list(itertools.product((-1, 1), repeat=3))) / np.sqrt(3)
"""Gauss points of a hexahedron, each of weight 1."""
PAIRS = tuple(itertools.combinations(range(8), 2))
"""Pairs of nodes of an element."""
FACE_CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
FACE_POINTS = np.array(list(itertools.product((-1, 1), repeat=2))) / np.sqrt(3)


def shapes(point: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shape functions (nodes,) at a point of the element's own coordinates, and their slopes (nodes, dimensions)."""
    terms = 1 + corners * point
    n = terms.prod(1) / 2 ** corners.shape[1]
    slopes = [corners[:, d] * np.delete(terms, d, axis=1).prod(1) for d in range(corners.shape[1])]
    return n, np.stack(slopes, axis=1) / 2 ** corners.shape[1]


def hex_flow(T: ca.SX, pairs: ca.SX, k: ca.SX) -> ca.SX:
    """Return the heat that flows into the eight nodes [W], from temperatures (8) [K], conductances (28) [m] and the conductivity
    [W/(m K)]."""
    flow = [ca.SX(0)] * 8
    for value, (i, j) in zip(ca.vertsplit(pairs), PAIRS, strict=True):
        q = value * (T[j] - T[i])
        flow[i], flow[j] = flow[i] + q, flow[j] - q
    return k * ca.vertcat(*flow)


def stiffness(nodes: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Return the integrals of products of gradients of the shape functions (E, 8, 8) [m]."""
    X = nodes[elements]
    K = np.zeros((len(X), 8, 8))
    for point in POINTS:
        _, slopes = shapes(point, CORNERS)
        J = np.einsum("id,eix->edx", slopes, X)
        gradients = np.linalg.solve(J, np.broadcast_to(slopes.T, (len(X), 3, 8)))
        K += np.einsum("exi,exj,e->eij", gradients, gradients, np.linalg.det(J), optimize=True)
    return K


def pair_conductances(nodes: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Return what each pair of nodes of an element exchanges, for conductivity 1 and a difference of 1 K (E, 28) [m]."""
    K = stiffness(nodes, elements)
    return np.stack([-K[:, i, j] for i, j in PAIRS], axis=1)


def corner_volumes(nodes: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Return the volumes that elements give their nodes (E, 8) [m^3]: integrals of the shape functions."""
    X = nodes[elements]
    found = np.zeros(elements.shape)
    for point in POINTS:
        n, slopes = shapes(point, CORNERS)
        found += n * np.linalg.det(np.einsum("id,eix->edx", slopes, X))[:, None]
    return found


def face_points(nodes: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the Gauss points of faces: position [m], area, and area seen from above [m^2] (F, 4 * 5)."""
    X = nodes[faces]
    found = np.zeros((len(faces), 4, 5))
    for g, point in enumerate(FACE_POINTS):
        n, slopes = shapes(point, FACE_CORNERS)
        normal = np.cross(*(np.einsum("i,fix->fx", slopes[:, d], X) for d in (0, 1)))
        found[:, g, :3] = np.einsum("i,fix->fx", n, X)
        found[:, g, 3] = np.linalg.norm(normal, axis=1)
        found[:, g, 4] = np.clip(normal[:, 2], 0, None)
    return found.reshape(len(faces), 20)


def face_flow(T: ca.SX, points: ca.SX, spot: ca.SX, power: ca.SX, surface: ca.SX, factor: float, ball: bool) -> ca.SX:
    """Return the heat that flows into the four nodes of a face [W].

    Args:
        T: Temperatures (4) [K].
        points: Gauss points (20), see `face_points`.
        spot: Position of the laser (3) [m], and its radius [m].
        power: Power that is taken up [W].
        surface: Ambient temperature [K], convection [W/(m^2 K)], emissivity.
        factor: Exponent of the laser's profile at its radius.
        ball: Let the laser heat every face by its distance from the spot, whichever way it looks; else as a beam from above.
    """
    flow = ca.SX.zeros(4)
    radius2 = spot[3] ** 2
    peak = factor * power / (np.pi * radius2)
    for g, point in enumerate(FACE_POINTS):
        n, _ = shapes(point, FACE_CORNERS)
        x, area, above = points[5 * g : 5 * g + 3], points[5 * g + 3], points[5 * g + 4]
        t = ca.dot(ca.DM(n), T)
        away = (x - spot[:3]) if ball else (x - spot[:3])[:2]
        light = peak * ca.exp(-factor * ca.dot(away, away) / radius2) * (area if ball else above)
        t2, ambient2 = t * t, surface[0] ** 2
        lost = surface[1] * (t - surface[0]) + surface[2] * STEFAN_BOLTZMANN * (t2 * t2 - ambient2 * ambient2)
        flow += ca.DM(n) * (light - lost * area)
    return flow
