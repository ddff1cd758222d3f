"""One function in Costate, CasADi, torch, torch.compile and JAX."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import torch

from benchmarks.kernel.array_libraries import evaluate, measure_jax, operations
from benchmarks.kernel.functions import BATCH, arm
from benchmarks.measure.harness import Options, Table, environment, interleaved, once, threads
from costate.kernel import Kernel


def peers(chosen: Options) -> Iterator[Table]:
    """The same function elsewhere."""
    x, y = arm()
    fn = ca.Function("arm", [x], [y], {"cse": True})
    batch = 512 if chosen.smoke else BATCH
    data = np.random.default_rng(0).normal(size=(fn.numel_in(0), batch))
    expected = np.array(fn.map(batch)(data))
    with threads(1):
        rows = [_costate_row(data, expected, chosen), _casadi_row(fn, data, expected, chosen)]
        rows += [_eager_row(fn, data, expected, chosen), _torch_compile_row(fn, data, expected, chosen)]
        rows.append(_jax_row(fn, data, expected, chosen))
    note = (
        f"Forward dynamics of a six-joint arm, {fn.n_instructions()} instructions in CasADi's list, batch {batch}, float64, one "
        "thread; results agree to 1e-9. Gradient: of the sum of all results, by everything the library needs for it, the value "
        "included. Torch and JAX run CasADi's list, each instruction on a tensor over the batch."
    )
    yield Table(
        "Other libraries", ("", "ns per sample, value", "ns per sample, gradient", "s to compile"), tuple(rows), note
    )


Row = tuple[str | float, ...]


def _rounds(chosen: Options) -> int:
    return 3 if chosen.smoke else 15


def _nanoseconds(cases: dict[str, Callable[[], object]], batch: int, chosen: Options) -> tuple[float, ...]:
    return tuple(1e9 * s / batch for s in interleaved(cases, _rounds(chosen), 0.0).values())


def _same(found: np.ndarray, expected: np.ndarray, name: str) -> None:
    error = np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1))
    assert error < 1e-9, f"{name} differs from CasADi by {error:.1e}"


def _torch_cases(call: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> dict[str, Callable[[], object]]:
    leaf = x.clone().requires_grad_()
    return {"value": lambda: call(x), "gradient": lambda: torch.autograd.grad(call(leaf).sum(), leaf)}


def _costate_row(data: np.ndarray, expected: np.ndarray, chosen: Options) -> Row:
    x, y = arm()
    t = torch.from_numpy(data.T.copy())
    with environment(COSTATE_CACHE=""):
        kernel = Kernel("arm", {"x": x}, {"y": y})
        seconds = once(lambda: (kernel.code("f64"), kernel.vjp().code("f64")))
    _same(kernel(x=t).y.numpy().T, expected, "costate")
    return "Costate", *_nanoseconds(_torch_cases(lambda x: kernel(x=x).y, t), data.shape[1], chosen), seconds


def _casadi_row(fn: ca.Function, data: np.ndarray, expected: np.ndarray, chosen: Options) -> Row:
    batch = data.shape[1]
    x = ca.SX.sym("x", fn.numel_in(0))
    both = ca.Function("both", [x], [fn(x), ca.gradient(ca.sum1(fn(x)), x)], {"cse": True})
    cases = {
        "value": _casadi_call(fn.map(batch), data, expected),
        "gradient": _casadi_call(both.map(batch), data, expected),
    }
    return f"CasADi {ca.CasadiMeta.version()}, Function.map", *_nanoseconds(cases, batch, chosen), "none"


def _casadi_call(fn: ca.Function, data: np.ndarray, expected: np.ndarray) -> Callable[[], object]:
    """Straight from and to NumPy's memory: CasADi's quickest way."""
    buffer: Any
    buffer, run = fn.buffer()
    rows = np.ascontiguousarray(data.T)  # CasADi's columns, one sample each
    results = [np.zeros((fn.size2_out(k), fn.size1_out(k))) for k in range(fn.n_out())]
    buffer.set_arg(0, rows.data)
    for k, r in enumerate(results):
        buffer.set_res(k, r.data)
    run()
    _same(results[0].T, expected, "CasADi's buffers")
    return lambda keep=(buffer, rows, results): run()


def _eager_row(fn: ca.Function, data: np.ndarray, expected: np.ndarray, chosen: Options) -> Row:
    ops = operations(fn)
    t = torch.from_numpy(data)
    _same(evaluate(ops, torch, t).numpy(), expected, "torch")
    cases = _torch_cases(lambda x: evaluate(ops, torch, x), t)
    return f"torch {torch.__version__}, eager", *_nanoseconds(cases, data.shape[1], chosen), "none"


def _torch_compile_row(fn: ca.Function, data: np.ndarray, expected: np.ndarray, chosen: Options) -> Row:
    if chosen.smoke:
        return "torch.compile", "not in a smoke run", "", ""
    ops = operations(fn)
    t = torch.from_numpy(data)
    compiled = torch.compile(lambda x: evaluate(ops, torch, x))
    try:
        with tempfile.TemporaryDirectory() as folder, environment(TORCHINDUCTOR_CACHE_DIR=folder):
            seconds = once(lambda: compiled(t))
    except Exception as error:  # it needs a C++ compiler on the machine
        return "torch.compile", f"fails: {type(error).__name__}", "", ""
    _same(compiled(t).numpy(), expected, "torch.compile")
    (value,) = _nanoseconds({"value": lambda: compiled(t)}, data.shape[1], chosen)
    return "torch.compile (value only)", value, "not measured", seconds


def _jax_row(fn: ca.Function, data: np.ndarray, expected: np.ndarray, chosen: Options) -> Row:
    job = {"operations": operations(fn), "inputs": data.tolist()}
    python = chosen.rest.jax_python
    if python:
        script = Path(__file__).with_name("array_libraries.py")
        single = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [python, script], input=json.dumps(job), capture_output=True, text=True, env=os.environ | single
        )
        if done.returncode:
            raise RuntimeError(f"{python} could not run JAX:\n{done.stderr}")
        found = json.loads(done.stdout)
    else:
        try:
            found = measure_jax(job)
        except ImportError:
            return "JAX", "not installed", "", ""
    result = np.array(found["result"])
    _same(result, expected[:, : result.shape[1]], "JAX")
    each = 1e9 / data.shape[1]
    return f"JAX {found['version']}, jit", each * found["value"], each * found["gradient"], found["compile"]
