"""Pictures of the validation scenes, as small PNG files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from benchmarks.validation.arch import Arch, Fate
from benchmarks.validation.bowling import Outcome
from benchmarks.validation.gripper import CRITICAL, LOST, Falls
from benchmarks.validation.robots import Episodes
from benchmarks.validation.stack import ALLOWED, SETTLED, Motion

OURS, THEIRS = "tab:blue", "tab:orange"


def stack_plot(motions: Mapping[str, Motion], file: Path) -> None:
    """Creep over time."""
    figure, axes = plt.subplots(figsize=(6, 5), dpi=110)
    for name, motion in motions.items():
        late = motion.times > SETTLED
        axes.semilogy(motion.times[late], 1e3 * motion.creep[late].clip(min=1e-17), label=name)
    axes.axhline(1e3 * ALLOWED, color="grey", linestyle=":")
    axes.set(xlabel="s", ylabel="creep, mm", title="Ten boxes at rest", ylim=(1e-14, 1e5))
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    _save(figure, file)


def arch_plot(arch: Arch, fate: Fate, titles: list[str], seconds: float, file: Path) -> None:
    """The stones of every case at the same time, two rows."""
    figure, grid = plt.subplots(2, -(-len(titles) // 2), figsize=(10, 3.8), dpi=110)
    at = int(np.searchsorted(fate.times, seconds - 1e-9))
    for case, (axes, title) in enumerate(zip(grid.flat, titles, strict=True)):
        _stones(axes, arch, fate, at, case)
        axes.set_title(title, fontsize=9)
    _save(figure, file)


def _stones(axes: Axes, arch: Arch, fate: Fate, at: int, case: int) -> None:
    for stone in np.flatnonzero(fate.counted[case]).tolist():
        turn = -fate.turned[at, case, stone]  # about y, which turns x towards -z
        R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        corners = (arch.corners(stone) - arch.center(stone)) @ R.T + fate.places[at, case, stone]
        axes.add_patch(Polygon(corners, facecolor="0.8", edgecolor="0.25"))
    axes.axhline(0, color="0.4", linewidth=0.8)
    axes.set(xlim=(-1.6, 1.6), ylim=(-0.1, 1.3), aspect="equal", xticks=[], yticks=[])


def gripper_plot(found: Mapping[str, Falls], file: Path) -> None:
    """Plot how far the cube has fallen, over friction."""
    figure, axes = plt.subplots(figsize=(5.5, 3.4), dpi=110)
    for (name, falls), marker in zip(found.items(), "osv^", strict=False):
        fallen = 1e3 * falls.fallen[-1].clip(min=1e-6)
        axes.semilogy(falls.friction, fallen, marker=marker, markersize=3, linewidth=0.8, label=name)
    axes.axvline(CRITICAL, color="grey", linestyle=":")
    axes.axhline(1e3 * LOST, color="grey", linewidth=0.5)
    axes.set(xlabel="friction coefficient", ylabel="fallen after 1 s, mm", title="A cube of 1 kg between two fingers")
    axes.set_ylim(1e-3, 1e4)
    axes.legend(fontsize=8)
    _save(figure, file)


def bowling_plot(ours: Outcome, theirs: Outcome, pins: int, file: Path) -> None:
    """Distributions of both engines."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), dpi=110)
    for shift, outcome, color, name in ((-0.2, ours, OURS, "ours"), (0.2, theirs, THEIRS, "MuJoCo")):
        left.bar(
            np.arange(pins + 1) + shift, np.bincount(outcome.down, minlength=pins + 1), 0.4, color=color, label=name
        )
        speed = np.sort(outcome.speed)
        style = "-" if name == "ours" else "--"
        right.plot(speed, np.arange(1, len(speed) + 1) / len(speed), style, color=color, label=name)
    left.set(xlabel="pins down", ylabel="throws")
    right.set(xlabel="speed of the ball afterwards, m/s", ylabel="share of throws")
    left.legend()
    _save(figure, file)


def robots_plot(found: Mapping[str, Episodes], file: Path) -> None:
    """Means over episodes with their standard errors."""
    names = list(next(iter(found.values())).ours)
    figure, grid = plt.subplots(len(found), len(names), figsize=(10, 2.6 * len(found)), dpi=110, squeeze=False)
    for row, (robot, own) in zip(grid, found.items(), strict=True):
        for axes, name in zip(row, names, strict=True):
            for values, color, label in ((own.ours, OURS, "ours"), (own.theirs, THEIRS, "MuJoCo")):
                mean = values[name].mean(1)
                error = values[name].std(1) / np.sqrt(values[name].shape[1])
                axes.fill_between(own.times, mean - error, mean + error, color=color, alpha=0.3)
                axes.plot(own.times, mean, "-" if label == "ours" else "--", color=color, linewidth=0.9, label=label)
            axes.set_title(f"{robot}: {name}", fontsize=9)
        row[0].legend(fontsize=8)
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(file, bbox_inches="tight")
    plt.close(figure)
