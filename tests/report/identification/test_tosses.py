"""The page of an identification from tosses, and the command that writes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tests.identify.tosses.throws import TRUTH, thrown

from costate.cli.main import main
from costate.identify.tosses.turns import rotated


def test_the_command_writes_numbers_and_a_page(tmp_path: Path) -> None:
    x = thrown(count=6, rows=14)[0]
    q, v = x.states[:, 3:7], rotated(x.states[:, 3:7], x.states[:, 7:10])
    rows = np.hstack([x.states[:, :3], q[:, [3, 0, 1, 2]], v, x.states[:, 10:]])
    np.savez(tmp_path / "log.npz", state=rows, starts=x.starts, dt=x.dt)
    given = ["--sizes", "0.1", "0.1", "0.1", "--mass", "0.4", "--out", str(tmp_path / "out")]
    fit = ["--fit.train", "4", "--fit.rows", "14", "--fit.iterations", "2", "--fit.first-rows", "3"]
    main(["tosses", str(tmp_path / "log.npz"), *given, *fit, "--fit.unknowns", *TRUTH])
    found = json.loads((tmp_path / "out" / "found.json").read_text())
    assert set(found) == set(TRUTH) and len(found["com"]) == 3
    html = (tmp_path / "out" / "report.html").read_text()
    assert all(text in html for text in ("Tosses held out", "friction", "com x", "from 3 rows", "replay"))
    assert f"{found['friction'][0]:.3f}"[:4] in html
