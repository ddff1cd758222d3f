"""Benchmark of the kernel compiler: speed of the code, cost of a call, threads, compile time, and other libraries.

    python -m benchmarks.bench_kernel [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...] [--jax-python PATH]
    python -m benchmarks.bench_kernel --markdown docs/benchmarks.md         # what the docs show

JAX is measured if this Python has it, or in the environment of another one: --jax-python PATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import casadi as ca
import numpy as np
import torch

from benchmarks.kernel.functions import BATCH, arm_jacobian, arm_kernel, random_kernel, random_program, sample_inputs
from benchmarks.kernel.libraries import peers
from benchmarks.measure.harness import (
    ROOT,
    Options,
    Report,
    Table,
    environment,
    interleaved,
    machine,
    once,
    options,
    publish,
    threads,
)
from costate.kernel import Kernel
from costate.kernel.machine.target import host
from costate.kernel.report import peak_rate

DTYPES = {"f64": torch.float64, "f32": torch.float32}


FUNCTIONS: dict[str, Callable[[], Kernel]] = {
    "random, 1k": lambda: random_kernel(1000),
    "random, 5k": lambda: random_kernel(5000),
    "random, 20k": lambda: random_kernel(20000),
    "arm: forward dynamics": arm_kernel,
    "arm: its VJP": lambda: arm_kernel().vjp(),
    "arm: its Jacobian": arm_jacobian,
}


# --- tables -----------------------------------------------------------------------------------------------------------


def speed(chosen: Options) -> Iterator[Table]:
    """Measure nanoseconds per operation and sample, through the torch call, on one thread."""
    names = ["random, 1k", "arm: forward dynamics"] if chosen.smoke else list(FUNCTIONS)
    rows = []
    with threads(1):
        for name in names:
            for dtype, kind in DTYPES.items():
                kernel = FUNCTIONS[name]()
                data = sample_inputs(kernel, BATCH, kind)
                assert all(t.isfinite().all() for t in kernel(**data)), f"{name} overflows: not a fair measurement"
                seconds = interleaved({"kernel": lambda: kernel(**data)}, 5 if chosen.smoke else 25)["kernel"]  # noqa: B023
                a = kernel.code(dtype).artifact
                each = 1e9 * seconds / BATCH
                peak = 100 * a.flops * BATCH / seconds / peak_rate(dtype)
                rows.append((name, dtype, a.n_ops, a.flops, each, each / a.n_ops, each / a.flops, peak))
    note = (
        f"Batch {BATCH}, one thread, called from torch, {host().register}-byte vectors. A fused multiply-add is one operation "
        "and two flops. Peak: what a loop of nothing but fused multiply-adds reaches on one core at the time, "
        + " and ".join(f"{peak_rate(d) / 1e9:.0f} Gflop/s in {d}" for d in DTYPES)
        + "."
    )
    columns = (
        "function",
        "",
        "operations",
        "flops",
        "ns per sample",
        "ns per op and sample",
        "ns per flop",
        "% of peak",
    )
    yield Table(f"Speed, {host().register}-byte vectors", columns, tuple(rows), note)
    if host().register == 64:
        yield from _in_another_process(
            chosen, "speed", {"COSTATE_VECTOR_BYTES": "32"}
        )  # what a CPU with AVX2 would run


def _in_another_process(chosen: Options, table: str, environment: dict[str, str]) -> list[Table]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.bench_kernel", "--only", table, "--json", str(file)]
        command += ["--smoke"] * chosen.smoke
        subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)
        tables = json.loads(file.read_text())["tables"]
    return [Table(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"])), t["note"]) for t in tables]


def overhead(chosen: Options) -> Iterator[Table]:
    """A single sample, called from Python."""
    q, v, tau = (ca.SX.sym(n, 6) for n in ("q", "v", "tau"))
    kernel = Kernel("small", {"q": q, "v": v, "tau": tau}, {"a": q * v + ca.sin(tau)})
    arrays = {n: np.linspace(0, 1, 6) for n in ("q", "v", "tau")}
    tensors = {n: torch.from_numpy(a.copy()) for n, a in arrays.items()}
    recorded = {n: t.clone().requires_grad_() for n, t in tensors.items()}
    cases = {
        "torch, no gradients": lambda: kernel(**tensors),
        "torch, recording gradients": lambda: kernel(**recorded),
        "`k.numpy(...)`": lambda: kernel.numpy(**arrays),
        "`k.bind(...)`": kernel.bind(**arrays),
    }
    seconds = interleaved(cases, 20 if chosen.smoke else 400, 0.002)
    rows = tuple((name, 1e6 * s) for name, s in seconds.items())
    note = "One sample, three inputs and one output of six numbers each; the arithmetic itself takes some 20 ns."
    yield Table("Cost of a call", ("call", "us"), rows, note)


def threading(chosen: Options) -> Iterator[Table]:
    """Two threads against one."""
    kernel = random_kernel(5000)
    rows = []
    for batch in (16384,) if chosen.smoke else (8192, 32768, 131072):
        data = sample_inputs(kernel, batch)
        seconds = interleaved({"1": _with_threads(1, kernel, data), "2": _with_threads(2, kernel, data)}, 15)
        rows.append((f"{batch:,}", 1e3 * seconds["1"], 1e3 * seconds["2"], seconds["1"] / seconds["2"]))
    note = f"{kernel.name}, float64. Needs two idle cores to mean something."
    yield Table("Threads", ("batch", "ms, one thread", "ms, two threads", "gain"), tuple(rows), note)


def _with_threads(n: int, kernel: Kernel, data: dict[str, torch.Tensor]) -> Callable[[], None]:
    def run() -> None:
        torch.set_num_threads(n)
        kernel(**data)

    return run


def compiling(chosen: Options) -> Iterator[Table]:
    """Cold, and from the cache on disk."""
    sizes = [1000, 5000] if chosen.smoke else [1000, 5000, 20000, 60000, 250000]
    rows = []
    with tempfile.TemporaryDirectory() as folder, environment(COSTATE_CACHE=folder):
        random_kernel(1000).code("f64")  # starts LLVM, loads the vector functions
        for size in sizes:
            x, y = random_program(size, seed=1)
            make = lambda x=x, y=y: Kernel("random", {"x": x}, {"y": y})  # noqa: E731
            rows.append(_compile_row(f"random, {size // 1000}k", make))
        x, y = random_program(sizes[-1] // 10, seed=2)
        make = lambda: Kernel("random", {"x": x}, {"y": y}).vjp()  # noqa: E731
        rows.append(_compile_row(f"VJP of random, {sizes[-1] / 1e4:g}k", make))
    note = (
        "From the CasADi expression to callable code, float64, the kernel object included. Cold: nothing on disk; worker "
        "processes share the work and are started by the first row that needs them. Warm: a new kernel object finds its code "
        "on disk."
    )
    yield Table(
        "Compile time",
        ("function", "operations", "s, cold", "us per op, cold", "s, warm", "MB of code"),
        tuple(rows),
        note,
    )


def _compile_row(name: str, make: Callable[[], Kernel]) -> tuple[str | float, ...]:
    cold = once(lambda: make().code("f64"))
    warm = min(once(lambda: make().code("f64")) for _ in range(3))
    a = make().code("f64").artifact
    return name, a.n_ops, cold, 1e6 * cold / a.n_ops, warm, sum(map(len, a.images)) / 1e6


# --- running ----------------------------------------------------------------------------------------------------------

TABLES: dict[str, Callable[[Options], Iterator[Table]]] = {
    "speed": speed,
    "overhead": overhead,
    "threads": threading,
    "compile": compiling,
    "peers": peers,
}


def main() -> None:
    chosen = options(
        "Benchmark of the kernel compiler.",
        list(TABLES),
        lambda parser: parser.add_argument("--jax-python", metavar="PATH", help="a Python that has JAX"),
    )
    tables: list[Table] = []
    for name in chosen.only:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        tables += TABLES[name](chosen)
    facts = machine(vectors=f"{host().register} bytes ({host().cpu})", load=f"{os.getloadavg()[0]:.1f}")
    command = "python -m benchmarks.bench_kernel --markdown docs/benchmarks.md"
    publish(Report("Kernel", command, facts, tuple(tables)), chosen)


if __name__ == "__main__":
    main()
