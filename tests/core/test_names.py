"""Misspelt names: the error names what is close."""

from __future__ import annotations

from costate.core.names import close_names, did_you_mean, unknown


def test_the_close_name_is_offered() -> None:
    assert unknown("method", "euer", ["euler", "rk4"]) == (
        "unknown method 'euer' (did you mean 'euler'?): use one of euler, rk4"
    )


def test_nothing_is_offered_where_nothing_is_close() -> None:
    assert unknown("method", "adams", ["euler", "rk4"]) == "unknown method 'adams': use one of euler, rk4"
    assert did_you_mean("adams", ["euler", "rk4"]) == ""


def test_case_does_not_count() -> None:
    assert close_names("UR5", ["ur5", "panda"]) == ["ur5"]
    assert close_names("lf_foot", ["RF_FOOT", "LF_FOOT"])[0] == "LF_FOOT"


def test_long_lists_are_cut() -> None:
    message = unknown("link", "x", [f"link{k}" for k in range(40)])
    assert message.endswith("link11 and 28 more")
