"""Inverse weights: how easily links and coordinates move at home. They scale the softness of constraints, as MuJoCo's
body_invweight0 and dof_invweight0 do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.model import Model
from costate.physics import Parameters
from costate.physics.dynamics.crba import crba
from costate.physics.jacobian import jacobian
from costate.sim.forces.tendons import Tendon, at_home


@dataclass(frozen=True)
class InverseWeights:
    """Constants of a model, at its home configuration."""

    links: dict[str, tuple[float, float]]
    """Link -> inverse of mass [1/kg] and of inertia [1/(kg m^2)] at its centre of mass, mean of three axes; 0 if it is fixed."""
    coordinates: np.ndarray
    """Inverse weight of every velocity coordinate; the mean of the axes for joints with several, (nv,)."""
    lengths: dict[str, float]
    """Inverse weight of joints with one coordinate and of tendons."""


def inverse_weights(model: Model, links: Sequence[str], tendons: Sequence[Tendon] = ()) -> InverseWeights:
    assert model.home is not None  # merged models have one
    params = Parameters.of(model)
    q = SX.sym("q", model.nq)
    at = [jacobian(model, params, q, name, SX(model.link(name).inertia.com)) for name in links]
    everything = ca.Function("home", [q], [ca.densify(crba(model, params, q)), *map(ca.densify, at)])
    M, *J = (np.array(x) for x in everything.call([ca.DM(model.home)]))
    inverse = np.linalg.inv(M)
    of_links = {}
    for name, j in zip(links, J, strict=True):
        easy = np.einsum("ij,jk,ik->i", j, inverse, j)
        alone = _slides_alone(model, name)
        of_links[name] = 1 / model.link(name).inertia.mass if alone else float(easy[:3].mean()), float(easy[3:].mean())
    coordinates = _means(model, np.diag(inverse))
    lengths = {j.name: float(coordinates[i]) for j, i in zip(model.joints, model.v_index, strict=True) if j.nv == 1}
    for t in tendons:
        J = np.array(at_home(model, t.length.row))
        lengths[t.name] = float((J @ inverse @ J.T).item())
    return InverseWeights(of_links, coordinates, lengths)


def _slides_alone(model: Model, link: str) -> bool:
    """Return whether nothing but slides along its own axes moves a link in the world, and it carries no other: MuJoCo takes its
    whole inverse mass then, not the mean of three axes of which some do not move."""
    body = model.link(link).inertia
    turned = np.any(body.matrix - np.diag(np.diag(body.matrix)))
    if not body.mass or np.any(body.com) or turned or any(j.parent == link for j in model.joints):
        return False
    above = {j.child: j for j in model.joints}
    slides, at = 0, link
    while at in above:
        joint = above[at]
        if joint.kind == "prismatic" and not joint.mimic and np.count_nonzero(joint.axis) == 1:
            slides += 1
            if at != link and model.link(at).inertia.mass:
                return False
        elif joint.kind != "fixed":
            return False
        at = joint.parent
    return slides > 0


def _means(model: Model, diagonal: np.ndarray) -> np.ndarray:
    means = diagonal.copy()
    for j, i in zip(model.joints, model.v_index, strict=True):
        for start in range(i, i + j.nv, 3):
            if j.kind in ("spherical", "floating") and not j.mimic:
                means[start : start + 3] = diagonal[start : start + 3].mean()
    return means
