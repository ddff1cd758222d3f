"""The moving bodies of a robot, in frames chosen so that its algorithms take few operations.

Links joined by fixed joints become one body. Each body has a frame of its own, at rest in its link:
- z is the joint axis, so every revolute joint turns about z and every motion subspace is a selection;
- its origin is slid along the joint axis to where the offset from the parent has most zeros, as Denavit and
  Hartenberg do. Where the offset is symbolic, it stays at the joint.
Joint torques, velocities and energies do not depend on this choice; poses of links are translated back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import casadi as ca
import numpy as np
from casadi import SX

from costate.model.model import Joint, Model
from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import basis, rotate_matrix, zeros
from costate.physics.joints import JOINTS, JointKind
from costate.physics.params import Parameters

ROOT = -1
"""The parent of bodies that hang on the root link, and the body of links fixed to it: it does not move."""

Pose = tuple[SX, SX]
"""Rotation (3, 3) and translation (3,)."""


@dataclass(frozen=True, eq=False)
class Body:
    """Links that move as one, and the joint that moves them."""

    name: str
    """Of the joint."""
    kind: JointKind
    parent: int
    """Index of a body, or ROOT."""
    rotation: SX
    """Of the body frame at q = 0 in the parent body's frame, shape (3, 3)."""
    translation: SX
    """Likewise [m], shape (3,)."""
    inertia: Inertia
    """About the origin of the body frame."""
    q_start: int
    v_start: int
    scale: float = 1.0
    """Joint position = scale * q + offset: 1 and 0 except for mimic joints, which read another joint's q."""
    offset: float = 0.0
    is_mimic: bool = False

    def coordinates(self, q: SX) -> SX:
        """This joint's position, shape (nq,)."""
        own = q[self.q_start : self.q_start + self.kind.nq]
        return self.scale * own + self.offset if self.is_mimic else own

    def rates(self, v: SX) -> tuple[SX, SX]:
        """Linear and angular part of S v in the body frame, each of shape (3,); also for accelerations."""
        own = self.velocities(v)
        split = len(self.kind.linear)
        return _scatter(own[:split], self.kind.linear), _scatter(own[split:], self.kind.angular)

    def velocities(self, v: SX) -> SX:
        """The velocities of this joint, shape (nv,)."""
        own = v[self.v_start : self.v_start + self.kind.nv]
        return self.scale * own if self.is_mimic else own

    def project(self, force: SX, moment: SX) -> SX:
        """S^T of a wrench in the body frame: its joint torques, shape (nv,)."""
        own = ca.vertcat(*[force[k] for k in self.kind.linear], *[moment[k] for k in self.kind.angular])
        return self.scale * own if self.is_mimic else own


@dataclass(frozen=True, eq=False)
class Step:
    """Pose of a body in its parent's frame at some q: a constant rotation after the joint's, and a translation."""

    constant: SX
    joint: SX
    translation: SX

    @property
    def rotation(self) -> SX:
        return self.constant @ self.joint

    def up(self, a: SX) -> SX:
        """Axes of the body -> axes of the parent."""
        return self.constant @ (self.joint @ a)

    def down(self, a: SX) -> SX:
        """Axes of the parent -> axes of the body."""
        return self.joint.T @ (self.constant.T @ a)

    def matrix_up(self, K: SX, is_symmetric: bool = False) -> SX:
        """R K R^T, shape (3, 3)."""
        return rotate_matrix(self.constant, rotate_matrix(self.joint, K, is_symmetric), is_symmetric)

    def inertia_up(self, inertia: Inertia) -> Inertia:
        """Inertia of the body -> about the origin of the parent's frame, in its axes."""
        return inertia.rotated(self.joint).rotated(self.constant).shifted(self.translation)


@dataclass(frozen=True, eq=False)
class Tree:
    """Bodies with parents before children."""

    bodies: tuple[Body, ...]
    links: Mapping[str, tuple[int, Pose]]
    """Link name -> its body, and its pose in that body's frame (in the root link's frame if it is fixed to it)."""
    gravity: SX
    """In world axes [m/s^2], shape (3,)."""
    nq: int
    nv: int

    @staticmethod
    @lru_cache(maxsize=32)
    def of(model: Model, params: Parameters) -> Tree:
        """The tree of a model; the last few are kept, as most algorithms ask for the same one again."""
        bodies: list[Body] = []
        links: dict[str, tuple[int, Pose]] = {model.links[0].name: (ROOT, (SX.eye(3), zeros()))}
        for i, joint in enumerate(model.joints):
            parent, pose = links[joint.parent]
            frame = compose(pose, (params["rotation", joint.name], params["translation", joint.name]))
            if joint.kind == "fixed":
                links[joint.child] = parent, frame
            else:
                body_frame, link_pose = _choose_frame(model, params, i, parent, frame)
                links[joint.child] = len(bodies), link_pose
                bodies.append(_body(model, i, parent, body_frame))
        inertias = _inertias(model, params, links, len(bodies))
        bodies = [replace(body, inertia=inertia) for body, inertia in zip(bodies, inertias, strict=True)]
        return Tree(tuple(bodies), links, params["gravity", ""], model.nq, model.nv)

    def steps(self, q: SX) -> list[Step]:
        """Pose of every body in its parent's frame."""
        steps = []
        for body in self.bodies:
            turn, slide = body.kind.displace(body.coordinates(q))
            steps.append(Step(body.rotation, turn, body.translation + body.rotation @ slide))
        return steps

    @property
    def has_mimics(self) -> bool:
        return any(body.is_mimic for body in self.bodies)


def compose(a: Pose, b: Pose) -> Pose:
    """Pose of C in A from B in A and C in B."""
    return ca.sparsify(a[0] @ b[0]), ca.sparsify(a[1] + a[0] @ b[1])


def _scatter(values: SX, indices: tuple[int, ...]) -> SX:
    """A (3,) vector with the given values at the given places, structural zeros elsewhere."""
    entries = [SX(1, 1)] * 3
    for n, k in enumerate(indices):
        entries[k] = values[n]
    return ca.vertcat(*entries)


def _body(model: Model, index: int, parent: int, frame: Pose) -> Body:
    joint = model.joints[index]
    mimic = joint.mimic
    return Body(
        name=joint.name,
        kind=JOINTS[joint.kind],
        parent=parent,
        rotation=frame[0],
        translation=frame[1],
        inertia=Inertia.zero(),
        q_start=model.q_index[index],
        v_start=model.v_index[index],
        scale=mimic.multiplier if mimic else 1.0,
        offset=mimic.offset if mimic else 0.0,
        is_mimic=mimic is not None,
    )


def _inertias(model: Model, params: Parameters, links: Mapping[str, tuple[int, Pose]], count: int) -> list[Inertia]:
    """Composite inertia of the links of every body, about its origin."""
    inertias = [Inertia.zero() for _ in range(count)]
    for link in model.links:
        body, (R, p) = links[link.name]
        if body != ROOT:
            own = Inertia.of(params["mass", link.name], params["com", link.name], params["inertia", link.name])
            inertias[body] += own.rotated(R).shifted(p)
    return inertias


def _choose_frame(model: Model, params: Parameters, index: int, parent: int, frame: Pose) -> tuple[Pose, Pose]:
    """Body frame at q = 0 in the parent body's frame, and link in the body frame, for a joint frame in the parent's."""
    joint = model.joints[index]
    if joint.kind in ("spherical", "floating"):
        return frame, (SX.eye(3), zeros())
    turn = basis(_unit(params["axis", joint.name]))
    rotation, translation = ca.sparsify(frame[0] @ turn), frame[1]
    slide = 0.0
    if joint.kind in ("revolute", "continuous"):
        if parent == ROOT:
            slide = _height_of_child(model, params, index, turn)
        else:
            slide = _best_slide(rotation, translation)
    along = SX(ca.sparsify(ca.DM([0, 0, slide])))
    translation = ca.sparsify(_rounded(translation + rotation @ along, translation))
    return (rotation, translation), (turn.T, -along)


def _unit(axis: SX) -> SX:
    """A learnt axis is normalised; a constant one is a unit vector but for its rounding error."""
    if axis.is_constant():
        numbers = np.array(ca.DM(ca.densify(axis))).ravel()
        return SX(ca.sparsify(ca.DM(numbers / np.linalg.norm(numbers))))
    return axis / ca.sqrt(ca.sumsqr(axis))


def _rounded(shifted: SX, before: SX) -> SX:
    """Put the components that a slide was to cancel at exactly zero."""
    if not shifted.is_constant():
        return shifted
    numbers = np.array(ca.DM(ca.densify(shifted))).ravel()
    scale = np.abs(np.array(ca.DM(ca.densify(before)))).max(initial=0.0)
    return SX(ca.DM(np.where(np.abs(numbers) < 4 * np.finfo(float).eps * scale, 0.0, numbers)))


def _best_slide(rotation: SX, translation: SX) -> float:
    """How far along the joint axis the offset from the parent has fewest non-zero components."""
    if not (rotation.is_constant() and translation.is_constant()):
        return 0.0
    direction = np.array(ca.DM(ca.densify(rotation))).reshape(3, 3)[:, 2]
    offset = np.array(ca.DM(ca.densify(translation))).ravel()
    # An axis nearly normal to a direction would have to slide far, and lose digits.
    candidates = [0.0] + [-p / d for p, d in zip(offset, direction, strict=True) if abs(d) > 0.1 and p != 0]
    noise = 4 * np.finfo(float).eps * np.abs(offset).max(initial=0.0)
    return min(candidates, key=lambda t: int((np.abs(offset + t * direction) > noise).sum()))


def _height_of_child(model: Model, params: Parameters, index: int, turn: SX) -> float:
    """Where along its axis the next joint hangs: the offset from an unmoving parent costs nothing, the child's does."""
    child = model.joints[index].child
    following: list[Joint] = [j for j in model.joints if j.parent == child and j.kind != "fixed"]
    if len(following) != 1:
        return 0.0
    height = (turn.T @ params["translation", following[0].name])[2]
    return float(height) if height.is_constant() else 0.0
