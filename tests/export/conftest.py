"""A network with weights as large as trained ones, and what torch computes with them."""

from __future__ import annotations

import pytest
import torch

from costate.tasks.insertion import Insertion, Policy


@pytest.fixture(scope="session")
def task() -> Insertion:
    return Insertion()


@pytest.fixture(scope="session")
def policy() -> Policy:
    """An untrained one hardly moves the arm, and would agree with anything to 1e-3: outputs must reach the whole range."""
    generator = torch.Generator().manual_seed(1)
    policy = Policy(generator=generator)
    with torch.no_grad():
        policy.outer.weight.normal_(0.0, 0.15, generator=generator)
        policy.outer.bias.normal_(0.0, 0.3, generator=generator)
    return policy
