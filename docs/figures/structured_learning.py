"""Draws docs/figures/structured_learning.png: examples/05_structured_learning.py, and its results as a picture."""

from __future__ import annotations

import runpy
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

HERE = Path(__file__).parent
COLORS = {"(a) network": "#edae49", "(b) identified": "#30638e", "(c) identified + residual": "#d1495b"}


def plot(test: dict[str, Tensor], results: dict[str, tuple[Tensor, Tensor]], joints: list[str], path: Path):
    figure = Figure(figsize=(10, 7), layout="constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=(2, 3))
    joint, span = 4, slice(0, 800)
    bottom.plot(test["t"][span], test["tau"][span, joint], color="0.35", lw=2.2, label="measured")
    for k, (name, (tau, error)) in enumerate(results.items()):
        top.bar(torch.arange(len(joints)) + 0.27 * (k - 1), error, 0.25, color=COLORS[name])
        bottom.plot(test["t"][span], tau[span, joint], color=COLORS[name], lw=1.1, label=name)
    top.set(ylabel="error / spread", yscale="log", title="a motion that no model has seen")
    top.set_xticks(range(len(joints)), joints, fontsize=8)
    bottom.set(xlabel="time [s]", ylabel=f"torque of {joints[joint]} [N m]")
    bottom.legend(frameon=False, ncols=4, fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    example = runpy.run_path(str(HERE.parents[1] / "examples" / "05_structured_learning.py"))
    test, results, joints = example["main"]()
    plot(test, results, joints, HERE / "structured_learning.png")
