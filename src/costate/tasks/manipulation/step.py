"""The model that a policy is trained in, as one compiled step: joints move as they are told, the object by proposed forces alone.

Nothing is detected and nothing is solved. A proposal is, for each end-effector, a point on the object, a point on the finger and a
force on the object; whatever of it is not physically possible is a residual:

    distance   (point on the object - point on the finger) times the force: a force needs contact
    cone       part of the force outside of the friction cone
    slip       velocity of one point against the other, times the force: a contact that bears a force sticks
    surface    distances of both points from the surfaces that they are moved to
    limits     joints beyond their limits
    overlap    depth of fingers in the object or the floor, and of the object in the floor
    near       depth within a small margin around all of these that bear no force
    drag       (if asked for) sliding of links along the object next to them, whether they bear a force or not

Each block is scaled so that one unit of it is a lot (1 N, 1 cm, 1 rad). State (nx,): joints, position and quaternion xyzw of the
object, its linear and angular velocity in world axes, time as a part of the whole. Action (na,): joint rates before tanh, then
nine numbers for each end-effector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import Kernel
from costate.physics.algebra import quaternion
from costate.physics.algebra.spatial import cross
from costate.physics.kinematics import body_poses, body_velocities, link_pose
from costate.physics.params import Parameters
from costate.physics.tree import Tree
from costate.tasks.manipulation.hand import Capsule, Hand
from costate.tasks.manipulation.objects import TINY, Thing

POINT = 0.1
"""Size of one unit of a proposed point [m]."""
NUMBERS = 9
"""Numbers of a proposal: point on the object, point on the finger, force."""
CENTIMETRE, SLOW, BRISK = 0.01, 0.1, 10.0
"""Units of residuals [m, m/s, rad/s^2]."""


@dataclass(frozen=True)
class Physics:
    """Numbers of the model."""

    dt: float = 0.01
    """Length of a step [s]."""
    steps: int = 20
    """Steps of an episode."""
    gravity: float = 9.81
    """Gravity [m/s^2]."""
    floor: bool = True
    """True if the floor is an end-effector, too."""
    hinge: bool = False
    """True if the object only turns about the vertical."""
    carried: bool = False
    """True if the hinge carries whatever does not turn the object; else that is a residual."""
    drag: float = 0.0
    """Distance at which links of the fingers must not slide along the object any more [m]; 0: they may."""
    calm: bool = False
    """True if pulling costs all of its force, and the arm must not accelerate more than servos can follow."""
    smooth: bool = False
    """True if slip is the velocity times each component of the force; else times its size, with the same sum of squares."""
    force: float = 0.1
    """Size of one unit of a proposed force on an object of the usual size [N]."""
    arm_speed: float = 3.0
    """Fastest joint of the arm [rad/s]."""
    hand_speed: float = 20.0
    """Fastest joint of the hand [rad/s]."""
    margin: float = 0.01
    """Distance that whatever bears no force keeps [m]."""


@dataclass(frozen=True, eq=False)
class Step:
    """The compiled step of a hand and an object."""

    hand: Hand
    thing: Thing
    physics: Physics

    @property
    def effectors(self) -> int:
        """Number of end-effectors."""
        return len(self.hand.tips) + self.physics.floor

    @property
    def nq(self) -> int:
        """Number of joints."""
        return len(self.hand.joints)

    @property
    def nx(self) -> int:
        """Size of a state."""
        return self.nq + 14

    @property
    def na(self) -> int:
        """Size of an action."""
        return len(self.hand.driven) + NUMBERS * self.effectors

    @property
    def inputs(self) -> int:
        """Number of what a policy sees."""
        return len(self.hand.driven) + (8 if self.physics.hinge else 14)

    @cached_property
    def speeds(self) -> np.ndarray:
        """Fastest rate of each driven joint [rad/s]."""
        arm = [name in self.hand.joints[: self.hand.arm] for name in self.hand.driven]
        return np.where(arm, self.physics.arm_speed, self.physics.hand_speed)

    @cached_property
    def kernel(self) -> Kernel:
        """Function of state, action and object (scale, mass, friction) that returns the next state, what the policy sees there, and
        the residuals of this step, one block after the other."""
        x, a, thing = SX.sym("state", self.nx), SX.sym("action", self.na), SX.sym("object", 3)
        after, blocks = self.advance(x, a, thing)
        rows = ca.vertcat(*blocks.values())
        out = {"after": after, "seen": self.seen(after, thing), "residual": rows}
        return Kernel("manipulation", {"state": x, "action": a, "object": thing}, out)

    @cached_property
    def observe(self) -> Kernel:
        """Function of state and object that returns what the policy sees."""
        x, thing = SX.sym("state", self.nx), SX.sym("object", 3)
        return Kernel("observe", {"state": x, "object": thing}, {"seen": self.seen(x, thing)})

    @cached_property
    def overlap(self) -> Kernel:
        """Function of pose and scale of an object that returns how deep a link of the hand at home is within it [m]; negative: the
        least distance. Looked at are five points along each link."""
        pose, scale, depth = SX.sym("pose", 7), SX.sym("scale", 1), []
        R, poses = quaternion.to_rotation(pose[3:]), self.poses(SX(ca.DM(self.hand.home)))[1]
        for capsule in (*self.hand.tips, *self.hand.others):
            R_link, at = poses[capsule.link]
            for part in np.linspace(0, 1, 5):
                here = R.T @ (at + R_link[:, 2] * part * capsule.length - pose[:3])
                depth.append(capsule.radius - self.thing.distance(here, scale))
        return Kernel("overlap", {"pose": pose, "scale": scale}, {"depth": ca.mmax(ca.vertcat(*depth))})

    @cached_property
    def blocks(self) -> Mapping[str, slice]:
        """Name of a block of residuals -> its rows."""
        sizes = {
            n: b.numel() for n, b in self.advance(SX.sym("x", self.nx), SX.sym("a", self.na), SX.sym("o", 3))[1].items()
        }
        ends = np.cumsum(list(sizes.values())).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    # --- equations ------------------------------------------------------------------------------------------------

    def seen(self, x: SX, thing: SX) -> SX:
        """Return what a policy sees of a state: joints, object, the way from palm to object, scale, time; each of order one. The
        angle of a hinge is not seen, as it makes no difference to the hand."""
        q, (p, quat, _, _, time) = x[: self.nq], self._parts(x)
        driven = [self.hand.joints.index(name) for name in self.hand.driven]
        axes = SX.zeros(0) if self.physics.hinge else ca.vec(quaternion.to_rotation(quat)[:, :2])
        _, palm = self.poses(q)[1]["palm"]
        home = self.hand.home[driven]
        return ca.vertcat(q[driven] - home, 10 * p, axes, 10 * (p - palm), 5 * (thing[0] - 1), 2 * time - 1)

    def advance(self, x: SX, a: SX, thing: SX) -> tuple[SX, dict[str, SX]]:
        """Return the next state, and the blocks of residuals."""
        o, (p, quat, v, w, time) = self.physics, self._parts(x)
        scale, mass, mu = thing[0], thing[1], thing[2]
        rates = ca.SX(self.speeds) * ca.tanh(a[: len(self.hand.driven)])
        dq = ca.SX(self.hand.coupling) @ rates
        q, R = x[: self.nq] + o.dt * dq, self.frame(quat)
        contacts = [self.proposal(a, k, scale) for k in range(self.effectors)]
        forces = [R @ f for _, _, f, _ in contacts]
        force = ca.vertcat(0, 0, -mass * o.gravity) + sum(forces, SX.zeros(3))
        torque = sum((cross(R @ on, f) for (on, *_), f in zip(contacts, forces, strict=True)), SX.zeros(3))
        inertia = mass * self.thing.radii(scale)
        lost = SX.zeros(0)
        if o.hinge:
            lost = ca.vertcat(force / mass / 9.81, torque[:2] / (inertia[2] * 100))
            v, w = SX.zeros(3), ca.vertcat(0, 0, w[2] + o.dt * torque[2] / inertia[2])
        else:
            v, w = v + o.dt * force / mass, w + o.dt * R @ ((R.T @ torque) / inertia)
        after = ca.vertcat(
            q, p + o.dt * v, quaternion.normalized(quaternion.product(quaternion.exp(o.dt * w), quat)), v, w,
            time + 1 / o.steps,
        )  # fmt: skip
        blocks = self._consistency(x[: self.nq], dq, (p, R, v, w), contacts, scale, mu, rates)
        blocks |= self._apart(q, after, scale)
        if o.drag:
            blocks["drag"] = self._drag(x[: self.nq], dq, (p, R, v, w), scale)
        return after, blocks | ({"lost": lost} if o.hinge and not o.carried else {})

    def _parts(self, x: SX) -> tuple[SX, SX, SX, SX, SX]:
        n = self.nq
        return x[n : n + 3], x[n + 3 : n + 7], x[n + 7 : n + 10], x[n + 10 : n + 13], x[n + 13]

    def frame(self, quat: SX) -> SX:
        """Return the rotation of the axes that proposals are in: those of the object. On a hinge they stand still, as a cylinder is
        the same all around: else a policy would have to turn all its proposals by whatever angle the cylinder has."""
        return SX.eye(3) if self.physics.hinge else quaternion.to_rotation(quat)

    def unit(self, scale: SX) -> SX:
        """Return the unit of proposed forces [N]. It grows with the volume, as weights do: then the same proposals move objects of
        other sizes alike, while a given force would throw a small one into the air."""
        return self.physics.force * scale**3

    def proposal(self, a: SX, k: int, scale: SX) -> tuple[SX, SX, SX, SX]:
        """Return point on the object [m] in the axes of `frame`, point on the finger [m] in the link's, force [N] in the axes of
        `frame`, and how far the points were from their surfaces (2,) [m]."""
        start = len(self.hand.driven) + NUMBERS * k
        on, under, force = (a[start + 3 * i : start + 3 * i + 3] for i in range(3))
        on, under, force = POINT * scale * on, POINT * under, self.unit(scale) * force
        surfaced = self.thing.surfaced(on, scale)
        if k < len(self.hand.tips):
            placed, off = on_capsule(under, self.hand.tips[k])
        else:
            placed, off = ca.vertcat(under[:2], 0), under[2]
        return surfaced, placed, force, ca.vertcat((self.thing.level(on, scale) - 1) * POINT, off)

    def poses(self, q: SX) -> tuple[tuple, dict[str, tuple[SX, SX]]]:
        """Return tree and poses of bodies, and the poses of links in the world."""
        tree = Tree.of(self.hand.model, Parameters.of(self.hand.model))
        bodies = body_poses(tree, q)
        B, b = ca.SX(self.hand.base.rotation), ca.SX(self.hand.base.translation)
        names = ["palm", *(c.link for c in (*self.hand.tips, *self.hand.others))]
        poses = {name: link_pose(tree, bodies, name) for name in names}
        return (tree, bodies), {name: (B @ R, B @ p + b) for name, (R, p) in poses.items()}

    def _consistency(
        self, q: SX, dq: SX, body: tuple[SX, SX, SX, SX], contacts: list, scale: SX, mu: SX, rates: SX
    ) -> dict[str, SX]:
        """Return the residuals of the proposals at the start of the step."""
        p, R, v, w = body
        (tree, bodies), poses = self.poses(q)
        twists = body_velocities(tree, bodies, dq)
        B = ca.SX(self.hand.base.rotation)
        rows: dict[str, list[SX]] = {n: [] for n in ("distance", "cone", "slip", "surface", "forces")}
        unit = self.unit(scale)
        for k, (on, under, f, off) in enumerate(contacts):
            there = p + R @ on
            moving = v + cross(w, R @ on)
            if k < len(self.hand.tips):
                tip = self.hand.tips[k]
                RF, pF = poses[tip.link]
                other = pF + RF @ under
                index, (_, offset) = tree.links[tip.link]
                linear, omega = twists[index]
                arm = bodies[index][0] @ offset + B.T @ RF @ under
                moving -= B @ (linear + cross(omega, arm))
            else:
                other = under
            gap, n = there - other, self.thing.normal(on, scale)
            along = -ca.dot(n, f)
            across = ca.sqrt(ca.sumsqr(f + along * n) + (0.01 * unit) ** 2)
            rows["distance"].append(ca.vec(gap @ f.T) / (CENTIMETRE * unit))
            rows["cone"].append(ca.fmax(across - mu * along, 0) / unit)
            if self.physics.calm:
                rows["cone"].append(ca.fmax(-along, 0) / unit)
            rows["slip"].append(self._slip(moving, f, unit))
            rows["surface"].append(off / CENTIMETRE)
            rows["forces"].append(f / unit)
        return {name: ca.vertcat(*parts) for name, parts in rows.items()} | {"rates": rates / ca.SX(self.speeds)}

    def _slip(self, moving: SX, f: SX, unit: SX) -> SX:
        """Return the residuals of a velocity [m/s] at which a force [N] slips.

        Their squares add up to those of velocity times the root of |f|^2 + 0.01^2, f in units of force. The nine products of
        components are smooth, while that root bends where a force vanishes: a linear model holds for hundredths of a unit there,
        and steps that pass it are halved."""
        if self.physics.smooth:
            return ca.vertcat(ca.vec(moving @ f.T) / unit, 0.01 * moving) / SLOW
        return moving * ca.sqrt(ca.sumsqr(f) + (0.01 * unit) ** 2) / (SLOW * unit)

    def _drag(self, q: SX, dq: SX, body: tuple[SX, SX, SX, SX], scale: SX) -> SX:
        """Return the sliding velocities of links near the object at the start of the step, three for each point looked at."""
        p, R, v, w = body
        (tree, bodies), poses = self.poses(q)
        twists, B, rows = body_velocities(tree, bodies, dq), ca.SX(self.hand.base.rotation), []
        for capsule in (*self.hand.tips, *(c for c in self.hand.others if c.link.endswith("middle"))):
            R_link, at = poses[capsule.link]
            index, (_, offset) = tree.links[capsule.link]
            linear, omega = twists[index]
            for part in (0.0, 0.5, 1.0):
                along = R_link[:, 2] * part * capsule.length
                here = R.T @ (at + along - p)
                n = self.thing.normal(here, scale)
                gap = self.thing.distance(here, scale) - capsule.radius
                touching = here - (gap + capsule.radius) * n
                arm = bodies[index][0] @ offset + B.T @ (along - capsule.radius * R @ n)
                sliding = R.T @ (v + cross(w, R @ touching) - B @ (linear + cross(omega, arm)))
                near = ca.fmin(ca.fmax(1 - gap / self.physics.drag, 0), 1)
                rows.append(near * (sliding - ca.dot(n, sliding) * n) / SLOW)
        return ca.vertcat(*rows)

    def _apart(self, q: SX, after: SX, scale: SX) -> dict[str, SX]:
        """Return the residuals of limits and overlaps at the end of the step."""
        p, quat, *_ = self._parts(after)
        R, (_, poses) = quaternion.to_rotation(quat), self.poses(q)
        model = self.hand.model
        limits = ca.fmax(ca.SX(model.lower) - q, 0) + ca.fmax(q - ca.SX(model.upper), 0)
        gaps, close = [], []
        for capsule in (*self.hand.tips, *self.hand.others):
            R_link, at = poses[capsule.link]
            for part in (0.5, 1.0) if capsule in self.hand.tips else (0.5,):
                point = at + R_link[:, 2] * part * capsule.length
                inside = self.thing.distance(R.T @ (point - p), scale) - capsule.radius
                both = [inside, point[2] - capsule.radius] if self.physics.floor else [inside]
                gaps += both
                close += both if capsule not in self.hand.tips else both[1:]
        if self.physics.floor:
            corners = p + R @ self.thing.lowest(scale)
            gaps.append(corners[2, :].T)
        out = {"limits": limits, "overlap": ca.fmax(-ca.vertcat(*gaps), 0) / CENTIMETRE}
        return out | {"near": ca.fmax(self.physics.margin - ca.vertcat(*close), 0) / CENTIMETRE}


def on_capsule(point: SX, capsule: Capsule) -> tuple[SX, SX]:
    """Return the point of a capsule's surface nearest to a point in its link's frame, and how far that is [m]."""
    axis = ca.vertcat(0, 0, ca.fmin(ca.fmax(point[2], 0), capsule.length))
    out = ca.sqrt(ca.sumsqr(point - axis) + TINY)
    return axis + (point - axis) * capsule.radius / out, out - capsule.radius
