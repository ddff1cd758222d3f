"""Model-predictive control as a layer, beside mpc.pytorch on its published pendulum (Amos et al., 2018).

    python -m benchmarks.study_mpc [--epochs 150] [--peer-epochs 10]

A rod is to be held upright by at most 2 N m, over 20 states that are 50 ms apart. An expert plans with gravity 10 m/s^2, mass 1 kg
and length 1 m. A learner sees what the expert does from 100 starts, plans with 15, 3 and 0.5, and changes these numbers until its
plans are the expert's. Task, first guess, optimiser (RMSprop, rate 0.01, batches of 32) and measure (mean square difference of the
controls) are those of the published experiment; the random starts are our own. Only gravity / length and mass * length^2 have an
effect. Without `pip install mpc` the peer is left out. One thread, processor time.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import casadi as ca
import torch
from torch import Tensor

import costate as cs
from benchmarks.measure.table import Table
from costate.optimise import Cost
from costate.optimise.layers.mpc import mpc

STATES, BATCH, TRAIN, TEST = 20, 32, 100, 10
EXPERT, GUESS = (10.0, 1.0, 1.0), (15.0, 3.0, 0.5)
"""Gravity [m/s^2], mass [kg] and length [m]."""
LIMIT = 2.0
"""Largest torque [N m]."""
ROD = """<robot name="rod"><link name="base"/>
<link name="rod"><inertial><origin xyz="0 0 0.5"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""

Planner = Callable[[Tensor, Tensor], Tensor]
"""Function of gravity, mass and length (3,) and of first angles and speeds (B, 2) that returns controls (STATES - 1, B)."""


def ours() -> Planner:
    """Return the layer of Costate."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rod.urdf"
        file.write_text(ROD)
        robot = cs.load_robot(file)
    names = ["mass:rod/rod", "com:rod/rod", "inertia:rod/rod", "gravity"]
    motor = cs.Torque(limit=LIMIT)
    world = cs.World([robot], actuators=motor, contact=None, dt=0.05, check=False, parameters=names).double()

    def final(s: Any) -> Any:
        return ca.vertcat(ca.cos(s.q) - 1, ca.sin(s.q), math.sqrt(0.1) * s.v)

    cost = Cost(world, lambda s: ca.vertcat(final(s), math.sqrt(0.001) * s.u), final)

    def params(theta: Tensor) -> Mapping[str, Tensor]:
        gravity, mass, length = theta
        up = torch.tensor([0.0, 0.0, 1.0], dtype=theta.dtype)
        across = torch.tensor([1.0, 1.0, 0.01], dtype=theta.dtype).diag().flatten()
        values = mass.reshape(1), up * length / 2, across * mass * length**2 / 12, -up * gravity
        return dict(zip(names, values, strict=True))

    def plan(theta: Tensor, start: Tensor) -> Tensor:
        found = mpc(world, cost, start, start.new_zeros(STATES - 1, len(start), 1), params=params(theta))
        return found.controls[..., 0]

    return plan


def theirs() -> Planner:
    """Return the layer of mpc.pytorch, with the options of the published experiment."""
    library, pendulum = import_module("mpc.mpc"), import_module("mpc.env_dx.pendulum")

    def plan(theta: Tensor, start: Tensor) -> Tensor:
        model = pendulum.PendulumDx(theta)
        square, linear = (t.to(theta) for t in model.get_true_obj())
        cost = library.QuadCost(square.diag().repeat(STATES, len(start), 1, 1), linear.repeat(STATES, len(start), 1))
        solver = library.MPC(
            3, 1, STATES, u_lower=-LIMIT, u_upper=LIMIT, lqr_iter=500, verbose=-1, exit_unconverged=False,
            detach_unconverged=True, linesearch_decay=model.linesearch_decay, eps=model.mpc_eps,
            max_linesearch_iter=model.max_linesearch_iter, grad_method=library.GradMethods.AUTO_DIFF,
        )  # fmt: skip
        angle, speed = start.T
        with torch.enable_grad():  # it linearises the model by autograd
            return solver(torch.stack([angle.cos(), angle.sin(), speed], 1), cost, model)[1][:-1, :, 0]

    return plan


def starts(count: int, seed: int) -> Tensor:
    """Return first angles within a quarter turn of upright and speeds within 1 rad/s, (count, 2)."""
    drawn = 2 * torch.rand(count, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1
    return drawn * torch.tensor([math.pi / 2, 1.0], dtype=torch.float64)


def difference(plan: Planner, theta: Tensor, start: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean square difference of controls."""
    return (plan(theta, start) - wanted).square().mean()


def slopes(name: str, plan: Planner, start: Tensor, wanted: Tensor) -> tuple[str | float, ...]:
    """Return times of one batch, the gradient of its difference and how far that is from finite differences."""
    given, loss = tensor(GUESS), partial(difference, plan, start=start, wanted=wanted)
    with torch.no_grad():
        loss(theta=given)  # compile
        begun = time.process_time()
        loss(theta=given)
        forward = time.process_time() - begun
    steps = 1e-4 * torch.eye(3, dtype=torch.float64)
    expected = torch.stack([(loss(theta=given + h) - loss(theta=given - h)).detach() for h in steps]) / 2e-4
    for _ in range(2):  # the first one compiles
        leaf = given.clone().requires_grad_()
        begun = time.process_time()
        (gradient,) = torch.autograd.grad(loss(theta=leaf), leaf)
        both = time.process_time() - begun
    error = float((gradient - expected).norm() / expected.norm())
    told = ", ".join(f"{x:.4f}" for x in gradient.tolist())
    return name, f"{1e3 * forward:.0f}", f"{1e3 * both:.0f}", told, f"{error:.1e}"


def learn(name: str, plan: Planner, epochs: int, start: Tensor, wanted: Tensor) -> tuple[str | float, ...]:
    """Learn the numbers of the model from what an expert does; return what was found. The last TEST problems are held out."""
    theta = tensor(GUESS).requires_grad_()
    optimiser = torch.optim.RMSprop([theta], lr=1e-2, alpha=0.5)
    random, begun = torch.Generator().manual_seed(0), time.process_time()
    for _ in range(epochs):
        for chosen in torch.randperm(TRAIN, generator=random).split(BATCH):
            optimiser.zero_grad()
            difference(plan, theta, start[chosen], wanted[:, chosen]).backward()
            optimiser.step()
    seconds = time.process_time() - begun
    with torch.no_grad():
        loss = difference(plan, theta, start[TRAIN:], wanted[:, TRAIN:])
    gravity, mass, length = theta.detach().tolist()
    found = f"{gravity / length:.3f}", f"{mass * length**2:.4f}"
    return name, epochs, f"{seconds:.0f}", f"{float(loss):.1e}", *found


def tensor(numbers: tuple[float, ...]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=150, help="passes over the expert's motions")
    parser.add_argument(
        "--peer-epochs", type=int, default=10, help="passes of mpc.pytorch, and of ours once more beside it"
    )
    asked = parser.parse_args()
    torch.set_num_threads(1)
    planners = {"Costate": ours()} | ({"mpc.pytorch": theirs()} if find_spec("mpc") else {})
    start = starts(TRAIN + TEST, 0)
    with torch.no_grad():
        wanted = planners["Costate"](tensor(EXPERT), start)
    rows = tuple(slopes(name, plan, start[:BATCH], wanted[:, :BATCH]) for name, plan in planners.items())
    columns = ("layer", "forward [ms]", "forward and backward [ms]", "gradient", "relative error of the gradient")
    print(Table(f"{BATCH} problems", columns, rows, "The error is that against finite differences.").markdown(), "\n")
    trained = [learn(name, plan, asked.peer_epochs, start, wanted) for name, plan in planners.items()]
    trained.append(learn("Costate", planners["Costate"], asked.epochs, start, wanted))
    columns = ("layer", "epochs", "processor s", "held-out difference [(N m)^2]", "gravity / length", "mass * length^2")
    print(Table("Learnt from an expert", columns, tuple(trained), "The expert has 10 and 1.").markdown())


if __name__ == "__main__":
    main()
