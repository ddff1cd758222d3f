"""`make quick` finds the tests of a change by its imports, and the progress of a run adds up to the whole."""

from __future__ import annotations

from pathlib import Path

from tests import progress, quick


def test_the_mirror_image_comes_first_and_the_budget_is_kept() -> None:
    run, left = quick.chosen(["src/costate/kernel/ops/scan.py"], 40.0)
    tests = run[len(quick.ALWAYS) :]
    assert tests[0].startswith("tests/kernel/ops/") and left
    assert sum(map(quick.cost_of, tests)) <= 40
    everything, none = quick.chosen(["src/costate/kernel/ops/scan.py"], 1e9)
    assert not none and {*run, *left} == {*everything}


def test_users_are_reached_through_others_and_through_public_names(tmp_path: Path) -> None:
    known = {"costate.sim.world": tmp_path / "a.py", "tests.direct": tmp_path / "b.py", "tests.far": tmp_path / "c.py"}
    known["costate.sim"] = tmp_path / "d.py"
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.py").write_text("def f():\n    from costate.sim.world import World\n")
    (tmp_path / "c.py").write_text("import costate as cs\ncs.World\n")
    (tmp_path / "d.py").write_text("import costate.sim.world\n")
    assert quick.distances({"costate.sim.world"}, known) == {
        "costate.sim.world": 0,
        "tests.direct": 1,
        "costate.sim": 1,
        "tests.far": 2,
    }


def test_changes_of_examples_and_pages_have_their_tests() -> None:
    assert quick.near("examples/01_load_a_robot.py") == {"tests/test_examples.py::test_example[01_load_a_robot]"}
    assert quick.near("docs/contact.md") and not quick.near("LICENSE")


def test_the_costs_name_files_that_exist() -> None:
    gone = [file for file in progress.costs() if not (quick.ROOT / file).is_file()]
    assert gone == []
