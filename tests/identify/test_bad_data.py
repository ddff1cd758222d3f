"""Faults in logs are named with row and column, and nothing is dropped silently."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from tests.identify.motions import Array, guessed, motion, noisy, with_friction

import costate as cs
from costate.cli.main import main
from costate.identify import Log, LogError, Regressor
from costate.robot import Robot

TRUE = with_friction("ur5")
JOINTS = [j.name for j in TRUE.joints if j.nv]


@pytest.fixture(scope="module")
def log() -> dict[str, Array]:
    return noisy(motion(TRUE, n=600), 0.01, 0)


def table(log: dict[str, Array], quantities: str = "q v a tau") -> dict[str, Array]:
    """As columns."""
    columns = {"t": log["t"].copy()}
    for name in quantities.split():
        columns.update({f"{name}_{joint}": log[name][:, k].copy() for k, joint in enumerate(JOINTS)})
    return columns


def write_csv(path: Path, columns: dict[str, Array]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(x.tolist() for x in columns.values()), strict=True))
    return path


def refusal(columns: dict[str, Array], **options) -> str:
    with pytest.raises(LogError) as error:
        cs.identify(Robot(guessed(TRUE)), columns, repair=False, **options)
    return str(error.value)


def test_three_formats_give_the_same(log: dict[str, Array], tmp_path: Path) -> None:
    columns = table(log)
    write_csv(tmp_path / "log.csv", columns)
    np.savez(tmp_path / "log.npz", **columns)  # pyright: ignore[reportArgumentType]
    np.savez(tmp_path / "whole.npz", **log)  # pyright: ignore[reportArgumentType]
    logs = [Log.read(tmp_path / name, TRUE) for name in ("log.csv", "log.npz", "whole.npz")]
    for other in logs:
        for name in ("q", "v", "a", "tau", "t"):
            np.testing.assert_array_equal(getattr(other, name), log[name])


def test_parquet(log: dict[str, Array], tmp_path: Path) -> None:
    """Numbers of any type; gaps are NaN and named; columns of text do no harm unless they are needed."""
    path, columns = tmp_path / "log.parquet", {k: pyarrow.array(x) for k, x in table(log).items()}
    columns["mode"] = pyarrow.array(["run"] * len(log["t"]))
    parquet.write_table(pyarrow.table(columns), path)
    read = Log.read(path, TRUE)
    for name in ("q", "v", "a", "tau", "t"):
        np.testing.assert_array_equal(getattr(read, name), log[name])
    tau = f"tau_{JOINTS[2]}"
    single = pyarrow.array(log["tau"][:, 2].astype(np.float32))
    parquet.write_table(pyarrow.table({**columns, tau: single}), path)
    np.testing.assert_array_equal(Log.read(path, TRUE).tau[:, 2], log["tau"][:, 2].astype(np.float32))
    gap = pyarrow.array([None if k == 17 else float(x) for k, x in enumerate(log["tau"][:, 2])])
    parquet.write_table(pyarrow.table({**columns, tau: gap}), path)
    with pytest.raises(LogError, match=rf"{tau}.*row 17|row 17.*{tau}"):
        cs.identify(Robot(guessed(TRUE)), path)
    parquet.write_table(pyarrow.table({**columns, tau: columns["mode"]}), path)
    with pytest.raises(LogError, match=f"{tau}.*string"):
        Log.read(path, TRUE)


def test_parquet_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: .*\[data\]"):
        Log.read(tmp_path / "log.parquet", TRUE)


@pytest.mark.parametrize("first", [0, 1])
def test_columns_by_number(log: dict[str, Array], first: int) -> None:
    columns = {"time": log["t"]}
    for name, prefix in (("q", "pos"), ("v", "vel"), ("a", "acc"), ("tau", "effort")):
        columns.update({f"{prefix}_{k + first}": log[name][:, k] for k in range(6)})
    assert cs.identify(Robot(guessed(TRUE)), columns, physical=False).base.rank == 52


def test_columns_by_other_names(log: dict[str, Array]) -> None:
    columns = {"clock": log["t"], **{f"Achse {k}": log["q"][:, k] for k in range(6)}}
    columns.update({f"M {k}": log["tau"][:, k] for k in range(6)})
    names = {"time": "clock", "q": [f"Achse {k}" for k in range(6)], "tau": [f"M {k}" for k in range(6)]}
    result = cs.identify(Robot(guessed(TRUE)), columns, columns=names, physical=False)
    assert result.base.rank == 52


def nan(c: dict[str, Array]) -> None:
    c["tau_elbow_joint"][[17, 40]] = np.nan


def repeated(c: dict[str, Array]) -> None:
    c["t"][100] = c["t"][99]


def unsorted(c: dict[str, Array]) -> None:
    c["t"][[200, 201]] = c["t"][[201, 200]]


def degrees(*names: str) -> Callable[[dict[str, Array]], None]:
    def spoil(c: dict[str, Array]) -> None:
        for name in c:
            if name.split("_")[0] in names:
                c[name] *= 180 / np.pi

    return spoil


def flipped(name: str) -> Callable[[dict[str, Array]], None]:
    def spoil(c: dict[str, Array]) -> None:
        c[name] *= -1

    return spoil


FAULTS: dict[str, tuple[Callable[[dict[str, Array]], None], list[str]]] = {
    "nan": (nan, ["tau_elbow_joint", "row 17, row 40", "drop_bad_rows"]),
    "repeated time": (repeated, ["'t'", "row 100", "duplicates"]),
    "unsorted time": (unsorted, ["'t'", "back in time", "row 201", "sort"]),
    "everything in degrees": (degrees("q", "v", "a"), ["q_shoulder_pan_joint", "degrees", "pi/180"]),
    "positions in degrees": (degrees("q"), ["q_shoulder_pan_joint", "degrees", "pi/180"]),
    "velocities in degrees": (degrees("v"), ["v_shoulder_pan_joint", "57.3", "degrees"]),
    "accelerations in degrees": (degrees("a"), ["a_shoulder_pan_joint", "57.3", "degrees"]),
    "torque flipped": (flipped("tau_elbow_joint"), ["tau_elbow_joint", "opposite sign", "flip"]),
    "velocity flipped": (flipped("v_wrist_1_joint"), ["v_wrist_1_joint", "opposite sign", "flip"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str, log: dict[str, Array]) -> None:
    spoil, expected = FAULTS[name]
    columns = table(log)
    spoil(columns)
    message = refusal(columns)
    for part in expected:
        assert part in message, message


def test_all_torques_flipped(log: dict[str, Array]) -> None:
    columns = table(log)
    for name in columns:
        if name.startswith("tau"):
            columns[name] *= -1
    assert "opposite sign" in refusal(columns)


def test_degrees_within_limits_are_found_by_the_torques() -> None:
    """Motions of two degrees: as numbers they would be fine radians."""
    log = motion(TRUE, n=600)
    small = {**{k: log[k] / 30 for k in "qva"}, "t": log["t"]}
    small["q"] = small["q"] + 0.02
    robot = cs.load_robot("ur5")
    regressor = Regressor.of(robot.model)
    small["tau"] = regressor.torques(small["q"], small["v"], small["a"], regressor.pi())
    columns = table(small)
    degrees("q", "v", "a")(columns)
    with pytest.raises(LogError, match=r"q_shoulder_pan_joint.*are in degrees"):
        cs.identify(robot, columns, repair=False)


def test_bad_rows_are_dropped_only_when_asked_and_said(log: dict[str, Array]) -> None:
    columns = table(log)
    nan(columns)
    result = cs.identify(Robot(guessed(TRUE)), columns, drop_bad_rows=True, physical=False)
    assert any("row 17, row 40" in note and "dropped" in note for note in result.notes)
    assert result.log is not None and len(result.log) == 598


def test_wrong_columns(log: dict[str, Array]) -> None:
    columns = table(log)
    columns["tau_elbow"] = columns.pop("tau_elbow_joint")
    assert "'tau_elbow_joint' is missing; did you mean 'tau_elbow'" in refusal(columns)
    assert "no torques" in refusal(table(log, "q v a"))
    without_time = table(log, "q tau")
    del without_time["t"]
    assert "no time" in refusal(without_time)


def test_csv_faults_name_lines(log: dict[str, Array], tmp_path: Path) -> None:
    columns = table(log)
    nan(columns)
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(LogError, match="line 19, line 42"):  # after the header, counted from 1
        cs.identify(Robot(TRUE), path)
    text = path.read_text().splitlines()
    text[5] = text[5].rsplit(",", 1)[0]
    path.write_text("\n".join(text))
    with pytest.raises(LogError, match="line 6 has 24 cells, the header has 25"):
        cs.identify(Robot(TRUE), path)
    path.write_text("")
    with pytest.raises(LogError, match="empty"):
        cs.identify(Robot(TRUE), path)


def test_command(log: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_csv(tmp_path / "log.csv", table(log, "q tau"))
    assert main(["identify", "ur5", str(path), "--out", str(tmp_path / "out")]) == 0
    assert "52 of 78" in capsys.readouterr().out
    assert cs.load_robot(tmp_path / "out" / "identified.urdf").joint_names == JOINTS
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"report.txt", "torques.png", "parameters.png"}
    columns = table(log)
    unsorted(columns)
    assert main(["identify", "ur5", str(write_csv(path, columns)), "--no-repair"]) == 2
    assert "line 203" in capsys.readouterr().err
