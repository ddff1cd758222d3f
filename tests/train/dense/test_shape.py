"""Shapes of networks that have compiled code."""

import pytest
from torch import nn

from costate.train.dense.shape import Shape


def test_a_network_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="has no compiled code; expected layers of Linear, ELU or SiLU, LayerNorm"):
        Shape.of(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
