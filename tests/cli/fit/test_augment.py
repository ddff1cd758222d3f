"""`costate augment`: motions in, a report and a network out; files that do not fit are refused in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import costate as cs
from costate.cli.fit.augment import Options, run


def test_a_network_is_fitted_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "damping:pendulum2/joint_1"
    true = cs.World([cs.load_robot("pendulum2")], dt=0.01, parameters=[name])
    random = torch.Generator().manual_seed(0)
    start = 2 * torch.randn(20, 4, generator=random, dtype=torch.float64)
    states = true.rollout(start, steps=5, params={name: 0.5})
    np.savez(tmp_path / "motions.npz", states=states)
    options = Options("pendulum2", tmp_path / "motions.npz", on=("joint_1",), inputs=("speed", "position"))
    small = {"hidden": (4,), "starts": 1, "iterations": 40, "out": tmp_path / "nets"}
    run(Options(**{**vars(options), **small}))
    printed = capsys.readouterr().out
    assert "% of that without networks" in printed and "speed" in printed
    world = cs.World([cs.load_robot("pendulum2")])
    (network,) = world.load_networks(tmp_path / "nets").values()
    assert network.importance()["speed"] > 0


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros(3)}, "has no 'states'"),
        ({"states": np.zeros((5, 3))}, "expected \\(T \\+ 1, B, 4\\)"),
        ({"states": np.zeros((5, 3, 4)), "controls": np.zeros((5, 3, 2))}, "expected \\(4, 3, 2\\)"),
        ({"states": np.full((5, 3, 4), np.nan)}, "not finite"),
        ({"states": np.zeros((5, 1, 4))}, "some to test"),
    ],
    ids=str,
)
def test_motions_that_do_not_fit(tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "motions.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        run(Options("pendulum2", tmp_path / "motions.npz", on=("joint_1",)))
    with pytest.raises(FileNotFoundError, match=r"missing\.npz"):
        run(Options("pendulum2", tmp_path / "missing.npz", on=("joint_1",)))
