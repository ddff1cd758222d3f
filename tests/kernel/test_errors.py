"""Errors say what was given, what was expected and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
import torch
from tests.kernel import programs
from tests.kernel.programs import spring_inputs

from costate.kernel import Kernel, ProgramBuilder

x, p, M = spring_inputs(4)


@pytest.fixture(scope="module")
def spring() -> Kernel:
    return programs.spring()


TAKES = "spring(x (..., 3), p (..., 2), M (..., 2, 3)) -> f (..., 3), e (..., 2), G (..., 2, 3)"

CALLS: dict[str, tuple[dict[str, Any], type[Exception], list[str]]] = {
    "wrong name": (
        {"x": x, "P": p, "M": M},
        TypeError,
        ["kernel 'spring' has no input 'P' (did you mean 'p'?)", f"it takes {TAKES}"],
    ),
    "far from any name": (
        {"x": x, "p": p, "M": M, "stiffness": p},
        TypeError,
        ["kernel 'spring' has no input 'stiffness';", f"it takes {TAKES}"],
    ),
    "missing": ({"x": x}, TypeError, ["kernel 'spring' needs input p, M as well", f"it takes {TAKES}"]),
    "wrong size": (
        {"x": x[:, :2], "p": p, "M": M},
        ValueError,
        ["input 'x' has shape (4, 2)", "expected x (..., 3)", "any leading batch dimensions"],
    ),
    "matrix transposed": (
        {"x": x, "p": p, "M": M.mT},
        ValueError,
        ["input 'M' has shape (4, 3, 2)", "expected M (..., 2, 3)"],
    ),
    "too few dimensions": ({"x": x, "p": p, "M": M[0, 0]}, ValueError, ["input 'M' has shape (3,)", "M (..., 2, 3)"]),
    "a scalar": (
        {"x": torch.tensor(1.0).double(), "p": p, "M": M},
        ValueError,
        ["input 'x' has shape ()", "x (..., 3)"],
    ),
    "half precision": (
        {"x": x.half(), "p": p.half(), "M": M.half()},
        TypeError,
        ["input 'x' is torch.float16", "expected torch.float64 or torch.float32", "x.double()"],
    ),
    "complex": ({"x": x, "p": p, "M": M + 0j}, TypeError, ["input 'M' is torch.complex128", "torch.float64"]),
    "another device": (
        {"x": x.to("meta"), "p": p, "M": M},
        ValueError,
        ["input 'x' is on meta", "kernels run on the CPU", "pass x.cpu()"],
    ),
    "words": ({"x": x, "p": ["a", "b"], "M": M}, TypeError, ["input 'p' is a list", "or an array or list of numbers"]),
    "None": ({"x": None, "p": p, "M": M}, TypeError, ["input 'x' is a NoneType", "expected a torch tensor"]),
    "batches that differ": (
        {"x": x, "p": p[:3], "M": M},
        ValueError,
        ["leading batch dimensions don't broadcast", "x (4,), p (3,), M (4,)", "make them equal, or 1"],
    ),
    "sparse": (
        {"x": x.to_sparse(), "p": p, "M": M},
        TypeError,
        ["input 'x' is a sparse_coo tensor", "expected a dense one", "x.to_dense()"],
    ),
}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(("inputs", "kind", "parts"), CALLS.values(), ids=CALLS.keys())
def test_calls(spring: Kernel, inputs: dict, kind: type[Exception], parts: list[str], gradient: bool) -> None:
    """The same words with and without a gradient being recorded."""
    if gradient:
        inputs = {n: t.detach().requires_grad_() if n == "M" and is_float(t) else t for n, t in inputs.items()}
    with pytest.raises(kind) as caught:
        spring(**inputs)
    for part in parts:
        assert part in str(caught.value)


def test_number_types_that_differ_are_no_mistake(spring: Kernel) -> None:
    """They are promoted: the same bits as the widest type by hand."""
    expected = spring(x=x.float().double(), p=p, M=M)
    for given in (
        {"x": x.float(), "p": p, "M": M},
        {"x": x.float(), "p": p.numpy(), "M": M.tolist()},
        {"x": x.float(), "p": p.detach().requires_grad_(), "M": M},
    ):
        found = spring(**given)  # type: ignore[arg-type]
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    whole = spring(x=x.long(), p=p.half(), M=M)
    assert torch.equal(whole.f, spring(x=x.long().double(), p=p.half().double(), M=M).f)


def is_float(t: Any) -> bool:
    return isinstance(t, torch.Tensor) and t.is_floating_point()


def test_errors_after_a_good_call(spring: Kernel) -> None:
    """The short way that remembers the last call's shapes does not let anything through."""
    spring(x=x, p=p, M=M)
    for inputs, kind, parts in CALLS.values():
        with pytest.raises(kind, match=re.escape(parts[0])):
            spring(**inputs)
        spring(x=x, p=p, M=M)


def test_positional_arguments_are_refused(spring: Kernel) -> None:
    with pytest.raises(TypeError, match="positional"):
        spring(x, p, M)  # type: ignore[call-arg]


def test_too_few_tensors_in_order(spring: Kernel) -> None:
    with pytest.raises((TypeError, ValueError)):
        spring.apply([x, p])


NUMPY: dict[str, tuple[dict[str, Any], type[Exception], list[str]]] = {
    "name": ({"x": x.numpy(), "p": p.numpy(), "m": M.numpy()}, TypeError, ["no input 'm' (did you mean 'M'?)"]),
    "shape": ({"x": x.numpy()[:, :2], "p": p.numpy(), "M": M.numpy()}, ValueError, ["input 'x' has shape (4, 2)"]),
    "type": ({"x": x.numpy().astype(int), "p": p.numpy(), "M": M.numpy()}, TypeError, ["input 'x' is int64", "float"]),
    "mixed": ({"x": x.numpy().astype("f4"), "p": p.numpy(), "M": M.numpy()}, TypeError, ["share one dtype"]),
}


@pytest.mark.parametrize(("inputs", "kind", "parts"), NUMPY.values(), ids=NUMPY.keys())
@pytest.mark.parametrize("way", ["numpy", "bind"])
def test_numpy_calls(spring: Kernel, way: str, inputs: dict, kind: type[Exception], parts: list[str]) -> None:
    with pytest.raises(kind) as caught:
        getattr(spring, way)(**inputs)
    for part in parts:
        assert part in str(caught.value)


def test_bind_does_not_copy_behind_your_back(spring: Kernel) -> None:
    """A bound array that cannot be read in place would never be read again: it is refused."""
    wide = np.zeros((4, 6))
    frozen = x.numpy().copy()
    frozen.flags.writeable = False
    for array in (wide[:, ::2], frozen):
        with pytest.raises(ValueError, match="bind needs input 'x' C-contiguous and writeable; pass a copy of it"):
            spring.bind(x=array, p=p.numpy(), M=M.numpy())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: k.vjp("y"), "kernel 'spring' has no input 'y'; it has x, p, M"),
        (lambda k: k.vjp("x", "g"), "kernel 'spring' has no output 'g' (did you mean 'G'?); it has f, e, G"),
        (lambda k: k.jvp("X"), "kernel 'spring' has no input 'X' (did you mean 'x'?); it has x, p, M"),
        (lambda k: k.hvp(["x", "q"]), "kernel 'spring' has no input 'q'"),
        (lambda k: k.jacobian("force", "x"), "kernel 'spring' has no output 'force'"),
        (lambda k: k.jacobian("f", "z"), "kernel 'spring' has no input 'z'"),
    ],
)
def test_derivatives_by_wrong_names(spring: Kernel, call: Callable[[Kernel], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call(spring)


def test_building_a_kernel() -> None:
    s = ca.SX.sym("s", 2)
    with pytest.raises(ValueError, match=r"kernel 'k': input 'x' must be made of SX symbols \(casadi.SX.sym\), but is"):
        Kernel("k", {"x": 2 * s}, {"y": s})
    with pytest.raises(ValueError, match="input 'x' must be made of SX symbols"):
        Kernel("k", {"x": ca.MX.sym("s", 2)}, {"y": s})  # type: ignore[dict-item]
    other = ca.SX.sym("other")
    with pytest.raises(ValueError, match=r"kernel 'k': the outputs use other, which is no input"):
        Kernel("k", {"x": s}, {"y": s * other})


def test_building_a_program() -> None:
    b = ProgramBuilder("p")
    b.input("x", 2)
    with pytest.raises(ValueError, match="program 'p' has an input 'x' already"):
        b.input("x", 3)
    with pytest.raises(ValueError, match=r"input 'volume' has shape \(2, 3, 4\); expected \(n,\) or \(rows, n\)"):
        b.input("volume", (2, 3, 4))
    y = b.input("y", 2)
    b.output("z", y)
    with pytest.raises(ValueError, match="program 'p' has an output 'z' already"):
        b.output("z", y)
    foreign = ProgramBuilder("other").input("a", 2)
    s = ca.SX.sym("s", 2)
    with pytest.raises(ValueError, match="a value of another program"):
        b.call(ca.Function("f", [s], [s]), foreign)
    with pytest.raises(ValueError, match="a value of another program"):
        b.output("w", foreign)
