"""Laws of friction in joints: columns of which a joint's friction is a weighted sum, beside damping and Coulomb friction.

    offset           1                                       a sensor's zero, or a spring
    stribeck         tanh(v / s) exp(-(v / w)^2)             friction falls from rest to a speed w
    load             tanh(v / s) |load|, v |load|            gears press harder under load
    lugre            z:  dz/dt = (v - |v| z) / d             bristles that bend over a distance d (Canudas de Wit et al., 1995)
    monotone         tanh(v / s), s = 0.03 ... 1, v |v|      any friction that grows with speed: weights are not negative
    combined         lugre, load and monotone together

All but the first have the offset, too. Numbers inside a law (w, d) are tried one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array

SHARP = 1e-2
"""Speed at which Coulomb friction reaches 76 % of its full value, as in `costate.physics` [rad/s or m/s]."""
SPEEDS = (0.03, 0.1, 0.3, 1.0)
"""Speeds of the steps of a monotone law [rad/s or m/s]."""
STRIBECK = (0.02, 0.05, 0.1, 0.2)
DISTANCES = (3e-4, 1e-3, 3e-3, 1e-2)


@dataclass(frozen=True, eq=False)
class Motion:
    """The motion that friction may depend on."""

    t: Array
    """Times [s], shape (N,)."""
    v: Array
    """Velocities, shape (N, nv)."""
    load: Array
    """Torques of the robot without friction, shape (N, nv)."""


@dataclass(frozen=True, eq=False)
class Law:
    """A law of friction: columns, and which of their weights may not be negative."""

    name: str
    columns: Callable[[Motion], Array]
    """Function that returns columns of each joint, shape (N, nv, k)."""
    signs: tuple[bool, ...] = ()
    """True for weights that may not be negative, shape (k,)."""


def laws(names: Sequence[str]) -> list[Law]:
    """Return the laws of some names, one for every number that is tried inside them."""
    return [law for name in names for law in KINDS[name]]


def _stack(*parts: Array) -> Array:
    return np.stack(parts, -1)


def bristles(t: Array, v: Array, distance: float) -> Array:
    """Return the deflection z of bristles, from -1 to 1, shape (N, nv). Exact for a speed that is constant from row to row."""
    middle = (v[1:] + v[:-1]) / 2
    side, keep = np.sign(middle), np.exp(-np.abs(middle) * np.diff(t)[:, None] / distance)
    z = np.zeros_like(v)
    for k in range(len(middle)):
        z[k + 1] = side[k] + (z[k] - side[k]) * keep[k]
    return z


def _steps(m: Motion) -> list[Array]:
    return [np.tanh(m.v / s) for s in SPEEDS] + [m.v * np.abs(m.v)]


def _stribeck(speed: float) -> Law:
    def columns(m: Motion) -> Array:
        return _stack(np.ones_like(m.v), np.tanh(m.v / SHARP) * np.exp(-((m.v / speed) ** 2)))

    return Law(f"stribeck, {speed:g} rad/s", columns, (False, False))


def _lugre(distance: float) -> Law:
    def columns(m: Motion) -> Array:
        return _stack(np.ones_like(m.v), bristles(m.t, m.v, distance))

    return Law(f"lugre, {distance:g} rad", columns, (False, True))


def _combined(distance: float) -> Law:
    def columns(m: Motion) -> Array:
        z, load = bristles(m.t, m.v, distance), np.abs(m.load)
        return _stack(np.ones_like(m.v), z, z * load, m.v * load, *_steps(m))

    return Law(f"combined, {distance:g} rad", columns, (False, True, True, False, *(True,) * (len(SPEEDS) + 1)))


def _load(m: Motion) -> Array:
    return _stack(np.ones_like(m.v), np.tanh(m.v / SHARP) * np.abs(m.load), m.v * np.abs(m.load))


def _monotone(m: Motion) -> Array:
    return _stack(np.ones_like(m.v), *_steps(m))


PLAIN = Law("coulomb_viscous", lambda m: np.zeros((*m.v.shape, 0)))
KINDS: dict[str, list[Law]] = {
    "coulomb_viscous": [PLAIN],
    "offset": [Law("offset", lambda m: np.ones((*m.v.shape, 1)), (False,))],
    "stribeck": [_stribeck(s) for s in STRIBECK],
    "load": [Law("load", _load, (False, True, False))],
    "lugre": [_lugre(d) for d in DISTANCES],
    "monotone": [Law("monotone", _monotone, (False, *(True,) * (len(SPEEDS) + 1)))],
    "combined": [_combined(d) for d in DISTANCES],
}
"""Laws by name, as `friction=` takes them."""
