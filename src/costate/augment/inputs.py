"""Inputs of networks: named numbers of a motion, as expressions.

An input is written KIND, of the joint, link or actuator that the network acts on, or KIND:NAME, of another one; a vector gives
three inputs, KIND.x, KIND.y and KIND.z. Inputs of contacts and actuators are known where these are computed, and given there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.core.names import listed, unknown
from costate.model import Model
from costate.physics import Parameters
from costate.physics.dynamics.rnea import rnea
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses, link_pose
from costate.physics.tree import ROOT, Pose, Tree

AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions and velocities of a model, and what follows from them."""

    model: Model
    params: Parameters
    q: SX
    v: SX

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.model, self.params)

    @cached_property
    def bodies(self) -> list[Pose]:
        return body_poses(self.tree, self.q)

    @cached_property
    def load(self) -> SX:
        """Torques of gravity, Coriolis and centrifugal forces on the joints, (nv,)."""
        return -rnea(self.model, self.params, self.q, self.v, SX(self.model.nv, 1), passive=None)

    def joint(self, name: str) -> tuple[int, int]:
        """Return the coordinate and the velocity coordinate of a joint."""
        k = next(k for k, j in enumerate(self.model.joints) if j.name == name)
        return self.model.q_index[k], self.model.v_index[k]

    def frame(self, link: str) -> Pose:
        """Return the axes of a link and its centre of mass, in the world."""
        R, p = link_pose(self.tree, self.bodies, link)
        return R, p + R @ self.params["com", link]

    def jacobian(self, link: str) -> SX:
        """Return the Jacobian (6, nv) of the velocity of a link's centre of mass and of its spin, in the link's axes."""
        R, point = self.frame(link)
        body = self.tree.links[link][0]
        J = SX(6, self.model.nv) if body == ROOT else point_jacobian(self.tree, self.bodies, body, point)
        return ca.vertcat(R.T @ J[:3, :], R.T @ J[3:, :])


@dataclass(frozen=True)
class Input:
    """A row of INPUTS."""

    owner: str
    """Kind of thing that has it: joint, link, actuator or contact."""
    what: str
    value: Callable[[Motion, str], SX] | None = None
    """Function of a motion and the owner's name; None: known where the quantity is computed."""
    components: tuple[str, ...] = ("",)


INPUTS: dict[str, tuple[Input, ...]] = {
    "position": (
        Input("joint", "position of the joint [rad or m]", lambda m, name: m.q[m.joint(name)[0]]),
        Input("actuator", "length that the actuator acts along [rad or m]"),
    ),
    "speed": (
        Input("joint", "speed of the joint [rad/s or m/s]", lambda m, name: m.v[m.joint(name)[1]]),
        Input("actuator", "rate of that length [rad/s or m/s]"),
    ),
    "sine": (Input("joint", "sine of the position", lambda m, name: ca.sin(m.q[m.joint(name)[0]])),),
    "cosine": (Input("joint", "cosine of the position", lambda m, name: ca.cos(m.q[m.joint(name)[0]])),),
    "load": (
        Input(
            "joint",
            "torque of gravity, Coriolis and centrifugal forces on the joint [N m or N]",
            lambda m, name: m.load[m.joint(name)[1]],
        ),
    ),
    "velocity": (
        Input(
            "link",
            "velocity of the link's centre of mass in its own axes [m/s]",
            lambda m, name: m.jacobian(name)[:3, :] @ m.v,
            AXES,
        ),
    ),
    "spin": (
        Input(
            "link",
            "angular velocity of the link in its own axes [rad/s]",
            lambda m, n: m.jacobian(n)[3:, :] @ m.v,
            AXES,
        ),
    ),
    "up": (Input("link", "vertical axis of the world in the link's axes", lambda m, n: m.frame(n)[0].T[:, 2], AXES),),
    "height": (Input("link", "height of the link's centre of mass [m]", lambda m, n: m.frame(n)[1][2]),),
    "control": (Input("actuator", "control of the actuator"),),
    "depth": (Input("contact", "depth of the overlap; negative where shapes are apart [m]"),),
    "approach": (Input("contact", "speed at which the shapes approach each other [m/s]"),),
    "slip": (Input("contact", "sliding speed [m/s]"),),
    "normal_force": (Input("contact", "normal force of the contact model, of Compliant() [N]"),),
}
"""Kind of input -> what it is, for each kind of thing that has it."""


@dataclass(frozen=True)
class InputName:
    """An input in parts: "velocity.x:base" is the x of the velocity of the link base."""

    kind: str
    component: str = ""
    owner: str = ""

    @staticmethod
    def of(text: str) -> InputName:
        """Take a name apart."""
        kind, _, owner = text.partition(":")
        kind, _, component = kind.partition(".")
        return InputName(kind, component, owner)

    def __str__(self) -> str:
        component = f".{self.component}" if self.component else ""
        return f"{self.kind}{component}{f':{self.owner}' if self.owner else ''}"


def row_of(name: InputName, owner: str) -> Input:
    """Return the row of an input of a network that acts on a joint, link, actuator or contact."""
    if name.kind not in INPUTS:
        raise ValueError(unknown("input of a network", name.kind, INPUTS))
    rows = INPUTS[name.kind]
    if name.owner:
        found = next((row for row in rows if row.value is not None or row.owner == "actuator"), None)
        if found is None:
            raise ValueError(f"input '{name}': {name.kind} is known of the contact itself alone; write '{name.kind}'")
        return found
    found = next((row for row in rows if row.owner == owner), None)
    if found is None:
        own = [kind for kind, rows in INPUTS.items() if any(row.owner == owner for row in rows)]
        raise ValueError(
            f"input '{name}' is one of {' and '.join(r.owner + 's' for r in rows)}, but the network acts on {owner}s: name whose "
            f"it is ('{name}:NAME'), or use {listed(own)}"
        )
    return found


def expanded(names: Sequence[str], owner: str, resolve: Callable[[str, str], str]) -> tuple[str, ...]:
    """Return inputs one number each, with full names. resolve: (kind of owner, name as it was given) -> full name."""
    found: list[str] = []
    for text in names:
        name = InputName.of(text)
        row = row_of(name, owner)
        if name.component and name.component not in row.components:
            raise ValueError(f"input '{text}' has no component '{name.component}'; it has {listed(row.components)}")
        whose = resolve(row.owner, name.owner) if name.owner else ""
        parts = [name.component] if name.component else row.components
        found += [str(InputName(name.kind, part, whose)) for part in parts]
    twice = sorted({x for x in found if found.count(x) > 1})
    if twice:
        raise ValueError(f"input {twice[0]} is listed twice")
    return tuple(found)


def value_of(name: InputName, kind: str, owner: str, motion: Motion, known: Mapping[str, SX]) -> SX:
    """Return the value of an input of a network that acts on an owner. known: inputs that are known there already, by name."""
    if str(name) in known:
        return known[str(name)]
    row = row_of(name, kind)
    if row.value is None:
        raise ValueError(f"input '{name}' is not known where the network acts; known are {', '.join(known) or 'none'}")
    return row.value(motion, name.owner or owner)[row.components.index(name.component)]
