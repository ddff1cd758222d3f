"""Ratios, the gate, tables, plots and the roof, from numbers that are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.peers import gate, page, plan, plots, roofline
from benchmarks.peers.peer import PEERS, chosen
from benchmarks.peers.results import Result, Results
from benchmarks.peers.venvs import _install, interpreter, pip_reason


def results(ours: float = 1e-7, theirs: float = 4e-7) -> Results:
    rows = []
    for batch in (16, 1024):
        rows += [
            Result(name, "forward_dynamics", "ur5", batch, value=v)
            for name, v in (("costate", ours), ("mujoco", theirs))
        ]
    rows += [Result("costate", "memory", "standing laikago", steps=n, value=1e3 * n) for n in (100, 1000)]
    point = roofline.Point("k", operations=2000, bytes=100, nanoseconds=100.0, peak=3e10, bandwidth=1e9)
    return Results({"CPU": "any"}, rows=rows, roofline=[point.__dict__])


def test_gate_fails_below_half(tmp_path: Path) -> None:
    file = tmp_path / "gate.json"
    row = {"peer": "mujoco", "quantity": "forward_dynamics", "subject": "ur5", "batch": 1024, "steps": 1}
    unmeasured = row | {"peer": "pinocchio", "ratio": 100.0}
    file.write_text(json.dumps([row | {"ratio": 7.9}, row | {"ratio": 8.1}, unmeasured]))
    verdicts = gate.judge(results(), file)
    assert [v.found for v in verdicts] == [pytest.approx(4.0), pytest.approx(4.0), None]
    assert [v.ok for v in verdicts] == [True, False, True]
    assert "TOO SLOW" in gate.table(verdicts).text()


def test_committed_ratios_are_measured_by_the_gate() -> None:
    subjects = {"arm": "ur5", "standing": "standing laikago"}
    measured = {(c.quantity, subjects[c.subject], c.batch, c.steps) for c in plan.gate().cases}
    committed = gate.committed()
    assert {(r.quantity, r.subject, r.batch, r.steps) for r in committed} == measured
    assert {r.peer for r in committed} <= set(PEERS)


def test_tables_say_how_many_times() -> None:
    tables = {t.title: t for t in page.tables(results())}
    (row,) = tables["UR5, fixed base, 6 joints"].rows
    assert row == ("forward dynamics", "100", "400 (4x)")
    assert tables["Peak memory"].rows[0][1:] == pytest.approx((1e5 / 2**20, 1e6 / 2**20))


def test_plots(tmp_path: Path) -> None:
    files = plots.save(results(), tmp_path)
    assert [f.name for f in files] == ["peers_forward_dynamics.png", "peers_memory.png", "peers_roofline.png"]
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in files)


def test_roof() -> None:
    few = roofline.Point("few", operations=100, bytes=100, nanoseconds=100.0, peak=3e10, bandwidth=5e9)
    many = roofline.Point("many", operations=1000, bytes=100, nanoseconds=100.0, peak=3e10, bandwidth=5e9)
    assert (few.rate, few.roof) == (1e9, 5e9)  # memory limits it
    assert (many.rate, many.roof) == (1e10, 3e10)  # the core does


def test_a_kernel_stays_under_the_roof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        roofline, "_kernels", lambda: iter([("id", lambda: roofline._function("ur5", "inverse_dynamics", False))])
    )
    (point,) = roofline.measure(lambda line: None)
    found = roofline.Point(**point)
    assert found.bytes == 8 * 4 * 6  # q, v, a, tau
    assert 0.01 * found.peak < found.rate < 1.1 * found.peak


def test_pip_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from benchmarks.peers.peer import Peer

    monkeypatch.setattr("benchmarks.peers.venvs.venv.create", lambda *args, **kwargs: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    peer = Peer("none", "None", ("costate-no-such-package",), "")
    assert "No matching distribution found for costate-no-such-package" in _install(
        peer, tmp_path / "e", Path(sys.executable), 60
    )
    assert pip_reason("ERROR: Could not find a version\nERROR: No matching distribution found for x") == (
        "No matching distribution found for x"
    )


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown peer 'bullet'; the peers are costate, costate_newton, pinocchio"):
        chosen(("bullet",))
    with pytest.raises(ValueError, match="unknown quantity 'speed'"):
        plan.full().only(("speed",))
    assert [p.name for p in chosen(("mujoco",))] == ["costate", "mujoco"]


def test_remarks_stand_beside_the_peers_they_are_about() -> None:
    found = results()
    assert "Rows to read with care" not in page.markdown(found)
    found.add(Result("genesis", "rollout_gradient", "standing laikago", 1, 10, value=1e-3, values=(-0.4, 1.0)))
    assert "| Genesis | In its differentiable mode the robot falls through the ground" in page.markdown(found)


def test_a_smoke_run_installs_nothing() -> None:
    assert interpreter(PEERS["genesis"], None, smoke=True) == Path(sys.executable)
    assert interpreter(PEERS["genesis"], "other/python", smoke=True) == Path("other/python")
    assert interpreter(PEERS["costate"], "other/python", smoke=False) == Path(sys.executable)
