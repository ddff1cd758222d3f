"""Tasks of soft bodies: short runs, their gradients, and what the command says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from costate.tasks.soft.actuation import between_knots
from costate.tasks.soft.identify import MaterialTask
from costate.tasks.soft.names import SOFT_TASKS, soft_task
from costate.tasks.soft.reach import ReachTask
from costate.tasks.soft.walkers import WalkerTask

QUIET = lambda text: None  # noqa: E731


@pytest.fixture(scope="module")
def small() -> WalkerTask:
    task = soft_task("soft_walker")
    assert isinstance(task, WalkerTask)
    return replace(task, cells=32, dt=4e-3, steps=192, iterations=5)


def test_a_few_steps_of_descent_make_it_walk(small: WalkerTask) -> None:
    found = small.solve(0, QUIET)
    assert len(found.losses) == 6
    assert found.facts["distance [m]"] == pytest.approx(-min(found.losses))
    assert found.facts["distance [m]"] > found.facts["distance before [m]"] + 0.02
    assert found.x.shape == (len(found.times), found.model.particles, 2)


def test_gradient_of_the_distance(small: WalkerTask) -> None:
    model = small.model()
    g = torch.Generator().manual_seed(1)
    w, dw = (torch.randn(4, 4, generator=g, dtype=torch.float64) for _ in range(2))

    def distance(e: torch.Tensor) -> torch.Tensor:
        act = small.actuation(0.3 * w + e * dw, torch.zeros(4, dtype=torch.float64))[:96]
        return model.run(96, act=act).x[-1, :, 0].mean()

    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(distance(e), e)
    with torch.no_grad():
        differences = (distance(torch.tensor(1e-6).double()) - distance(torch.tensor(-1e-6).double())) / 2e-6
    assert abs(exact - differences) < 1e-6 * abs(exact)


def test_co_design_finds_stiffness_within_its_range(small: WalkerTask) -> None:
    found = replace(small, codesign=True, iterations=2).solve(0, QUIET)
    stiff = [row["E [Pa]"] for row in found.rows]
    assert len(stiff) == 5
    assert min(stiff) > 0.3 * 25
    assert max(stiff) < 3 * 25
    assert len({round(e, 6) for e in stiff}) > 1


def test_identification_gives_the_true_values_and_honest_intervals() -> None:
    """Of the eight true values of four problems, 95 % should lie in the intervals: fewer than 6 happens once in 170 times."""
    task = MaterialTask(cells=20, steps=60, watched=12)
    hits, errors = 0, []
    for seed in range(4):
        found = task.solve(seed, QUIET)
        for row in found.rows:
            hits += row["from"] <= row["true"] <= row["to"]
            errors.append(abs(row["found"] / row["true"] - 1))
    assert max(errors) < 0.1
    assert np.median(errors) < 0.02
    assert hits >= 6


def test_lines_between_knots() -> None:
    knots = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    want = [np.interp(np.linspace(0, 4, 33), np.arange(5), knots[:, k].numpy()) for k in (0, 1)]
    assert np.abs(between_knots(knots, 33).numpy() - np.stack(want, -1)).max() < 1e-14


@pytest.mark.parametrize(
    "name",
    [
        "soft_finger",
        pytest.param("soft_arm", marks=pytest.mark.study),
        pytest.param("soft_arm_3d", marks=pytest.mark.study),
    ],
)
def test_the_base_is_held_and_the_tip_comes_nearer(name: str) -> None:
    task = soft_task(name)
    assert isinstance(task, ReachTask)
    small = replace(task, cells=24, width=0.16, dt=4e-3, steps=96, iterations=6)
    found = small.solve(0, QUIET)
    up = -1 if small.hangs else 1
    start, end = found.x[0], found.x[-1]
    height = up * start[:, -1]
    base = height < height.min() + 0.03
    assert (end - start)[base].norm(dim=-1).max() < 0.02
    assert (end - start)[~base].norm(dim=-1).max() > 0.05
    assert min(found.losses) < 0.7 * found.losses[0]


def test_gradient_of_a_wheel() -> None:
    """Fibres that differ from particle to particle, and knots."""
    task = replace(soft_task("soft_rolling"), cells=32, dt=4e-3, steps=60, knots=6)
    assert isinstance(task, WalkerTask)
    model, none = task.model(), torch.zeros(12, dtype=torch.float64)
    g = torch.Generator().manual_seed(1)
    w, dw = (torch.randn(12, 6, generator=g, dtype=torch.float64) for _ in range(2))

    def distance(e: torch.Tensor) -> torch.Tensor:
        act = task.actuation(0.3 * w + e * dw, none)
        return model.run(60, act=act, parameters=task._numbers(model, none)).x[-1, :, 0].mean()

    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(distance(e), e)
    with torch.no_grad():
        differences = (distance(torch.tensor(1e-7).double()) - distance(torch.tensor(-1e-7).double())) / 2e-7
    assert abs(exact - differences) < 1e-6 * abs(exact)


@pytest.mark.study
def test_the_wheel_rolls() -> None:
    """It turns forwards by most of the angle of a wheel that does not slip."""
    found = soft_task("soft_rolling").solve(0, QUIET)
    arm = found.x - found.x.mean(1, keepdim=True)
    z = torch.complex(arm[..., 0], arm[..., 1])
    turned = -float(torch.angle((z[1:] * z[:-1].conj()).mean(1)).sum())
    assert 0.1 * turned > 0.5 * found.facts["distance [m]"]


UNSOLVED = {"plasticine_assembly", "plasticine_pinch"}
"""Tasks that are not solved yet, see docs/soft_bodies.md."""


@pytest.mark.study
@pytest.mark.parametrize("name", sorted(SOFT_TASKS))
def test_every_task_is_solved(name: str) -> None:
    if name in UNSOLVED:
        pytest.skip("not solved yet, see docs/soft_bodies.md")
    assert soft_task(name).solve(0, QUIET).solved
