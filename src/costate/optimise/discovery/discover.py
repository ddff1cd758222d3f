"""Discovery of the inputs of networks by sparsity.

1. For every penalty and start, networks descend with a lasso on the columns of their first layers, and hop (descent.py).
2. The sets of inputs that stayed are fitted again without the penalty.
3. The smallest set counts that is as good as the best one on data held out: its loss is above by no more than the standard error of
   the difference, or a small part of it. Then inputs are taken away one by one for as long as that stays so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from costate.augment.network import Network
from costate.optimise.discovery.candidates import Candidates, Name
from costate.optimise.discovery.descent import Descent, Loss
from costate.optimise.solution import OptimiserOptions, Run


@dataclass(frozen=True, kw_only=True)
class DiscoverOptions(OptimiserOptions):
    """Options of `discover`."""

    iterations: int = 300
    """Steps of every descent."""
    penalties: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2)
    """Weights of the lasso, in units of the loss of silent networks."""
    starts: int = 4
    """Number of starts for every penalty, and for every set of inputs that is fitted again."""
    hops: int = 1
    """Number of hops out of local minima after the first descent."""
    hop: float = 0.3
    """Standard deviation of a hop."""
    lr: float = 0.03
    """Step size of Adam at first; it falls to a tenth."""
    ridge: float = 1e-4
    """Weight of the squares of weights above the first layer: without it columns could shrink at no cost."""
    least: float = 0.02
    """Part of the longest column below which an input does not count."""
    tolerance: float = 0.05
    """Part by which the loss of a smaller set may be above the best one."""
    seed: int = 0
    """Seed of starts and hops."""


@dataclass(frozen=True)
class Found:
    """A set of inputs, and how good it is."""

    inputs: frozenset[Name]
    loss: float
    """Mean loss on data held out, in units of the loss of silent networks."""
    losses: Tensor
    """Losses of every sample held out, in the same units."""
    row: Tensor
    """Weights."""


@dataclass(frozen=True)
class Discovery:
    """The inputs that networks cannot do without."""

    inputs: dict[str, list[str]]
    """Network -> inputs that it uses."""
    importance: dict[str, dict[str, float]]
    """Network -> input -> length of its column in the first layer; 0: it is not used."""
    loss: float
    """Loss on data held out, in units of the loss of silent networks."""
    tried: list[Found]
    """All sets of inputs that were fitted, best first."""
    evaluations: int
    """Number of evaluations of the loss; all candidates at once count once."""
    seconds: float
    """Time taken [s]."""

    def report(self) -> str:
        """Return which inputs survived, and what the other sets were worth, as text."""
        lines = [f"loss held out: {100 * self.loss:.3g} % of that without networks"]
        for network, lengths in self.importance.items():
            lines.append(f"{network}:")
            most = max(lengths.values()) or 1.0
            for name, x in sorted(lengths.items(), key=lambda item: -item[1]):
                bar = "#" * round(24 * x / most)
                lines.append(f"  {name:<28}{'used' if name in self.inputs[network] else '-':<6}{x:8.3f}  {bar}")
        lines.append(f"sets of inputs tried: {len(self.tried)}")
        for found in sorted(self.tried, key=lambda f: (len(f.inputs), f.loss))[:12]:
            names = ", ".join(name for _, name in sorted(found.inputs)) or "none"
            lines.append(f"  {100 * found.loss:10.4g} %  {names}")
        return "\n".join(lines)


def discover(
    networks: Mapping[str, Network] | Network,
    loss: Loss,
    held_out: Loss | None = None,
    options: DiscoverOptions = DiscoverOptions(),  # noqa: B008
) -> Discovery:
    """Fit networks and find which of their inputs they need; their weights are those of the best fit afterwards.

    Args:
        networks: Name -> network, such as `world.networks`; or one network, whose name is then "network".
        loss: Function of name -> weights (C, size), one row per candidate, that returns losses (C,), or (C, samples): such as
            `motion_loss(world, motions)`.
        held_out: The same for data that are not fitted; None: `loss`.
    """
    layout = Candidates({"network": networks} if isinstance(networks, Network) else dict(networks))
    if not layout.networks:
        raise ValueError("there is no network to fit: add one with augment(...)")
    if not options.penalties or options.starts < 1:
        raise ValueError(f"penalties={options.penalties}, starts={options.starts}; expected at least one of each")
    with Run("discover", options) as run:
        search = _Search(layout, loss, held_out or loss, options, run)
        tried = search.refitted(search.sparse())
        search.grow(tried)
        chosen = search.reduced(tried)
    for name, vector in layout.params(chosen.row[None]).items():
        layout.networks[name].set_vector(vector[0])
    inputs: dict[str, list[str]] = {name: [] for name in layout.networks}
    importance: dict[str, dict[str, float]] = {name: {} for name in layout.networks}
    for (network, name), length in zip(layout.groups, layout.lengths(chosen.row[None])[0].tolist(), strict=True):
        importance[network][name] = length
        if (network, name) in chosen.inputs:
            inputs[network].append(name)
    best_first = sorted(tried.values(), key=lambda f: f.loss)
    return Discovery(inputs, importance, chosen.loss, best_first, run.evaluations, run.seconds)


class _Search:
    """The three parts of a discovery."""

    def __init__(self, layout: Candidates, loss: Loss, held_out: Loss, options: DiscoverOptions, run: Run):
        self.layout, self.options = layout, options
        silent = torch.zeros(1, layout.size, dtype=torch.float64)
        self.fit, self.test = (Descent(layout, x, 1.0, options.lr, options.ridge, run) for x in (loss, held_out))
        with torch.no_grad():
            units = [float(d.values(silent).mean()) for d in (self.fit, self.test)]
        if not all(0 < unit < float("inf") for unit in units):
            raise ValueError(f"the loss without networks is {units[0]:g}: there is nothing to explain")
        self.fit, self.test = (
            Descent(layout, x, unit, options.lr, options.ridge, run)
            for x, unit in zip((loss, held_out), units, strict=True)
        )

    def sparse(self) -> dict[frozenset[Name], Tensor]:
        """Return the sets of inputs that lasso leaves, with the weights of the best candidate for each."""
        o, layout = self.options, self.layout
        rows = layout.starts(o.starts, o.seed).repeat(len(o.penalties), 1)
        penalty = torch.tensor(o.penalties, dtype=rows.dtype).repeat_interleave(o.starts)[:, None]
        ends, values = self.fit.hopping(rows, o.iterations, penalty, torch.ones_like(rows), o.hops, o.hop, o.seed + 1)
        found: dict[frozenset[Name], Tensor] = {}
        for k in values.argsort(descending=True).tolist():  # the best of a set is written last
            support = layout.support(ends[k], o.least)
            if support:
                found[support] = ends[k]
        return found

    def refitted(self, sets: Mapping[frozenset[Name], Tensor]) -> dict[frozenset[Name], Found]:
        """Return sets of inputs fitted again without the lasso: from the weights given, and from new starts."""
        o = self.options
        names = [support for support in sets for _ in range(o.starts)]
        if not names:
            return {}
        fresh = self.layout.starts(o.starts, o.seed + 2)
        rows = torch.cat([torch.cat([row[None], fresh[1:]]) for row in sets.values()])
        free = torch.zeros(len(rows), 1, dtype=rows.dtype)
        ends, values = self.fit(rows, o.iterations, free, self.layout.masked(rows, names))
        best = values.view(-1, o.starts).argmin(-1) + o.starts * torch.arange(len(sets))
        with torch.no_grad():
            losses = self.test.values(ends[best]) / self.test.unit
        return {
            support: Found(support, float(x.mean()), x, row)
            for support, x, row in zip(sets, losses, ends[best], strict=True)
        }

    def grow(self, tried: dict[frozenset[Name], Found]) -> None:
        """Add sets that grow from nothing, each by the input that helps most, until none helps. They start from the weights of the
        smaller set: descents to large sets from elsewhere may end in worse minima."""
        if not tried:
            return
        chosen, row = frozenset[Name](), min(tried.values(), key=lambda f: f.loss).row
        while larger := [chosen | {name} for name in self.layout.groups if name not in chosen]:
            self._try(tried, larger, row)
            best = min((tried[s] for s in larger), key=lambda f: f.loss)
            if chosen and best.loss > (1 - self.options.tolerance) * tried[chosen].loss:
                return
            chosen, row = best.inputs, best.row

    def reduced(self, tried: dict[frozenset[Name], Found]) -> Found:
        """Return the smallest set that is as good as the best; adds the sets with one input less to those tried."""
        if not tried:
            raise ValueError(
                f"no input survives the penalties {self.options.penalties}: give smaller ones, or inputs that matter"
            )
        chosen = self.chosen(list(tried.values()))
        while len(chosen.inputs) > 1:
            fewer = [chosen.inputs - {name} for name in sorted(chosen.inputs)]
            self._try(tried, fewer, chosen.row)
            after = self.chosen(list(tried.values()))
            if len(after.inputs) >= len(chosen.inputs):
                return after
            chosen = after
        return chosen

    def _try(self, tried: dict[frozenset[Name], Found], sets: Sequence[frozenset[Name]], row: Tensor) -> None:
        """Fit sets from some weights; what was fitted better before stays."""
        again = self.refitted(dict.fromkeys(sets, row))
        tried |= {s: f for s, f in again.items() if s not in tried or f.loss < tried[s].loss}

    def chosen(self, tried: Sequence[Found]) -> Found:
        best = min(tried, key=lambda f: f.loss)
        good = [f for f in tried if f.loss <= best.loss + self._margin(f, best)]
        return min(good, key=lambda f: (len(f.inputs), f.loss))

    def _margin(self, found: Found, best: Found) -> float:
        """Return how far above the best a loss may be: the standard error of the difference, or a part of the best."""
        difference = found.losses - best.losses
        error = float(difference.std() / len(difference) ** 0.5) if len(difference) > 1 else 0.0
        return max(error, self.options.tolerance * best.loss)
