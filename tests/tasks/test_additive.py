"""Tasks of printed parts: each gets better by what its gradient says, and identification finds the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.cli.main import main
from costate.continuum.heat.melt import MeltDepth
from costate.tasks.additive.meltpool import _pieces
from costate.tasks.additive.names import PRINT_TASKS, print_task
from costate.tasks.additive.power import PowerCurve
from costate.tasks.additive.problem import case_of


def silent(text: str) -> None:
    pass


def test_a_history_is_found_again() -> None:
    found = print_task("am_history", iterations=30).solve(0, silent)
    assert found.losses[-1] < 0.1 * found.losses[0]
    same = print_task("am_history", iterations=1).solve(0, silent, torch.float32)
    assert same.losses[0] == pytest.approx(found.losses[0], rel=1e-3)  # the same problem in float32
    assert found.T is not None and found.T.shape[1] == len(found.model.mesh.nodes)  # type: ignore[union-attr]


def test_time_in_a_window_grows() -> None:
    found = print_task("am_treatment", iterations=25).solve(0, silent)
    assert min(found.losses) < found.losses[0] < 0


def test_melt_pool_depth() -> None:
    """Power by the piece of a track brings the depth closer to what is wanted; deeper with more power."""
    found = print_task("am_meltpool", iterations=4).solve(0, silent)
    assert found.losses[-1] < 0.5 * found.losses[0]
    model = case_of("small").model(segment=8)
    measure = MeltDepth(model, reach=3e-3)
    depths = [measure(model.run(p, 1500.0).T) for p in (100.0, 150.0)]
    assert (depths[1] > depths[0]).all()


def test_melt_pool_depth_of_a_known_field() -> None:
    """A temperature that falls linearly with depth crosses the solidus where it should."""
    model = case_of("small").model(segment=8)
    measure = MeltDepth(model, reach=2.5e-3, lag=0.0)
    z = torch.tensor(model.mesh.nodes[:, 2])
    top = torch.as_tensor(model.path.at(measure.times)[0][:, 2])
    deep = 0.7e-3
    for k, height in zip(measure.frames, top, strict=True):
        T = torch.zeros(model.segments + 1, len(z), dtype=torch.float64)
        T[k] = model.material.solidus + 2e5 * (z - (height - deep))
        assert float(measure(T)[list(measure.frames).index(k)]) == pytest.approx(deep, abs=2e-8)


def test_pieces_of_tracks() -> None:
    on = np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0.0])
    pieces = _pieces(np.arange(16.0), on)
    assert pieces[1:9].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert pieces[11:15].tolist() == [4, 5, 6, 7]


def test_thermocouples_tell_the_process() -> None:
    """Two problems: values within 2 %, and within 3.3 standard deviations, which 1 of 1,000 errors exceeds.

    Of the 95 % intervals of 60 problems, 169 of 180 hold the truth.
    """
    for k in (0, 1):
        found = print_task("am_identify").solve(k, silent)
        assert found.solved
        assert all(abs(r["found"] / r["true"] - 1) < 0.02 for r in found.rows)
        assert all(abs(r["found"] - r["true"]) < 3.3 / 1.96 * (r["to"] - r["found"]) for r in found.rows)


def test_power_curves_lie_between_their_limits() -> None:
    curve = PowerCurve(3)
    share = curve(torch.linspace(0, 1, 100, dtype=torch.float64)).detach()
    assert share.shape == (100,) and 0 <= float(share.min()) < float(share.max()) <= 1
    assert torch.equal(PowerCurve(3)(torch.ones(1).double()), curve(torch.ones(1).double()))


def test_command_line(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["solve", "am_identify", "--iterations", "3", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "am_identify: " in said and "conductivity" in said
    assert (tmp_path / "am_identify.html").stat().st_size > 10_000
    main(["solve", "list"])
    assert set(PRINT_TASKS) <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--size", "huge"], "unknown size 'huge'"),
        (["--method", "ilqr"], "one method of its own"),
        (["--starts", "0"], "at least one"),
    ],
)
def test_wrong_options(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "am_history", *arguments]) == 2
    assert said in "".join(capsys.readouterr()).replace("\n", " ")
