"""What a step is built from: the scene, the options, and the symbols that stand for its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.hull import Hull
from costate.collision.pairs import ContactPoint, Placed, by_program, contact_points
from costate.collision.shapes import resized, sizes
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.model.constraint import Constraint
from costate.model.surface import Surface, mix
from costate.physics import Parameters
from costate.physics.algebra.quaternion import exp, to_rotation
from costate.physics.kinematics import body_poses, link_pose
from costate.physics.params import KINDS, Key
from costate.physics.tree import Tree
from costate.sim.contact.detect import Narrow
from costate.sim.contact.newton.places import places
from costate.sim.contact.options import ContactModel, Newton
from costate.sim.forces.actuators import Actuator
from costate.sim.forces.tendons import Length, Tendon
from costate.sim.scene.scene import Collider, Scene

INTEGRATORS = ("semi_implicit", "explicit", "implicit", "rk4")

CONTACT_PARAMETERS = ("friction", "restitution", "stiffness", "damping")
"""Fields of a contact model that may be inputs."""

SHAPE_PARAMETERS = ("size", "position", "orientation", "friction")
"""What may be an input of a shape: its lengths [m]; its position in its link [m]; a turn on top of its orientation, as rotation
vector [rad]; its friction coefficient."""


@dataclass(frozen=True)
class Drive:
    """An actuator on a joint or tendon, with its numbers."""

    joint: str
    """Or tendon."""
    length: Length
    """What it acts along."""
    actuator: Actuator
    stiffness: float
    """[N m/rad or N/m]; 0 without."""
    damping: float
    """Gain on velocity [N m s/rad or N s/m]."""
    limit: float
    """Largest torque or force."""

    @property
    def q(self) -> int:
        """Coordinate of its joint, the first one of a tendon."""
        return self.length.terms[0][0]

    @property
    def v(self) -> int:
        return self.length.terms[0][1]


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
    """Parameters that are inputs of the step: see `default`."""
    wrenches: tuple[str, ...] = ()
    """Links with an external wrench as input."""
    constraints: tuple[Constraint, ...] = ()
    """What holds beside joints and contacts, names and numbers resolved."""
    tendons: tuple[Tendon, ...] = ()

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
        """Value of a parameter that is not given, flat. Raises for names that mean nothing here."""
        kind, _, owner = parameter.partition(":")
        if parameter in CONTACT_PARAMETERS and hasattr(self.contact, parameter):
            return np.array([getattr(self.contact, parameter)], float)
        collider = self.collider(owner)
        if kind in SHAPE_PARAMETERS and collider is not None:
            return _of_shape(collider, kind, self.contact)
        if kind in KINDS and (owner or kind == "gravity"):
            try:
                return Parameters.of(self.scene.model).number((kind, owner)).ravel()
            except KeyError as error:
                raise ValueError(f"parameter '{parameter}': {error.args[0]}") from None
        shapes = ", ".join(c.name for c in self.scene.colliders) or "none"
        raise ValueError(
            f"unknown parameter '{parameter}': use {', '.join(CONTACT_PARAMETERS)} (those the contact model has), "
            f"{', '.join(f'{k}:SHAPE' for k in SHAPE_PARAMETERS)} (shapes: {shapes}), or a physical one such as 'mass:LINK', "
            f"'damping:JOINT' ({', '.join(KINDS)})"
        )

    def collider(self, name: str) -> Collider | None:
        """The shape of that name; a body's only shape also by the name of the body."""
        for c in self.scene.colliders:
            if c.name == name:
                return c
        own = [c for c in self.scene.colliders if c.owner == name]
        return own[0] if len(own) == 1 else None


def _of_shape(c: Collider, kind: str, contact: ContactModel | None) -> np.ndarray:
    if kind == "size":
        if isinstance(c.solid, Hull):
            raise ValueError(
                f"parameter 'size:{c.name}': the shape is a mesh, whose corners, faces and edges depend on each other; "
                "use a box, a sphere or another shape with sizes of its own, or the mesh's position and orientation"
            )
        return np.array(sizes(c.solid))
    if kind == "friction":
        return np.array([getattr(contact, "friction", 0.0) if c.friction is None else c.friction], float)
    return np.asarray(c.pose.translation, float) if kind == "position" else np.zeros(3)


class Symbols:
    """The inputs of a step as symbols, and what follows from the configuration."""

    def __init__(self, setup: Setup):
        self.setup = setup
        self.x = SX.sym("x", setup.nx)
        self.u = SX.sym("u", setup.nu)
        self.q, self.v = self.x[: setup.nq], self.x[setup.nq :]
        self.given = {p: SX.sym(p.replace(":", "_"), setup.default(p).size) for p in setup.parameters}
        self.wrenches = {link: SX.sym(f"w{k}", 6) for k, link in enumerate(setup.wrenches)}
        self.of_shape: dict[tuple[str, str], SX] = {}
        for name, symbol in self.given.items():
            kind, _, owner = name.partition(":")
            collider = setup.collider(owner)
            if owner and kind in SHAPE_PARAMETERS and collider is not None:
                self.of_shape[kind, collider.name] = symbol

    @property
    def inputs(self) -> list[SX]:
        """x, u, parameters, wrenches."""
        return [self.x, self.u, *self.given.values(), *self.wrenches.values()]

    @cached_property
    def params(self) -> Parameters:
        physical: dict[Key, SX] = {}
        shapes = set(map(id, self.of_shape.values()))
        for name, symbol in self.given.items():
            kind, _, owner = name.partition(":")
            if kind in KINDS and name not in CONTACT_PARAMETERS and id(symbol) not in shapes:
                rows, columns = KINDS[kind][1]
                physical[kind, owner] = ca.reshape(symbol, columns, rows).T
        return Parameters.of(self.setup.scene.model).replace(physical)

    def contact_value(self, name: str) -> SX:
        """A number of the contact model, or its symbol."""
        return self.given[name] if name in self.given else SX(float(getattr(self.setup.contact, name)))

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.setup.scene.model, self.params)

    @cached_property
    def used(self) -> list[int]:
        """Colliders that may touch others."""
        return sorted({i for pair in self.setup.scene.pairs for i in pair})

    def local(self, k: int) -> Placed:
        """A collider in its link."""
        return self.place(self.setup.scene.colliders[k], (SX.eye(3), SX.zeros(3)))

    @cached_property
    def _placed(self) -> dict[int, Placed]:
        """Colliders that may touch others, at their poses."""
        bodies = body_poses(self.tree, self.q)
        scene = self.setup.scene
        links = {k: link_pose(self.tree, bodies, scene.colliders[k].link) for k in self.used}
        return {k: self.place(scene.colliders[k], links[k]) for k in self.used}

    @cached_property
    def _narrow(self) -> Narrow | None:
        """The pairs whose places a program finds; they are symbols beside the inputs."""
        placed = self._placed
        pairs = [(i, j) for i, j in self.setup.scene.pairs if by_program(placed[i].solid, placed[j].solid)]
        return Narrow.of(pairs, placed) if pairs else None

    def call(
        self,
        b: ProgramBuilder,
        name: str,
        outputs: Sequence[SX],
        args: Sequence[Var],
        more: Mapping[Var, SX] | None = None,
        prune: bool = True,
    ) -> list[Var]:
        """Expressions of the inputs and contacts as a stage of a program.

        args: values of the inputs; more: further values and their symbols; prune: whether pairs that are far apart may be looked at
        by their bounding spheres alone.
        """
        values, symbols = list(args), list(self.inputs)
        if self._narrow is not None:
            values.append(self._narrow.call(b, self, args, prune))
            symbols.append(self._narrow.symbols)
        values += (more or {}).keys()
        symbols += (more or {}).values()
        return b.call(ca.Function(name, symbols, [ca.densify(o) for o in outputs]), *values)

    def contacts(self) -> list[Contact]:
        """Candidates of all pairs. What is made of them becomes a stage by `call`."""
        scene = self.setup.scene
        found = []
        for i, j in scene.pairs:
            a, b = scene.colliders[i], scene.colliders[j]
            near = self._places(i, j)
            if not near:
                raise ValueError(
                    f"'{a.name}' and '{b.name}' have no points to touch each other by: make one of simpler shapes, or leave the "
                    "pair out with collide="
                )
            surface, friction = self._surface(a, b), self.friction_of(a, b)
            if (i, j) in scene.listed:
                surface, friction = scene.listed[i, j], SX(scene.listed[i, j].friction[0])
            found += [Contact(a.link, b.link, (a.name, b.name), c, friction, surface, along) for c, along in near]
        return found

    def _places(self, i: int, j: int) -> list[tuple[ContactPoint, SX | None]]:
        if self._narrow is not None and (i, j) in self._narrow.starts:
            return [(c, None) for c in self._narrow.contact_points(i, j)]
        a, b = self._placed[i], self._placed[j]
        if isinstance(self.setup.contact, Newton):
            return places(a, b)
        return [(c, None) for c in contact_points(a, b)]

    def _surface(self, a: Collider, b: Collider) -> Surface | None:
        """How two shapes touch, for the model that asks."""
        contact = self.setup.contact
        if not isinstance(contact, Newton):
            return None
        return mix(*(c.surface or contact.surface(c.friction) for c in (a, b)))

    def place(self, c: Collider, pose: tuple[SX, SX]) -> Placed:
        """A shape where its link is at a pose."""
        R, p = pose
        at = self.of_shape.get(("position", c.name), SX(ca.sparsify(ca.DM(c.pose.translation))))
        turn = SX(ca.sparsify(ca.DM(c.pose.rotation)))
        if ("orientation", c.name) in self.of_shape:
            turn = turn @ to_rotation(exp(self.of_shape["orientation", c.name]))
        size = self.of_shape.get(("size", c.name))
        return Placed(c.solid if size is None else resized(c.solid, size), R @ turn, p + R @ at)

    def friction_of(self, a: Collider, b: Collider) -> SX:
        """Of two shapes the larger coefficient; the world's where neither has its own."""
        pair = [c for c in (a, b) if c.priority == max(a.priority, b.priority)]
        own = [self.of_shape.get(("friction", c.name), c.friction) for c in pair]
        told = [SX(f) for f in own if f is not None]
        if not told:
            return self.contact_value("friction")
        return told[0] if len(told) == 1 else ca.fmax(*told)


@dataclass(frozen=True, eq=False)
class Contact:
    """A contact point between two links, with how they touch there."""

    link_a: str
    link_b: str
    shapes: tuple[str, str]
    geometry: ContactPoint
    friction: SX
    surface: Surface | None = None
    """How the shapes touch, for the Newton model."""
    along: SX | None = None
    """Direction its first axis of friction is near to, for the Newton model."""

    @property
    def rubs(self) -> bool:
        """Whether it has rows of friction."""
        return not (self.friction.is_constant() and float(self.friction) == 0.0)
