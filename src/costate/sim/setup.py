"""The constants of a world's step, and the symbols that stand for its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.augment.inputs import Motion
from costate.augment.wired import Wired
from costate.augment.wiring import PREFIX as NETWORK
from costate.augment.wiring import Wiring
from costate.collision.mesh.hull import Hull
from costate.collision.pairs import Placed
from costate.collision.shapes import resized, sizes
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.model.constraint import Constraint
from costate.physics import Parameters
from costate.physics.algebra.quaternion import exp, to_rotation
from costate.physics.params import KINDS, Key
from costate.physics.tree import Tree
from costate.sim.arguments import into_state
from costate.sim.contact.detect import Contact, Detection
from costate.sim.contact.learnt import check_contact_network, with_learnt_friction
from costate.sim.forces.actuators import Actuator, is_zero
from costate.sim.forces.configuration import Configuration
from costate.sim.forces.lengths import Length, Sum, Terms
from costate.sim.forces.tendons import Tendon
from costate.sim.forces.tuning import PREFIX, owned, tuned
from costate.sim.integrate.table import INTEGRATORS, Integrator
from costate.sim.scene.scene import Collider, Scene

if TYPE_CHECKING:
    from costate.sim.contact.model import ContactModel

SHAPE_PARAMETERS = ("size", "position", "orientation", "friction")
"""Properties of a shape that may be inputs: its lengths [m]; its position in its link [m]; a turn on top of its orientation, as
rotation vector [rad]; its friction coefficient."""


@dataclass(frozen=True)
class Drive:
    """An actuator on a joint or tendon, with its numbers."""

    joint: str
    """Name of the joint or tendon; of the actuator where it acts on something else."""
    length: Length
    """Length that it acts along."""
    actuator: Actuator
    stiffness: float
    """Gain on position [N m/rad or N/m]; 0 for drives without one."""
    damping: float
    """Gain on velocity [N m s/rad or N s/m]."""
    limit: float
    """Largest torque or force."""
    activation: int | None = None
    """Index of its activation among those of the state; None: it has none."""

    @property
    def q(self) -> int:
        """Return the coordinate of its joint, the first one of a fixed tendon."""
        return self._terms[0][0]

    @property
    def v(self) -> int:
        """Return the velocity coordinate of its joint, the first one of a fixed tendon."""
        return self._terms[0][1]

    @property
    def _terms(self) -> Terms:
        if not isinstance(self.length, Sum):
            raise ValueError(f"the actuator of '{self.joint}' does not act on the coordinates of joints alone")
        return self.length.terms


@dataclass(frozen=True)
class Share:
    """A bound on what several drives do together: a joint's or tendon's range of actuator forces (MJCF actuatorfrcrange)."""

    low: float
    high: float
    """Range [N or N m]."""
    v: int | None = None
    """Velocity coordinate of the joint, whose torque is clamped; None: it is a tendon."""
    drives: tuple[int, ...] = ()
    """Drives of the tendon, whose forces are scaled."""
    carries: bool = False
    """True if the weight that is carried counts as torque of the joint's actuators."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Constant data of a world's step."""

    scene: Scene
    drives: tuple[Drive, ...]
    contact: ContactModel
    integrator: str
    """Name of a row of INTEGRATORS."""
    dt: float
    """Time step of one substep [s]."""
    substeps: int
    parameters: tuple[str, ...] = ()
    """Parameters that are inputs of the step: see `default`."""
    wrenches: tuple[str, ...] = ()
    """Links with an external wrench as input."""
    constraints: tuple[Constraint, ...] = ()
    """Equality constraints, names and numbers resolved."""
    tendons: tuple[Tendon, ...] = ()
    shares: tuple[Share, ...] = ()
    """Bounds on drives that act together."""
    networks: tuple[Wiring, ...] = ()
    """Networks inside of the step; their weights are parameters."""
    duration: SX | None = None
    """Symbol of the time that forces act for [s], where a contact model moves through a substep in pieces."""

    @property
    def h(self) -> float | SX:
        """Return the time that forces act for [s]: a substep, or the piece of it."""
        return self.dt if self.duration is None else self.duration

    @property
    def method(self) -> Integrator:
        """Return what the integrator does."""
        return INTEGRATORS[self.integrator]

    @property
    def coasts(self) -> bool:
        """Return whether forces of inertia are those of the middle of a substep (integrate/bias.py)."""
        return self.contact.coasts(self)

    @property
    def nq(self) -> int:
        return self.scene.model.nq

    @property
    def nv(self) -> int:
        return self.scene.model.nv

    @cached_property
    def na(self) -> int:
        """Number of activations of actuators."""
        return sum(d.activation is not None for d in self.drives)

    @property
    def nx(self) -> int:
        """Size of a state: all q, then all v, then all activations."""
        return self.nq + self.nv + self.na

    @property
    def ndx(self) -> int:
        """Size of a change of a state, in the tangent space."""
        return 2 * self.nv + self.na

    @property
    def nu(self) -> int:
        return len(self.drives)

    def default(self, parameter: str) -> np.ndarray:
        """Return the value of a parameter that is not given, flat. Raises an error for unknown names."""
        kind, _, owner = parameter.partition(":")
        if parameter in self.contact.parameters:
            return self.contact.number(self, parameter)
        if kind == NETWORK:
            return self._weights(parameter)
        if kind.startswith(PREFIX):
            return np.concatenate(list(owned(self.drives, parameter).values()))
        if owner and kind in self.contact.own_parameters:
            return self.contact.own_number(self, kind, owner)
        collider = self.collider(owner)
        if kind in SHAPE_PARAMETERS and collider is not None:
            return _of_shape(collider, kind, self.contact)
        if kind in KINDS and (owner or kind == "gravity"):
            if kind in ("rotation", "translation"):
                self._check_movable(parameter, owner)
            try:
                return Parameters.of(self.scene.model).number((kind, owner)).ravel()
            except KeyError as error:
                raise ValueError(f"parameter '{parameter}': {error.args[0]}") from None
        shapes = ", ".join(c.name for c in self.scene.colliders) or "none"
        raise ValueError(
            f"unknown parameter '{parameter}': use {', '.join((*self.contact.parameters, ''))}"
            f"{', '.join(f'{k}:SHAPE' for k in SHAPE_PARAMETERS)} (shapes: {shapes}), a number of actuators such as "
            f"'{PREFIX}limit', or a physical one such as 'mass:LINK', 'damping:JOINT' ({', '.join(KINDS)})"
        )

    def with_network(self, w: Wiring) -> Setup:
        """Return the setup with one more network in its step."""
        check_contact_network(self.contact, w, self.scene.pairs)
        return replace(self, networks=(*self.networks, w), parameters=(*self.parameters, w.parameter))

    def _weights(self, parameter: str) -> np.ndarray:
        """Return the present weights of a network, flat."""
        for w in self.networks:
            if w.parameter == parameter:
                return w.network.numbers()
        there = ", ".join(w.parameter for w in self.networks) or "none"
        raise ValueError(f"unknown parameter '{parameter}': networks of this world are {there}; world.augment adds one")

    def _check_movable(self, parameter: str, joint: str) -> None:
        """Raise an error if a joint is a floating one of the world, whose pose is part of the state."""
        model = self.scene.model
        if any(j.name == joint and j.kind == "floating" and j.parent == model.links[0].name for j in model.joints):
            raise ValueError(f"parameter '{parameter}': the joint floats: {into_state(joint.split('/')[0])}")

    def collider(self, name: str) -> Collider | None:
        """Return the shape of that name; a body's only shape also goes by the name of the body."""
        for c in self.scene.colliders:
            if c.name == name:
                return c
        own = [c for c in self.scene.colliders if c.owner == name]
        return own[0] if len(own) == 1 else None


def moved_shapes(parameters: Sequence[str]) -> set[str]:
    """Return the names of shapes that parameters move or resize."""
    parts = [p.partition(":") for p in parameters]
    return {owner for kind, _, owner in parts if kind in ("size", "position", "orientation")}


def _of_shape(c: Collider, kind: str, contact: ContactModel) -> np.ndarray:
    if kind == "size":
        if isinstance(c.solid, Hull):
            raise ValueError(
                f"parameter 'size:{c.name}': the shape is a mesh, whose corners, faces and edges depend on each other; "
                "use a box, a sphere or another shape with sizes of its own, or the mesh's position and orientation"
            )
        return np.array(sizes(c.solid))
    if kind == "friction":
        return np.array([contact.friction if c.friction is None else c.friction], float)
    return np.asarray(c.pose.translation, float) if kind == "position" else np.zeros(3)


class Symbols:
    """The inputs of a step as symbols, and what follows from the configuration."""

    def __init__(self, setup: Setup):
        self.x = SX.sym("x", setup.nx)
        self.u = SX.sym("u", setup.nu)
        self.q, self.v = self.x[: setup.nq], self.x[setup.nq : setup.nq + setup.nv]
        self.act = self.x[setup.nq + setup.nv :]
        self.given = {p: SX.sym(p.replace(":", "_"), setup.default(p).size) for p in setup.parameters}
        acts = any(p.startswith(PREFIX) for p in setup.parameters)
        self.plain = setup
        self.setup = replace(setup, drives=tuned(setup.drives, self.given)) if acts else setup
        self.wrenches = {link: SX.sym(f"w{k}", 6) for k, link in enumerate(setup.wrenches)}
        self.of_shape: dict[tuple[str, str], SX] = {}
        for name, symbol in self.given.items():
            kind, _, owner = name.partition(":")
            collider = setup.collider(owner)
            if owner and kind in SHAPE_PARAMETERS and collider is not None:
                self.of_shape[kind, collider.name] = symbol

    @property
    def inputs(self) -> list[SX]:
        """Return x, u, parameters, wrenches."""
        return [self.x, self.u, *self.given.values(), *self.wrenches.values()]

    @cached_property
    def params(self) -> Parameters:
        physical: dict[Key, SX] = {}
        shapes = set(map(id, self.of_shape.values()))
        for name, symbol in self.given.items():
            kind, _, owner = name.partition(":")
            if kind in KINDS and name not in self.setup.contact.parameters and id(symbol) not in shapes:
                rows, columns = KINDS[kind][1]
                physical[kind, owner] = ca.reshape(symbol, columns, rows).T
        found = Parameters.of(self.setup.scene.model).replace({**self._rotors(), **physical})
        return self.wired.without_replaced(found)

    @cached_property
    def wired(self) -> Wired:
        """Networks that act on quantities of the step."""
        controls = {f"control:{d.joint}": self.u[k] for k, d in enumerate(self.setup.drives)}
        networks = self.setup.networks
        return Wired(networks, [self.given[w.parameter] for w in networks], controls)

    def motion(self, q: SX, v: SX) -> Motion:
        """Return positions and velocities as the inputs of networks see them."""
        return Motion(self.setup.scene.model, self.params, q, v)

    def _rotors(self) -> dict[Key, SX]:
        """Return the armature of joints whose motors have symbols in place of numbers."""
        found: dict[Key, SX] = {}
        if self.setup is self.plain:
            return found
        model = Parameters.of(self.setup.scene.model)
        for plain, d in zip(self.plain.drives, self.setup.drives, strict=True):
            if isinstance(d.actuator.rotor, SX) and not is_zero(d.actuator.rotor):
                own = model.number(("armature", d.joint)) - plain.actuator.rotor
                found["armature", d.joint] = found.get(("armature", d.joint), SX(own)) + d.actuator.rotor
        return found

    def contact_value(self, name: str) -> SX:
        """Return a number of the contact model, or its symbol where it is a parameter."""
        return self.given[name] if name in self.given else SX(float(getattr(self.setup.contact, name)))

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.setup.scene.model, self.params)

    @cached_property
    def used(self) -> list[int]:
        """Colliders that may touch others."""
        return sorted({i for pair in self.setup.scene.pairs for i in pair})

    def local(self, k: int) -> Placed:
        """Return a collider placed in its link."""
        return self.place(self.setup.scene.colliders[k], (SX.eye(3), SX.zeros(3)))

    @cached_property
    def detection(self) -> Detection:
        return Detection(self)

    @cached_property
    def _here(self) -> Configuration:
        return Configuration(self.tree, self.q, self.contacts)

    def at(self, q: SX) -> Configuration:
        """Return a configuration, from which lengths follow; that of the symbols is found once."""
        return self._here if q is self.q else Configuration(self.tree, q, self.contacts)

    def contacts(self) -> list[Contact]:
        """Return the contacts of all pairs of shapes. Expressions of them become a stage of a program by `call`."""
        return with_learnt_friction(self, self.detection.contacts())

    def call(
        self,
        b: ProgramBuilder,
        name: str,
        outputs: Sequence[SX],
        args: Sequence[Var],
        more: Mapping[Var, SX] | None = None,
        prune: bool = True,
    ) -> list[Var]:
        """Add expressions of the inputs and contacts to a program, as a stage.

        args: values of the inputs; more: further values and their symbols; prune: whether pairs that are far apart may be looked at
        by their bounding spheres alone.
        """
        values, symbols = list(args), list(self.inputs)
        searched = self.detection.searched
        if searched is not None and ca.depends_on(ca.veccat(*outputs), searched.symbols):
            values.append(searched.call(b, self, args, prune))
            symbols.append(searched.symbols)
        values += (more or {}).keys()
        symbols += (more or {}).values()
        return b.call(ca.Function(name, symbols, [ca.densify(o) for o in outputs]), *values)

    def place(self, c: Collider, pose: tuple[SX, SX]) -> Placed:
        """Return a shape placed for a pose of its link."""
        R, p = pose
        at = self.of_shape.get(("position", c.name), SX(ca.sparsify(ca.DM(c.pose.translation))))
        turn = SX(ca.sparsify(ca.DM(c.pose.rotation)))
        if ("orientation", c.name) in self.of_shape:
            turn = turn @ to_rotation(exp(self.of_shape["orientation", c.name]))
        size = self.of_shape.get(("size", c.name))
        return Placed(c.solid if size is None else resized(c.solid, size), R @ turn, p + R @ at)

    def friction_between(self, i: int, j: int) -> SX:
        """Return the friction coefficient of two colliders: that of the pair if a file lists it, else the larger one of the two
        shapes, or the contact model's where neither has its own."""
        scene = self.setup.scene
        if (i, j) in scene.listed:
            return SX(scene.listed[i, j].friction[0])
        a, b = scene.colliders[i], scene.colliders[j]
        pair = [c for c in (a, b) if c.priority == max(a.priority, b.priority)]
        own = [self.of_shape.get(("friction", c.name), c.friction) for c in pair]
        told = [SX(f) for f in own if f is not None]
        if not told:
            return self.contact_value("friction")
        return told[0] if len(told) == 1 else ca.fmax(*told)
