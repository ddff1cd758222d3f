"""Transmissions of MJCF's actuators beside joints with one coordinate and tendons: lengths and Jacobians by its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.model import Model
from costate.model.actuation import Crank, OnBody, OnJoint, OnTendon, Site, Transmission
from costate.physics.algebra import quaternion
from costate.sim.forces.configuration import Configuration
from costate.sim.forces.lengths import Length, Sum


def length_of(on: Transmission, model: Model, tendons: Mapping[str, Length]) -> Length:
    """Return the length that a transmission acts along."""
    if isinstance(on, OnJoint):
        return _of_joint(on, model)
    if isinstance(on, OnTendon):
        return tendons[on.tendon].scaled(on.gear)
    if isinstance(on, Crank):
        return SliderCrank(on).scaled(on.gear)
    if isinstance(on, OnBody):
        return Suction(on.link).scaled(on.gear)
    if on.reference is None:
        return Thrust(on.site, SX(list(on.gear)))
    return Between(on.site, on.reference, SX(list(on.gear)))


def _of_joint(on: OnJoint, model: Model) -> Length:
    k = next(k for k, j in enumerate(model.joints) if j.name == on.joint)
    iq, iv, kind = model.q_index[k], model.v_index[k], model.joints[k].kind
    gear = SX(list(on.gear))
    if kind == "floating":
        return Push(iq, iv, gear, on.in_parent)
    if kind == "spherical":
        return Turn(iq, iv, gear[:3], on.in_parent)
    return Sum(((iq, iv, on.gear[0]),))


@dataclass(frozen=True, eq=False)
class Turn(Length):
    """The turn of a spherical joint about an axis: the part of its rotation vector along it."""

    iq: int
    iv: int
    axis: SX
    in_parent: bool

    def of(self, c: Configuration) -> SX:
        return ca.dot(quaternion.log(c.q[self.iq : self.iq + 4]), self._axis(c))

    def row(self, c: Configuration) -> SX:
        return _placed(self._axis(c), self.iv, c.tree.nv)

    def _axis(self, c: Configuration) -> SX:
        return quaternion.to_rotation(c.q[self.iq : self.iq + 4]).T @ self.axis if self.in_parent else self.axis


@dataclass(frozen=True, eq=False)
class Push(Length):
    """A force on a floating joint, in world axes, and a torque in the axes of the body or of the world. It has no length."""

    iq: int
    iv: int
    wrench: SX
    in_parent: bool

    def of(self, c: Configuration) -> SX:
        return SX(0)

    def row(self, c: Configuration) -> SX:
        R = quaternion.to_rotation(c.q[self.iq + 3 : self.iq + 7])
        torque = R.T @ self.wrench[3:] if self.in_parent else self.wrench[3:]
        return _placed(ca.vertcat(R.T @ self.wrench[:3], torque), self.iv, c.tree.nv)


@dataclass(frozen=True, eq=False)
class Thrust(Length):
    """A force and a torque at a site, in its axes. It has no length."""

    site: Site
    wrench: SX

    def of(self, c: Configuration) -> SX:
        return SX(0)

    def row(self, c: Configuration) -> SX:
        R, p = c.frame(self.site.link, self.site.pose)
        return ca.vertcat(R @ self.wrench[:3], R @ self.wrench[3:]).T @ c.jacobian(self.site.link, p)


@dataclass(frozen=True, eq=False)
class Between(Length):
    """The position and the turn of a site in the axes of a reference site, weighted; joints that carry both do not count."""

    site: Site
    reference: Site
    gear: SX

    def of(self, c: Configuration) -> SX:
        (R, p), (S, r) = (c.frame(x.link, x.pose) for x in (self.site, self.reference))
        total = SX(0)
        if not self.gear[:3].is_zero():
            total = total + ca.dot(S.T @ (p - r), self.gear[:3])
        if not self.gear[3:].is_zero():
            total = total + ca.dot(quaternion.log(quaternion.from_rotation(S.T @ R)), self.gear[3:])
        return total

    def row(self, c: Configuration) -> SX:
        _, p = c.frame(self.site.link, self.site.pose)
        S, r = c.frame(self.reference.link, self.reference.pose)
        J = c.jacobian(self.site.link, p) - c.jacobian(self.reference.link, r)
        for k in c.chain(self.site.link) & c.chain(self.reference.link):
            J[:, k] = SX(6, 1)
        return ca.vertcat(S @ self.gear[:3], S @ self.gear[3:]).T @ ca.sparsify(J)


@dataclass(frozen=True, eq=False)
class SliderCrank(Length):
    """The way of a slider along the z-axis of its site, from which a rod leads to a crank: x = a v - sqrt((a v)^2 + rod^2 - v v),
    where v leads from the slider's site to the crank and a is the axis; a v where the rod is too short."""

    on: Crank

    def of(self, c: Configuration) -> SX:
        return self._parts(c)[0]

    def row(self, c: Configuration) -> SX:
        _, by_axis, by_way = self._parts(c)
        crank, slider = self.on.crank, self.on.slider
        R, p = c.frame(slider.link, slider.pose)
        at_slider, at_crank = (
            c.jacobian(slider.link, p),
            c.jacobian(crank.link, c.point(crank.link, crank.pose.translation)),
        )
        turning = ca.cross(R[:, 2], by_axis)
        return by_way.T @ (at_crank[:3, :] - at_slider[:3, :]) + turning.T @ at_slider[3:, :]

    def _parts(self, c: Configuration) -> tuple[SX, SX, SX]:
        """Return the length, and its derivatives in the axis and in the way from slider to crank, (3,) each."""
        R, p = c.frame(self.on.slider.link, self.on.slider.pose)
        axis, way = R[:, 2], c.point(self.on.crank.link, self.on.crank.pose.translation) - p
        along = ca.dot(axis, way)
        rest = along**2 + self.on.rod**2 - ca.dot(way, way)
        reaches = rest > 0
        root = ca.sqrt(ca.if_else(reaches, rest, 1))
        share = 1 - along / root
        length = along - ca.if_else(reaches, root, 0)
        by_way = ca.if_else(reaches, axis * share + way / root, axis)
        return length, ca.if_else(reaches, way * share, way), by_way


@dataclass(frozen=True, eq=False)
class Suction(Length):
    """A pull of a link towards all that it touches, the mean over its contact points. It has no length."""

    link: str

    def of(self, c: Configuration) -> SX:
        return SX(0)

    def row(self, c: Configuration) -> SX:
        total, count = SX(1, c.tree.nv), SX(0)
        for t in c.contacts():
            if self.link not in (t.link_a, t.link_b):
                continue
            g = t.geometry
            reach = t.surface.margin + t.surface.gap if t.surface else 0.0
            touches = g.gap < reach
            J = c.jacobian(t.link_a, g.point)[:3, :] - c.jacobian(t.link_b, g.point)[:3, :]
            total = total - touches * (g.normal.T @ J)
            count = count + touches
        return total / ca.fmax(count, 1)


def _placed(values: SX, at: int, nv: int) -> SX:
    """Return a row (1, nv) with values from some column on."""
    row = SX(1, nv)
    row[0, at : at + values.numel()] = values.T
    return row
