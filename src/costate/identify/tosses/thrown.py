"""The body that is thrown, the floor it falls on, and the numbers of both that are looked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.model import Shape
from costate.sim.contact.builtin import Hard, Newton
from costate.sim.contact.model import ContactModel
from costate.sim.scene import shapes
from costate.sim.scene.parts import Body, Static
from costate.sim.world import World

NAME, FLOOR = "body", "floor"
OWNERS = {"size": NAME, "position": NAME, "com": f"{NAME}/body", "inertia": f"{NAME}/body"}
"""Unknowns that belong to the body: their owner in a world's names of parameters."""
FINE = 0.1
"""Part of the body's size by which an unknown length changes where its raw number changes by 1."""


@dataclass(frozen=True, eq=False)
class Thrown:
    """A rigid body over a horizontal floor, as far as it is known before."""

    shape: Shape
    """Shape in the body's frame, whose poses are logged."""
    mass: float
    """Mass [kg]. Free flight and impacts only tell ratios of inertias to it: it stays as it is."""
    friction: float = 0.3
    """Friction coefficient to start from."""
    restitution: float = 0.1
    """Restitution to start from (`Hard`)."""
    inertia: np.ndarray | None = None
    """Inertia about the centre of mass to start from [kg m^2], shape (3, 3); None: that of the shape, even all over."""
    width: float | None = None
    """Width of the body [m], the unit of errors of its position; None: an edge of a box, the diameter of a round shape."""

    @property
    def length(self) -> float:
        """Width of the body [m]."""
        if self.width is None and self.shape.kind == "mesh":
            raise ValueError("the body is a mesh: give its width [m], Thrown(..., width=) or --width")
        own = float(self.shape.size[0])
        return self.width or (own if self.shape.kind == "box" else 2 * own)

    def contact(self, name: str) -> ContactModel:
        """Return the contact model of a name: hard or newton."""
        if name == "hard":
            return Hard(friction=self.friction, restitution=self.restitution)
        if name == "newton":
            return Newton(friction=self.friction, cone="elliptic")
        raise ValueError(f"unknown contact model '{name}': use 'hard' or 'newton'")

    def world(self, contact: str, dt: float, substeps: int, unknowns: tuple[str, ...]) -> World:
        """Return a world with the body, a floor, and the unknowns as parameters."""
        body = Body(NAME, [self.shape], self.mass, self.inertia)
        model = self.contact(contact)
        for name in unknowns:
            if name not in UNKNOWNS or (name in ("restitution", "solref", "solimp") and name not in model.parameters):
                possible = [n for n in UNKNOWNS if n in usual_unknowns(contact, self.shape)]
                raise ValueError(f"unknown '{name}' with contact '{contact}': use {', '.join(possible)}")
        floor = Static(FLOOR, shapes.plane())
        names = [parameter(name) for name in unknowns]
        return World(
            bodies=[body], scenery=[floor], contact=model, dt=dt, substeps=substeps, parameters=names, check=False
        )


@dataclass(frozen=True)
class Unknown:
    """A number that is looked for, as a function of raw ones that may be anything and start at 0."""

    count: int | None
    """Number of raw numbers; None: as many as the parameter has."""
    value: Callable[[Tensor, Tensor, float], Tensor]
    """Function (raw, default, length of the body) -> value."""
    unit: str
    """Unit for reports."""


def _inertia(raw: Tensor, default: Tensor, length: float) -> Tensor:
    """Return an inertia that a distribution of positive mass has: its second moments are positive definite (log-Cholesky)."""
    I = default.reshape(3, 3)
    moments = 0.5 * I.trace() * torch.eye(3, dtype=I.dtype) - I
    below = torch.zeros(3, 3, dtype=I.dtype)
    rows, columns = torch.tril_indices(3, 3, -1)
    below = below.index_put((rows, columns), raw[3:])
    factor = torch.linalg.cholesky(moments) @ (below + torch.diag(raw[:3].exp()))
    moments = factor @ factor.T
    return (moments.trace() * torch.eye(3, dtype=I.dtype) - moments).reshape(-1)


def _logit(x: float) -> float:
    return math.log(x / (1 - x))


def _solimp(raw: Tensor, default: Tensor, length: float) -> Tensor:
    ends = torch.stack([torch.sigmoid(raw[k] + _logit(float(default[k]))) for k in (0, 1)])
    return torch.cat([ends, default[2:3] * raw[2:].exp(), default[3:]])


UNKNOWNS: Mapping[str, Unknown] = {
    "friction": Unknown(1, lambda raw, default, length: default * raw.exp(), ""),
    "restitution": Unknown(
        1, lambda raw, default, length: torch.sigmoid(raw + _logit(min(max(float(default), 0.01), 0.99))), ""
    ),
    "solref": Unknown(2, lambda raw, default, length: default * raw.exp(), ""),
    "solimp": Unknown(3, _solimp, ""),
    "size": Unknown(None, lambda raw, default, length: default * (FINE * raw).exp(), "m"),
    "position": Unknown(3, lambda raw, default, length: default + FINE * length * raw, "m"),
    "com": Unknown(3, lambda raw, default, length: default + FINE * length * raw, "m"),
    "inertia": Unknown(6, _inertia, "kg m^2"),
    "gravity": Unknown(3, lambda raw, default, length: default + raw, "m/s^2"),
    "floor": Unknown(1, lambda raw, default, length: default + FINE * length * torch.cat([0 * raw, 0 * raw, raw]), "m"),
}
"""Kinds of unknowns. Gravity is one because of cameras: a scale that is wrong by 1 % shows as one of g."""


def parameter(unknown: str) -> str:
    """Return the name of an unknown as a parameter of the world."""
    if unknown == "floor":
        return f"position:{FLOOR}"
    return f"{unknown}:{OWNERS[unknown]}" if unknown in OWNERS else unknown


def usual_unknowns(contact: str, shape: Shape) -> tuple[str, ...]:
    """Return all unknowns that a contact model and a shape have."""
    left_out = {"hard": ("solref", "solimp"), "newton": ("restitution",)}[contact]
    fixed = ("size",) if shape.kind == "mesh" else ()
    return tuple(name for name in UNKNOWNS if name not in (*left_out, *fixed))


def values(world: World, raws: Mapping[str, Tensor], length: float) -> dict[str, Tensor]:
    """Return the parameters of a world from raw numbers by the names of unknowns; weights of networks are what they are."""
    found = {name: raw for name, raw in raws.items() if name not in UNKNOWNS}
    for name, raw in raws.items():
        if name in found:
            continue
        default = torch.as_tensor(world.setup.default(parameter(name)), dtype=raw.dtype)
        found[parameter(name)] = UNKNOWNS[name].value(raw, default, length)
    return found


def start_of(world: World, unknowns: tuple[str, ...]) -> dict[str, Tensor]:
    """Return the raw numbers of the body as it was given: zeros."""
    sizes = {name: UNKNOWNS[name].count or len(world.setup.default(parameter(name))) for name in unknowns}
    return {name: torch.zeros(size, dtype=torch.float64) for name, size in sizes.items()}
