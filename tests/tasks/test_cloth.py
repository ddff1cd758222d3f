"""Tasks of cloth: what a towel is made of, a hat that is put on, a flag that is cut, a rope that is threaded through a ring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tasks.cloth_problems import check_derivative, judged

from costate.cli.solve import CLOTH, Options, run
from costate.draw.recording import load_recording
from costate.tasks.cloth.flag import TALL, FlagTask
from costate.tasks.cloth.hat import HatTask
from costate.tasks.cloth.knots import smooth
from costate.tasks.cloth.methods import METHODS, Counted
from costate.tasks.cloth.names import CLOTH_TASKS
from costate.tasks.cloth.rope import RING, TUBE, ThreadTask, crossing
from costate.tasks.cloth.towel import TowelTask

SMALL = TowelTask(points=6, steps=25)
EXACT = 1e-10
"""Tolerance of steps with which differences have some digits."""


def test_gradients_find_friction_and_bending() -> None:
    """Both methods with gradients end at the same numbers, near the true ones."""
    found = {m: replace(SMALL, method=m).solve(7, lambda text: None) for m in ("gauss_newton", "lbfgs")}
    for each in found.values():
        assert each.solved
        assert min(each.losses) < 1.2 / 2  # what is left is the noise
        assert all(float(r["from"]) < float(r["found"]) < float(r["to"]) for r in each.rows)
    first, second = ([float(r["found"]) for r in f.rows] for f in found.values())
    assert first == pytest.approx(second, rel=2e-3)
    assert len(found["gauss_newton"].losses) < 15


def test_search_goes_on_without_gradients() -> None:
    found = replace(SMALL, method="search", iterations=1).solve(7, lambda text: None)
    assert found.facts["gradients"] == 0 and len(found.losses) > 20
    assert min(found.losses) < 0.5 * found.losses[0]


def test_a_report_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CLOTH_TASKS, "cloth_towel", SMALL)
    run(Options("cloth_towel", iterations=3, out=tmp_path))
    assert "roll-outs" in capsys.readouterr().out
    assert (tmp_path / "cloth_towel.html").stat().st_size > 10_000
    assert load_recording(tmp_path / "cloth_towel").motion.surfaces[0].points.shape == (SMALL.steps + 1, 36, 3)
    assert {name: told[0] for name, told in CLOTH.items()} == {name: t.summary for name, t in CLOTH_TASKS.items()}


def test_methods_that_there_are_not_are_named() -> None:
    with pytest.raises(ValueError, match="gauss_newton"):
        replace(SMALL, method=f"{next(iter(METHODS))}s").solve(0, lambda text: None)


def test_smooth_curves_pass_through_their_knots() -> None:
    knots = torch.tensor([[0.0], [2.0], [1.0]], dtype=torch.float64)
    path = smooth(knots, 20)
    assert path[[9, 19], 0].tolist() == pytest.approx([2.0, 1.0])
    expected = 0.01 * 2.8 * 2 - 0.01 * 0.9 * 0.5  # s^2 (3 - 2 s) b - s^2 (1 - s) b' at s = 0.1
    assert float(path[0]) == pytest.approx(expected)


def test_derivatives_of_a_hat_on_its_way_onto_a_head() -> None:
    check_derivative(HatTask(rings=4, around=8, steps=20, still=3, tolerance=EXACT), 0, 0.02)


def test_a_hat_is_on_within_its_limit() -> None:
    task = HatTask(rings=4, around=8)
    problem = task.problem(3)
    assert problem.poses is not None
    on = problem.model.start().x + problem.poses[0, 0, :3]
    for off, good in ((0.99, True), (1.01, False)):
        assert judged(problem, on + torch.tensor([0.0, off * task.limit, 0.0]))[1] is good


def test_derivatives_of_a_flag_by_its_cut() -> None:
    check_derivative(FlagTask(shape=(5, 4), steps=8, tolerance=EXACT), 0, 0.01)


def test_a_flag_hangs_as_wanted_within_its_limit() -> None:
    task = FlagTask(shape=(5, 4))
    problem = task.problem(0)
    want = problem.model.start().x
    for off, good in ((0.99, True), (1.01, False)):
        moved = want.clone()
        moved[-1, 2] += off * task.limit  # the lower or upper corner at the free end
        assert judged(problem, moved, moved)[1] is good
    assert float(want[:, 2].max() - want[:, 2].min()) == pytest.approx(TALL)
    found = task.solve(0, lambda text: None)
    assert found.solved and found.facts["roll-outs"] < 10
    assert found.facts["largest distance of the border [mm], before"] > 5 * 1e3 * task.limit


def test_derivatives_of_a_rope_before_a_ring() -> None:
    check_derivative(ThreadTask(segments=16, steps=20, tolerance=EXACT), 0, 0.02)


def test_where_a_rope_passes_a_plane() -> None:
    hole = RING - TUBE
    straight = np.array([[0.02, hole, 0.0], [0.01, hole, 0.0], [-0.02, hole, 0.0]])
    assert crossing(straight) == pytest.approx(hole)
    assert crossing(straight + np.array([0.1, 0, 0])) == float("inf")  # it has not come to the ring
    there_and_back = np.array([[0.02, 0, 0], [-0.01, 0, 0], [0.02, 0, 0]])
    assert crossing(there_and_back) == float("inf")


def test_a_rope_is_threaded_within_the_hole_of_the_ring() -> None:
    task = ThreadTask()
    problem = task.problem(2)
    assert problem.poses is not None
    place, R = problem.poses[0, 0, :3], problem.poses[0, 0, 3:].reshape(3, 3)
    own = torch.zeros(task.segments + 1, 3, dtype=torch.float64)
    own[:, 0] = 0.04 - 0.01 * torch.arange(task.segments + 1)
    for off, good in ((0.99, True), (1.01, False)):
        own[:, 1] = off * (RING - TUBE)
        assert judged(problem, own @ R.T + place)[1] is good
    found = task.solve(2, lambda text: None)
    assert found.solved and found.facts["roll-outs"] < 10
    assert found.facts["from the middle [mm], before"] > 1e3 * RING


def test_a_roll_out_that_fails_is_far_from_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = FlagTask(shape=(5, 4)).problem(0)

    def fails(z: torch.Tensor) -> None:
        raise FloatingPointError("a step did not converge")

    counted = Counted(replace(problem, play=fails), lambda text: None)
    assert np.isinf(counted.residual(problem.first)).all()
    assert counted.loss(problem.first)[0] > 1e9
    assert counted.evaluations == 2 and not counted.losses
