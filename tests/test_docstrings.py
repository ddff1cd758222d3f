"""Docstrings are sentences: none begins with a fragment, and those of functions begin with a verb.

A machine cannot tell good English from bad. It can tell the beginnings that always were bad: "Of the motion [s].", "What a sensor
adds.", "[kg], shape ()." for a field, and "The next state." or "(x, u) -> x'." for a function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "costate"
PARTS = sorted(p for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists())

FRAGMENT = re.compile(
    r"\[|\(|\.\.\.|->|(Also|And|As|At|Beside|But|By|From|How|If|In|Likewise|More|None|Nor|Not|Of|On|Or|Since|So|Than|That|To|"
    r"Until|What|Whatever|When|Where|Whether|Which|While|Who|Whose|Why|With|Without)\b"
)
"""Beginning of a unit, of a shape, or of the rest of a sentence whose first part is missing."""

NOUN = re.compile(r"(A|All|An|Another|Any|Both|Each|Every|Its|Some|The|These|This|Those)\b")
"""Beginning of a noun: right for a class or a field, wrong for a function, which does something."""

VERB = re.compile(r"[A-Z][a-z]+\b(?!:)")
"""Beginning of a sentence with a word, not with a symbol or a formula."""

UNREAD = frozenset({"audit", "cli", "collision", "compat", "draw", "export", "identify", "kernel"})
UNREAD |= {"model", "report", "robot", "sim", "tasks", "train", "viewer"}
"""Packages that have not been read for this rule yet. None may be added."""


class Docstring(NamedTuple):
    """A docstring and its place."""

    file: Path
    line: int
    text: str
    of_function: bool

    def __str__(self) -> str:
        return f"{self.file.relative_to(PACKAGE.parent.parent)}:{self.line}: {self.text.splitlines()[0]}"


def docstrings(file: Path) -> Iterator[Docstring]:
    """Yield the docstrings of modules, classes and functions, and those below fields and constants."""
    for node in ast.walk(ast.parse(file.read_text())):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for k, statement in enumerate(body):
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield Docstring(file, statement.lineno, text.strip(), k == 0 and _acts(node))


def _acts(node: ast.AST) -> bool:
    """Return True for a function, but not for a property, which is a noun, nor for what Python calls by itself."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    special = node.name.startswith("__") and node.name.endswith("__")
    return not special and not any(
        "property" in ast.unparse(d) or "setter" in ast.unparse(d) for d in node.decorator_list
    )


def is_fragment(text: str) -> bool:
    """Return True if a docstring begins with the rest of a sentence, a unit or a shape."""
    return FRAGMENT.match(text) is not None


def begins_with_verb(text: str) -> bool:
    """Return False if the docstring of a function begins with a noun, a formula or a symbol."""
    return VERB.match(text) is not None and NOUN.match(text) is None


@pytest.mark.parametrize("part", [p for p in PARTS if p.name not in UNREAD], ids=lambda p: p.name)
def test_docstrings_are_sentences(part: Path) -> None:
    found = [d for file in sorted(part.rglob("*.py")) for d in docstrings(file)]
    assert found
    wrong = [str(d) for d in found if is_fragment(d.text) or (d.of_function and not begins_with_verb(d.text))]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_package_is_unread_that_does_not_exist() -> None:
    assert {p.name for p in PARTS} >= UNREAD


@pytest.mark.parametrize(
    "text", ["Of the motion [s].", "What a sensor adds.", "[kg], shape ().", "(nq,)", "None: no limit."]
)
def test_fragments_are_found(text: str) -> None:
    assert is_fragment(text)


@pytest.mark.parametrize(
    "text", ["The next state.", "(x, u) -> x'.", "M^-1 b, shape (nv,).", "J with J v = 0.", "q after dt."]
)
def test_functions_that_do_nothing_are_found(text: str) -> None:
    assert is_fragment(text) or not begins_with_verb(text)


@pytest.mark.parametrize(
    "text", ["Return M^-1 b.", "Solve a batch of problems.", "Raise a KeyError if a name is unknown."]
)
def test_sentences_pass(text: str) -> None:
    assert begins_with_verb(text) and not is_fragment(text)
