"""Transmissions of MJCF's actuators beside joints with one coordinate and tendons: lengths and Jacobians by its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.model import Model
from costate.model.actuation import Crank, OnBody, OnJoint, OnTendon, Site, Transmission
from costate.model.actuation.transmission import Gear
from costate.physics.algebra import quaternion
from costate.sim.forces.configuration import Configuration
from costate.sim.forces.lengths import Found, Length, Sum


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
        return Thrust(on.site, on.gear)
    return Between(on.site, on.reference, on.gear)


def _of_joint(on: OnJoint, model: Model) -> Length:
    k = next(k for k, j in enumerate(model.joints) if j.name == on.joint)
    iq, iv, kind = model.q_index[k], model.v_index[k], model.joints[k].kind
    if kind == "floating":
        return Push(iq, iv, on.gear, on.in_parent)
    if kind == "spherical":
        return Turn(iq, iv, on.gear[:3], on.in_parent)
    return Sum(((iq, iv, on.gear[0]),))


@dataclass(frozen=True, eq=False)
class Turn(Found):
    """The turn of a spherical joint about an axis: the part of its rotation vector along it."""

    iq: int
    iv: int
    axis: tuple[float, float, float]
    in_parent: bool

    def find(self, c: Configuration) -> tuple[SX, SX]:
        turn = c.q[self.iq : self.iq + 4]
        given = _column(self.axis)
        axis = quaternion.to_rotation(turn).T @ given if self.in_parent else given
        return ca.dot(quaternion.log(turn), axis), _placed(axis, self.iv, c.tree.nv)


@dataclass(frozen=True, eq=False)
class Push(Found):
    """A force on a floating joint, in world axes, and a torque in the axes of the body or of the world. It has no length."""

    iq: int
    iv: int
    wrench: Gear
    in_parent: bool

    def find(self, c: Configuration) -> tuple[SX, SX]:
        R = quaternion.to_rotation(c.q[self.iq + 3 : self.iq + 7])
        force, torque = _column(self.wrench[:3]), _column(self.wrench[3:])
        torque = R.T @ torque if self.in_parent else torque
        return SX(0), _placed(ca.vertcat(R.T @ force, torque), self.iv, c.tree.nv)


@dataclass(frozen=True, eq=False)
class Thrust(Found):
    """A force and a torque at a site, in its axes. It has no length."""

    site: Site
    wrench: Gear

    def find(self, c: Configuration) -> tuple[SX, SX]:
        R, p = c.frame(self.site.link, self.site.pose)
        wrench = ca.vertcat(R @ _column(self.wrench[:3]), R @ _column(self.wrench[3:]))
        return SX(0), wrench.T @ c.jacobian(self.site.link, p)


@dataclass(frozen=True, eq=False)
class Between(Found):
    """The position and the turn of a site in the axes of a reference site, weighted; joints that carry both do not count."""

    site: Site
    reference: Site
    gear: Gear

    def find(self, c: Configuration) -> tuple[SX, SX]:
        (R, p), (S, r) = (c.frame(x.link, x.pose) for x in (self.site, self.reference))
        slides, turns = _column(self.gear[:3]), _column(self.gear[3:])
        length = SX(0)
        if not slides.is_zero():
            length = length + ca.dot(S.T @ (p - r), slides)
        if not turns.is_zero():
            length = length + ca.dot(quaternion.log(quaternion.from_rotation(S.T @ R)), turns)
        J = c.jacobian(self.site.link, p) - c.jacobian(self.reference.link, r)
        for k in c.chain(self.site.link) & c.chain(self.reference.link):
            J[:, k] = SX(6, 1)
        return length, ca.vertcat(S @ slides, S @ turns).T @ ca.sparsify(J)


@dataclass(frozen=True, eq=False)
class SliderCrank(Found):
    """The way of a slider along the z-axis of its site, from which a rod leads to a crank: x = a v - sqrt((a v)^2 + rod^2 - v v),
    where v leads from the slider's site to the crank and a is the axis; a v where the rod is too short."""

    on: Crank

    def find(self, c: Configuration) -> tuple[SX, SX]:
        crank, slider = self.on.crank, self.on.slider
        R, p = c.frame(slider.link, slider.pose)
        end = c.point(crank.link, crank.pose.translation)
        axis, way = R[:, 2], end - p
        along = ca.dot(axis, way)
        rest = along**2 + self.on.rod**2 - ca.dot(way, way)
        reaches = rest > 0
        root = ca.sqrt(ca.if_else(reaches, rest, 1))
        share = ca.if_else(reaches, 1 - along / root, 1)
        by_way = axis * share + ca.if_else(reaches, way / root, 0)
        at_slider = c.jacobian(slider.link, p)
        moved = c.jacobian(crank.link, end)[:3, :] - at_slider[:3, :]
        J = by_way.T @ moved + ca.cross(axis, way * share).T @ at_slider[3:, :]
        return along - ca.if_else(reaches, root, 0), J


@dataclass(frozen=True, eq=False)
class Suction(Found):
    """A pull of a link towards all that it touches, the mean over its contact points. It has no length."""

    link: str

    def find(self, c: Configuration) -> tuple[SX, SX]:
        total, count = SX(1, c.tree.nv), SX(0)
        for t in c.contacts():
            if self.link not in (t.link_a, t.link_b):
                continue
            g = t.geometry
            touches = g.gap < (t.surface.margin + t.surface.gap if t.surface else 0.0)
            J = c.jacobian(t.link_a, g.point)[:3, :] - c.jacobian(t.link_b, g.point)[:3, :]
            total = total - touches * (g.normal.T @ J)
            count = count + touches
        return SX(0), total / ca.fmax(count, 1)


def _column(values: Sequence[float]) -> SX:
    return SX(ca.sparsify(ca.DM(list(values))))


def _placed(values: SX, at: int, nv: int) -> SX:
    """Return a row (1, nv) with values from some column on."""
    row = SX(1, nv)
    row[0, at : at + values.numel()] = values.T
    return row
