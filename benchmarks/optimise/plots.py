"""Plots of the study of tasks: losses, the racecar's landscape, and gradients that are of no use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import costate as cs
from costate.tasks.golf import Golf
from costate.tasks.racecar import Racecar
from costate.train.solve import Outcome

Tensor = torch.Tensor


def losses(kept: Mapping[str, Outcome], folder: Path) -> None:
    """Loss over iterations and over seconds, with gradients and without, of the first start."""
    shown = [n for n in ("throw", "golf") if f"{n} search" in kept]
    if not shown:
        return
    figure, axes = plt.subplots(len(shown), 2, figsize=(9, 3 * len(shown)), squeeze=False)
    for row, name in zip(axes, shown, strict=True):
        for label, method in (("Gauss-Newton", "gauss_newton"), ("CMA-ES", "search")):
            history = kept[f"{name} {method}"].solution.history
            y = [float(r.loss.max()) for r in history]
            row[0].loglog(range(1, len(y) + 1), y, label=label)
            row[1].loglog([max(r.seconds, 1e-3) for r in history], y, label=label)
        goal = kept[f"{name} gauss_newton"].task.tolerance ** 2 / 2
        for axis, x in zip(row, ("iteration", "seconds"), strict=True):
            axis.axhline(goal, color="grey", lw=0.8, ls="--")
            axis.set(xlabel=x, ylabel="loss [m²]", title=name)
        row[0].legend()
    _save(figure, folder / "optimise_losses.png")


def landscape(folder: Path) -> None:
    """Loss of the racecar over friction, and its gradient."""
    task = Racecar()
    mu = torch.linspace(0.02, 1.0, 197, dtype=torch.float64)
    loss, slope = task.landscape(mu)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    axes[0].semilogy(mu, loss)
    axes[1].plot(mu, slope)
    axes[1].axhline(0, color="grey", lw=0.8)
    for axis, label in zip(axes, ("loss [m²]", "its derivative [m²]"), strict=True):
        axis.axvline(task.speed**2 / (2 * 9.81 * task.goal), color="grey", lw=0.8, ls="--")
        axis.set(xlabel="friction", ylabel=label)
    _save(figure, folder / "optimise_racecar.png")


def finger_and_block(contact: cs.PGS | cs.Compliant) -> tuple[cs.World, Tensor]:
    """A finger 0.2 m away from a block, both on a rail without friction."""
    rail = {"joint": "prismatic", "axis": (1, 0, 0)}
    finger = cs.Body("finger", [cs.shapes.sphere(0.05)], 1.0, **rail)
    block = cs.Body("block", [cs.shapes.box((0.1, 0.1, 0.1))], 1.0, **rail)
    world = cs.World(
        bodies=[finger, block],
        actuators={"finger": cs.Torque()},
        contact=contact,
        gravity=(0, 0, 0),
        dt=0.01,
        substeps=10,
    )
    start = world.initial_state(dtype=torch.float64)
    start[1] = 0.3
    return world, start


def _push(contact: cs.PGS | cs.Compliant, forces: Tensor) -> tuple[Tensor, Tensor]:
    """Compute where the block is after 0.5 s under constant forces (n,), and the derivative."""
    world, start = finger_and_block(contact)
    f = forces.clone().requires_grad_()
    end = world.rollout(start, f[:, None].expand(50, -1, 1))[-1, :, 1]
    return end.detach(), torch.autograd.grad(end.sum(), f)[0]


def _strokes(change: Tensor) -> tuple[Tensor, Tensor]:
    """Compute where the golf ball rests when the shoulder's torques change, torques kept up through the hit; and the derivative."""
    task = Golf(swing=60)
    x0 = task.problems([0]).x0
    way = torch.tensor([0.0, 1.0, 0.0]).double().repeat(task.swing)
    a = change.clone().requires_grad_()
    x = task.states(x0 + a[:, None] * way)[-1, :, 3]
    return x.detach(), torch.autograd.grad(x.sum(), a)[0]


def useless(folder: Path | None) -> tuple[tuple[str | float, ...], ...]:
    """Rows for a table, and a plot: no contact yet; the gradient of a stroke that jumps."""
    forces = torch.linspace(0, 4, 81, dtype=torch.float64)
    models = {
        "hard": cs.PGS(friction=0.0, restitution=1.0),
        "compliant, 1 mm": cs.Compliant(friction=0.0, smoothing=1e-3),
        "compliant, 5 cm": cs.Compliant(friction=0.0, smoothing=0.05),
    }
    curves = {name: _push(model, forces) for name, model in models.items()}
    change = torch.linspace(-0.1, 0.1, 401, dtype=torch.float64)
    x, slope = _strokes(change)
    rows: list[tuple[str | float, ...]] = []
    for name, (at, gradient) in curves.items():
        k = 20  # 1 N: the finger ends 7.5 cm short of the block
        rows.append(("block, finger too weak (1 N)", name, float(gradient[k]), float((at[k + 1] - at[k - 1]) / 0.1)))
    mean = float((x[-1] - x[0]) / (change[-1] - change[0]))
    rows.append(("golf, torques through the hit", "hard", float(slope.mean()), mean))
    if folder:
        _draw(folder, forces, curves, change, x, slope)
    return tuple(rows)


def _draw(folder: Path, forces: Tensor, curves, change: Tensor, x: Tensor, slope: Tensor) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2))
    for name, (at, gradient) in curves.items():
        axes[0].plot(forces, at, label=name)
        axes[1].semilogy(forces, gradient.abs().clamp(min=1e-12), label=name)
    axes[0].set(xlabel="force [N]", ylabel="block after 0.5 s [m]", title="Too weak to touch")
    axes[1].set(xlabel="force [N]", ylabel="|gradient| [m/N]", title="What the gradient says")
    axes[0].legend()
    near = (change.abs() < 0.01).nonzero()[:, 0]
    axes[2].plot(change[near], x[near], ".", ms=3, label="rollouts")
    middle = near[len(near) // 2]
    line = x[middle] + slope[middle] * (change[near] - change[middle])
    axes[2].plot(change[near], line, lw=1, label="gradient in the middle")
    axes[2].set(
        xlabel="change of the shoulder's torque [5 N m]", ylabel="ball at rest [m]", title="A stroke, looked at closely"
    )
    axes[2].legend()
    _save(figure, folder / "optimise_useless.png")


def _save(figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
