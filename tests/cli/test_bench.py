"""`costate bench`: a short table of times on this machine."""

from __future__ import annotations

import re

import pytest

from costate.cli.main import main


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "pendulum1", "--batches", "1", "256", "--seconds", "0.01"]) == 0
    shown = capsys.readouterr().out
    rows = dict(re.findall(r"^ *(\w+(?: and gradient)?) +([\d,]+ +[\d,]+) *$", shown, re.MULTILINE))
    assert len(rows) == 8 and "forward_dynamics and gradient" in rows
    for row in rows.values():
        one, many = (int(cell.replace(",", "")) for cell in row.split())
        assert 0 < many < one  # a batch shares what a call costs
    assert "docs/peers.md" in shown


def test_batches_are_positive(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "pendulum1", "--batches", "0"]) == 2
    assert "--batches takes sizes of at least 1, not (0,)" in capsys.readouterr().err
