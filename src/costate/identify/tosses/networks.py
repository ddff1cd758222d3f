"""Networks on the contacts of a body that is thrown: what laws of contact lack, learnt from its tosses."""

from __future__ import annotations

from costate.augment.wiring import PREFIX
from costate.core.names import unknown
from costate.identify.tosses.fit import Raws
from costate.identify.tosses.thrown import Thrown
from costate.sim.world import World

INPUTS = {"depth": 1e-3, "approach": 1.0, "slip": 1.0}
"""Inputs of each network, and their units [m, m/s, m/s]."""
HIDDEN = 8
LARGE = 10.0
"""Unit of forces, in weights of the body: impacts are much larger than what is at rest."""
RATIO = 0.1
"""Unit of coefficients of friction and restitution."""
FORCES = {"normal_force", "friction_force"}
QUANTITIES = ("friction_coefficient", "restitution", "normal_force", "friction_force")
"""Quantities of contacts that networks may be added to; Newton has no restitution."""


def add_networks(world: World, thrown: Thrown, quantities: tuple[str, ...]) -> Raws:
    """Put a silent network on each quantity, and return their weights by the names of the world's parameters."""
    weights = {}
    for quantity in quantities:
        if quantity not in QUANTITIES:
            raise ValueError(unknown("network on", quantity, QUANTITIES))
        scale = LARGE * 9.81 * thrown.mass if quantity in FORCES else RATIO
        network = world.augment(quantity, inputs=list(INPUTS), hidden=HIDDEN, scale=scale, input_scales=INPUTS)
        weights[f"{PREFIX}:{quantity}"] = network.vector().detach().double()
    return weights


def take_over(world: World, raws: Raws) -> None:
    """Write weights among raw numbers into the networks of a world."""
    for name, network in world.networks.items():
        network.set_vector(raws[f"{PREFIX}:{name}"])
