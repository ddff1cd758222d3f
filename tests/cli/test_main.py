"""Answers that need no physics come at once: neither torch nor CasADi is loaded for them."""

from __future__ import annotations

import subprocess
import sys

from costate.cli.solve import LISTED, PRINTED, SOFT, progress_text
from costate.optimise.solution import Record
from costate.tasks.additive.names import PRINT_TASKS
from costate.tasks.soft.names import SOFT_TASKS
from costate.train.registry import TASKS, find_task
from costate.train.solve import RECIPES

QUICK = """
import contextlib, io, sys
from costate.cli.main import main
sys.modules["viser"] = None
for line in '''solve list|solve nothing|solve --starts 0 throw|train list|train nothing|view ur5|view nothing|render nothing a.png
report nothing|evaluate nothing|export nothing|play nothing|robustness nothing|transfer nothing|bench nothing|gradcheck nothing
robots|version'''.replace(chr(10), "|").split("|"):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = main(line.split())
    heavy = [name for name in ("torch", "casadi", "matplotlib") if name in sys.modules]
    print(line, code, heavy, out.getvalue().strip().splitlines()[-1])
"""


def test_answers_without_physics_load_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", QUICK], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 18
    assert [line for line in lines if " [] " not in line] == []
    assert any(line.startswith("view ur5 2") and "needs viser" in line for line in lines)


def test_the_lists_say_what_the_tasks_say() -> None:
    assert {n: (r.make().summary, ", ".join(r.options)) for n, r in RECIPES.items()} == LISTED
    assert {name: task.summary for name, task in PRINT_TASKS.items()} == {name: row[0] for name, row in PRINTED.items()}
    assert {name: task.summary for name, task in SOFT_TASKS.items()} == {name: row[0] for name, row in SOFT.items()}
    assert {name: find_task(name).summary for name in TASKS} == {name: row.summary for name, row in TASKS.items()}


def test_progress_is_told_in_words() -> None:
    import torch

    record = Record(3, torch.tensor([0.5, 130.0, 2.0]), 1.0, 4)
    assert progress_text(record) == "iteration 3, loss 2, worst 130"
    assert progress_text(Record(0, torch.tensor(1e-7), 1.0, 4)) == "iteration 0, loss 1e-7"
