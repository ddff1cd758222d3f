"""The moving bodies of a robot, in frames chosen so that its algorithms take few operations.

All recursive algorithms of this package (kinematics, RNEA, CRBA, ABA) walk over a `Tree` instead of the model itself.
Building one, in `Tree.of`, is a kind of compilation, in three steps:

1. Links joined by fixed joints are merged into one `Body`. Links fixed to the root belong to ROOT, which never moves.
2. Each body gets a frame of its own, at rest in its link (`_choose_frame`):
   - z is the joint axis, so every revolute joint turns about z and every motion subspace is a selection of axes;
   - the origin is slid along the joint axis to where the offset from the parent has most zeros, as Denavit and
     Hartenberg do. If the offset is symbolic, the origin stays at the joint.
3. The inertias of a body's links are added up about the origin of its frame (`_inertias`).

Zeros are what this is about: CasADi does not compute with structural zeros, so each zero in a rotation or an offset
removes operations from every kernel. This is why constants are made sparse, and cleaned of rounding errors, wherever
they are formed.

Joint torques, velocities and energies do not depend on the choice of frames; `Tree.links` has the pose of each link in
its body, with which poses of links are recovered.

At a configuration q, `Tree.steps` returns a `Step` for each body: its pose in its parent, kept as a constant rotation
and a joint rotation, because applying both one after the other is cheaper than applying their product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import casadi as ca
import numpy as np
from casadi import SX

from costate.model.joint import Joint
from costate.model.model import Model
from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import basis, rotate_matrix, zeros
from costate.physics.joints import JOINTS, JointKind
from costate.physics.params import Parameters

ROOT = -1
"""Index that stands for the root link, which does not move: the parent of the first bodies, the body of fixed links."""

Pose = tuple[SX, SX]
"""Rotation (3, 3) and translation (3,)."""


@dataclass(frozen=True, eq=False)
class Body:
    """Links that move as one, and the joint that moves them."""

    name: str
    """Name of the joint."""
    kind: JointKind
    """Kind of the joint."""
    parent: int
    """Index of the parent body, or ROOT."""
    rotation: SX
    """Rotation of the body frame at q = 0 in the parent body's frame, shape (3, 3)."""
    translation: SX
    """Translation of the body frame at q = 0 in the parent body's frame [m], shape (3,)."""
    inertia: Inertia
    """Inertia of all its links, about the origin of the body frame."""
    q_start: int
    """Index of the joint's first coordinate in q."""
    v_start: int
    """Index of the joint's first velocity in v."""
    scale: float = 1.0
    """Multiplier in: joint position = scale * q + offset. Only mimic joints, which read another joint's q, have one."""
    offset: float = 0.0
    """Offset in the same equation [rad or m]."""
    is_mimic: bool = False
    """True if the joint follows another one."""

    def coordinates(self, q: SX) -> SX:
        """Return the position of this joint, shape (nq,)."""
        own = q[self.q_start : self.q_start + self.kind.nq]
        return self.scale * own + self.offset if self.is_mimic else own

    def rates(self, v: SX) -> tuple[SX, SX]:
        """Return the linear and angular part of S v in the body frame, each of shape (3,); v may be accelerations."""
        own = self.velocities(v)
        split = len(self.kind.linear)
        return _scatter(own[:split], self.kind.linear), _scatter(own[split:], self.kind.angular)

    def velocities(self, v: SX) -> SX:
        """Return the velocities of this joint, shape (nv,)."""
        own = v[self.v_start : self.v_start + self.kind.nv]
        return self.scale * own if self.is_mimic else own

    def project(self, force: SX, moment: SX) -> SX:
        """Return the joint torques of a wrench in the body frame, S^T f, shape (nv,)."""
        own = ca.vertcat(*[force[k] for k in self.kind.linear], *[moment[k] for k in self.kind.angular])
        return self.scale * own if self.is_mimic else own


@dataclass(frozen=True, eq=False)
class Step:
    """Pose of a body in its parent's frame at some q: a constant rotation after the joint's, and a translation."""

    constant: SX
    """Rotation of the body frame at q = 0, shape (3, 3)."""
    joint: SX
    """Rotation of the joint, shape (3, 3)."""
    translation: SX
    """Origin of the body in the parent's frame [m], shape (3,)."""

    @property
    def rotation(self) -> SX:
        return self.constant @ self.joint

    def up(self, a: SX) -> SX:
        """Rotate a vector from the axes of the body to those of the parent."""
        return self.constant @ (self.joint @ a)

    def down(self, a: SX) -> SX:
        """Rotate a vector from the axes of the parent to those of the body."""
        return self.joint.T @ (self.constant.T @ a)

    def matrix_up(self, K: SX, is_symmetric: bool = False) -> SX:
        """Rotate a matrix from the axes of the body to those of the parent: R K R^T, shape (3, 3)."""
        return rotate_matrix(self.constant, rotate_matrix(self.joint, K, is_symmetric), is_symmetric)

    def inertia_up(self, inertia: Inertia) -> Inertia:
        """Express an inertia of the body about the origin of the parent's frame, in the parent's axes."""
        return inertia.rotated(self.joint).rotated(self.constant).shifted(self.translation)


@dataclass(frozen=True, eq=False)
class Tree:
    """The bodies of a robot, parents before children."""

    bodies: tuple[Body, ...]
    links: Mapping[str, tuple[int, Pose]]
    """Body of each link by the link's name, and the link's pose in the body's frame (for ROOT: in the root link)."""
    gravity: SX
    """Gravity in world axes [m/s^2], shape (3,)."""
    nq: int
    nv: int

    @staticmethod
    @lru_cache(maxsize=32)
    def of(model: Model, params: Parameters) -> Tree:
        """Return the tree of a model. The last few trees are cached, as most algorithms ask for the same one again."""
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
        """Return the pose of every body in its parent's frame."""
        steps = []
        for body in self.bodies:
            turn, slide = body.kind.displace(body.coordinates(q))
            steps.append(Step(body.rotation, turn, body.translation + body.rotation @ slide))
        return steps

    @property
    def has_mimics(self) -> bool:
        return any(body.is_mimic for body in self.bodies)


def compose(a: Pose, b: Pose) -> Pose:
    """Return the pose of C in A, given those of B in A and of C in B."""
    return ca.sparsify(a[0] @ b[0]), ca.sparsify(a[1] + a[0] @ b[1])


def _scatter(values: SX, indices: tuple[int, ...]) -> SX:
    """Return a (3,) vector with the given values at the given indices and structural zeros elsewhere."""
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
    """Add up the inertias of the links of every body, about the body's origin."""
    inertias = [Inertia.zero() for _ in range(count)]
    for link in model.links:
        body, (R, p) = links[link.name]
        if body != ROOT:
            own = Inertia.of(params["mass", link.name], params["com", link.name], params["inertia", link.name])
            inertias[body] += own.rotated(R).shifted(p)
    return inertias


def _choose_frame(model: Model, params: Parameters, index: int, parent: int, frame: Pose) -> tuple[Pose, Pose]:
    """Choose the frame of a body, given its joint's frame in the parent body.

    Returns the pose of the body frame at q = 0 in the parent body's frame, and the pose of the link in the body frame.
    """
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
    """Normalise an axis; a constant one is normalised as a number, so that its zeros stay structural."""
    if axis.is_constant():
        numbers = np.array(ca.DM(ca.densify(axis))).ravel()
        return SX(ca.sparsify(ca.DM(numbers / np.linalg.norm(numbers))))
    return axis / ca.sqrt(ca.sumsqr(axis))


def _rounded(shifted: SX, before: SX) -> SX:
    """Set the components that a slide was meant to cancel to exactly zero."""
    if not shifted.is_constant():
        return shifted
    numbers = np.array(ca.DM(ca.densify(shifted))).ravel()
    scale = np.abs(np.array(ca.DM(ca.densify(before)))).max(initial=0.0)
    return SX(ca.DM(np.where(np.abs(numbers) < 4 * np.finfo(float).eps * scale, 0.0, numbers)))


def _best_slide(rotation: SX, translation: SX) -> float:
    """Find the distance along the joint axis [m] at which the offset from the parent has fewest non-zero components."""
    if not (rotation.is_constant() and translation.is_constant()):
        return 0.0
    direction = np.array(ca.DM(ca.densify(rotation))).reshape(3, 3)[:, 2]
    offset = np.array(ca.DM(ca.densify(translation))).ravel()
    # An axis nearly normal to a direction would have to slide far, and lose digits.
    candidates = [0.0] + [-p / d for p, d in zip(offset, direction, strict=True) if abs(d) > 0.1 and p != 0]
    noise = 4 * np.finfo(float).eps * np.abs(offset).max(initial=0.0)
    return min(candidates, key=lambda t: int((np.abs(offset + t * direction) > noise).sum()))


def _height_of_child(model: Model, params: Parameters, index: int, turn: SX) -> float:
    """Return the height along the joint axis [m] at which the next joint is attached.

    For a joint on the root this is the best place for the origin: the offset from a parent that does not move costs no
    operations, but the offset of the child does.
    """
    child = model.joints[index].child
    following: list[Joint] = [j for j in model.joints if j.parent == child and j.kind != "fixed"]
    if len(following) != 1:
        return 0.0
    height = (turn.T @ params["translation", following[0].name])[2]
    return float(height) if height.is_constant() else 0.0
