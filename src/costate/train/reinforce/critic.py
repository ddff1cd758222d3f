"""Critics: networks that learn values of observations from returns, all passes in one compiled function (costate.train.dense)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from costate.train.dense.fit import BETAS, compiled
from costate.train.dense.parts import padded
from costate.train.dense.shape import Shape
from costate.train.dense.tile import Room
from costate.train.reinforce.actor import FLOAT, perceptron


class Critic:
    """A value network, and a slow copy of it.

    network, target: ordinary networks of torch (`perceptron`); `fit` changes the first, `follow` the second.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        generator: torch.Generator | None = None,
        activation: type[nn.Module] = nn.ELU,
    ):
        self.network, self.target = (_network(inputs, hidden, generator, activation) for _ in range(2))
        self.target.load_state_dict(self.network.state_dict())
        self.shape = Shape.of(self.network)
        self.weights, self.gradient, self.mean, self.square = (
            torch.zeros(self.shape.size, dtype=FLOAT) for _ in range(4)
        )
        self.updates = 0
        self._room = torch.zeros(Room(self.shape).size, dtype=FLOAT)

    def fit(
        self, seen: Tensor, returns: Tensor, random: torch.Generator, passes: int, parts: int, rate: float, clip: float
    ) -> float:
        """Fit the network to returns (N,) of observations (N, n), in passes of some parts each; return the mean square error of the
        last part.

        rate: learning rate; clip: longest gradient.
        """
        order = torch.cat([torch.randperm(len(seen), generator=random) for _ in range(passes)])
        sizes = [len(part) for part in order[: len(seen)].chunk(parts)] * passes
        edges = torch.tensor([0, *sizes]).cumsum(0)
        rates = self._rates(len(sizes), rate)
        losses = torch.empty(len(sizes), dtype=FLOAT)
        x = torch.zeros(len(seen), padded(self.shape.inputs), dtype=FLOAT)
        x[:, : self.shape.inputs] = seen
        y = returns.to(FLOAT).contiguous()
        self.shape.pack(self.network, self.weights)
        memory = (x, y, order, edges, rates, self.weights, self.gradient, self.mean, self.square, self._room, losses)
        function, _ = compiled(self.shape)
        function(*(t.data_ptr() for t in memory), len(sizes), clip)
        self.shape.unpack(self.weights, self.network)
        self.updates += len(sizes)
        return float(losses[-1])

    def _rates(self, count: int, rate: float) -> Tensor:
        """Return rate / (1 - beta1^t) and 1 / sqrt(1 - beta2^t) of the next updates, (count, 2)."""
        t = torch.arange(self.updates + 1, self.updates + count + 1, dtype=torch.float64)
        first, second = (1 - beta**t for beta in BETAS)
        return torch.stack([rate / first, second.rsqrt()], 1).to(FLOAT)

    def follow(self, memory: float) -> None:
        """Let the target follow the network. memory: part of the target that stays."""
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.network.parameters(), strict=True):
                slow.lerp_(fast, 1 - memory)

    def values(self, seen: Tensor) -> Tensor:
        """Return the target's values of observations (..., n), differentiable in the observations."""
        return self.target(seen)[..., 0]

    def kept(self) -> dict[str, Tensor]:
        """Return all that a training needs to go on to the same bits."""
        found = {f"network.{k}": t for k, t in self.network.state_dict().items()}
        found |= {f"target.{k}": t for k, t in self.target.state_dict().items()}
        return found | {"mean": self.mean, "square": self.square, "updates": torch.tensor(self.updates)}

    def restore(self, kept: dict[str, Tensor]) -> None:
        """Go on from what `kept` returned."""
        for name in ("network", "target"):
            network = getattr(self, name)
            network.load_state_dict({k: kept[f"{name}.{k}"] for k in network.state_dict()})
        self.mean.copy_(kept["mean"])
        self.square.copy_(kept["square"])
        self.updates = int(kept["updates"])


def _network(
    inputs: int, hidden: Sequence[int], generator: torch.Generator | None, activation: type[nn.Module]
) -> nn.Sequential:
    """Return a network without gradients of its weights."""
    network = perceptron(inputs, hidden, 1, generator)
    layers = [activation() if isinstance(layer, nn.ELU) else layer for layer in network]
    return nn.Sequential(*layers).requires_grad_(False)
