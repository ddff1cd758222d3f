"""The race of optimisers on tasks of a hand: who reaches what, and when."""

from benchmarks.study_hands import draw, judge, ratios, results

ADAM = [(0.0, 9.0), (10.0, 2.0), (20.0, 1.0), (30.0, 1.5)]
FOUND = {
    4: {"Gauss-Newton": [(0.0, 9.0), (4.0, 0.9), (5.0, 0.5)], "Adam": ADAM, "L-BFGS": [(0.0, 9.0), (30.0, 3.0)]},
    5: {"Gauss-Newton": [(0.0, 8.0), (2.5, 0.7), (5.0, 0.6)], "Adam": ADAM, "L-BFGS": [(0.0, 8.0), (30.0, 0.7)]},
    6: {"Gauss-Newton": [(0.0, 8.0), (5.0, 1.1)], "Adam": ADAM, "L-BFGS": [(0.0, 8.0), (30.0, 3.0)]},
}


def test_a_race_is_judged_by_the_best_loss_of_any_first_order_method():
    """Also if that method lost it again later; a loss that is not reached counts as a ratio of zero."""
    verdicts = [judge(curves) for curves in FOUND.values()]
    assert [(v.best, v.method, v.theirs, v.ours) for v in verdicts[:2]] == [
        (1.0, "Adam", 20.0, 4.0),
        (0.7, "L-BFGS", 30.0, 2.5),
    ]
    assert [v.ratio for v in verdicts] == [5.0, 12.0, 0.0]


def test_tables_have_every_seed_and_medians():
    table = ratios("turn", FOUND)
    assert [row[-1] for row in table.rows] == ["5.0", "12.0", "not reached"]
    assert "5.0 times faster in the median" in table.note
    rows = {row[0]: row for row in results("turn", FOUND).rows}
    assert rows["Gauss-Newton"] == ("Gauss-Newton", 8.0, 5.0, 0.6, "0.5, 0.6, 1.1", "4.0")
    assert rows["Adam"][-1] == "20.0" and rows["L-BFGS"][-1] == "-"


def test_the_plot_has_all_curves(tmp_path):
    draw("turn", FOUND, tmp_path / "plots" / "turn.png")
    assert (tmp_path / "plots" / "turn.png").stat().st_size > 10_000
