"""The compiler's floor plan: what a reader may rely on when opening its folders."""

from __future__ import annotations

import ast
from pathlib import Path

import costate.kernel
from costate.kernel.codegen.stages import WRITERS
from costate.kernel.ir.program import Op
from costate.kernel.ir.vector_ops import Parts, Slice

ROOM = Path(costate.kernel.__file__).parent
MOST_LATE_IMPORTS = 4
"""Imports inside of functions hide cycles: there were 21 of them once."""


def late_imports(text: str) -> list[int]:
    """Return the lines of imports inside of functions."""
    functions = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    return sorted({n.lineno for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)})


def all_kinds(kind: type = Op) -> set[type]:
    return {k for sub in kind.__subclasses__() if sub.__module__.startswith("costate.") for k in {sub, *all_kinds(sub)}}


def test_an_import_inside_a_function_is_found():
    assert late_imports("import os\ndef f():\n    if 1:\n        import sys\n") == [4]


def test_few_imports_are_inside_of_functions():
    found = [f"{p.name}:{line}" for p in sorted(ROOM.rglob("*.py")) for line in late_imports(p.read_text("utf-8"))]
    assert len(found) <= MOST_LATE_IMPORTS, found


def test_every_kind_of_stage_has_a_writer():
    assert all_kinds() - {Slice, Parts} == set(WRITERS)  # these are places in other values


def test_the_table_of_contents_is_short():
    assert len((ROOM / "compile.py").read_text("utf-8").splitlines()) < 100
