"""The vector elementary functions against mpmath (values), the C library (special values) and themselves (lanes)."""

from __future__ import annotations

import math
import platform
import warnings
from itertools import product

import llvmlite.binding as llvm
import mpmath as mp
import numpy as np
import pytest
import scipy.special

from benchmarks.vecmath.accuracy import (
    DOMAINS,
    NUMPY,
    UNSIGNED,
    WIDEST,
    Library,
    arguments,
    library,
    ulp_errors,
    worst_error,
)
from costate.kernel.vecmath import FUNCTIONS, math_module, symbol
from costate.kernel.vecmath.trig import two_over_pi_words

ULP_LIMIT = 4.0
"""What the compiler promises; docs/accuracy.md has what is reached."""
EXACT = ("fmod", "remainder")
DTYPES = ("f64", "f32")


def bits(values: np.ndarray) -> np.ndarray:
    """Bit patterns, with one pattern for all NaNs: which NaN comes out is not specified."""
    patterns = values.view({np.dtype(np.float64): np.uint64, np.dtype(np.float32): np.uint32}[values.dtype]).copy()
    patterns[np.isnan(values)] = 0x7FC00000
    return patterns


def special_values(dtype: str) -> np.ndarray:
    """Both signs of zero, one, integers odd and even, halves, the ends of the range, subnormals, infinity, NaN."""
    info = np.finfo(NUMPY[dtype])
    positive = [0.0, 1.0, 2.0, 3.0, 0.5, 2.5, 1e-5, 2.0**23, 2.0**31, 700.0, 800.0, info.max, info.tiny, math.inf]
    positive += [float(info.smallest_subnormal), float(np.nextafter(NUMPY[dtype](1), NUMPY[dtype](0)))]
    if dtype == "f64":
        positive += [2.0**52 + 1, 2.0**53 - 1, 2.0**53, 1e300, 1e-300]
    return np.array([*positive, *(-v for v in positive), math.nan], NUMPY[dtype])


def mixed_arguments(name: str, dtype: str, count: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    """Ordinary, rare and special lanes in random order, so that most vectors take slow paths for some lanes."""
    rng = np.random.default_rng(7)
    x, y = arguments(name, dtype, count, seed=3)
    special = rng.choice(special_values(dtype), (2, len(x) // 4))
    x, y = np.concatenate([x, special[0]]), np.concatenate([y, special[1]])
    order = rng.permutation(len(x))[: len(x) // 16 * 16]
    return x[order], y[order]


def c_library(name: str, x: float, y: float) -> float:
    """The reference for special values, in double precision."""
    if name == "remainder":
        return math.remainder(x, y) if math.isfinite(x) and y != 0 and not math.isnan(y) else math.nan
    if name == "erfinv" and x == 0:
        return x
    if name == "pow":
        return c_pow(x, y)
    names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
    names |= {"atanh": "arctanh", "atan2": "arctan2"}
    function = getattr(scipy.special if name in ("erf", "erfinv") else np, names.get(name, name))
    return float(function(*(np.float64(v) for v in (x, y)[: FUNCTIONS[name]])))


def c_pow(x: float, y: float) -> float:
    """Python's pow is C's but for the errors it raises; numpy's takes -inf to the 1/2 as a square root."""
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        return float(np.power(np.float64(x), np.float64(y)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_against_mpmath(name: str, dtype: str) -> None:
    error, where = worst_error(name, dtype, 5000, seed=1)
    assert error <= (0.0 if name in EXACT else ULP_LIMIT), f"{error} ulp at {where!r}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_the_c_library(name: str, dtype: str) -> None:
    values = special_values(dtype)
    pairs = np.array(list(product(values, values)) if FUNCTIONS[name] == 2 else [(v, v) for v in values], NUMPY[dtype])
    got = library(WIDEST[dtype], dtype)(name, pairs[:, 0].copy(), pairs[:, 1].copy())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.array([c_library(name, *map(float, pair)) for pair in pairs]).astype(NUMPY[dtype])
    same = bits(got) == bits(expected)
    ordinary = np.isfinite(expected) & (expected != 0) & np.isfinite(got)
    with np.errstate(all="ignore"):
        close = np.abs(got - expected) <= ULP_LIMIT * np.spacing(np.abs(expected))
    wrong = ~(same | (ordinary & close))
    assert not wrong.any(), list(zip(pairs[wrong].tolist(), got[wrong], expected[wrong], strict=True))[:10]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_do_not_depend_on_width_or_position(name: str, dtype: str) -> None:
    x, y = mixed_arguments(name, dtype)
    widest = WIDEST[dtype]
    expected = bits(library(widest, dtype)(name, x, y))
    for width in (widest // 2, widest // 4):
        assert np.array_equal(bits(library(width, dtype)(name, x, y)), expected)
    order = np.random.default_rng(0).permutation(len(x))
    assert np.array_equal(bits(library(widest, dtype)(name, x[order], y[order])), expected[order])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sincos_is_sin_and_cos(dtype: str) -> None:
    x, _ = mixed_arguments("sin", dtype)
    lib = library(WIDEST[dtype], dtype)
    cosine = np.empty_like(x)
    sine = lib.run("sincos", x, cosine)
    assert np.array_equal(bits(sine), bits(lib("sin", x)))
    assert np.array_equal(bits(cosine), bits(lib("cos", x)))


def test_exact_results() -> None:
    f = library(8, "f64")
    rng = np.random.default_rng(0)
    x = rng.uniform(-1e3, 1e3, 800)
    n = np.arange(-1074.0, 1024.0)
    assert np.array_equal(f("pow", x, np.full_like(x, 2.0)), x * x)
    assert np.array_equal(f("pow", x, np.ones_like(x)), x)
    assert np.array_equal(f("pow", np.full_like(n, 2.0), n), np.ldexp(1.0, n.astype(int)))
    base, exponent = (a.ravel().astype(float) for a in np.meshgrid(np.arange(-40, 41), np.arange(3, 10)))
    assert np.array_equal(
        f("pow", base, exponent), [float(int(b) ** int(k)) for b, k in zip(base, exponent, strict=True)]
    )
    three, four, five = (np.ldexp(float(side), np.array([0, 1000, -1000, -1074])) for side in (3, 4, 5))
    assert np.array_equal(f("hypot", three, four), five)
    assert f("exp", np.zeros(1))[0] == f("cos", np.zeros(1))[0] == f("cosh", np.zeros(1))[0] == 1.0
    assert f("log", np.ones(1))[0] == f("acosh", np.ones(1))[0] == f("acos", np.ones(1))[0] == 0.0
    tiny = np.array([5e-324, -5e-324, 2.2e-308, -1e-310, -0.0])
    for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p"):
        assert np.array_equal(bits(f(name, tiny)), bits(tiny)), name


def test_sine_of_huge_arguments() -> None:
    """1e22 and the double closest to a multiple of pi/2 (6381956970095103 2^797) are classical failures."""
    x = np.array([1e22, 1e300, math.ldexp(6381956970095103, 797), np.finfo(float).max])
    for name in ("sin", "cos", "tan"):
        assert ulp_errors(name, "f64", library(8, "f64")(name, x), x, x).max() <= ULP_LIMIT


def test_remainders_of_huge_quotients() -> None:
    rng = np.random.default_rng(5)
    x = np.ldexp(rng.uniform(1, 2, 2000), rng.integers(0, 1024, 2000))
    y = np.ldexp(rng.uniform(1, 2, 2000), rng.integers(-1074, 0, 2000))
    y = np.where(rng.random(2000) < 0.3, np.spacing(0.0) * rng.integers(1, 50, 2000), y)
    f = library(8, "f64")
    assert np.array_equal(f("fmod", x, y), [math.fmod(a, b) for a, b in zip(x, y, strict=True)])
    assert np.array_equal(f("remainder", x, y), [math.remainder(a, b) for a, b in zip(x, y, strict=True)])
    halves = np.arange(-20, 21) * 0.5
    assert np.array_equal(f("remainder", halves, np.ones_like(halves)), [math.remainder(h, 1.0) for h in halves])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="compares x86 instruction sets")
def test_same_bits_without_fused_multiply_add_instructions() -> None:
    """Plain x86-64 calls fma of the C library."""
    baseline = Library(2, "f64", "x86-64", "")
    for name in FUNCTIONS:
        x, y = mixed_arguments(name, "f64", 800)
        assert np.array_equal(bits(baseline(name, x, y)), bits(library(8, "f64")(name, x, y))), name


@pytest.mark.parametrize(("width", "dtype"), [(2, "f64"), (4, "f32")])
def test_arm_code_is_generated(width: int, dtype: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(opt=1)
    assembly = machine.emit_assembly(llvm.parse_assembly(math_module(width, dtype)))
    assert f"{symbol('sincos', width, dtype)}:" in assembly
    assert "fmla" in assembly


def test_digits_of_two_over_pi() -> None:
    words = two_over_pi_words(20)
    digits = sum(word << 64 * (20 - i) for i, word in enumerate(words))
    with mp.workprec(1500):
        assert digits == int(mp.floor(mp.ldexp(2 / mp.pi, 1280)))


def test_table_is_complete() -> None:
    assert set(DOMAINS) == set(FUNCTIONS)
    assert set(UNSIGNED) == set(NUMPY)
    text = math_module(4, "f64")
    for name in [*FUNCTIONS, "sincos"]:
        assert f"@{symbol(name, 4, 'f64')}(" in text


@pytest.mark.parametrize(("width", "dtype", "message"), [(3, "f64", "power of two"), (4, "f16", "f64, f32")])
def test_unknown_vector_types_are_refused(width: int, dtype: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        math_module(width, dtype)
