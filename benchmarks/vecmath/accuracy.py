"""Measure the vector elementary functions: worst error in units in the last place (ulp), and time per element.

    python -m benchmarks.vecmath.accuracy [SAMPLES] > docs/accuracy.md

The reference is mpmath in 160 bits; fmod and remainder must agree bit for bit with the C library. An error is the
distance to the exact value in units of the spacing of doubles (floats) at that value; 0.5 is the best possible.
"""

from __future__ import annotations

import ctypes
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import mpmath as mp
import numpy as np

from costate.kernel.vecmath import FUNCTIONS, math_module, symbol

NUMPY = {"f64": np.float64, "f32": np.float32}
UNSIGNED = {"f64": np.uint64, "f32": np.uint32}
PRECISION = {"f64": (53, -1022, 1024), "f32": (24, -126, 128)}
"""Bits of the significand, smallest normal exponent, exponent of overflow."""
WIDEST = {"f64": 8, "f32": 16}


# -- the functions on arrays


def loop_ir(name: str, width: int, dtype: str) -> str:
    """A driver: void run_NAME(out, x, y, blocks, mask) applies one function to arrays, `width` elements at a time.

    Step i works on block i & mask: -1 for whole arrays, less to go round in a small one.
    """
    scalar = {"f64": "double", "f32": "float"}[dtype]
    vector, size = f"<{width} x {scalar}>", {"f64": 8, "f32": 4}[dtype]
    two_arguments, two_results = FUNCTIONS.get(name) == 2, name == "sincos"
    result = f"{{ {vector}, {vector} }}" if two_results else vector
    second = f", {vector} %y" if two_arguments else ""
    store = f"  store {vector} %r, ptr %po, align {size}"
    if two_results:
        store = f"""  %r0 = extractvalue {result} %r, 0
  %r1 = extractvalue {result} %r, 1
  store {vector} %r0, ptr %po, align {size}
  %py = getelementptr {vector}, ptr %ys, i64 %at
  store {vector} %r1, ptr %py, align {size}"""
    load = ""
    if two_arguments:
        load = f"""  %py = getelementptr {vector}, ptr %ys, i64 %at
  %y = load {vector}, ptr %py, align {size}"""
    return f"""
define void @run_{name}(ptr %out, ptr %xs, ptr %ys, i64 %blocks, i64 %mask) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = and i64 %i, %mask
  %px = getelementptr {vector}, ptr %xs, i64 %at
  %x = load {vector}, ptr %px, align {size}
{load}
  %r = call {result} @{symbol(name, width, dtype)}({vector} %x{second})
  %po = getelementptr {vector}, ptr %out, i64 %at
{store}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %blocks
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


class Library:
    """The compiled functions for one vector width and precision, callable on arrays."""

    def __init__(self, width: int, dtype: str, cpu: str, features: str) -> None:
        self.width, self.dtype = width, dtype
        names = [*FUNCTIONS, "sincos"]
        text = math_module(width, dtype) + "".join(loop_ir(name, width, dtype) for name in names)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
            cpu=cpu, features=features, opt=1
        )
        module = llvm.parse_assembly(text)
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        signature = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
        )
        self.loops = {name: signature(self.engine.get_function_address(f"run_{name}")) for name in names}

    def run(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """name(x, y) of 1-D arrays whose length is a multiple of the width; sincos writes the cosine to y."""
        out = np.empty_like(x)
        self.loops[name](out.ctypes.data, x.ctypes.data, y.ctypes.data, len(x) // self.width, -1)
        return out

    def __call__(self, name: str, x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        """name(x) or name(x, y) of 1-D arrays of any length."""
        padding = -len(x) % self.width
        columns = [np.pad(np.asarray(a, NUMPY[self.dtype]), (0, padding)) for a in (x, x if y is None else y)]
        return self.run(name, *columns)[: len(x)]


@cache
def library(width: int, dtype: str) -> Library:
    """Compiled once per process, for this machine."""
    return Library(width, dtype, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


# -- the exact values


def refined_erfinv(x: Any, guess: float) -> Any:
    """Newton's method for erf(y) = x from a guess; three steps square the error three times."""
    y = mp.mpf(guess) if math.isfinite(guess) and guess != 0 else mp.erfinv(x)
    for _ in range(3):
        y -= (mp.erf(y) - x) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


EXACT: dict[str, Callable[..., Any]] = {
    name: getattr(mp, name) for name in FUNCTIONS if name not in ("pow", "erfinv", "fmod", "remainder")
} | {"pow": mp.power}


def ulp_errors(name: str, dtype: str, got: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Error of each element in ulp; arguments must be finite and inside the domain."""
    bits, smallest, overflow = PRECISION[dtype]
    errors = np.empty(len(got))
    with mp.workprec(160):
        limit = mp.ldexp(1, overflow)
        for i, (value, a, b) in enumerate(zip(got.tolist(), x.tolist(), y.tolist(), strict=True)):
            if name == "erfinv":
                exact = refined_erfinv(mp.mpf(a), value)
            else:
                exact = EXACT[name](*(mp.mpf(v) for v in (a, b)[: FUNCTIONS[name]]))
            if abs(exact) >= limit * (1 - mp.ldexp(1, -bits - 1)):
                errors[i] = 0.0 if math.isinf(value) and (value > 0) == (exact > 0) else math.inf
                continue
            if math.isinf(value):
                value = math.copysign(1, value) * limit
            spacing = max(mp.frexp(exact)[1], smallest + 1) - bits if exact else smallest + 1 - bits
            error = abs(mp.mpf(value) - exact) if value == value else mp.inf
            errors[i] = float(mp.ldexp(error, -spacing)) if error != mp.inf else math.inf
    return errors


# -- where to look


@dataclass(frozen=True)
class Domain:
    """Sampling of one function: everywhere it is defined, and where it is hard."""

    low: float
    high: float
    focus: tuple[tuple[float, float], ...]
    """Intervals to sample uniformly."""
    near: tuple[float, ...] = ()
    """Points to approach from both sides at all distances."""


REALS = (-math.inf, math.inf)
DOMAINS: dict[str, Domain] = {
    "sin": Domain(*REALS, ((-7, 7), (-1e3, 1e3), (-(2.0**31), 2.0**31)), (0.0,)),
    "cos": Domain(*REALS, ((-7, 7), (-1e3, 1e3), (-(2.0**31), 2.0**31)), (0.0,)),
    "tan": Domain(*REALS, ((-7, 7), (-1e3, 1e3), (-(2.0**31), 2.0**31)), (0.0,)),
    "asin": Domain(-1, 1, ((-1, 1), (0.45, 0.55)), (1.0, -1.0, 0.0, 0.5)),
    "acos": Domain(-1, 1, ((-1, 1), (-0.55, -0.45)), (1.0, -1.0, 0.0, 0.5)),
    "atan": Domain(*REALS, ((-4, 4), (0.35, 0.5), (2, 3)), (1.0, 0.0)),
    "sinh": Domain(*REALS, ((-4, 4), (-712, 712), (708, 712)), (0.0, 710.475)),
    "cosh": Domain(*REALS, ((-4, 4), (-712, 712), (708, 712)), (0.0, 710.475)),
    "tanh": Domain(*REALS, ((-4, 4), (0.2, 1.2), (-25, 25)), (0.0,)),
    "asinh": Domain(*REALS, ((-4, 4), (-1e4, 1e4)), (0.0, 2.0**30)),
    "acosh": Domain(1, math.inf, ((1, 4), (1, 1e4)), (1.0, 2.0**30)),
    "atanh": Domain(-1, 1, ((-1, 1), (-0.3, 0.3)), (1.0, -1.0, 0.0)),
    "exp": Domain(*REALS, ((-1, 1), (-750, 712), (-746, -700)), (0.0, 709.78, -745.1)),
    "log": Domain(0, math.inf, ((0, 3), (0.65, 1.45)), (1.0, 0.0)),
    "expm1": Domain(*REALS, ((-2, 2), (-40, 712)), (0.0, -37.0)),
    "log1p": Domain(-1, math.inf, ((-1, 3), (-0.4, 0.5)), (0.0, -1.0)),
    "erf": Domain(*REALS, ((-1.2, 1.2), (0.9, 6.5), (-6.5, 6.5)), (0.0, 1.0)),
    "erfinv": Domain(-1, 1, ((-1, 1), (0.99, 1.0)), (0.0, 1.0, -1.0)),
    "pow": Domain(0, math.inf, ((0, 5), (0.5, 1.5)), (1.0,)),
    "atan2": Domain(*REALS, ((-3, 3),), (0.0,)),
    "hypot": Domain(*REALS, ((-3, 3),), (0.0,)),
    "fmod": Domain(*REALS, ((-100, 100),), (0.0,)),
    "remainder": Domain(*REALS, ((-100, 100),), (0.0,)),
}


def random_bits(rng: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Finite numbers uniform over bit patterns: all exponents and subnormals alike."""
    bits = rng.integers(0, np.iinfo(UNSIGNED[dtype]).max, count, dtype=UNSIGNED[dtype], endpoint=True)
    x = bits.view(NUMPY[dtype])
    subnormal = rng.uniform(-1, 1, count // 50 + 1).astype(NUMPY[dtype]) * np.finfo(NUMPY[dtype]).tiny
    return np.concatenate([x[np.isfinite(x)], subnormal])


def near_multiples_of_pi_2(rng: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Numbers closest to multiples of pi/2, of all magnitudes, and the closest double of all (Kahan)."""
    with mp.workprec(1200):
        picks = [int(2 ** rng.uniform(0, 1000 if dtype == "f64" else 120)) for _ in range(count)]
        values = [float(k * mp.pi / 2) for k in picks]
    worst = math.ldexp(6381956970095103, 797)
    return np.array([*values, *([worst] if dtype == "f64" else [])], NUMPY[dtype])


def arguments(name: str, dtype: str, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw about `count` pairs (x, y); y is used by functions of two arguments."""
    rng, domain, kind = np.random.default_rng(seed), DOMAINS[name], NUMPY[dtype]
    share = max(count // (2 + len(domain.focus)), 8)
    parts = [random_bits(rng, dtype, share)]
    parts += [rng.uniform(low, high, share).astype(kind) for low, high in domain.focus]
    for point in domain.near:
        distance = 2.0 ** rng.uniform(-60, -1, share // len(domain.near)) * rng.choice(
            [-1, 1], share // len(domain.near)
        )
        parts.append((point + distance * (abs(point) or 1.0)).astype(kind))
    if name in ("sin", "cos", "tan"):
        parts.append(near_multiples_of_pi_2(rng, dtype, share))
    x = np.concatenate(parts)
    x = x[(x > domain.low) & (x < domain.high) & np.isfinite(x)]
    return (x, second_argument(rng, name, dtype, x)) if FUNCTIONS[name] == 2 else (x, x)


def second_argument(rng: np.random.Generator, name: str, dtype: str, x: np.ndarray) -> np.ndarray:
    """Partners for x: of any size, of the same size, and for pow exponents that keep the result finite."""
    kind = NUMPY[dtype]
    y = rng.permutation(np.concatenate([random_bits(rng, dtype, len(x)), np.ones(len(x), kind)])[: len(x)])
    with np.errstate(all="ignore"):
        alike = (x.astype(float) * rng.uniform(-3, 3, len(x))).astype(kind)
        if name == "pow":
            span = 745 if dtype == "f64" else 103
            alike = (rng.uniform(-span, span, len(x)) / np.log(x.astype(float))).astype(kind)
            alike[::5] = rng.integers(-5, 6, len(alike[::5]))
    use = (rng.random(len(x)) < 0.7) & np.isfinite(alike)
    return np.where(use, alike, y)


# -- the table


def worst_error(name: str, dtype: str, count: int, seed: int = 0) -> tuple[float, float]:
    """(largest error in ulp, the x where it occurs); for fmod and remainder 0 or infinity."""
    x, y = arguments(name, dtype, count, seed)
    got = library(WIDEST[dtype], dtype)(name, x, y)
    if name in ("fmod", "remainder"):
        expected = c_remainder(name, x, y)
        same = (got == expected) & (np.signbit(got) == np.signbit(expected))
        return (0.0 if same.all() else math.inf), float(x[np.argmin(same)])
    errors = ulp_errors(name, dtype, got, x, y)
    return float(errors.max()), float(x[errors.argmax()])


def c_remainder(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """fmod or IEEE remainder of the C library (y not zero)."""
    function = {"fmod": math.fmod, "remainder": math.remainder}[name]
    return np.array([function(a, b) if b else math.nan for a, b in zip(x.tolist(), y.tolist(), strict=True)], x.dtype)


BENCH = {
    "acosh": (1, 5),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "atanh": (-1, 1),
    "erfinv": (-1, 1),
    "log": (0, 5),
    "pow": (0, 5),
}
"""Range of the timed arguments where (-3, 3) is not all ordinary."""


def nanoseconds(name: str, dtype: str) -> float:
    """Time per element on 512 ordinary values (in the first-level cache), best of several runs."""
    rng, lib = np.random.default_rng(0), library(WIDEST[dtype], dtype)
    low, high = BENCH.get(name, (-3, 3))
    x = rng.uniform(low + 1e-3, high, 512).astype(NUMPY[dtype])
    y = rng.uniform(0.5, 3, 512).astype(NUMPY[dtype])
    loop, out = lib.loops[name], np.empty_like(x)
    blocks = 512 // lib.width
    best = math.inf
    for _ in range(40):
        start = time.perf_counter_ns()
        loop(out.ctypes.data, x.ctypes.data, y.ctypes.data, 100 * blocks, blocks - 1)
        best = min(best, time.perf_counter_ns() - start)
    return best / (100 * 512)


INTRODUCTION = """# Accuracy of the elementary functions

Compiled programs call vector functions of our own (`costate.kernel.vecmath`), because the same sample must give the
same bits at every position of the batch, batch size and vector width, and on every machine with IEEE arithmetic.

The table gives the largest error found, in units in the last place (0.5 would be correctly rounded), and the time per
element. Each function was compared with mpmath at about {count} arguments per precision: bit patterns over all
exponents (subnormals included), intervals where the algorithm changes, and points at all distances from the hard places
(zeros, poles, multiples of pi/2 up to 1e300, overflow). fmod and remainder are exact: they agree bit for bit with the C
library. Special values (signed zeros, infinities, NaN) follow C99, Annex F. The tests check both, and allow 4 ulp.
The search is random, so the true maximum may be a few tenths larger (tan reached 2.64 with another seed).

float32 computes in double precision with shorter polynomials and rounds once.

Times: 512 ordinary arguments in the first-level cache, {lanes} lanes, `{cpu}`.

| function | float64 [ulp] | float64 [ns] | float32 [ulp] | float32 [ns] |
|---|---|---|---|---|"""


def main() -> None:
    """Print docs/accuracy.md."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    print(INTRODUCTION.format(count=count, lanes="8 (float64) and 16 (float32)", cpu=llvm.get_host_cpu_name()))
    for name in FUNCTIONS:
        cells = [name]
        for dtype in NUMPY:
            error, where = worst_error(name, dtype, count)
            print(f"{name} {dtype}: {error:.3f} ulp at {where!r}", file=sys.stderr, flush=True)
            cells += ["exact" if error == 0 else f"{error:.2f}", f"{nanoseconds(name, dtype):.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    print(
        f"| sincos | as sin, cos | {nanoseconds('sincos', 'f64'):.2f} "
        f"| as sin, cos | {nanoseconds('sincos', 'f32'):.2f} |"
    )
    print("\nWritten by `python -m benchmarks.vecmath.accuracy > docs/accuracy.md`.")


if __name__ == "__main__":
    main()
