"""Sensors: what is measured of a state, differentiable, with noise where a generator is given.

imu = cs.sensors.IMU("quad/base", pose, noise=cs.sensors.Noise(gaussian=0.02, bias=0.1))
imu.read(world, state, control)                        # (..., 6), exact
imu.read(world, state, control, generator)             # (..., 6), noisy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
import torch
from casadi import SX
from torch import Tensor

from costate.collision.shapes import FAR
from costate.core.constants import Constants
from costate.core.eager import eager
from costate.kernel import Kernel, ProgramBuilder
from costate.model import Model
from costate.model.merge import WORLD
from costate.physics.algebra import quaternion
from costate.physics.algebra.spatial import cross
from costate.physics.kinematics import body_poses, link_accelerations, link_pose, link_poses, link_velocities
from costate.sim.integrate.advance import turning
from costate.sim.scene.scene import Collider
from costate.sim.setup import Setup, Symbols
from costate.sim.step import first_substep
from costate.sim.world import World


@dataclass(frozen=True)
class Noise:
    """Errors that a sensor adds to the truth, in the unit of the sensor: value + bias + white noise, rounded to the resolution."""

    gaussian: float = 0.0
    """Standard deviation of each reading."""
    bias: float = 0.0
    """Standard deviation of an offset, drawn once per call and constant in time."""
    walk: float = 0.0
    """Growth of that offset: standard deviation after one second of `record`, as its square root goes on."""
    resolution: float = 0.0
    """Readings are multiples of it; their gradient is that of the value (straight through)."""

    def apply(self, values: Tensor, generator: torch.Generator, dt: float | None = None) -> Tensor:
        """Return values (..., n) with errors, independent of each other; with dt (T, ..., n), one row after the other in time."""

        def draw(*shape: int) -> Tensor:
            return torch.randn(shape, dtype=values.dtype, generator=generator)

        shape = values.shape
        result = values + self.gaussian * draw(*shape) if self.gaussian else values
        if self.bias:
            result = result + self.bias * draw(*(shape if dt is None else shape[1:]))
        if self.walk and dt is not None:
            steps = self.walk * dt**0.5 * draw(*shape)
            result = result + torch.cumsum(steps, 0) - steps[:1]
        if self.resolution:
            result = result + (torch.round(result / self.resolution) * self.resolution - result).detach()
        return result


@dataclass(frozen=True, kw_only=True)
@eager
class Sensor(Constants):
    """Something that is measured."""

    noise: Noise = field(default_factory=Noise)

    def read(
        self, world: World, state: Tensor, control: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return readings (..., n) at states (..., nx); without a generator exact ones."""
        values = self._values(world, state, control)
        return values if generator is None else self.noise.apply(values, generator)

    def record(
        self, world: World, states: Tensor, controls: Tensor | None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return readings (T, ..., n) along states (T, ..., nx), one per control step: biases stay and walk on."""
        values = self._values(world, states, controls)
        return values if generator is None else self.noise.apply(values, generator, world.dt)

    def _values(self, world: World, state: Tensor, control: Tensor | None) -> Tensor:
        (values,) = world._call(repr(self), self._kernel, state, control, None, None)  # type: ignore[arg-type]
        return values

    def _kernel(self, setup: Setup) -> Kernel:
        s = Symbols(setup)
        b = ProgramBuilder("world.sensor")
        names = ["state", "control", *setup.parameters]
        args = [b.input(name, x.numel()) for name, x in zip(names, s.inputs, strict=True)]
        after = SX.sym("after", setup.nx)
        more = [first_substep(b, setup, args)[0]] if self._looks_ahead else []
        reading = ca.densify(self._expression(s, after))
        symbols = [*s.inputs, after] if more else s.inputs
        b.output("reading", b.call(ca.Function("reading", symbols, [reading]), *args, *more)[0])
        return b.kernel()

    _looks_ahead = False

    def _expression(self, s: Symbols, after: SX) -> SX:
        raise NotImplementedError


@dataclass(frozen=True)
class JointPosition(Sensor):
    """Positions [rad or m] of joints with one coordinate, (..., number of joints)."""

    joints: tuple[str, ...]

    def _expression(self, s: Symbols, after: SX) -> SX:
        return ca.vertcat(*(s.q[i] for i, _ in _places(s.setup.scene.model, self.joints)))


@dataclass(frozen=True)
class JointVelocity(Sensor):
    """Velocities [rad/s or m/s] of joints with one coordinate, (..., number of joints)."""

    joints: tuple[str, ...]

    def _expression(self, s: Symbols, after: SX) -> SX:
        return ca.vertcat(*(s.v[i] for _, i in _places(s.setup.scene.model, self.joints)))


@dataclass(frozen=True)
class LinkPose(Sensor):
    """Position [m] and quaternion x, y, z, w of a link in the world, (..., 7)."""

    link: str

    def _expression(self, s: Symbols, after: SX) -> SX:
        link = _link(s, self.link)
        R, p = link_poses(s.setup.scene.model, s.params, s.q, [link])[link]
        return ca.vertcat(p, quaternion.from_rotation(R))


@dataclass(frozen=True)
class LinkVelocity(Sensor):
    """Velocity of a link's origin [m/s] and its angular velocity [rad/s], world axes, (..., 6)."""

    link: str

    def _expression(self, s: Symbols, after: SX) -> SX:
        link = _link(s, self.link)
        return ca.vertcat(*link_velocities(s.setup.scene.model, s.params, s.q, s.v, [link])[link])


@dataclass(frozen=True)
class IMU(Sensor):
    """Accelerometer [m/s^2], then gyroscope [rad/s], in the axes of the sensor, (..., 6).

    The acceleration is the mean over the next substep, contacts included, less gravity: at rest it points up.
    """

    link: str
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position of the sensor in its link [m]."""
    quaternion: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """x, y, z, w of the sensor's axes in its link."""

    _looks_ahead = True

    def _expression(self, s: Symbols, after: SX) -> SX:
        model, link = s.setup.scene.model, _link(s, self.link)
        a = _mean_acceleration(s, after)
        R, _ = link_poses(model, s.params, s.q, [link])[link]
        _, omega = link_velocities(model, s.params, s.q, s.v, [link])[link]
        linear, alpha = link_accelerations(model, s.params, s.q, s.v, a, [link])[link]
        arm = R @ SX(list(self.position))
        felt = linear + cross(alpha, arm) + cross(omega, cross(omega, arm)) - s.params["gravity", ""]
        turn = np.asarray(self.quaternion, float)
        axes = R @ quaternion.to_rotation(SX(list(turn / np.linalg.norm(turn))))
        return ca.vertcat(axes.T @ felt, axes.T @ omega)


@dataclass(frozen=True)
class ContactForce(Sensor):
    """Sum of all contact forces on a link during the next substep [N], world axes, (..., 3)."""

    link: str

    def _values(self, world: World, state: Tensor, control: Tensor | None) -> Tensor:
        link = _known(world.link_names, self.link)
        found = world.contacts(state, control)
        signs = [float(a == link) - float(b == link) for a, b in found.pairs]
        if not any(signs):
            raise ValueError(f"nothing can touch '{link}' in this world")
        forces = found.normals * found.forces.unsqueeze(-1) + found.friction
        return (forces * torch.tensor(signs, dtype=forces.dtype).unsqueeze(-1)).sum(-2)


@dataclass(frozen=True)
class Touch(Sensor):
    """Sum of the normal forces on a link, or on some of its shapes, during the next substep [N], (..., 1)."""

    link: str
    shapes: tuple[str, ...] = ()
    """Names of shapes (`world.shape_names`); none: all of the link's."""

    def _values(self, world: World, state: Tensor, control: Tensor | None) -> Tensor:
        link = _known(world.link_names, self.link)
        own = [c.name for c in world.setup.scene.colliders if c.link == link]
        for name in self.shapes:
            if name not in own:
                raise ValueError(f"'{link}' has no shape '{name}'; it has {', '.join(own) or 'none'}")
        felt = set(self.shapes or own)
        found = world.contacts(state, control)
        counts = [float(any(name in felt for name in pair)) for pair in found.shapes]
        if not any(counts):
            raise ValueError(f"nothing can touch {', '.join(self.shapes) or link} in this world")
        return (found.forces * torch.tensor(counts, dtype=found.forces.dtype)).sum(-1, keepdim=True)


@dataclass(frozen=True)
class RangeFinder(Sensor):
    """Distances [m] along rays to the nearest shape of the world, (..., number of rays).

    Rays see plane, sphere, box, capsule, cylinder, ellipsoid and hull, and unions of them; not the shapes of the sensor's own link.
    """

    link: str
    """Link that carries the sensor, or "world"."""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Origin of the rays, in the link [m]."""
    directions: tuple[tuple[float, float, float], ...] = ((0.0, 0.0, 1.0),)
    """Directions of the rays, in the axes of the link."""
    limit: float = 10.0
    """The reading where nothing nearer is hit [m]."""
    ignore: tuple[str, ...] = ()
    """Shapes, links, bodies or scenery that rays pass through."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.limit <= FAR:
            raise ValueError(f"RangeFinder: limit must be positive and at most {FAR:g} m, not {self.limit}")
        if not self.directions or not all(np.linalg.norm(d) > 0 for d in self.directions):
            raise ValueError(f"RangeFinder: directions must be vectors that are not zero, not {self.directions}")

    def _expression(self, s: Symbols, after: SX) -> SX:
        link = _link(s, self.link)
        bodies = body_poses(s.tree, s.q)
        R, p = link_pose(s.tree, bodies, link)
        start = p + R @ SX(list(self.position))
        readings = [SX(self.limit)] * len(self.directions)
        for c in self._seen(s, link):
            placed = s.place(c, link_pose(s.tree, bodies, c.link))
            at, turn = placed.to_local(start), placed.rotation.T @ R
            for k, direction in enumerate(self.directions):
                d = SX(ca.sparsify(ca.DM(np.asarray(direction, float) / np.linalg.norm(direction))))
                try:
                    distance = placed.solid.ray_distance(at, turn @ d)
                except TypeError as error:
                    raise ValueError(f"RangeFinder: {error}; leave '{c.name}' out with ignore=") from None
                readings[k] = ca.fmin(readings[k], distance)
        return ca.vertcat(*readings)

    def _seen(self, s: Symbols, link: str) -> list[Collider]:
        colliders = s.setup.scene.colliders
        named = [{c.name, c.link, c.owner} for c in colliders]
        for name in self.ignore:
            if not any(name in names for names in named):
                raise ValueError(
                    f"RangeFinder: nothing is called '{name}'; shapes are {', '.join(c.name for c in colliders)}"
                )
        own = set() if link == WORLD else {link}
        return [
            c for c, names in zip(colliders, named, strict=True) if c.link not in own and not names & set(self.ignore)
        ]


def _mean_acceleration(s: Symbols, after: SX) -> SX:
    """Return the mean acceleration of the velocity coordinates over a substep, (nv,), from the state at its end: the way back
    through `advance`."""
    model, nq = s.setup.scene.model, s.setup.nq
    q, v = after[:nq], SX(after[nq : nq + s.setup.nv])
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        if j.kind == "floating":
            before, now = (quaternion.to_rotation(x[iq + 3 : iq + 7]) for x in (s.q, q))
            v[iv : iv + 3] = before.T @ (now @ v[iv : iv + 3])
        elif j.kind == "planar":
            c, d = ca.cos(q[iq + 2] - s.q[iq + 2]), ca.sin(q[iq + 2] - s.q[iq + 2])
            v[iv : iv + 2] = ca.vertcat(c * v[iv] - d * v[iv + 1], d * v[iv] + c * v[iv + 1])
    return (v - s.v) / s.setup.dt - turning(model, s.v)


def _places(model: Model, joints: Sequence[str]) -> list[tuple[int, int]]:
    """Return the indices of a joint in q and v."""
    index = {j.name: (a, b) for j, a, b in zip(model.joints, model.q_index, model.v_index, strict=True) if j.nv == 1}
    for name in joints:
        if name not in index:
            raise ValueError(f"no joint '{name}' with one coordinate to measure; there are {', '.join(index)}")
    return [index[name] for name in joints]


def _link(s: Symbols, name: str) -> str:
    return _known([link.name for link in s.setup.scene.model.links], name)


def _known(links: Sequence[str], name: str) -> str:
    for full in (name, f"{name}/body"):
        if full in links:
            return full
    raise ValueError(f"no link '{name}' to measure; links are {', '.join(links)}")


__all__ = [
    "IMU",
    "ContactForce",
    "JointPosition",
    "JointVelocity",
    "LinkPose",
    "LinkVelocity",
    "Noise",
    "RangeFinder",
    "Sensor",
    "Touch",
]
