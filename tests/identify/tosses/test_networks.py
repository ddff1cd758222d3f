"""Networks on the contacts of tosses: silent at first, and able to learn a law that the numbers lack."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tests.identify.tosses.throws import BOX, DT, thrown

from costate.identify.tosses import TossOptions, identify_tosses
from costate.identify.tosses.networks import INPUTS, add_networks
from costate.identify.tosses.thrown import start_of, values

QUICK = TossOptions(unknowns=("restitution",), train=9, rows=30, iterations=8, networks=("friction_coefficient",))


def test_silent_networks_change_nothing() -> None:
    plain, world = (BOX.world("hard", DT, 1, ("friction",)) for _ in range(2))
    weights = add_networks(world, BOX, ("friction_coefficient", "restitution"))
    raws = start_of(world, ("friction",))
    rows = thrown(count=2, rows=14)[0].windows(np.arange(2), 0, 14)
    before = plain.rollout(rows[0], steps=13, params=values(plain, raws, BOX.length))
    after = world.rollout(rows[0], steps=13, params=values(world, {**raws, **weights}, BOX.length))
    torch.testing.assert_close(after, before, rtol=1e-9, atol=1e-9)  # other code for the same numbers, through impacts


def test_a_wrong_friction_is_learnt_by_a_network() -> None:
    """The numbers leave friction at 0.25, the truth is 0.2: only the network can lower it, where the body slides."""
    result = identify_tosses(BOX, thrown(noise=2e-5)[0], dataclasses.replace(QUICK, iterations=24))
    errors = {name: e.shift.mean() for name, e in result.errors.items()}
    assert errors["found with networks, from 6 rows"] < 0.7 * errors["found, from 6 rows"]
    assert result.augmented is not None
    (network,) = result.augmented.networks.values()
    typical = torch.tensor([[1e-4, 0.2, 0.3]], dtype=torch.float64)  # depth, approach, slip
    assert tuple(INPUTS) == network.inputs
    assert -0.1 < network(typical).item() < -0.01
    assert set(result.learnt) == {"restitution", "network:friction_coefficient"} and set(result.raws) == {"restitution"}
    assert "with networks" in result.summary()


def test_quantities_that_contacts_do_not_have_are_named() -> None:
    with pytest.raises(ValueError, match="friction_coefficient"):
        add_networks(BOX.world("hard", DT, 1, ()), BOX, ("friction_coeficient",))
    with pytest.raises(ValueError, match="restitution"):
        add_networks(BOX.world("newton", DT, 1, ()), BOX, ("restitution",))
