"""Names that a user misspelt: one wording for all errors, with the nearest known names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Guesses = Mapping[str, str]
"""Name that a user may guess -> what is meant: a name, or some code."""

LISTED = 12
"""Number of known names that an error lists at most."""


def close_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return up to three known names that resemble a name, best first. Case does not count."""
    by_lower: dict[str, str] = {}
    for each in known:
        by_lower.setdefault(each.lower(), each)
    return [by_lower[near] for near in get_close_matches(name.lower(), list(by_lower), n=3, cutoff=cutoff)]


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return "did you mean 'euler'?", or nothing if no known name resembles the given one."""
    close = close_names(name, known, cutoff)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message of an error: "unknown integrator 'eule' (did you mean 'euler'?): use one of euler, rk4"."""
    names = list(known)
    hint = did_you_mean(str(name), names)
    return f"unknown {kind} {name!r}{f' ({hint})' if hint else ''}: use one of {listed(names)}"


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, the first ones only if there are many."""
    rest = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {rest} more" if rest > 0 else "")


def suggested(name: str, guesses: Guesses, known: Iterable[str]) -> str:
    """Return "did you mean 'nv'?" for a name that was guessed: from a table of guesses, or from the names that resemble it."""
    if name.lower() in guesses:
        return f"did you mean {guesses[name.lower()]!r}?"
    return did_you_mean(name, known)


class MissingAttributeError(AttributeError):
    """An attribute that there is not, and the one that may be meant.

    The message is made when it is read: `hasattr`, which throws the error away, does not wait for it.
    """

    def __init__(self, owner: str, name: str, guesses: Guesses, known: Iterable[str]):
        super().__init__(owner, name)
        self._guesses, self._known = guesses, known

    def __str__(self) -> str:
        owner, name = self.args
        hint = suggested(name, self._guesses, [k for k in self._known if not k.startswith("_")])
        return f"{owner} has no attribute {name!r}" + (f"; {hint}" if hint else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


def missing(owner: Any, name: str, guesses: Guesses) -> AttributeError:
    """Return the error of an object without an attribute: for its `__getattr__`.

    Where the class does have it, as a property that failed with an AttributeError of its own, that error is raised again.
    """
    cls = type(owner)
    if hasattr(cls, name):
        object.__getattribute__(owner, name)
    return MissingAttributeError(f"a {cls.__name__}", name, guesses, dir(cls) if not name.startswith("_") else ())


def with_suggestions(guesses: Guesses) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator: keyword arguments that a function does not have are answered with the ones that may be meant."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        known = [name for name in inspect.signature(function).parameters if name != "self"]
        called = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> T:
            for name in options:
                if name not in known:
                    hint = suggested(name, guesses, known) or f"it takes {', '.join(known)}"
                    raise TypeError(f"{called} has no argument {name!r}; {hint}")
            return function(*args, **options)

        return checked

    return decorate
