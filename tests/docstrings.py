"""Docstrings of Python files: of modules, classes, functions and properties, and the strings that document fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Docstring:
    """A docstring and what it documents."""

    kind: str
    """One of module, class, function, property, field."""
    name: str
    """Name of what it documents; empty for a module."""
    text: str
    line: int

    @property
    def first_word(self) -> str:
        """First word, without marks around it."""
        return (self.text.split() or [""])[0].strip("`'\"(),.:;")


def docstrings(path: Path) -> Iterator[Docstring]:
    """Yield all docstrings of a file."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield Docstring(_kind(node), getattr(node, "name", ""), text, getattr(node, "lineno", 1))
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from _fields(node)


def _fields(node: ast.Module | ast.ClassDef) -> Iterator[Docstring]:
    for before, after in zip(node.body, node.body[1:], strict=False):
        documented = isinstance(before, ast.Assign | ast.AnnAssign)
        if documented and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            target = before.target if isinstance(before, ast.AnnAssign) else before.targets[0]
            if isinstance(after.value.value, str):
                yield Docstring("field", ast.unparse(target), after.value.value, after.lineno)


def _kind(node: ast.AST) -> str:
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        return "class"
    decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
    return "property" if any("property" in d for d in decorators) else "function"
