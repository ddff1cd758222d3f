"""Tool paths in .csv and .crs files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costate.continuum import cylinder, read_toolpath, write_toolpath
from costate.continuum.files.rows import read_crs, read_csv


@pytest.mark.parametrize("ending", [".csv", ".crs"])
def test_round_trip(tmp_path: Path, ending: str) -> None:
    path = cylinder().path
    write_toolpath(tmp_path / f"path{ending}", path)
    again = read_toolpath(tmp_path / f"path{ending}")
    np.testing.assert_array_equal(again.times, path.times)
    np.testing.assert_allclose(again.positions, path.positions, rtol=0 if ending == ".csv" else 1e-15)
    np.testing.assert_array_equal(again.on, path.on)


def test_a_crs_file_is_in_millimetres_and_a_row_says_how_its_end_is_reached(tmp_path: Path) -> None:
    file = tmp_path / "path.crs"
    file.write_text("0\t0\t0.5\t1\t0\n0.5  5 0.5 1 1\n\n1.5 5 0.5 2 0\n")
    path = read_crs(file)
    where, on = path.at([0.25, 1.0])
    np.testing.assert_allclose(where, [[0.0025, 0.0005, 0.001], [0.005, 0.0005, 0.0015]])
    assert on.tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,0,0,0,1\n", "line 1 is '0,0,0,0,1'; expected the header t,x,y,z,on"),
        ("", "it is empty; expected the header"),
        ("t,x,y,z,on\n0,0,0,0,1\n1,0,0,1\n", "line 3: '1,0,0,1'; expected five finite numbers"),
        ("t,x,y,z,on\n0,0,0,0,1\n1,0,a,0,1\n", "line 3: .*expected five finite numbers"),
        ("t,x,y,z,on\n0,0,0,0,1\n1,0,0,0,0.5\n", "line 3: the laser is '0.5'; expected 1 for on or 0 for off"),
        ("t,x,y,z,on\n1,0,0,0,1\n0,0,0,0,1\n", "path.csv: times goes from 1 to 0 at row 1"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "path.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_csv(tmp_path / "path.csv")


def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends with '.txt'; expected one of .csv, .crs, .gcode"):
        read_toolpath(tmp_path / "path.txt")
