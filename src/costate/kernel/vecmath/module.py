"""The table of functions and the LLVM module that defines them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from costate.kernel.vecmath import explog, hyperbolic, inverse, power, remainder, special, trig
from costate.kernel.vecmath.vectors import Emitter, Vec

UNARY: dict[str, Callable[[Emitter, Vec], Vec]] = {
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "exp": explog.exp,
    "log": explog.log,
    "expm1": explog.expm1,
    "log1p": explog.log1p,
    "erf": special.erf,
    "erfinv": special.erfinv,
}
BINARY: dict[str, Callable[[Emitter, Vec, Vec], Vec]] = {
    "pow": power.pow,
    "atan2": inverse.atan2,
    "hypot": power.hypot,
    "fmod": remainder.fmod,
    "remainder": remainder.remainder,
}
FUNCTIONS: dict[str, int] = dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2)
"""Name -> number of arguments. The module also has sincos: one argument, two results."""

LLVM_TYPES = {"f64": "double", "f32": "float"}


def symbol(name: str, width: int, dtype: str) -> str:
    """Return the linker name of a function, for example cs_sin_f64x8."""
    return f"cs_{name}_{dtype}x{width}"


@cache
def math_module(width: int, dtype: str) -> str:
    """Return LLVM IR text that defines every function for <width x dtype> vectors; dtype is "f64" or "f32".

    A lane's bits depend on that lane's arguments only. float32 computes in double precision and rounds once.
    """
    if dtype not in LLVM_TYPES:
        raise ValueError(f"dtype {dtype!r} is unknown; expected one of {', '.join(LLVM_TYPES)}")
    if width < 1 or width & (width - 1):
        raise ValueError(f"width {width} is not a power of two; give the number of lanes, such as 2, 4, 8 or 16")
    functions = [define(name, width, dtype, FUNCTIONS[name], UNARY.get(name) or BINARY[name]) for name in FUNCTIONS]
    functions.append(define("sincos", width, dtype, 1, trig.sincos))
    return "\n".join([*declarations(width), trig.payne_hanek_ir(), *functions, RARE_BRANCH])


RARE_BRANCH = '!0 = !{!"branch_weights", i32 1, i32 1000}\n'


def declarations(width: int) -> list[str]:
    """Return the LLVM intrinsics the functions call."""
    vector = f"<{width} x double>"
    unary = [f"declare {vector} @llvm.{name}.v{width}f64({vector})" for name in ("fabs", "sqrt", "trunc")]
    return [
        *unary,
        f"declare {vector} @llvm.fma.v{width}f64({vector}, {vector}, {vector})",
        f"declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)",
        "declare double @llvm.fma.f64(double, double, double)",
        "declare i64 @llvm.fshl.i64(i64, i64, i64)",
    ]


def define(name: str, width: int, dtype: str, arity: int, body: Callable[..., Vec | tuple[Vec, ...]]) -> str:
    """Write one function: arguments widened to double, the body, results rounded to the caller's type."""
    e = Emitter(width, dtype)
    outer, inner = e.type(LLVM_TYPES[dtype]), e.type("double")
    arguments = [Vec(e, "double", f"%x{i}") for i in range(arity)]
    parameters = ", ".join(f"{outer} {a.text}" for a in arguments)
    if dtype == "f32":
        arguments = [e.op("double", f"fpext {outer} {a.text} to {inner}") for a in arguments]
    results = body(e, *arguments)
    texts = [r.text for r in ([results] if isinstance(results, Vec) else results)]
    if dtype == "f32":
        texts = [e.op("float", f"fptrunc {inner} {text} to {outer}").text for text in texts]
    kind, value = outer, texts[0]
    if len(texts) == 2:
        kind = f"{{ {outer}, {outer} }}"
        first = e.op("pair", f"insertvalue {kind} poison, {outer} {texts[0]}, 0")
        value = e.op("pair", f"insertvalue {kind} {first.text}, {outer} {texts[1]}, 1").text
    lines = [f"define {kind} @{symbol(name, width, dtype)}({parameters}) nounwind {{", "entry:", *e.lines]
    return "\n".join([*lines, f"  ret {kind} {value}", "}", ""])
