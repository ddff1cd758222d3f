"""G-code against motions on paper, and written programs read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costate.continuum import Process, ToolPath, block, cylinder, read_gcode, read_toolpath, write_gcode


def run(folder: Path, program: str, **options: object) -> ToolPath:
    (folder / "program.nc").write_text(program)
    return read_gcode(folder / "program.nc", **options)  # pyright: ignore[reportArgumentType]


def test_a_program_by_hand(tmp_path: Path) -> None:
    path = run(
        tmp_path,
        """%
        (a wall) ; and a comment
        N10 G21 G90 G94
        G0 X10 Y0 Z1      ; where the path begins
        M3 S200
        G01 X40 F600      ; 30 mm at 10 mm/s
        Y4                ; modal
        S0
        X10
        M5
        G4 P500
        G4 S1.5
        g0 z2
        M30
        nothing after the end is read
        """,
        rapid=0.01,
    )
    np.testing.assert_allclose(path.times, [0, 3, 3.4, 6.4, 6.9, 8.4, 8.5])
    expected = [[10, 0, 1], [40, 0, 1], [40, 4, 1], [10, 4, 1], [10, 4, 1], [10, 4, 1], [10, 4, 2]]
    np.testing.assert_allclose(path.positions, 1e-3 * np.array(expected))
    assert path.on.tolist() == [False, True, True, False, False, False, False]


def test_inches_relative_positions_and_new_coordinates(tmp_path: Path) -> None:
    path = run(tmp_path, "G20 G91\nG1 X1 F60\nG1 X1 Y1\nG90 G92 X0 Y0\nG1 X-1\nG92\nG21 G1 X2.54 F254")
    np.testing.assert_allclose(path.positions[:, :2] / 0.0254, [[0, 0], [1, 0], [2, 1], [1, 1], [1.1, 1]])
    np.testing.assert_allclose(np.diff(path.times), [1, np.sqrt(2), 1, 0.6])


def test_a_move_during_which_e_grows_has_the_laser_on(tmp_path: Path) -> None:
    moves = "G1 X1 E1 F60\nG1 X2 E1\nG1 X3 E0.5\nG92 E0\nG1 X4 E0.2\nM83\nG1 X5 E0.1\nG1 X6 E-0.1\nG1 E5\n"
    assert run(tmp_path, moves).on.tolist() == [False, True, False, False, True, True, False]


def test_m4_is_off_while_nothing_moves_and_m3_is_not(tmp_path: Path) -> None:
    assert run(tmp_path, "M3\nG1 X1 F60\nG4 S1\nM4\nG1 X2\nG4 S1\nG0 X3").on.tolist() == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]


def test_codes_can_be_ignored(tmp_path: Path) -> None:
    assert len(run(tmp_path, "M104 S200\nM106\nG1 X1 F60\nM104 S0", ignore=("M104", "m106")).times) == 2


@pytest.mark.parametrize(
    "part", [block(process=Process(dwell=2.0, cooling=5.0)), cylinder()], ids=["block", "cylinder"]
)
def test_round_trip(tmp_path: Path, part) -> None:
    write_gcode(tmp_path / "part.gcode", part.path)
    again = read_toolpath(tmp_path / "part.gcode")
    np.testing.assert_allclose(again.times, part.path.times, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(again.positions, part.path.positions, atol=1e-12)
    np.testing.assert_array_equal(again.on[1:], part.path.on[1:])


def test_a_jump_cannot_be_written(tmp_path: Path) -> None:
    path = ToolPath(np.array([0.0, 1.0, 1.0]), np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.array([1, 1, 0]))
    with pytest.raises(ValueError, match="row 2 of the path is a jump of 1 m in no time"):
        write_gcode(tmp_path / "jump.nc", path)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "G1 X1 F60\nG2 X2 I1",
            "line 2: G2 is not known: arcs are not supported, split them into G1; expected one of G0, G1",
        ),
        ("G3 X1", "line 1: G3 is not known: arcs"),
        ("G1 X1 F60\nM106 S255", r"line 2: M106 is not known; expected one of .*, or ignore=\('M106',\)"),
        ("G28", "line 1: G28 is not known"),
        ("G1 X1", "line 1: G1 without a feed; expected an F"),
        ("X1", "line 1: coordinates without a G0 or G1"),
        ("G1 X1 F0", "line 1: F0 is no feed"),
        ("G4", "line 1: G4 needs either P"),
        ("G4 P-1", "line 1: G4 of -0.001 s"),
        ("G1 X1 F60\nG1 Xten", "line 2: .* is not understood; expected words such as G1 X10.5 F600"),
        ("G1 A5 F60", "line 1: A5 is not understood; expected the words G, M, X"),
        ("M3", "program.nc: a path of 0 rows; expected two or more"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, program: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(tmp_path, program)
