"""Plots of an identification. Figures are made without pyplot: no window, no global state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from costate.identify.result import Identification

MEASURED, FOUND, GIVEN, HELD_OUT = "0.35", "#d1495b", "#30638e", "#edae49"


def write_plots(result: Identification, folder: Path) -> list[Path]:
    """Write all plots as PNG files and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "torques": torques(result),
        "parameters": parameters(result),
        "singular_values": singular_values(result),
        "progress": progress(result),
        "clock": clock(result),
    }
    written = []
    for name, figure in figures.items():
        if figure is not None:
            written.append(folder / f"{name}.png")
            figure.savefig(written[-1], dpi=120)
    return written


def torques(result: Identification) -> Figure | None:
    """Plot measured and predicted torques over time, held-out stretches shaded, with their error below."""
    log, predicted = result.log, result.predicted
    if log is None or predicted is None:
        return None
    t = np.arange(len(log), dtype=float) if log.t is None else log.t
    joints = [j.name for j in result.regressor.model.joints for _ in range(j.nv)]
    figure = Figure(figsize=(10, 1.7 * len(joints) + 0.9), layout="constrained")
    axes = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
    for k, (ax, name) in enumerate(zip(axes, joints, strict=True)):
        for start, end in _stretches(result.test.index if result.test else np.zeros(0, int)):
            ax.axvspan(t[start], t[end], color=HELD_OUT, alpha=0.2, lw=0)
        ax.plot(t, log.tau[:, k], color=MEASURED, lw=1.6)
        ax.plot(t, predicted[:, k], color=FOUND, lw=0.9)
        ax.plot(t, log.tau[:, k] - predicted[:, k], color=GIVEN, lw=0.6)
        ax.set_ylabel(name, fontsize=8, parse_math=False)  # a $ in a name is no formula
        ax.grid(alpha=0.3)
    for color, label, width in ((MEASURED, "measured", 1.6), (FOUND, "identified", 0.9), (GIVEN, "error", 0.6)):
        axes[0].plot([], [], color=color, lw=width, label=label)
    if result.test:
        axes[0].fill_between([], [], color=HELD_OUT, alpha=0.4, label="held out")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    axes[-1].set_xlabel("time [s]" if log.t is not None else "sample")
    figure.supylabel("torque [N m or N]", fontsize=9)
    return figure


def _stretches(index: np.ndarray) -> list[tuple[int, int]]:
    """Return the first and last index of each run of consecutive ones."""
    if not len(index):
        return []
    breaks = np.flatnonzero(np.diff(index) > 1)
    starts, ends = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(index) - 1]])
    return [(int(index[a]), int(index[b])) for a, b in zip(starts, ends, strict=True)]


def parameters(result: Identification) -> Figure:
    """Plot base parameters with 95 % intervals, relative to the estimate, best determined first, and those of the robot given."""
    given = result.base.project(result.regressor.pi())
    size = np.maximum(np.abs(result.beta), 1e-300)
    width = (result.interval[1] - result.interval[0]) / 2 / size
    order = np.argsort(width)
    shown = order[width[order] < 2.0]  # the others are not determined, and would hide these
    figure = Figure(figsize=(9, 0.19 * max(len(shown), 5) + 1.4), layout="constrained")
    ax = figure.subplots()
    y = np.arange(len(shown))
    ax.errorbar(
        np.ones(len(shown)), y, xerr=width[shown], fmt="o", ms=3, color=FOUND, capsize=2, label="estimate, 95 %"
    )
    ratio = np.clip(given[shown] / result.beta[shown], -1, 3)
    ax.plot(ratio, y, "|", ms=8, mew=1.5, color=GIVEN, label="robot as given (clipped to -1 ... 3)")
    ax.set_yticks(y, [result.names[result.base.independent[k]] for k in shown], fontsize=7, parse_math=False)
    ax.set_xlim(-1.1, 3.1)
    ax.set_ylim(len(shown), -1)
    hidden = len(order) - len(shown)
    ax.set_xlabel("value / estimate" + (f"   ({hidden} not determined by these data are left out)" if hidden else ""))
    ax.grid(alpha=0.3, axis="x")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8, frameon=False)
    return figure


def singular_values(result: Identification) -> Figure:
    """Plot how well combinations of parameters show in the torques, and where the data end."""
    s = result.singular_values
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    ax = figure.subplots()
    floor = max(s[0] * 1e-18, 1e-300)
    ax.semilogy(np.arange(1, len(s) + 1), np.maximum(s, floor), "o", ms=3, color=GIVEN)
    rank = result.base.rank
    if rank < len(s):
        ax.axvline(rank + 0.5, color=FOUND, lw=1)
        ax.text(
            rank + 0.8, s[0], f"{rank} combinations show, {len(s) - rank} do not", fontsize=8, color=FOUND, va="top"
        )
    ax.set_xlabel("combination of parameters")
    ax.set_ylabel("singular value of the regressor")
    ax.grid(alpha=0.3)
    return figure


def progress(result: Identification) -> Figure | None:
    """Plot the cost per iteration or epoch."""
    if len(result.history) < 2:
        return None
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.semilogy(result.history, color=FOUND, label="training")
    if result.held_out_history:
        ax.semilogy(result.held_out_history, color=HELD_OUT, label="held out")
        ax.legend(frameon=False)
    ax.set_xlabel("epoch" if result.held_out_history else "iteration")
    ax.set_ylabel("cost")
    ax.grid(alpha=0.3)
    return figure


def clock(result: Identification) -> Figure | None:
    """Plot the time from row to row, as stamped and as repaired, and how far the stamps are off altogether."""
    found = result.clock
    if found is None or (found.tick is None and not found.repeated):
        return None
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    steps, off = figure.subplots(2, 1, sharex=True)
    t = found.times[1:]
    steps.plot(t, 1e3 * np.diff(found.stamps), ".", ms=2, color=MEASURED, label="stamps")
    steps.plot(t, 1e3 * np.diff(found.times), ".", ms=2, color=FOUND, label="repaired")
    steps.set_ylabel("step [ms]")
    start = found.stamps[0] - found.times[0]
    off.plot(found.times, 1e3 * (found.stamps - found.times - start), color=GIVEN, lw=0.8)
    off.set_ylabel("stamp - repaired [ms]")
    off.set_xlabel("time [s]")
    for ax in (steps, off):
        ax.grid(alpha=0.3)
    steps.set_title("; ".join(n.removeprefix("clock: ") for n in found.notes()), fontsize=7)
    figure.legend(*steps.get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=8, frameon=False)
    return figure
