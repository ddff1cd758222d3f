"""Networks inside of a world's step: how they come into it, and how they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from costate.augment.files import load_networks, save_networks
from costate.augment.network import Network
from costate.augment.wiring import Plan, Wiring, names_of, wire
from costate.core.numbers import Typed
from costate.sim.inputs import Inputs, known_names
from costate.sim.setup import Setup


class Augmented(Typed):
    """A world, as far as networks are concerned."""

    setup: Setup
    _inputs: Inputs

    def augment(
        self,
        quantity: str,
        on: str | Sequence[str] | None = None,
        inputs: str | Sequence[str] | None = None,
        replace: bool = False,
        name: str | None = None,
        reach: float = 1e-3,
        **network: Any,
    ) -> Network:
        """Put a network into the step, and return it: it is an nn.Module, whose weights are inputs of the compiled step.

            net = world.augment("joint_torque", on="elbow", inputs=["speed", "position"], hidden=(8,), constraints="odd")
            torch.optim.Adam(net.parameters())

        Args:
            quantity: What it acts on, a row of `costate.augment.quantities.QUANTITIES`: joint_torque, drag, drag_torque,
                actuator_force, normal_force, friction_force, friction_coefficient, contact_stiffness, restitution.
            on: Joints, links or actuators, which share its weights; of contacts links or shapes that touch, None: all contacts.
            inputs: Rows of `costate.augment.inputs.INPUTS`, of the owner itself ("speed") or another one ("speed:elbow").
            replace: True to take the place of the quantity, False to add to it.
            name: Name among `networks`; the weights are the parameter "network:NAME".
            reach: Distance over which forces on contacts fade out as shapes part [m].
            network: hidden, activation, constraints, scale, input_scales, seed: see `costate.augment.network.Network`.
        """
        plan = Plan(quantity, names_of(on), names_of(inputs), replace, name or "", reach, network)
        wiring = wire(plan, known_names(self.setup), [w.name for w in self.setup.networks])
        self._wire([wiring])
        return wiring.network.to(self.dtype)

    @property
    def networks(self) -> dict[str, Network]:
        """Networks inside of the step, by name."""
        return {w.name: w.network for w in self.setup.networks}

    def save_networks(self, path: str | Path) -> None:
        """Write all networks to PATH.json, what they do, and PATH.safetensors, their weights."""
        save_networks(path, self.setup.networks)

    def load_networks(self, path: str | Path) -> dict[str, Network]:
        """Put the networks of files that `save_networks` wrote into the step, and return them by name."""
        found = load_networks(path, known_names(self.setup), [w.name for w in self.setup.networks])
        self._wire(found)
        return {w.name: w.network for w in found}

    def _wire(self, wirings: Iterable[Wiring]) -> None:
        for w in wirings:
            self.setup = self.setup.with_network(w)
        self._inputs = Inputs(self.setup, self._inputs.robots)

    def _modules_inside(self) -> Iterable[nn.Module]:
        return [*self._inputs.robots.values(), *self.networks.values()]
