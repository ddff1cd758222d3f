"""Wirings: which network acts on which quantity of which joints, links, actuators or contacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
from casadi import SX

from costate.augment.inputs import InputName, Motion, expanded, value_of
from costate.augment.network import Network
from costate.augment.quantities import QUANTITIES, Quantity
from costate.core.names import did_you_mean, listed, unknown

PREFIX = "network"
"""Kind of parameter that weights are: "network:NAME"."""


@dataclass(frozen=True)
class Plan:
    """The task of a network, as it was asked for, and as files keep it."""

    quantity: str
    """Name in QUANTITIES."""
    on: tuple[str, ...] = ()
    """Joints, links or actuators; of contacts the links or shapes of which one must touch, or none for all contacts."""
    inputs: tuple[str, ...] = ()
    """Names of inputs; none: those that the quantity has by itself."""
    replace: bool = False
    """True if the network takes the place of the quantity, False if it is added."""
    name: str = ""
    """Name of the network; none: made from quantity and owner."""
    reach: float = 1e-3
    """Distance over which forces on contacts fade out as shapes part [m]."""
    network: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `Network`."""


@dataclass(frozen=True)
class Known:
    """The names that networks may be wired to."""

    where: str
    """Name of the robot or world, for errors."""
    names: Mapping[str, Sequence[str]]
    """Names of all joints, links and actuators, and of what may touch, by kind."""

    def full(self, kind: str, name: str) -> str:
        """Return the full name of an owner, which also goes by its own name where no other has that."""
        known = self.names.get(kind, ())
        if name in known:
            return name
        own = [full for full in known if name in (full.partition("/")[2], full.removesuffix("/body"))]
        if len(own) == 1:
            return own[0]
        short = [x for full in known for x in (full.partition("/")[2], full.removesuffix("/body"))]
        hint = f"{kind}s of that name are {', '.join(own)}" if own else did_you_mean(str(name), [*known, *short])
        what = f"{kind} '{name}' that a network could act on or look at"
        raise ValueError(f"{self.where} has no {what}; {hint or f'there are {listed(list(known)) or None}'}")


@dataclass(frozen=True, eq=False)
class Wiring:
    """A network and what it acts on. Several owners share its weights."""

    plan: Plan
    """Plan with all names in full."""
    network: Network
    prefix: str = ""
    """Name of the robot that was augmented, in a world: owners and inputs begin with it."""

    @property
    def name(self) -> str:
        return self.prefix + self.plan.name

    @property
    def quantity(self) -> str:
        return self.plan.quantity

    @property
    def row(self) -> Quantity:
        return QUANTITIES[self.plan.quantity]

    @property
    def owners(self) -> tuple[str, ...]:
        return tuple(self.prefix + name for name in self.plan.on)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, in full."""
        return tuple(str(self._full(InputName.of(text))) for text in self.network.inputs)

    @property
    def parameter(self) -> str:
        """Name of the weights among the parameters of a step."""
        return f"{PREFIX}:{self.name}"

    def acts_on(self, *names: str) -> bool:
        """Return whether it acts on an owner that goes by any of these names."""
        return any(name in self.owners for name in names) or (self.row.owner == "contact" and not self.plan.on)

    def of_robot(self, name: str) -> Wiring:
        """Return it in a world where its robot has a name; the network is the same."""
        return replace(self, prefix=f"{name}/")

    def output(self, vector: SX, motion: Motion, owner: str, known: Mapping[str, SX]) -> SX:
        """Return what the network gives for an owner, (components,). known: inputs that are known already, by name."""

        def value(text: str) -> SX:
            return value_of(InputName.of(text), self.row.owner, owner, motion, known)

        x = ca.vertcat(*(value(name) for name in self.inputs))
        opposed = "dissipative" in self.network.constraints
        speed = ca.vertcat(*(value(name) for name in self.row.along)) if opposed else None
        return self.network.symbolic(vector, x, speed)

    def _full(self, name: InputName) -> InputName:
        return replace(name, owner=self.prefix + name.owner) if name.owner else name


def names_of(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return names that were given as one, several or none."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def wire(plan: Plan, known: Known, taken: Sequence[str] = ()) -> Wiring:
    """Return the wiring of a plan. taken: names of other networks."""
    if plan.quantity not in QUANTITIES:
        raise ValueError(unknown("quantity", plan.quantity, QUANTITIES))
    row = QUANTITIES[plan.quantity]
    if row.owner not in known.names:
        there = [name for name, row in QUANTITIES.items() if row.owner in known.names]
        raise ValueError(
            f"{known.where} has no '{plan.quantity}', which worlds have: use world.augment(...), or one of {listed(there)}"
        )
    if not plan.on and row.owner != "contact":
        every = listed(list(known.names[row.owner])) or "none"
        raise ValueError(f"'{plan.quantity}' belongs to {row.owner}s: say which with on=; there are {every}")
    owners = tuple(known.full(row.owner, name) for name in plan.on)
    inputs = expanded(plan.inputs or row.inputs, row.owner, known.full)
    network = Network(inputs, len(row.components), **plan.network)
    if "dissipative" in network.constraints and not row.along:
        possible = [name for name, row in QUANTITIES.items() if row.along]
        raise ValueError(
            f"'{plan.quantity}' has no speed that a dissipative network could oppose; {listed(possible)} have one"
        )
    if not plan.reach > 0:
        raise ValueError(f"reach is {plan.reach}; expected a positive distance [m]")
    if plan.name in taken:
        raise ValueError(f"there is a network '{plan.name}' already; choose another name=")
    name = plan.name or _new_name(plan.quantity, owners, taken)
    return Wiring(replace(plan, on=owners, inputs=inputs, name=name), network)


def _new_name(quantity: str, owners: Sequence[str], taken: Sequence[str]) -> str:
    """Return a name that no other network has."""
    more = f"+{len(owners) - 1}" if owners[1:] else ""
    name = f"{quantity}:{owners[0]}{more}" if owners else quantity
    return next(n for k in range(1, len(taken) + 2) if (n := name if k == 1 else f"{name}_{k}") not in taken)
