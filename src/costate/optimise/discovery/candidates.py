"""Candidates: weights of all networks as rows of one matrix, and the groups of them that belong to an input.

The group of an input is its column in the first layer. Lasso of groups (Yuan and Lin, 2006) takes whole columns to zero, by the
proximal step of its norm: a column gets shorter by the penalty, and is zero where it was shorter than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from costate.augment.network import Network
from costate.core.fork import cached_property

Name = tuple[str, str]
"""Network, and name of one of its inputs."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The layout of rows (C, n) that hold the weights of some networks, one network after the other."""

    networks: Mapping[str, Network]

    @cached_property
    def size(self) -> int:
        return sum(n.size for n in self.networks.values())

    @cached_property
    def groups(self) -> dict[Name, Tensor]:
        """Input -> its places in a row."""
        found, at = {}, 0
        for name, network in self.networks.items():
            outputs, inputs = network.shapes[0]
            for k, each in enumerate(network.inputs):
                found[name, each] = at + k + inputs * torch.arange(outputs)
            at += network.size
        return found

    @cached_property
    def upper(self) -> Tensor:
        """Flags of the weights above the first layers, biases not counted, (n,)."""
        flags = []
        for network in self.networks.values():
            for k, (n, m) in enumerate(network.shapes):
                flags += [torch.full((n * m,), k > 0), torch.zeros(n, dtype=torch.bool)]
        return torch.cat(flags)

    def starts(self, count: int, seed: int) -> Tensor:
        """Return rows to start from, (count, n)."""
        parts = [n.starts(count, seed + 7919 * k) for k, n in enumerate(self.networks.values())]
        return torch.cat(parts, -1)

    def params(self, rows: Tensor) -> dict[str, Tensor]:
        """Return network -> weights (C, size)."""
        return dict(zip(self.networks, rows.split([n.size for n in self.networks.values()], -1), strict=True))

    def lengths(self, rows: Tensor) -> Tensor:
        """Return how much every input counts in every row, (C, inputs)."""
        return torch.stack([rows[:, places].norm(dim=-1) for places in self.groups.values()], -1)

    def shrunk(self, rows: Tensor, by: Tensor) -> Tensor:
        """Return rows after the proximal step: columns shorter by `by` (C, 1 or inputs), none below zero."""
        rows = rows.clone()
        by = by.expand(-1, len(self.groups))
        for k, places in enumerate(self.groups.values()):
            length = rows[:, places].norm(dim=-1, keepdim=True)
            rows[:, places] *= (1 - by[:, k : k + 1] / length.clamp_min(1e-30)).clamp_min(0)
        return rows

    def masked(self, rows: Tensor, kept: Sequence[frozenset[Name]]) -> Tensor:
        """Return a mask (C, n) that is 0 on the columns of inputs that a row does without. kept: inputs of every row."""
        mask = torch.ones_like(rows)
        for row, names in zip(mask, kept, strict=True):
            for name, places in self.groups.items():
                if name not in names:
                    row[places] = 0
        return mask

    def support(self, row: Tensor, least: float) -> frozenset[Name]:
        """Return the inputs whose columns are longer than a part of the longest one of their network."""
        found, lengths = set(), dict(zip(self.groups, self.lengths(row[None])[0].tolist(), strict=True))
        for network in self.networks:
            own = {name: x for name, x in lengths.items() if name[0] == network}
            most = max(own.values())
            found |= {name for name, x in own.items() if most > 0 and x > least * most}
        return frozenset(found)
