"""The public functions of a robot as a table of symbolic functions with named inputs and outputs.

This file is the boundary between the algorithms of this package and the packages that compile them. Read it from the
bottom: `FUNCTIONS` maps the name of every method of a robot to a row, which lists the inputs of the method, the options
it can be specialised to, and the function that writes its outputs as expressions, each of which calls one algorithm. The
letters in the table are the arguments of these functions: model, parameters, inputs x, options.

`build` makes the symbols for the inputs of a row and returns them with its outputs. `build_vjp` does the same for the
reverse derivative of a row that has a cheaper one than automatic differentiation; only forward dynamics has.

Nothing here knows about arrays, batches or compilers. `costate.robot` turns every row into a kernel in the same way, so
a new function of a robot is one new row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra import quaternion
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.energy import kinetic_energy, potential_energy
from costate.physics.dynamics.forward_dynamics import (
    forward_dynamics,
    forward_dynamics_jacobians,
    forward_dynamics_vjp,
)
from costate.physics.dynamics.momentum import center_of_mass, com_jacobian, momentum, momentum_matrix
from costate.physics.dynamics.passive import ALL_PASSIVE, Passive
from costate.physics.dynamics.rnea import rnea
from costate.physics.dynamics.rnea_jacobians import rnea_jacobians
from costate.physics.integrate import difference, integrate
from costate.physics.jacobian import jacobian, jacobian_dot
from costate.physics.kinematics import link_accelerations, link_poses, link_velocities
from costate.physics.params import Parameters

Expressions = dict[str, SX]
"""Expressions by name; matrices keep their two dimensions and are dense."""


@dataclass(frozen=True)
class FunctionOptions:
    """Choices to which a robot function is specialised. Each row reads the options it knows and refuses the others."""

    link: str | None = None
    """Link that the function is about."""
    links: tuple[str, ...] | None = None
    """Links that forward_kinematics computes; all of them if None. Outputs are then named "position:LINK" and so on."""
    wrenches: tuple[str, ...] = ()
    """Links with an external wrench; each adds an input "wrench:LINK" (6,)."""
    passive: Passive | None = ALL_PASSIVE
    """Passive joint forces that act; none of them if None."""
    with_quaternion: bool = False
    """Switch that makes forward_kinematics return quaternions, too."""


@dataclass(frozen=True)
class RobotFunction:
    """A row of the table."""

    inputs: tuple[str, ...]
    """Names of the inputs, from SIZES, in the order of the arguments."""
    outputs: Callable[[Model, Parameters, Expressions, FunctionOptions], Expressions]
    """Function that writes the outputs as expressions of the inputs."""
    options: frozenset[str] = frozenset()
    """Fields of FunctionOptions that the row reads."""
    vjp: Callable[..., tuple[Expressions, list[SX]]] | None = None
    """Reverse derivative that is cheaper than automatic differentiation, if there is one; see `build_vjp`."""
    is_derivative: bool = False
    """True if the outputs are derivatives of another row's."""


def build(model: Model, params: Parameters, name: str, **options: Any) -> tuple[Expressions, Expressions]:
    """Return the inputs of a function of FUNCTIONS as symbols, and its outputs as expressions of them.

    The outputs may also depend on symbols in params.
    """
    row, chosen = _row(name, options)
    inputs = _inputs(model, row, chosen)
    outputs = row.outputs(model, params, inputs, chosen)
    return inputs, {key: ca.densify(value) for key, value in outputs.items()}


def build_vjp(
    model: Model, params: Parameters, name: str, symbols: Expressions | None = None, **options: Any
) -> tuple[Expressions, Expressions]:
    """Return inputs and outputs of the reverse derivative of a row that has one of its own.

    The inputs are those of `build`, the symbols of parameters, the outputs that were computed before, and their
    gradients, named "bar:OUTPUT". The outputs are the gradients "bar:INPUT" of all inputs and of the given symbols.
    """
    row, chosen = _row(name, options)
    if row.vjp is None:
        raise ValueError(f"{name} has no derivative of its own: differentiate the expressions that build() returns")
    inputs = _inputs(model, row, chosen)
    wrt = {**inputs, **(symbols or {})}
    known, gradients = row.vjp(model, params, inputs, wrt, chosen)
    return {**wrt, **known}, {f"bar:{key}": ca.densify(g) for key, g in zip(wrt, gradients, strict=True)}


def _row(name: str, options: dict[str, Any]) -> tuple[RobotFunction, FunctionOptions]:
    if name not in FUNCTIONS:
        raise KeyError(f"no robot function {name!r}; there are {sorted(FUNCTIONS)}")
    unknown = set(options) - FUNCTIONS[name].options
    if unknown:
        raise TypeError(f"{name} has no option {sorted(unknown)[0]!r}; it has {sorted(FUNCTIONS[name].options)}")
    chosen = FunctionOptions(**options)
    if "link" in FUNCTIONS[name].options and "links" not in FUNCTIONS[name].options and chosen.link is None:
        raise TypeError(f"{name} is about one link: pass its name as link=")
    return FUNCTIONS[name], chosen


SIZES: dict[str, Callable[[Model], int]] = {
    "q": lambda model: model.nq,
    "q0": lambda model: model.nq,
    "q1": lambda model: model.nq,
    "v": lambda model: model.nv,
    "a": lambda model: model.nv,
    "tau": lambda model: model.nv,
    "dt": lambda model: 1,
}


def _inputs(model: Model, row: RobotFunction, options: FunctionOptions) -> Expressions:
    inputs = {name: SX.sym(name, SIZES[name](model)) for name in row.inputs}
    return {**inputs, **{f"wrench:{link}": SX.sym(f"wrench:{link}", 6) for link in options.wrenches}}


def _wrenches(x: Expressions, options: FunctionOptions) -> dict[str, SX]:
    return {link: x[f"wrench:{link}"] for link in options.wrenches}


# --- rows that take more than a line ------------------------------------------------------------------------------------


def _forward_kinematics(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    links = (options.link,) if options.link is not None else options.links
    outputs: Expressions = {}
    for link, (R, p) in link_poses(model, params, x["q"], links).items():
        suffix = "" if options.link is not None else f":{link}"
        outputs[f"position{suffix}"], outputs[f"rotation{suffix}"] = p, R
        if options.with_quaternion:
            outputs[f"quaternion{suffix}"] = quaternion.from_rotation(ca.densify(R))
    return outputs


def _link_velocity(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    link = _link(options)
    linear, angular = link_velocities(model, params, x["q"], x["v"], [link])[link]
    return {"linear": linear, "angular": angular}


def _link_acceleration(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    link = _link(options)
    linear, angular = link_accelerations(model, params, x["q"], x["v"], x["a"], [link])[link]
    return {"linear": linear, "angular": angular}


def _link(options: FunctionOptions) -> str:
    assert options.link is not None  # checked in _row
    return options.link


def _inverse_dynamics(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    return {"tau": rnea(model, params, x["q"], x["v"], x["a"], _wrenches(x, options), options.passive)}


def _bias_forces(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    rest = SX(model.nv, 1)
    return {"h": rnea(model, params, x["q"], x["v"], rest, _wrenches(x, options), options.passive)}


def _gravity_torques(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    rest = SX(model.nv, 1)
    return {"g": rnea(model, params, x["q"], rest, rest, passive=None)}


def _forward_dynamics(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    wrenches = _wrenches(x, options)
    return {"a": forward_dynamics(model, params, x["q"], x["v"], x["tau"], wrenches, options.passive)}


def _forward_dynamics_vjp(
    model: Model, params: Parameters, x: Expressions, wrt: Expressions, options: FunctionOptions
) -> tuple[Expressions, list[SX]]:
    known = {"a": SX.sym("a", model.nv), "bar:a": SX.sym("bar:a", model.nv)}
    motion = x["q"], x["v"], x["tau"], known["a"], known["bar:a"]
    wrenches = _wrenches(x, options)
    return known, forward_dynamics_vjp(model, params, *motion, list(wrt.values()), wrenches, options.passive)


def _inverse_dynamics_jacobians(
    model: Model, params: Parameters, x: Expressions, options: FunctionOptions
) -> Expressions:
    wrenches = _wrenches(x, options)
    found = rnea_jacobians(model, params, x["q"], x["v"], x["a"], wrenches, options.passive)
    return dict(zip(("dtau_dq", "dtau_dv", "dtau_da"), found, strict=True))


def _forward_dynamics_jacobians(
    model: Model, params: Parameters, x: Expressions, options: FunctionOptions
) -> Expressions:
    wrenches = _wrenches(x, options)
    found = forward_dynamics_jacobians(model, params, x["q"], x["v"], x["tau"], wrenches, options.passive)
    return dict(zip(("a", "da_dq", "da_dv", "da_dtau"), found, strict=True))


def _potential_energy(model: Model, params: Parameters, x: Expressions, options: FunctionOptions) -> Expressions:
    springs = options.passive is not None and options.passive.springs
    return {"energy": potential_energy(model, params, x["q"], springs)}


# --- the table ----------------------------------------------------------------------------------------------------------

_LINK = frozenset({"link"})
_POSES = frozenset({"link", "links", "with_quaternion"})
_FORCES = frozenset({"wrenches", "passive"})
_PASSIVE = frozenset({"passive"})

FUNCTIONS: dict[str, RobotFunction] = {
    "forward_kinematics": RobotFunction(("q",), _forward_kinematics, _POSES),
    "jacobian": RobotFunction(("q",), lambda m, p, x, o: {"J": jacobian(m, p, x["q"], _link(o))}, _LINK),
    "jacobian_dot": RobotFunction(
        ("q", "v"), lambda m, p, x, o: {"J_dot": jacobian_dot(m, p, x["q"], x["v"], _link(o))}, _LINK
    ),
    "link_velocity": RobotFunction(("q", "v"), _link_velocity, _LINK),
    "link_acceleration": RobotFunction(("q", "v", "a"), _link_acceleration, _LINK),
    "mass_matrix": RobotFunction(("q",), lambda m, p, x, o: {"M": crba(m, p, x["q"])}),
    "inverse_dynamics": RobotFunction(("q", "v", "a"), _inverse_dynamics, _FORCES),
    "forward_dynamics": RobotFunction(("q", "v", "tau"), _forward_dynamics, _FORCES, _forward_dynamics_vjp),
    "inverse_dynamics_jacobians": RobotFunction(("q", "v", "a"), _inverse_dynamics_jacobians, _FORCES, None, True),
    "forward_dynamics_jacobians": RobotFunction(("q", "v", "tau"), _forward_dynamics_jacobians, _FORCES, None, True),
    "bias_forces": RobotFunction(("q", "v"), _bias_forces, _FORCES),
    "gravity_torques": RobotFunction(("q",), _gravity_torques),
    "center_of_mass": RobotFunction(("q",), lambda m, p, x, o: {"com": center_of_mass(m, p, x["q"])[1]}),
    "com_jacobian": RobotFunction(("q",), lambda m, p, x, o: {"J": com_jacobian(m, p, x["q"])}),
    "kinetic_energy": RobotFunction(("q", "v"), lambda m, p, x, o: {"energy": kinetic_energy(m, p, x["q"], x["v"])}),
    "potential_energy": RobotFunction(("q",), _potential_energy, _PASSIVE),
    "momentum": RobotFunction(("q", "v"), lambda m, p, x, o: {"momentum": momentum(m, p, x["q"], x["v"])}),
    "momentum_matrix": RobotFunction(("q",), lambda m, p, x, o: {"A": momentum_matrix(m, p, x["q"])}),
    "integrate": RobotFunction(("q", "v", "dt"), lambda m, p, x, o: {"q": integrate(m, x["q"], x["v"], x["dt"])}),
    "difference": RobotFunction(("q0", "q1"), lambda m, p, x, o: {"v": difference(m, x["q0"], x["q1"])}),
}
