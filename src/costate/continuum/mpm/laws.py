"""Laws of materials: from the deformation of a step to the stress, particle by particle.

A law is a function of a `Point` that returns the particle's new numbers (its deformation, and whatever else the law remembers) and
the Kirchhoff stress [Pa], both as symbols. An elastic law is only a stress: `elastic(stress)` keeps the deformation gradient F.

    def rubber(F, p):
        mu, lam = lame(p)
        return mu * (F @ F.T - ca.SX.eye(F.shape[0])) + lam * ca.log(det(F)) * ca.SX.eye(F.shape[0])

    LAWS["rubber"] = Law(elastic(rubber), {"E": 1e4, "nu": 0.3})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from costate.continuum.mpm.tensors import (
    column,
    det,
    exponential,
    length,
    log_strain,
    matrix,
    rotation,
    symmetric,
    triangle,
)

Numbers = dict[str, ca.SX]
"""Parameters of a law by name."""


@dataclass(frozen=True, eq=False)
class Point:
    """A particle in a step."""

    f: ca.SX
    """Deformation during the step, 1 + dt L (dim, dim)."""
    L: ca.SX
    """Velocity gradient [1/s] (dim, dim)."""
    state: ca.SX
    """Numbers that the law keeps, before the step."""
    p: Numbers
    """Parameters."""
    act: ca.SX
    """Actuation of the particle's muscle."""

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.f.shape[0]


Step = Callable[[Point], tuple[ca.SX, ca.SX]]
"""Function of a particle -> (numbers after the step, Kirchhoff stress [Pa])."""
Stress = Callable[[ca.SX, Numbers], ca.SX]
"""Function (F, parameters) -> Kirchhoff stress [Pa]."""


def identity(dim: int) -> list[float]:
    """Return an undeformed F, row by row."""
    return list(np.eye(dim).ravel())


@dataclass(frozen=True)
class Range:
    """Values that a parameter may have."""

    low: float
    high: float = np.inf
    """Value that it must be below."""
    zero: bool = False
    """True if `low` itself will do."""
    unit: str = "1"

    def fault(self, least: float, greatest: float) -> str:
        """Return what is wrong with values between two; nothing if all are within."""
        if (self.low < least or (self.zero and self.low == least)) and greatest < self.high:
            return ""
        wrong = least if not self.low < least else greatest
        below = f" and below {self.high:g}" if self.high < np.inf else ""
        return f"is {wrong:g}; expected {'at least' if self.zero else 'above'} {self.low:g}{below} [{self.unit}]"


RANGES = {
    "density": Range(0.0, unit="kg/m^3"),
    "E": Range(0.0, unit="Pa"),
    "nu": Range(-1.0, 0.5),
    "yield": Range(0.0, zero=True, unit="Pa"),
    "angle": Range(0.0, 90.0, zero=True, unit="degrees"),
    "bulk": Range(0.0, unit="Pa"),
    "gamma": Range(0.0),
    "viscosity": Range(0.0, zero=True, unit="Pa s"),
}
"""Parameter -> its range: beyond, a material gives energy away, or is infinitely stiff."""


@dataclass(frozen=True, eq=False)
class Law:
    """A row of the table of materials."""

    step: Step
    parameters: dict[str, float]
    """Names and usual values; every material also has a density [kg/m^3]."""
    rest: Callable[[int], list[float]] = identity
    """Function of the number of dimensions -> numbers of an undeformed particle."""
    energy: Callable[[ca.SX, int, Numbers], ca.SX] | None = None
    """Function (numbers, dimensions, parameters) -> energy [J/m^3], where there is one."""
    stiffness: Callable[[dict[str, float]], float] = field(default=lambda p: _modulus(p))
    """Modulus of waves of pressure [Pa], from which the length of a step follows."""
    ranges: Mapping[str, Range] = field(default_factory=lambda: RANGES)
    """Parameter -> values that it may have; any finite one, if there is no row."""


def lame(p: Numbers) -> tuple[ca.SX, ca.SX]:
    """Return Lame's constants mu and lambda [Pa] from Young's modulus E and Poisson's ratio nu."""
    return p["E"] / (2 * (1 + p["nu"])), p["E"] * p["nu"] / ((1 + p["nu"]) * (1 - 2 * p["nu"]))


def _modulus(p: dict[str, float]) -> float:
    mu, lam = lame(p)  # type: ignore[arg-type]
    return float(lam + 2 * mu)


# --- elastic --------------------------------------------------------------------------------------------------------


def elastic(stress: Stress) -> Step:
    """Return the law of a stress that depends on the deformation gradient."""

    def step(point: Point) -> tuple[ca.SX, ca.SX]:
        F = ca.mtimes(point.f, matrix(point.state, point.dim))
        return column(F), stress(F, point.p)

    return step


def muscle(stress: Stress) -> Step:
    """Return the law of a stress, and of muscles that pull along the fibre: strength * actuation F a a^T F^T."""

    def step(point: Point) -> tuple[ca.SX, ca.SX]:
        F = ca.mtimes(point.f, matrix(point.state, point.dim))
        fibre = ca.mtimes(F, ca.vertcat(*(point.p[f"fibre_{axis}"] for axis in "xyz"[: point.dim])))
        return column(F), stress(F, point.p) + point.p["strength"] * point.act * ca.mtimes(fibre, fibre.T)

    return step


def corotated(F: ca.SX, p: Numbers) -> ca.SX:
    """Return the stress of the fixed corotated model, 2 mu (F - R) F^T + lambda (J - 1) J."""
    mu, lam = lame(p)
    J = det(F)
    return 2 * mu * ca.mtimes(F - rotation(F), F.T) + lam * (J - 1) * J * ca.SX.eye(F.shape[0])


def corotated_energy(state: ca.SX, dim: int, p: Numbers) -> ca.SX:
    """Return mu |F - R|^2 + lambda / 2 (J - 1)^2."""
    F = matrix(state, dim)
    mu, lam = lame(p)
    return mu * ca.sumsqr(F - rotation(F)) + lam / 2 * (det(F) - 1) ** 2


def neo_hookean(F: ca.SX, p: Numbers) -> ca.SX:
    """Return the stress mu (F F^T - 1) + lambda log(J)."""
    mu, lam = lame(p)
    I = ca.SX.eye(F.shape[0])
    return mu * (ca.mtimes(F, F.T) - I) + lam * ca.log(det(F)) * I


def neo_hookean_energy(state: ca.SX, dim: int, p: Numbers) -> ca.SX:
    """Return mu / 2 (|F|^2 - dim) - mu log(J) + lambda / 2 log(J)^2."""
    F = matrix(state, dim)
    mu, lam = lame(p)
    log = ca.log(det(F))
    return mu / 2 * (ca.sumsqr(F) - dim) - mu * log + lam / 2 * log**2


# --- flowing --------------------------------------------------------------------------------------------------------


def strain_at_rest(dim: int) -> list[float]:
    """Return an undeformed b = F F^T, upper triangle."""
    return [float(i == j) for i in range(dim) for j in range(i, dim)]


def _trial(point: Point) -> tuple[ca.SX, ca.SX]:
    """Return deviator and trace of the strain if the step were elastic."""
    b = ca.mtimes([point.f, symmetric(point.state, point.dim), point.f.T])
    return log_strain(b)


def von_mises(point: Point) -> tuple[ca.SX, ca.SX]:
    """Return the step of plasticine: shear stress |dev tau| is at most the yield stress (von Mises); what is more flows."""
    mu, lam = lame(point.p)
    dev, trace = _trial(point)
    size = length(dev)
    limit = point.p["yield"] / (2 * mu)
    kept = ca.if_else(size > limit, limit / ca.if_else(size > limit, size, 1), 1)
    dev = kept * dev
    return _hencky(dev, trace, point.dim, mu, lam)


def sand_at_rest(dim: int) -> list[float]:
    """Return an undeformed b, and the volume that was gained in flow."""
    return [*strain_at_rest(dim), 0.0]


def drucker_prager(point: Point) -> tuple[ca.SX, ca.SX]:
    """Return the step of sand: shear stress is at most a share of the pressure, by the angle of friction; it resists no pull. The
    volume that it gains while it flows is taken off again when it is pressed (Klar et al. 2016, Tampubolon et al. 2017)."""
    mu, lam = lame(point.p)
    dim, gained = point.dim, point.state[-1]
    b = ca.mtimes([point.f, symmetric(point.state[:-1], dim), point.f.T])
    dev, own = log_strain(b)
    trace = own + gained
    sine = ca.sin(point.p["angle"] * (np.pi / 180))
    alpha = np.sqrt(2 / 3) * 2 * sine / (3 - sine)
    size = length(dev)
    loose = trace >= 0
    limit = ca.fmax(-(dim * lam + 2 * mu) / (2 * mu) * alpha * trace, 0)
    flows = size > limit
    kept = ca.if_else(loose, 0, ca.if_else(flows, limit / ca.if_else(flows, size, 1), 1))
    left = ca.if_else(loose, 0, trace)
    state, tau = _hencky(kept * dev, left, dim, mu, lam)
    return ca.vertcat(state, trace - left), tau


def _hencky(dev: ca.SX, trace: ca.SX, dim: int, mu: ca.SX, lam: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return b and the stress 2 mu e + lambda tr(e) of a logarithmic strain e."""
    I = ca.SX.eye(dim)
    b = ca.exp(2 * trace / dim) * exponential(2 * dev)
    return triangle(b), 2 * mu * dev + (2 * mu / dim + lam) * trace * I


def hencky_energy(state: ca.SX, dim: int, p: Numbers) -> ca.SX:
    """Return mu |e|^2 + lambda / 2 tr(e)^2 of the logarithmic strain e."""
    mu, lam = lame(p)
    dev, trace = log_strain(symmetric(state[: dim * (dim + 1) // 2], dim))
    return mu * (ca.sumsqr(dev) + trace**2 / dim) + lam / 2 * trace**2


DENSEST = 0.85
"""Volume of a liquid over that at rest, below which its pressure rises in a straight line: an impact does not make it stiffer than
its substeps allow."""
LOOSEST = 1.25
"""Greatest volume of a liquid over that at rest: drops that were torn off resist again soon after they fell back."""


def liquid(point: Point) -> tuple[ca.SX, ca.SX]:
    """Return the step of a weakly compressible liquid: pressure K / gamma (J^-gamma - 1), viscous shear. It resists pull as it does
    pressure; with `pull` 0 it does not, but then what rests is at a kink."""
    p, L = point.p, point.L
    J = ca.fmin(point.state[0] * ca.exp(ca.trace(point.f) - point.dim), LOOSEST)
    least = ca.fmax(J, DENSEST)
    power = ca.exp(-p["gamma"] * ca.log(least))
    pressure = p["bulk"] * ((power - 1) / p["gamma"] - power / least * (J - least))
    pressure = ca.fmax(pressure, 0) + p["pull"] * ca.fmin(pressure, 0)
    shear = p["viscosity"] * (L + L.T - 2 / point.dim * ca.trace(L) * ca.SX.eye(point.dim))
    return J, J * (shear - pressure * ca.SX.eye(point.dim))


def liquid_energy(state: ca.SX, dim: int, p: Numbers) -> ca.SX:
    """Return the energy of compression, of a liquid that also resists pull."""
    J, g = state[0], p["gamma"]
    least = ca.fmax(J, DENSEST)
    power = ca.exp(-g * ca.log(least))
    smooth = ((power * least - 1) / (g - 1) + least - 1) / g
    return p["bulk"] * (smooth - (power - 1) / g * (J - least) + power / least * (J - least) ** 2 / 2)


SOLID = {"E": 1e4, "nu": 0.3}
FIBRE = {"fibre_x": 0.0, "fibre_y": 1.0, "fibre_z": 0.0}
LAWS: dict[str, Law] = {
    "corotated": Law(elastic(corotated), SOLID, energy=corotated_energy),
    "neo_hookean": Law(elastic(neo_hookean), SOLID, energy=neo_hookean_energy),
    "muscle": Law(muscle(corotated), {**SOLID, "strength": 1e3, **FIBRE}, energy=corotated_energy),
    "neo_hookean_muscle": Law(muscle(neo_hookean), {**SOLID, "strength": 1e3, **FIBRE}, energy=neo_hookean_energy),
    "plasticine": Law(von_mises, {**SOLID, "yield": 200.0}, strain_at_rest, hencky_energy),
    "sand": Law(drucker_prager, {"E": 1e5, "nu": 0.3, "angle": 35.0}, sand_at_rest, hencky_energy),
    "liquid": Law(
        liquid,
        {"bulk": 1e4, "gamma": 7.0, "viscosity": 0.0, "pull": 1.0},
        lambda dim: [1.0],
        liquid_energy,
        lambda p: p["bulk"],
    ),
}
"""Materials by name."""
