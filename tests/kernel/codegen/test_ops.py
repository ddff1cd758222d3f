"""Every op of the table, compiled, against NumPy: ordinary and special values, both number types."""

from __future__ import annotations

import math
from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest
import scipy.special
import torch

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.casadi_ops import CASADI_OPS, UnsupportedOpError

ULP_LIMIT = 5
"""4 for the compiled function, 1 for the reference, which is rounded to the number type as well."""
EXACT = {"add", "sub", "mul", "div", "neg", "sqrt", "sq", "twice", "inv", "fabs", "floor", "ceil", "sign", "copysign"}
EXACT |= {"fmod", "remainder", "fmin", "fmax", "lt", "le", "eq", "ne", "not", "and", "or", "if_else_zero"}
DTYPES = (torch.float64, torch.float32)
POWER = 2.5
"""The exponent of constpow."""


def visible(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Comparisons and logic: NaN in, NaN out."""

    def with_nan(*x: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(x).any(0), np.nan, function(*x))

    return with_nan


def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """IEEE: x - n y with n the nearest integer to x / y, ties to even."""
    bad = ~np.isfinite(x) | np.isnan(y) | (y == 0)
    return np.array([math.nan if b else math.remainder(u, v) for u, v, b in zip(x, y, bad, strict=True)])


def selected(c: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(c), np.nan, np.where(c != 0, a, 0.0))


# What each op means, on float64 arrays. One argument or two.
UNARY: dict[str, Callable[..., np.ndarray]] = {
    "neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sq": np.square, "twice": lambda x: 2 * x,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "not": visible(lambda x: x == 0), "floor": np.floor, "ceil": np.ceil, "fabs": np.abs,
    "sign": lambda x: np.where(x == 0, x, np.sign(x)), "erf": scipy.special.erf, "inv": lambda x: 1 / x,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erfinv": lambda x: np.copysign(scipy.special.erfinv(x), x), "log1p": np.log1p, "expm1": np.expm1,
    "constpow": lambda x: x**POWER,
}  # fmt: skip
BINARY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "lt": visible(np.less), "le": visible(np.less_equal), "eq": visible(np.equal), "ne": visible(np.not_equal),
    "and": visible(lambda x, y: (x != 0) & (y != 0)), "or": visible(lambda x, y: (x != 0) | (y != 0)),
    "fmod": np.fmod, "copysign": np.copysign, "if_else_zero": selected, "fmin": np.minimum, "fmax": np.maximum,
    "atan2": np.arctan2, "hypot": np.hypot, "remainder": remainder,
}  # fmt: skip


def expression(name: str, x: ca.SX, y: ca.SX) -> ca.SX:
    code = {n: c for c, n in CASADI_OPS.items()}[name]
    if name == "constpow":
        return x**POWER
    return ca.SX.unary(code, x) if name in UNARY else ca.SX.binary(code, x, y)


@pytest.fixture(scope="module")
def every_op() -> Kernel:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    return Kernel("every op", {"x": x, "y": y}, {f"{n}_": expression(n, x, y) for n in CASADI_OPS.values()})


def arguments(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of special values, then ordinary ones of all sizes."""
    info = torch.finfo(dtype)
    positive = [0.0, 1.0, 0.5, 2.0, 3.0, 1.5, 1e-3, 20.0, 710.0, 1e10, info.max, info.tiny, info.tiny / 8, math.inf]
    special = torch.tensor([*positive, *(-v for v in positive), math.nan], dtype=dtype)
    rng = np.random.default_rng(5)
    ordinary = torch.tensor(rng.normal(size=(2, 400)) * 10 ** rng.uniform(-4, 4, (2, 400)), dtype=dtype)
    small = torch.tensor(rng.uniform(-1, 1, (2, 400)), dtype=dtype)
    pairs = torch.cartesian_prod(special, special).T
    x, y = torch.cat([pairs, ordinary, small], 1)
    return x, y


def test_the_table_is_complete() -> None:
    """Every op CasADi's SX can hold is in the table, or has no meaning in floating point."""
    assert UNARY.keys() | BINARY.keys() == set(CASADI_OPS.values())
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    reached = set()
    for name in dir(ca):
        if not name.startswith("OP_"):
            continue
        for make in (lambda op: ca.SX.unary(op, x), lambda op: ca.SX.binary(op, x, y)):
            try:
                fn = ca.Function("f", [x, y], [make(getattr(ca, name))])
            except (RuntimeError, NotImplementedError):
                continue
            reached |= {fn.instruction_id(k) for k in range(fn.n_instructions())}
    assert len(reached) > 40
    left = reached - CASADI_OPS.keys() - {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_LIFT}
    assert left == {ca.OP_PRINTME}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CASADI_OPS.values())
def test_value(every_op: Kernel, name: str, dtype: torch.dtype) -> None:
    x, y = arguments(dtype)
    got = getattr(every_op(x=x[:, None], y=y[:, None]), f"{name}_")[:, 0].numpy()
    wide = [t.double().numpy() for t in ((x,) if name in UNARY else (x, y))]
    with np.errstate(all="ignore"):
        expected = np.asarray((UNARY | BINARY)[name](*wide), np.float64).astype(got.dtype)
        limit = 0 if name in EXACT else ULP_LIMIT
        close = np.abs(got - expected) <= limit * np.spacing(np.abs(expected))
    same = (got == expected) | (np.isnan(got) & np.isnan(expected)) | close
    if not same.all():
        k = np.flatnonzero(~same)[0]
        pytest.fail(f"{name}({x[k]!r}, {y[k]!r}) = {got[k]!r}, expected {expected[k]!r}; {np.sum(~same)} differ")
    if name not in ("fmin", "fmax"):  # which zero is the smaller one is left open
        zeros = (expected == 0) & (got == 0)
        assert np.array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))


def test_the_kernel_tells_ops_apart(every_op: Kernel) -> None:
    """Were two ops exchanged in the table above and in the compiler alike, these hand-picked values would tell."""
    out = every_op(x=torch.tensor([-7.0]).double(), y=torch.tensor([3.0]).double())
    expected = {"fmod_": -1.0, "remainder_": -1.0, "sub_": -10.0, "div_": -7 / 3, "pow_": -343.0, "copysign_": 7.0}
    expected |= {"lt_": 1.0, "le_": 1.0, "fmin_": -7.0, "fmax_": 3.0, "sign_": -1.0, "floor_": -7.0, "twice_": -14.0}
    expected |= {"atan2_": math.atan2(-7, 3), "if_else_zero_": 3.0, "hypot_": math.hypot(-7, 3), "not_": 0.0}
    for name, value in expected.items():
        assert float(getattr(out, name)) == pytest.approx(value, rel=1e-15), name


NAN = math.nan


@pytest.fixture(scope="module")
def selections() -> Kernel:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    outputs = {
        "relu": ca.fmax(x, 0),
        "chosen": ca.if_else(x > 0, x, y),
        "gate": ca.if_else(x > 0, 1, 0),
        "both": ca.if_else(ca.logic_and(x > 0, y > 0), x, y),
        "either": ca.if_else(ca.logic_or(x > 0, y > 0), 1, -1),
        "inverse": ca.if_else(ca.logic_not(x > 0), 1, -1),
        "nested": ca.if_else(x > 0, ca.if_else(y > 0, 1, 2), 3),
        "clamped": ca.fmin(ca.fmax(x, -1), 1),
        "zero": 0 * ca.fmax(x, y),
    }
    return Kernel("selections", {"x": x, "y": y}, outputs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (
            2.0,
            3.0,
            {"relu": 2, "chosen": 2, "gate": 1, "both": 2, "either": 1, "inverse": -1, "nested": 1, "clamped": 1},
        ),
        (
            -2.0,
            3.0,
            {"relu": 0, "chosen": 3, "gate": 0, "both": 3, "either": 1, "inverse": 1, "nested": 3, "clamped": -1},
        ),
        (NAN, 3.0, dict.fromkeys(("relu", "chosen", "gate", "both", "either", "inverse", "nested", "clamped"), NAN)),
        # What is not selected does not matter: only the condition and the chosen value count.
        (2.0, NAN, {"chosen": 2, "gate": 1, "nested": NAN, "both": NAN, "either": NAN, "relu": 2, "clamped": 1}),
        (-2.0, NAN, {"chosen": NAN, "nested": 3, "both": NAN, "gate": 0, "relu": 0, "clamped": -1}),
    ],
)
def test_nan_stays_visible(
    selections: Kernel, x: float, y: float, expected: dict[str, float], dtype: torch.dtype
) -> None:
    out = selections(x=torch.tensor([x], dtype=dtype), y=torch.tensor([y], dtype=dtype))
    for name, value in expected.items():
        np.testing.assert_equal(float(getattr(out, name)), float(value), name)


def test_a_selection_does_not_mix_in_the_other_branch() -> None:
    """if_else is one selection, not a sum: a NaN branch that is not taken leaves no trace, and -0 stays -0."""
    x = ca.SX.sym("x")
    k = Kernel("branch", {"x": x}, {"y": ca.if_else(x > 0, ca.log(x), x * ca.inf), "z": ca.if_else(x < 1, -x, x)})
    out = k(x=torch.tensor([[-1.0], [math.e], [0.0]], dtype=torch.float64))
    assert out.y[0].item() == -math.inf
    assert out.y[1].item() == pytest.approx(1.0, abs=1e-15)
    assert math.copysign(1, out.z[2].item()) == -1


@pytest.mark.parametrize(
    ("make", "op", "hint"),
    [
        (lambda x: ca.Function("inner", [x], [ca.sin(x)], {"never_inline": True})(x), "OP_CALL", "default inlining"),
        (lambda x: x.printme(1), "OP_PRINTME", "supported operations"),
    ],
)
def test_other_ops_are_an_error_when_the_kernel_is_built(make: Callable[[ca.SX], ca.SX], op: str, hint: str) -> None:
    x = ca.SX.sym("x")
    with pytest.raises(
        UnsupportedOpError, match=rf"'named' uses {op}, which cannot be compiled; supported are .*{hint}"
    ):
        Kernel("named", {"x": x}, {"y": 2 * make(x)})
    b = ProgramBuilder("program")
    start = b.input("x", 1)
    with pytest.raises(UnsupportedOpError, match=f"'body' uses {op}"):
        b.scan(ca.Function("body", [x], [make(x)]), 3, start)


def test_lift_and_assign_mean_their_operand() -> None:
    x = ca.SX.sym("x")
    k = Kernel("lift", {"x": x}, {"y": ca.SX.binary(ca.OP_LIFT, ca.sin(x), x), "z": ca.SX.unary(ca.OP_ASSIGN, x)})
    out = k(x=torch.tensor([0.5], dtype=torch.float64))
    assert out.y.item() == pytest.approx(math.sin(0.5), rel=1e-15)
    assert out.z.item() == 0.5


def test_constants_of_all_kinds() -> None:
    """Constants keep their bits: subnormals, infinities, NaN, and what overflows in float32."""
    x = ca.SX.sym("x")
    values = [0.0, 1 / 3, 5e-324, 1e-40, 1e300, -1e300, math.inf, -math.inf, math.nan, 2.0**-1074]
    k = Kernel("constants", {"x": x}, {"y": ca.vertcat(*(ca.SX(v) for v in values), x)})
    for dtype in DTYPES:
        got = k(x=torch.ones(1, dtype=dtype)).y[:-1].numpy()
        with np.errstate(over="ignore"):
            expected = np.array(values).astype(got.dtype)
        np.testing.assert_array_equal(got, expected)
