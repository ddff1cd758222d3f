"""What cannot be exported is refused, and the layer is named."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from costate.export import as_network
from costate.train.network import Network
from costate.train.network.trace import traced


class Given(nn.Module):
    """A module with a forward of one line."""

    def __init__(self, function) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(4, 4), function

    def forward(self, x: Tensor):
        return self.function(self.layer(x))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 3, 1)),
            r"layer '2' \(Conv1d\).*Linear, LayerNorm",
        ),
        (Given(lambda x: torch.cumsum(x, -1)), r"Given: 'cumsum' has no"),
        (Given(lambda x: x - x.mean(0)), "along the batch"),
        (Given(lambda x: x / x.norm()), "over all samples"),
        (Given(lambda x: x.T @ x), "moves the batch|along the batch"),
        (Given(lambda x: x if x.sum() > 0 else -x), "must not decide by the values"),
        (Given(lambda x: x.unflatten(-1, (2, 2))), r"gives \(batch, 2, 2\)"),
        (Given(lambda x: torch.distributions.Normal(x, 1.0)), "Given"),
        (Given(lambda x: x + torch.rand(4)), "rand|random"),
    ],
)
def test_what_has_no_form_is_refused_by_name(wrong: nn.Module, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        traced(wrong, [4])


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="gives 4 numbers; expected 3 numbers"):
        Network.of(nn.Linear(2, 4), (("a", "m"), ("b", "m")), (("c", "m"),) * 3, [0] * 3, [1] * 3)
    with pytest.raises(ValueError, match=r"2 and 2 numbers.*memory\(\)"):
        Network.of(Given(lambda x: x.chunk(2, -1)), (("a", "m"),) * 4, (("c", "m"),) * 2, [0] * 2, [1] * 2)
    with pytest.raises(ValueError, match="give inputs=NUMBER"):
        as_network(nn.Tanh())


def test_the_module_stays_as_it_is() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3))
    module.train()
    module[1].eval()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    found = as_network(module)
    assert [m.training for m in module] == [True, False, True]
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert found.inputs == (("input 0", "1"), ("input 1", "1"), ("input 2", "1"))
    with torch.no_grad():
        for p in module.parameters():
            p.zero_()
    assert abs(found.graph.constants["0.weight"]).max() > 0, "weights are copies: the module may be trained on"
