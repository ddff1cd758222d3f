"""Names that a user misspelt: one wording for all errors, with the nearest known names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

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
