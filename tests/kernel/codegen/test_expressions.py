"""Straight-line code of all shapes and sizes against CasADi's own evaluator: random expressions, and long ones in pieces."""

from __future__ import annotations

import math
import time
from typing import Any

import casadi as ca
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costate.kernel import Kernel
from costate.kernel import compile as compiler
from costate.kernel.codegen.chunks import CHUNK_OPS, cut
from costate.kernel.codegen.from_casadi import tape_of
from costate.kernel.codegen.pieces import Known
from costate.kernel.compile import compile_program
from costate.kernel.machine import workers
from costate.kernel.machine.target import host

# Ops that keep values of order one in order one, so that rounding differences (compiled code fuses a b + c) stay small.
UNARY = (ca.sin, ca.cos, ca.tanh, ca.atan, lambda a: -a, lambda a: a / 2, ca.fabs, lambda a: ca.sqrt(1 + a * a), ca.erf)
BINARY = (
    lambda a, b: (a + b) / 2,
    lambda a, b: a - b / 2,
    lambda a, b: a * b / 2,
    lambda a, b: a / (1 + b * b),
    ca.fmin,
    ca.fmax,
    ca.atan2,
    ca.hypot,
    lambda a, b: ca.if_else(a > b, a, b / 2),
    lambda a, b: ca.if_else(ca.logic_and(a > 0, b > 0), a, -b),
    ca.copysign,
)
ROUNDING = 1e-12
"""Twenty ops deep, each rounding by 1e-16 and magnifying errors by at most 2."""


@st.composite
def expressions(draw: st.DrawFn) -> tuple[ca.SX, list[ca.SX]]:
    """Inputs, and a few nodes of a random graph over them."""
    x = ca.SX.sym("x", draw(st.integers(1, 5)))
    nodes = [x[k] for k in range(x.numel())] + [ca.SX(draw(st.sampled_from([0.0, 1.0, -0.5, 1 / 3])))]
    for _ in range(draw(st.integers(1, 20))):
        pick = st.integers(0, len(nodes) - 1)
        if draw(st.booleans()):
            nodes.append(draw(st.sampled_from(UNARY))(nodes[draw(pick)]))
        else:
            nodes.append(draw(st.sampled_from(BINARY))(nodes[draw(pick)], nodes[draw(pick)]))
    count = draw(st.integers(1, 4))
    return x, [nodes[-1 - draw(st.integers(0, len(nodes) - 1))] for _ in range(count)]


def evaluated(fn: ca.Function, x: np.ndarray) -> np.ndarray:
    """CasADi's evaluator, on columns."""
    return np.array(fn.map(x.shape[1])(x))


@settings(max_examples=25)
@given(expressions(), st.integers(0, 2**31))
def test_random_expressions(expression: tuple[ca.SX, list[ca.SX]], seed: int) -> None:
    """Values and gradients. Samples next to a switch are left out: there one rounding decides."""
    x, outputs = expression
    y = ca.vertcat(*outputs)
    k = Kernel("random", {"x": x}, {"y": y})
    points = np.random.default_rng(seed).uniform(-2, 2, (x.numel(), 9))
    X = torch.from_numpy(points.T.copy()).requires_grad_()
    out = k(x=X).y
    expected = evaluated(ca.Function("f", [x], [ca.densify(y)]), points).T
    seeds = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape)
    (grad,) = torch.autograd.grad(out, X, seeds)
    u = ca.SX.sym("u", y.numel())
    back = ca.Function("g", [x, u], [ca.densify(ca.jtimes(y, x, u, True))])
    slopes = np.array(back.map(9)(points, seeds.numpy().T)).T
    near = switch_margin(x, y, points) < 1e-9
    for found, wanted in ((out.detach().numpy(), expected), (grad.numpy(), slopes)):
        ok = np.isclose(
            found, wanted, rtol=ROUNDING, atol=ROUNDING * (1 + np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        )
        ok |= ~np.isfinite(wanted)  # CasADi drops a NaN where compiled code shows it
        assert ok[~near].all(), (found[~near], wanted[~near])


def switch_margin(x: ca.SX, y: ca.SX, points: np.ndarray) -> np.ndarray:
    """How far each sample is from a point where a comparison, a minimum or a sign switches."""
    fn = ca.Function("f", [x], [y])
    work: dict[int, ca.SX] = {}
    margins = [ca.SX(1)]
    for k in range(fn.n_instructions()):
        op, ins, outs = fn.instruction_id(k), fn.instruction_input(k), fn.instruction_output(k)
        if op == ca.OP_INPUT:
            work[outs[0]] = x[ins[1]]
        elif op == ca.OP_CONST:
            work[outs[0]] = ca.SX(fn.instruction_constant(k))
        elif op != ca.OP_OUTPUT:
            args = [work[i] for i in ins]
            binary = len(args) == 2
            work[outs[0]] = ca.SX.binary(op, *args) if binary else ca.SX.unary(op, args[0])
            if op in (ca.OP_LT, ca.OP_LE, ca.OP_FMIN, ca.OP_FMAX, ca.OP_EQ):
                margins.append(ca.fabs(args[0] - args[1]))
            elif op in (ca.OP_FABS, ca.OP_COPYSIGN, ca.OP_ATAN2, ca.OP_HYPOT):
                margins += [ca.fabs(a) for a in args]
    smallest = ca.Function("m", [x], [ca.mmin(ca.vertcat(*margins))])
    return evaluated(smallest, points)[0]


# --- long ones --------------------------------------------------------------------------------------------------------


def mixed(ops: int, seed: int = 0) -> tuple[ca.SX, ca.SX]:
    """A random graph with links near and far, so that values cross many cuts."""
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 12)
    nodes = [x[k] for k in range(12)]
    while len(nodes) < ops:
        near, far = nodes[-1 - rng.integers(min(40, len(nodes)))], nodes[rng.integers(len(nodes))]
        kind = rng.integers(6)
        if kind == 0:
            nodes.append(ca.sin(near + far))
        elif kind == 1:
            nodes.append(ca.fmin(near, far) / 2)
        elif kind == 2:
            nodes.append(ca.if_else(near > far, near, -far))
        elif kind == 3:
            nodes += [ca.cos(near), ca.sin(near)]  # a pair that shares its reduction
        else:
            nodes.append((near - far) * 0.5 + near * 0.25)
    return x, ca.vertcat(*nodes[-30:], *nodes[12 : 12 + 30])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_long_program_is_right_across_the_cuts(dtype: torch.dtype) -> None:
    x, y = mixed(6000)
    k = Kernel("long", {"x": x}, {"y": y})
    code = k.code({torch.float64: "f64", torch.float32: "f32"}[dtype])
    assert code.n_ops > 5 * CHUNK_OPS
    points = np.random.default_rng(1).uniform(-1, 1, (12, 21))
    expected = evaluated(ca.Function("f", [x], [y]), points).T
    found = k(x=torch.from_numpy(points.T.copy()).to(dtype)).y.double().numpy()
    # Where a comparison is decided by rounding a sample goes another way; most samples meet none of those.
    error = np.abs(found - expected).max(1)
    assert np.median(error) < (1e-13 if dtype == torch.float64 else 1e-4)


def test_a_long_gradient_is_right_across_the_cuts() -> None:
    x = ca.SX.sym("x", 10)
    y = x
    for k in range(120):
        y = ca.sin(y + 0.01 * k) * x + 0.1 * ca.vertcat(y[1:], y[0])
    k = Kernel("long", {"x": x}, {"y": y})
    back = k.vjp()
    assert back.code().n_ops > 5 * CHUNK_OPS
    points, seeds = np.random.default_rng(1).uniform(-1, 1, (2, 10, 5))
    u = ca.SX.sym("u", 10)
    expected = np.array(ca.Function("g", [x, u], [ca.jtimes(y, x, u, True)]).map(5)(points, seeds)).T
    out = back(x=torch.from_numpy(points.T.copy()), y_bar=torch.from_numpy(seeds.T.copy())).x_bar.numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10**6])
def test_chunks_of_any_size_compute_the_same(size: int) -> None:
    """The cut itself, interpreted: every value reaches its readers through its slot, however small the pieces."""
    x, y = mixed(300)
    tape = tape_of(ca.Function("f", [x], [y]))
    chunks, slots = cut("c", tape, 1, 1, size)
    assert len(chunks) == max(1, math.ceil(tape.n_ops / size))
    point = np.random.default_rng(2).uniform(-1, 1, 12)
    workspace = [math.nan] * slots
    outputs: dict[int, float] = {}
    for chunk in chunks:
        values: dict[Any, Any] = {v: workspace[s] for v, s in chunk.loads.items()}
        for value, ins in chunk.body:
            values[value] = interpret(ins, values, point)
        for value, slot in chunk.saves.items():
            workspace[slot] = first(values[value])
        for value, places in chunk.stores.items():
            outputs.update({element: first(values[value]) for _, element in places})
    expected = evaluated(ca.Function("f", [x], [y]), point[:, None])[:, 0]
    np.testing.assert_allclose([outputs[k] for k in range(len(expected))], expected, rtol=1e-12, atol=1e-13)


def first(value: Any) -> float:
    return value[0] if isinstance(value, tuple) else value


def interpret(ins: tuple[Any, ...], values: dict[int, Any], point: np.ndarray) -> Any:
    """One instruction of a tape, on numbers. A sine-cosine pair is a tuple."""
    op = ins[0]
    if op == "input":
        return point[ins[2]]
    if op == "const":
        return float.fromhex(ins[1])
    if op == "second":
        return values[ins[1]][1]
    a = [first(values[i]) for i in ins[1:]]
    table = {
        "add": lambda: a[0] + a[1], "sub": lambda: a[0] - a[1], "mul": lambda: a[0] * a[1], "div": lambda: a[0] / a[1],
        "neg": lambda: -a[0], "sin": lambda: math.sin(a[0]), "cos": lambda: math.cos(a[0]), "sq": lambda: a[0] ** 2,
        "fma": lambda: a[0] * a[1] + a[2], "fms": lambda: a[0] * a[1] - a[2], "fnma": lambda: a[2] - a[0] * a[1],
        "fmin": lambda: min(a), "lt": lambda: float(a[0] < a[1]), "select": lambda: a[1] if a[0] else a[2],
        "sincos": lambda: (math.sin(a[0]), math.cos(a[0])), "cossin": lambda: (math.cos(a[0]), math.sin(a[0])),
        "not": lambda: float(not a[0]), "if_else_zero": lambda: a[1] if a[0] else 0.0, "twice": lambda: 2 * a[0],
    }  # fmt: skip
    return table[op]()


# --- compile time -----------------------------------------------------------------------------------------------------


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker processes, so that the time of this process is all there is, whatever else the machine does; nothing is known."""
    monkeypatch.setattr(workers, "PARALLEL_FROM", 10**9)
    monkeypatch.setattr(compiler, "KNOWN", Known(0))


def compile_seconds(ops: int) -> tuple[float, int]:
    """(seconds of CPU time, operations) of one compilation, nothing cached."""
    x, y = mixed(ops)
    k = Kernel("long", {"x": x}, {"y": y})
    start = time.process_time()
    artifact = compile_program(k.program, k.layout, host(), "f64")
    return time.process_time() - start, artifact.n_ops


@pytest.mark.slow
def test_compile_time_is_linear(one_process: None) -> None:
    """Five times the ops, at most 1.4 times the seconds per op."""
    compile_seconds(1000)
    small, large = min(compile_seconds(4000) for _ in range(2)), compile_seconds(20_000)
    assert large[1] > 4.5 * small[1]
    assert large[0] / large[1] <= 1.4 * small[0] / small[1]


@pytest.mark.study
def test_a_quarter_of_a_million_ops(one_process: None) -> None:
    small, large = compile_seconds(25_000), compile_seconds(310_000)
    assert large[1] > 250_000
    assert large[0] / large[1] <= 1.4 * small[0] / small[1]
