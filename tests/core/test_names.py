"""Misspelt names: the error names what is close."""

from __future__ import annotations

import pickle

import pytest

from costate.core.names import (
    MissingAttributeError,
    close_names,
    did_you_mean,
    missing,
    suggested,
    unknown,
    with_suggestions,
)


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


def test_guesses_come_before_names_that_resemble() -> None:
    guesses = {"dof": "nv"}
    assert suggested("dof", guesses, ["dot"]) == suggested("DoF", guesses, []) == "did you mean 'nv'?"
    assert suggested("dott", guesses, ["dot"]) == "did you mean 'dot'?"
    assert suggested("xyz", guesses, ["dot"]) == ""


class Known:
    size = 3

    @property
    def broken(self) -> int:
        raise AttributeError("something inside is missing")

    def __getattr__(self, name: str) -> int:
        raise missing(self, name, {"length": "size"})


def test_missing_attributes() -> None:
    one = Known()
    for name, hint in (("length", "size"), ("sise", "size")):
        with pytest.raises(AttributeError, match=f"a Known has no attribute '{name}'; did you mean '{hint}'"):
            getattr(one, name)
    with pytest.raises(AttributeError, match=r"a Known has no attribute '_private'$"):
        one._private  # noqa: B018
    assert not hasattr(one, "length") and getattr(one, "length", 5) == 5
    with pytest.raises(AttributeError, match="something inside is missing"):
        one.broken  # noqa: B018
    error = pickle.loads(pickle.dumps(MissingAttributeError("a Known", "sise", {}, ["size"])))
    assert isinstance(error, AttributeError) and "did you mean 'size'" in str(error)


def test_the_message_is_not_made_before_it_is_read() -> None:
    class Reluctant(list[str]):
        def __iter__(self):
            raise AssertionError("it was asked for the names")

    error = MissingAttributeError("a Known", "x", {}, Reluctant())
    with pytest.raises(AssertionError):
        str(error)


def test_unknown_arguments() -> None:
    @with_suggestions({"timestep": "dt"})
    def make(robots: int, dt: float = 1.0, *, substeps: int = 1) -> tuple[int, float, int]:
        """Return the arguments."""
        return robots, dt, substeps

    assert make(1, 2.0, substeps=3) == (1, 2.0, 3) and make.__doc__ == "Return the arguments."
    with pytest.raises(TypeError, match=r"make has no argument 'timestep'; did you mean 'dt'\?"):
        make(1, timestep=2.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean 'substeps'"):
        make(1, substep=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no argument 'xyz'; it takes robots, dt, substeps"):
        make(1, xyz=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required"):
        make()  # type: ignore[call-arg]
