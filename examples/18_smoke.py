"""Steer smoke by gradients: find the velocity with which a puff becomes a letter, and see it happen.

    python examples/18_smoke.py

With COSTATE_QUICK=1 in the environment the grid is coarser, and iterations are few.
"""

import os
import time

import torch

from costate.continuum import FluidModel, Grid
from costate.draw.particles.still import render_grid
from costate.report import Report
from costate.tasks.smoke.target import disk, letter

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
CELLS, STEPS, ITERATIONS = (24, 20, 15) if QUICK else (64, 40, 80)
OUT = "out/18_smoke"


def main() -> None:
    grid = Grid((CELLS, CELLS), cell=1 / CELLS)  # a square of 1 m, periodic
    model = FluidModel(grid, dt=1 / STEPS, steps=STEPS, advection="maccormack", tolerance=1e-11)
    target = letter("C", CELLS)
    start, target = (torch.as_tensor(x.copy()) for x in (disk(CELLS, target.mean()), target))

    def difference(velocity: torch.Tensor) -> torch.Tensor:
        return (model.run(velocity, start).smoke[-1] - target).square().mean()

    # The gradient by all 2 n^2 numbers of the first velocity costs about one more roll-out.
    velocity = torch.zeros(2, CELLS, CELLS, requires_grad=True)
    optimiser = torch.optim.Adam([velocity], lr=0.03)
    losses, begun = [], time.perf_counter()
    for k in range(ITERATIONS):
        optimiser.zero_grad()
        loss = difference(velocity)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if k % 10 == 0:
            print(f"iteration {k}: squared difference {losses[-1]:.5f}, {time.perf_counter() - begun:.1f} s")

    # Along a random direction the gradient says what two more roll-outs say.
    way = torch.randn(velocity.shape, generator=torch.Generator().manual_seed(0))
    (slope,) = torch.autograd.grad(difference(velocity), velocity)
    with torch.no_grad():
        more, less = (difference(velocity + s * 1e-7 * way) for s in (1, -1))
    by_gradient, by_differences = float((slope * way).sum()), float(more - less) / 2e-7
    print(f"slope along a random direction: {by_gradient:.6f} by the gradient, {by_differences:.6f} by differences")

    with torch.no_grad():
        history = model.run(velocity, start)
    report = Report("Smoke that becomes a letter", f"{CELLS} x {CELLS} cells, {STEPS} steps")
    report.facts({"squared difference, first": losses[0], "last": losses[-1], "iterations": ITERATIONS})
    report.grid(history.times, history.smoke, "Smoke", cell=grid.cell, limits=(0, 1), play=True)
    report.plot({"squared difference": losses}, title="Difference to the letter", x_label="iteration", log_y=True)
    print(report.save(f"{OUT}.html"))
    print(render_grid(history.times, history.smoke, f"{OUT}.png", title="smoke", limits=(0, 1)))

    assert losses[-1] < (0.7 if QUICK else 0.2) * losses[0]
    assert abs(by_gradient - by_differences) < 1e-3 * abs(by_differences)


if __name__ == "__main__":
    main()
