"""The dynamics regressor: inverse dynamics is linear in the right parameters.

    tau = Y(q, v, a) pi + known(q, v, a)

Torques are not linear in the centre of mass c and the inertia about it, but they are in the first moment h = m c and the
inertia I about the link's origin. So pi holds, per link, the mass m, h and I (ten numbers), and per joint damping, friction and
armature. Whatever is not chosen stays in `known`. With Y, identification is linear algebra: `solve.py` fits pi, `base.py` finds
which combinations of it can be told apart at all, and `possible.py` keeps it physical.

Y need not be derived by hand: it is the Jacobian of the Newton-Euler recursion with respect to pi. The recursion runs once on
symbols, with bodies whose inertias are linear in pi (`_tree`), CasADi differentiates it, and the result is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
import torch
from casadi import SX

from costate.core.arrays import Array
from costate.kernel import Kernel
from costate.model import Inertia, Model
from costate.physics import Parameters
from costate.physics.algebra.inertia import Inertia as SymbolicInertia
from costate.physics.algebra.spatial import symmetric
from costate.physics.dynamics.passive import ALL_PASSIVE, armature, resistance
from costate.physics.dynamics.rnea import newton_euler
from costate.physics.params import Key
from costate.physics.tree import ROOT, Tree

LINK_TERMS = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""Inertial parameters: mass [kg], first moment [kg m], rotational inertia about the link's origin [kg m^2]."""
JOINT_TERMS = ("damping", "friction", "armature")

BLOCK = 4096
"""Number of samples taken at a time: their rows must fit in memory."""
_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class Regressor:
    """The parameters of a model that are to be found, and the compiled regressor."""

    model: Model
    links: tuple[str, ...]
    """Links whose ten inertial parameters are in pi."""
    joints: tuple[tuple[str, str], ...]
    """Pairs (joint, term) that are in pi, after the links."""

    @staticmethod
    def of(
        model: Model,
        terms: Iterable[str] = ("inertial", *JOINT_TERMS),
        links: Sequence[str] | None = None,
        joints: Sequence[str] | None = None,
    ) -> Regressor:
        """Return the regressor of all moving links that have mass, and all moving joints, unless some are named.

        terms: any of "inertial", "damping", "friction", "armature".
        """
        terms = tuple(terms)
        if unknown := set(terms) - {"inertial", *JOINT_TERMS}:
            raise ValueError(f"cannot identify {sorted(unknown)[0]!r}; terms are inertial, {', '.join(JOINT_TERMS)}")
        if links is None:
            links = [name for name in moving_links(model) if model.link(name).inertia.mass > 0]
        if joints is None:
            joints = [j.name for j in model.joints if j.nv]
        for name in links:
            if name not in moving_links(model):
                raise ValueError(f"link '{name}' does not move, or does not exist; moving are {moving_links(model)}")
        for name in joints:
            model.joint(name)
        pairs = tuple((joint, term) for term in JOINT_TERMS if term in terms for joint in joints)
        return Regressor(model, tuple(links) if "inertial" in terms else (), pairs)

    @cached_property
    def names(self) -> list[str]:
        """Names of the parameters: "m:forearm", "friction:elbow"."""
        inertial = [f"{term}:{link}" for link in self.links for term in LINK_TERMS]
        return inertial + [f"{term}:{joint}" for joint, term in self.joints]

    @property
    def size(self) -> int:
        return 10 * len(self.links) + len(self.joints)

    def pi(self, model: Model | None = None) -> Array:
        """Return the parameters of a model (default: this one), shape (size,)."""
        model = model or self.model
        inertial = [inertial_vector(model.link(link).inertia) for link in self.links]
        joints = [np.array([getattr(model.joint(joint), term)]) for joint, term in self.joints]
        return np.concatenate([np.zeros(0), *inertial, *joints])

    def values(self, pi: Array) -> dict[Key, Array]:
        """Return the parameters as `costate.robot.identified.with_parameters` takes them."""
        found: dict[Key, Array] = {}
        for k, link in enumerate(self.links):
            inertia = inertia_of(pi[10 * k : 10 * k + 10])
            found["mass", link] = np.array([inertia.mass])
            found["com", link], found["inertia", link] = inertia.com, inertia.matrix
        for k, (joint, term) in enumerate(self.joints):
            found[term, joint] = pi[10 * len(self.links) + k : 10 * len(self.links) + k + 1]
        return found

    @cached_property
    def kernel(self) -> Kernel:
        """Kernel (q, v, a) -> Y (nv, size), known (nv,)."""
        q, v, a = SX.sym("q", self.model.nq), SX.sym("v", self.model.nv), SX.sym("a", self.model.nv)
        pi = SX.sym("pi", self.size)
        tau = self._torques(q, v, a, pi)
        Y = ca.densify(ca.jacobian(tau, pi))
        known = ca.densify(ca.substitute(tau, pi, SX.zeros(self.size)))
        outputs = {"Y": Y, "known": known}
        return Kernel(f"{self.model.name}.regressor", {"q": q, "v": v, "a": a}, outputs)

    def rows(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Return Y (n, nv, size) and known (n, nv) for n samples."""
        found = self.kernel(
            **{k: torch.as_tensor(np.ascontiguousarray(x)) for k, x in zip("qva", (q, v, a), strict=True)}
        )
        return found.Y.numpy(), found.known.numpy()

    def torques(self, q: Array, v: Array, a: Array, pi: Array) -> Array:
        """Return the torques (n, nv) under parameters pi."""
        parts = [slice(k, k + BLOCK) for k in range(0, len(q), BLOCK)]
        found = [self.rows(q[part], v[part], a[part]) for part in parts]
        return np.concatenate([Y @ pi + known for Y, known in found])

    def _torques(self, q: SX, v: SX, a: SX, pi: SX) -> SX:
        constants = Parameters.of(self.model)
        joints = {(term, joint): pi[10 * len(self.links) + k] for k, (joint, term) in enumerate(self.joints)}
        params = constants.replace(joints)
        tree = self._tree(constants, pi)
        rigid = newton_euler(tree, q, v, a, tree.gravity, {})
        return rigid + armature(self.model, params) * a + resistance(self.model, params, q, v, ALL_PASSIVE)

    def _tree(self, constants: Parameters, pi: SX) -> Tree:
        """Return the bodies with inertias that are linear in pi."""
        tree = Tree.of(self.model, constants)
        inertias = [SymbolicInertia.zero() for _ in tree.bodies]
        for link in self.model.links:
            body, (R, p) = tree.links[link.name]
            if body == ROOT:
                continue
            if link.name in self.links:
                k = 10 * self.links.index(link.name)
                own = _symbolic(pi[k : k + 10])
            else:
                own = SymbolicInertia.of(*(constants[kind, link.name] for kind in ("mass", "com", "inertia")))
            inertias[body] += own.rotated(R).shifted(p)
        bodies = tuple(replace(b, inertia=inertia) for b, inertia in zip(tree.bodies, inertias, strict=True))
        return replace(tree, bodies=bodies)


def moving_links(model: Model) -> list[str]:
    """Return the links that are not fixed to the world."""
    still = {model.links[0].name}
    for joint in model.joints:
        if joint.kind == "fixed" and joint.parent in still:
            still.add(joint.child)
    return [link.name for link in model.links if link.name not in still]


def inertial_vector(inertia: Inertia) -> Array:
    """Return (m, h, I about the origin) of a link, shape (10,)."""
    c = inertia.com
    about_origin = inertia.matrix + inertia.mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.concatenate([[inertia.mass], inertia.mass * c, [about_origin[i, j] for i, j in _PAIRS]])


def inertia_of(pi: Array) -> Inertia:
    """Return the inertia of an `inertial_vector`; a massless link has its centre of mass at its origin."""
    m = float(pi[0])
    c = pi[1:4] / m if m else np.zeros(3)
    about_origin = _matrix(pi[4:])
    return Inertia(m, c, about_origin - m * (c @ c * np.eye(3) - np.outer(c, c)))


def _matrix(six: Array) -> Array:
    I = np.zeros((3, 3))
    for value, (i, j) in zip(six, _PAIRS, strict=True):
        I[i, j] = I[j, i] = value
    return I


def _symbolic(pi: SX) -> SymbolicInertia:
    I = SX.zeros(3, 3)
    for k, (i, j) in enumerate(_PAIRS):
        I[i, j] = I[j, i] = pi[4 + k]
    second = ca.trace(I) / 2 * SX.eye(3) - I
    return SymbolicInertia(pi[0], pi[1:4], symmetric(second))
