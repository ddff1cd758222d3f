"""The network that is exported is the policy, in SI units."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.export import network_of
from costate.tasks.insertion import Insertion, InsertionOptions, Policy
from costate.tasks.insertion.described import raw_observation


@pytest.fixture(scope="module", params=["velocity", "torque"])
def either(request: pytest.FixtureRequest, task: Insertion) -> Insertion:
    return task if request.param == "velocity" else Insertion(InsertionOptions(actuation="torque", moving=True))


@pytest.mark.parametrize("step", [0, 7, 30, 38])
def test_network_maps_measurements_to_the_commands_of_the_policy(policy: Policy, step: int, either: Insertion) -> None:
    task = either
    state = task.sample(64, torch.Generator().manual_seed(2), torch.float64)
    state[:, 9:15] = torch.randn(64, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    wanted = task.control(policy.double()(task.observe(state, step))).detach().numpy()
    policy.float()
    found = network_of(policy, task)(raw_observation(state, step).numpy())
    # float32 is what the weights are; everything else is float64 on both sides.
    assert np.abs(found - wanted).max() < 1e-12
    assert np.ptp(wanted, 0).min() > 1.0, "a constant would pass otherwise"


def test_layout_names_every_number(policy: Policy, task: Insertion) -> None:
    network = network_of(policy, task)
    units = [unit for _, unit in network.inputs]
    assert units == ["rad"] * 6 + ["rad/s"] * 6 + ["m"] * 3 + ["m/s"] * 3 + ["steps"]
    assert [unit for _, unit in network.outputs] == ["rad/s"] * 6
    assert network.scaling is not None
    ignored = [name for (name, _), gain in zip(network.inputs, network.scaling.gain, strict=True) if gain == 0]
    assert len(ignored) == 2 and all("ignored" in name for name in ignored)
