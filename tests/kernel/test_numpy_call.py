"""Calls without torch: NumPy arrays in any order of kinds, and bound arrays with their derivatives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
import torch
from tests.kernel import programs
from tests.kernel.programs import same_bits, spring_inputs

from costate.kernel import Kernel


@pytest.fixture(scope="module")
def spring() -> Kernel:
    return programs.spring()


def arrays(*batch: int, dtype: type = np.float64, seed: int = 0) -> dict[str, np.ndarray]:
    return {n: t.numpy().astype(dtype) for n, t in zip("xpM", spring_inputs(*batch, seed=seed), strict=True)}


def check(kernel: Kernel, given: dict[str, np.ndarray]) -> None:
    wanted = kernel(**{n: torch.from_numpy(np.asarray(a)) for n, a in given.items()})
    for a, b in zip(kernel.numpy(**given), wanted, strict=True):
        assert same_bits(torch.from_numpy(a), b)


def test_kinds_of_calls_in_any_order(spring: Kernel) -> None:
    """Single samples, batches and number types in turn; buffers are made once for each change of type, not for every call."""
    cases = [
        arrays(),
        arrays(5),
        arrays(dtype=np.float32),
        {n: np.asfortranarray(a) for n, a in arrays(seed=1).items()},
    ]
    for first in cases:
        for then in cases:
            check(spring, first)
            check(spring, then)
            check(spring, then)


def test_mistakes_after_a_good_call(spring: Kernel) -> None:
    good = arrays()
    spring.numpy(**good)
    with pytest.raises(TypeError, match=r"no input 'm' \(did you mean 'M'"):
        spring.numpy(x=good["x"], p=good["p"], m=good["M"])
    with pytest.raises(TypeError, match="no input 'extra'"):
        spring.numpy(**good, extra=good["x"])
    with pytest.raises(TypeError, match="needs input M as well"):
        spring.numpy(x=good["x"], p=good["p"])
    with pytest.raises(ValueError, match="input 'x' has shape"):
        spring.numpy(**good | {"x": good["x"][:2]})
    with pytest.raises(TypeError, match="share one dtype"):
        spring.numpy(**good | {"x": good["x"].astype(np.float32)})
    check(spring, good)


def test_names_that_are_no_words_of_python() -> None:
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
    kernel = Kernel("odd", {"in": x, "left hip": y}, {"sum": x + y})
    given = {"in": np.array([1.0, 2.0]), "left hip": np.array([3.0])}
    for _ in range(2):
        assert kernel.numpy(**given).sum.tolist() == [4, 5]


def test_several_threads(spring: Kernel) -> None:
    """Calls at the same time have buffers of their own."""
    cases = [arrays(seed=k) for k in range(8)]
    wanted = [[a.copy() for a in spring.numpy(**c)] for c in cases]

    def run(k: int) -> bool:
        return all(
            np.array_equal(a, b) for _ in range(300) for a, b in zip(spring.numpy(**cases[k]), wanted[k], strict=True)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [(), (7,)])
def test_derivatives_of_bound_arrays(spring: Kernel, dtype: type, batch: tuple[int, ...]) -> None:
    """Gradients and Jacobians read the same arrays as the value, at every call anew."""
    given = arrays(*batch, dtype=dtype)
    step = spring.bind(**given)
    back, some, slope = step.vjp(), step.vjp(wrt=["x", "M"], of="f"), step.jacobian("f", "x")
    assert back.inputs.x is given["x"] and slope.inputs.x is given["x"]
    for shift in (0.0, 0.25):
        given["x"] += dtype(shift)
        back.inputs.f_bar[:], back.inputs.e_bar[:], back.inputs.G_bar[:] = 1, 2, 3
        some.inputs.f_bar[:] = -1
        for each in (step, back, some, slope):
            each()
        tensors = {n: torch.from_numpy(a.copy()) for n, a in given.items()}
        bars = {n: torch.from_numpy(getattr(back.inputs, n).copy()) for n in ("f_bar", "e_bar", "G_bar")}
        every = spring.vjp()(**tensors, **bars)
        for a, b in zip(back.outputs, every, strict=True):
            assert same_bits(torch.from_numpy(a.copy()), b)
        part = spring.vjp(["x", "M"], "f")(**tensors, f_bar=-bars["f_bar"])
        for a, b in zip(some.outputs, part, strict=True):
            assert same_bits(torch.from_numpy(a.copy()), b)
        assert same_bits(torch.from_numpy(slope.outputs.jacobian.copy()), spring.jacobian("f", "x")(**tensors))


def test_derivatives_of_bound_arrays_by_wrong_names(spring: Kernel) -> None:
    step = spring.bind(**arrays())
    with pytest.raises(ValueError, match="no input 'y'"):
        step.vjp("y")
    with pytest.raises(ValueError, match="no output 'g'"):
        step.jacobian("g", "x")
