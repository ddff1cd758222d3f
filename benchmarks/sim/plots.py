"""Curves of how cost grows, as small PNG files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@dataclass(frozen=True)
class Curves:
    """Lines over a common axis."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[int]
    lines: Mapping[str, Sequence[float]]
    proportional: bool = True
    """Show what proportional growth would be."""

    @property
    def file(self) -> str:
        return f"sim_{re.sub(r'[^a-z]+', '_', self.title.split(', batch')[0].lower()).strip('_')}.png"


def plot(curves: Curves, folder: Path) -> Path:
    """Both axes logarithmic; dotted lines are proportional growth."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(5, 3.4), dpi=110)
    for (name, y), marker in zip(curves.lines.items(), "os^v", strict=False):
        axes.loglog(curves.x, y, marker=marker, label=name)
        if curves.proportional:
            axes.loglog(curves.x, [y[0] * n / curves.x[0] for n in curves.x], ":", color="grey", linewidth=0.8)
    low = min(map(min, curves.lines.values()))
    high = max(map(max, curves.lines.values()))
    axes.set_ylim(low / 2, high * 2)
    axes.set_xticks(curves.x, [f"{n:,}" for n in curves.x])
    axes.minorticks_off()
    axes.set(xlabel=curves.x_label, ylabel=curves.y_label, title=curves.title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    path = folder / curves.file
    figure.savefig(path)
    plt.close(figure)
    return path
