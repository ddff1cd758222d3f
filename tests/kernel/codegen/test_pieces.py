"""Straight-line code that kernels share: compiled once in a process, with the bits of a kernel that shares nothing."""

from __future__ import annotations

from typing import Any

import casadi as ca
import pytest
import torch
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel import compile as compiler
from costate.kernel.codegen.chunks import CHUNK_OPS
from costate.kernel.codegen.pieces import Known, Piece

OPS = 5 * CHUNK_OPS


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Known:
    """Begin with nothing compiled, in memory or on disk."""
    monkeypatch.setenv("COSTATE_CACHE", "")
    known = Known()
    monkeypatch.setattr(compiler, "KNOWN", known)
    return known


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of chunks that were compiled, a number per kernel."""
    counts: list[int] = []
    original = compiler.compile_chunks

    def watched(groups: Any, *rest: Any) -> Any:
        counts.append(sum(map(len, groups)))
        return original(groups, *rest)

    monkeypatch.setattr(compiler, "compile_chunks", watched)
    return counts


def long(x: SX) -> SX:
    """Some thousand operations, without overflow."""
    for k in range(OPS // 4):
        x = ca.sin(x) + x / (k + 2)
    return x


def kernel(name: str, repeats: int = 1, ops: int = 4) -> Kernel:
    """A long function of x, several times over; in a loop, since straight-line code would become one function."""
    b = ProgramBuilder(name)
    (y,), _, _ = b.scan(long, repeats, b.input("x", ops))
    b.output("y", y)
    return b.kernel()


def test_a_second_kernel_takes_what_the_first_has_compiled(compiled: list[int]) -> None:
    x = torch.rand(33, 4, dtype=torch.float64)
    once = kernel("once")(x=x).y
    twice = kernel("twice", 2)(x=x).y
    assert compiled[0] > 4 and compiled[1] == 0
    assert torch.equal(twice, kernel("once more")(x=once).y)


def test_the_bits_are_those_of_a_kernel_that_shares_nothing(
    monkeypatch: pytest.MonkeyPatch, compiled: list[int]
) -> None:
    x = torch.rand(33, 4, dtype=torch.float64)
    kernel("once")(x=x)
    shared = kernel("twice", 2)(x=x).y
    monkeypatch.setattr(compiler, "KNOWN", Known(0))
    alone = kernel("twice", 2)(x=x).y
    assert torch.equal(shared, alone) and compiled[1] == 0 and compiled[2] == compiled[0]


def test_number_types_and_widths_have_code_of_their_own(monkeypatch: pytest.MonkeyPatch, compiled: list[int]) -> None:
    x = torch.rand(33, 4, dtype=torch.float64)
    kernel("double")(x=x)
    kernel("single")(x=x.float())
    monkeypatch.setenv("COSTATE_VECTOR_BYTES", "16")
    kernel("narrow")(x=x)
    assert len(compiled) == 3 and min(compiled) > 4


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    known = Known(limit=250)
    piece = Piece(("f",), 3, 1, 300, 300, frozenset())
    for name in "ab":
        known.keep(piece, (bytes(100),), name)
    find = known.finder()
    assert find("a")
    known.keep(piece, (bytes(100),), "c")
    assert find("a") and find("c") and not find("b")
