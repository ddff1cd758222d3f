"""The compiler on its own: swing up a cart-pole with a neural controller, physics and network as one differentiable scan."""

import os
from pathlib import Path

import casadi as ca
import matplotlib.pyplot as plt
import torch
import tyro
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from costate.kernel import Kernel, ProgramBuilder

torch.set_default_dtype(torch.float64)
QUICK = bool(os.environ.get("COSTATE_QUICK"))
STEPS, DT, HIDDEN, BATCH, ITERATIONS = 200, 0.02, 32, 128, 250 if QUICK else 1200
CART, POLE, LENGTH, GRAVITY, MAX_FORCE = 1.0, 0.2, 0.5, 9.81, 20.0  # kg, kg (at the tip), m, m/s^2, N


def step() -> ca.Function:
    """Write (x, W1, b1, W2, b2) -> (x after DT, cost). x: cart position, pole angle from upright, their velocities."""
    x, b1, b2 = ca.SX.sym("x", 4), ca.SX.sym("b1", HIDDEN), ca.SX.sym("b2", 1)
    W1, W2 = ca.SX.sym("W1", 5, HIDDEN), ca.SX.sym("W2", HIDDEN, 1)  # transposed: CasADi is column-major
    p, angle, v, w = ca.vertsplit(x)
    sin, cos = ca.sin(angle), ca.cos(angle)
    force = MAX_FORCE * ca.tanh(W2.T @ ca.tanh(W1.T @ ca.vertcat(p, sin, cos, v / 2, w / 5) + b1) + b2)
    a = (force + POLE * sin * (LENGTH * w**2 - GRAVITY * cos)) / (CART + POLE * sin**2)
    v_next, w_next = v + DT * a, w + DT * (GRAVITY * sin - a * cos) / LENGTH
    x_next = ca.vertcat(p + DT * v_next, angle + DT * w_next, v_next, w_next)
    cost = 1 - cos + 0.1 * p**2 + 0.01 * (v**2 + w**2) + 1e-4 * force**2
    return ca.Function("step", [x, ca.vec(W1), b1, ca.vec(W2), b2], [x_next, cost])


def rollout() -> Kernel:
    b = ProgramBuilder("cart_pole")
    x = b.input("x", 4)
    weights = [b.input("W1", (HIDDEN, 5)), b.input("b1", HIDDEN), b.input("W2", (1, HIDDEN)), b.input("b2", 1)]
    _, (cost,), (states,) = b.scan(step(), STEPS, x, shared=weights, keep=True)  # the backward pass needs only states
    b.output("cost", cost)
    b.output("states", states, (STEPS + 1, 4))
    return b.kernel()


def starts(n: int, anywhere: int = 0) -> Tensor:
    """Draw hanging poles with a spread of 0.3 rad; the first `anywhere` samples have other angles, from upright to any."""
    x = torch.randn(n, 4) * torch.tensor([0.3, 0.3, 0.3, 0.5]) + torch.tensor([0, torch.pi, 0, 0])
    x[:anywhere, 1] = torch.pi * (2 * torch.rand(anywhere) - 1) * torch.linspace(0, 1, anywhere)
    return x


def train(simulate: Kernel, weights: nn.ParameterDict) -> list[float]:
    optimizer = torch.optim.Adam(weights.parameters(), betas=(0.7, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, ITERATIONS, pct_start=0.1, cycle_momentum=False)
    losses: list[float] = []
    with Progress("training", BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()) as progress:
        for _ in progress.track(range(ITERATIONS)):
            loss = simulate(x=starts(BATCH, BATCH // 2), **weights).cost[:, STEPS // 4 :].mean()  # from 1 s onwards
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(weights.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            progress.update(progress.task_ids[0], description=f"loss {loss.item():.3f}")
    return losses


def plot(states: Tensor, losses: list[float], file: Path) -> None:
    figure, (swing, height, loss) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    x, z = states[..., 0] + LENGTH * states[..., 1].sin(), LENGTH * states[..., 1].cos()
    for t in range(0, STEPS // 2, 2):
        swing.plot([states[0, t, 0], x[0, t]], [0, z[0, t]], "-o", color=(t / 100, 0.3, 1 - t / 100), markevery=[1])
    swing.set(title="the first 2 s of a swing-up, blue to red", xlabel="m", ylabel="m", aspect="equal")
    height.plot(torch.arange(STEPS + 1) * DT, z[:40].T, color="tab:blue", lw=0.8, alpha=0.5)
    height.set(title="height of the pole's tip, 40 starts", xlabel="s", ylabel="m")
    loss.semilogy(losses, lw=0.8)
    loss.set(title=f"loss, {BATCH} roll-outs of {STEPS} steps each", xlabel="iteration")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)


def main(out: Path = Path("out")) -> None:
    torch.manual_seed(0)
    W1, b1, W2, b2 = *nn.Linear(5, HIDDEN).parameters(), *nn.Linear(HIDDEN, 1).parameters()
    weights = nn.ParameterDict({"W1": W1, "b1": b1, "W2": 0.1 * W2.data, "b2": b2})
    simulate = rollout()
    losses = train(simulate, weights)
    states = simulate(x=starts(1000), **weights).states.detach()  # new starts
    plot(states, losses, out / "13_scan_training.png")
    upright = states[..., 1].cos() > 0.97
    reached = (upright.any(1) if QUICK else upright[:, -50:].all(1)).double().mean()
    print(f"upright {'once' if QUICK else 'for the last second'}: {reached:.1%} of 1000 new starts; plot in {out}")
    assert reached > 0.9, "the pole should be swung up from more than 90 % of the starts"


if __name__ == "__main__":
    tyro.cli(main)
