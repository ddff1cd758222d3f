"""A soft robot learns to walk: gradients of the way that it makes, through a thousand steps of its legs on the floor.

    python examples/17_soft_walker.py

With COSTATE_QUICK=1 in the environment it is coarse, and learns for twenty iterations only.
"""

import os
import time

import matplotlib.pyplot as plt
import numpy as np
import torch

from costate.continuum import MpmGrid, MpmModel, SoftBody
from costate.continuum.mpm import fill
from costate.report import Report

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
CELLS, DT, STEPS, ITERATIONS = (32, 4e-3, 192, 20) if QUICK else (128, 1e-3, 1024, 30)
OUT = "out/17_soft_walker"


def robot(dx: float) -> SoftBody:
    """Return a bar on two legs; each leg has a muscle in front and one behind, which pull along y."""
    low = max(0.03, 2 * dx)
    parts = [((0.1, low + 0.1), (0.4, low + 0.2), -1)]
    parts += [((x, low), (x + 0.05, low + 0.1), k) for k, x in enumerate((0.1, 0.15, 0.3, 0.35))]
    points = [fill.box(lower, upper, dx / 2) for lower, upper, _ in parts]
    muscles = np.concatenate([np.full(len(p), k) for p, (_, _, k) in zip(points, parts, strict=True)])
    numbers = {"density": 1.0, "E": 25.0, "nu": 0.25, "strength": 4.0}
    return SoftBody(np.concatenate(points), dx / 2, "muscle", numbers, muscles, name="robot")


def actuation(weights: torch.Tensor) -> torch.Tensor:
    """Return the actuation (steps, muscles): sine waves of four phases, weighted."""
    t = DT * torch.arange(STEPS)
    waves = torch.stack([torch.sin(20 * t + np.pi / 2 * k) for k in range(4)], -1)
    return torch.tanh(waves @ weights.T)


def picture(model: MpmModel, x: torch.Tensor) -> None:
    """Draw the robot at four moments, muscles in colour."""
    figure, axes = plt.subplots(4, 1, figsize=(6, 6), sharex=True)
    for axis, k in zip(axes, torch.linspace(0, len(x) - 1, 4).long(), strict=True):
        axis.scatter(*x[k].T, s=0.5, c=np.asarray(model.bodies[0].muscles), cmap="viridis")
        axis.set(xlim=(0, 1), ylim=(0, 0.3), aspect="equal", yticks=[])
    figure.savefig(f"{OUT}.png", dpi=80, bbox_inches="tight")


def main() -> None:
    dx = 1 / CELLS
    model = MpmModel(MpmGrid((CELLS, CELLS), dx), [robot(dx)], DT, 1, (0.0, -3.8), {"-y": 0.5}, segment=32)
    print(f"{model.particles} particles, {STEPS} steps of {1e3 * DT:g} ms, {model.n_muscles} muscles")

    def way(weights: torch.Tensor) -> torch.Tensor:
        x = model.run(STEPS, act=actuation(weights)).x
        return x[-1, :, 0].mean() - x[0, :, 0].mean()

    # The gradient along a random direction, and what two runs beside the point say. They are as near as rounding allows: friction
    # has kinks, where feet begin or cease to slide, and between runs further apart lie some of them.
    random = torch.Generator().manual_seed(0)
    weights = 0.1 * torch.randn(4, 4, generator=random)
    direction = torch.randn(4, 4, generator=random)
    weights.requires_grad_()
    (gradient,) = torch.autograd.grad(way(weights), weights)
    exact = float((gradient * direction).sum())
    with torch.no_grad():
        beside = [float(way(weights + d * direction)) for d in (1e-8, -1e-8)]
    differences = (beside[0] - beside[1]) / 2e-8
    print(f"slope along a direction: {exact:.8f} m; by differences {differences:.8f} m")

    optimiser = torch.optim.Adam([weights], lr=0.1)
    begun, ways = time.perf_counter(), []
    for k in range(ITERATIONS):
        optimiser.zero_grad()
        loss = -way(weights)
        loss.backward()
        optimiser.step()
        ways.append(-float(loss.detach()))
        print(f"iteration {k}: {100 * ways[-1]:.2f} cm")
    print(f"{ITERATIONS} iterations in {time.perf_counter() - begun:.1f} s")

    with torch.no_grad():
        moments = model.run(STEPS, act=actuation(weights)).x
    report = Report("A soft walker", f"{model.particles} particles, {STEPS} steps")
    report.facts({"way [m]": max(ways), "slope": exact, "slope by differences": differences})
    report.plot({"way": ways}, title="Way [m]", x_label="iteration", y_label="m")
    print(report.save(f"{OUT}.html"))
    picture(model, moments)

    assert abs(exact - differences) < 5e-6 * abs(exact), "the gradient is not that of differences"
    assert max(ways) > ways[0] + (0.01 if QUICK else 0.1), "it has not learnt to walk"


if __name__ == "__main__":
    main()
