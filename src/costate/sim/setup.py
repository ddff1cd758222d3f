"""What a step is built from: the scene, the options, and the symbols that stand for its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from casadi import SX

from costate.physics import Parameters
from costate.physics.contact import Candidate, Placed, candidates
from costate.physics.kinematics import body_poses, link_pose
from costate.physics.params import KINDS, Key
from costate.physics.shapes import solid_of
from costate.physics.tree import Tree
from costate.sim.actuators import Actuator
from costate.sim.contact_models import ContactModel
from costate.sim.scene import Scene

INTEGRATORS = ("semi_implicit", "explicit", "implicit", "rk4")


@dataclass(frozen=True)
class Drive:
    """An actuator on a joint coordinate, with its numbers."""

    joint: str
    q: int
    v: int
    actuator: Actuator
    stiffness: float
    """[N m/rad or N/m]; 0 without."""
    damping: float
    """Gain on velocity [N m s/rad or N s/m]."""
    limit: float
    """Largest torque or force."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Constant data of a world's step."""

    scene: Scene
    drives: tuple[Drive, ...]
    contact: ContactModel | None
    integrator: str
    dt: float
    """Of one substep [s]."""
    substeps: int
    parameters: tuple[str, ...] = ()
    """Parameters that are inputs of the step: see `parameter_default`."""
    wrenches: tuple[str, ...] = ()
    """Links with an external wrench as input."""

    @property
    def nq(self) -> int:
        return self.scene.model.nq

    @property
    def nv(self) -> int:
        return self.scene.model.nv

    @property
    def nx(self) -> int:
        return self.nq + self.nv

    @property
    def nu(self) -> int:
        return len(self.drives)

    def default(self, parameter: str) -> np.ndarray:
        """Value of a parameter that is not given, flat."""
        kind, _, owner = parameter.partition(":")
        if parameter in CONTACT_PARAMETERS and hasattr(self.contact, parameter):
            return np.array([getattr(self.contact, parameter)], float)
        if kind in ("size", "position"):
            shape = self._collider(owner, parameter).shape
            return np.asarray(shape.size if kind == "size" else shape.pose.translation, float).ravel()
        if kind in KINDS:
            return Parameters.of(self.scene.model).number((kind, owner)).ravel()
        raise ValueError(
            f"unknown parameter '{parameter}': use {', '.join(CONTACT_PARAMETERS)} (those the contact model has), 'size:SHAPE', "
            f"'position:SHAPE', or a physical one such as 'mass:LINK', 'damping:JOINT' ({', '.join(KINDS)})"
        )

    def _collider(self, name: str, parameter: str):
        for c in self.scene.colliders:
            if c.name == name:
                return c
        names = [c.name for c in self.scene.colliders]
        raise ValueError(f"parameter '{parameter}': no shape '{name}'; shapes are {', '.join(names)}")


CONTACT_PARAMETERS = ("friction", "restitution", "stiffness", "damping")
"""Fields of a contact model that may be inputs."""


class Symbols:
    """The inputs of a step as symbols, and what follows from the configuration."""

    def __init__(self, setup: Setup):
        self.setup = setup
        self.x = SX.sym("x", setup.nx)
        self.u = SX.sym("u", setup.nu)
        self.q, self.v = self.x[: setup.nq], self.x[setup.nq :]
        self.given = {p: SX.sym(p.replace(":", "_"), setup.default(p).size) for p in setup.parameters}
        self.wrenches = {link: SX.sym(f"w{k}", 6) for k, link in enumerate(setup.wrenches)}

    @property
    def inputs(self) -> list[SX]:
        """x, u, parameters, wrenches."""
        return [self.x, self.u, *self.given.values(), *self.wrenches.values()]

    @cached_property
    def params(self) -> Parameters:
        physical: dict[Key, SX] = {}
        for name, symbol in self.given.items():
            kind, _, owner = name.partition(":")
            if kind in KINDS and name not in CONTACT_PARAMETERS:
                rows, columns = KINDS[kind][1]
                physical[kind, owner] = ca.reshape(symbol, columns, rows).T
        return Parameters.of(self.setup.scene.model).replace(physical)

    def contact_value(self, name: str) -> SX:
        """A number of the contact model, or its symbol."""
        return self.given[name] if name in self.given else SX(float(getattr(self.setup.contact, name)))

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.setup.scene.model, self.params)

    def contacts(self, q: SX) -> list[Touch]:
        """Candidates of all pairs at a configuration."""
        bodies = body_poses(self.tree, q)
        scene = self.setup.scene
        placed: dict[int, Placed] = {}
        for k in {i for pair in scene.pairs for i in pair}:
            placed[k] = self._place(k, link_pose(self.tree, bodies, scene.colliders[k].link))
        found = []
        for i, j in scene.pairs:
            a, b = scene.colliders[i], scene.colliders[j]
            for c in candidates(placed[i], placed[j]):
                found.append(Touch(a.link, b.link, c, self._friction(i, j)))
        return found

    def _place(self, k: int, pose: tuple[SX, SX]) -> Placed:
        collider = self.setup.scene.colliders[k]
        R, p = pose
        shape = collider.shape
        at = self.given.get(f"position:{collider.name}", SX(ca.sparsify(ca.DM(shape.pose.translation))))
        turn = SX(ca.sparsify(ca.DM(shape.pose.rotation)))
        return Placed(solid_of(shape, self.given.get(f"size:{collider.name}")), R @ turn, p + R @ at)

    def _friction(self, i: int, j: int) -> SX:
        """Of two shapes the larger coefficient; the world's where neither has its own."""
        own = [c.shape.friction for c in (self.setup.scene.colliders[i], self.setup.scene.colliders[j])]
        told = [f for f in own if f is not None]
        return SX(max(told)) if told else self.contact_value("friction")


@dataclass(frozen=True, eq=False)
class Touch:
    """A candidate between two links."""

    link_a: str
    link_b: str
    candidate: Candidate
    friction: SX


def names_of(touches: Sequence[Touch]) -> list[tuple[str, str]]:
    return [(t.link_a, t.link_b) for t in touches]
