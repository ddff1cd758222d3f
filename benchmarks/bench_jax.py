"""Benchmark of Costate in JAX: what a call costs over an empty one, inside of a scan, in batches with threads, and beside torch.

python -m benchmarks.bench_jax [--smoke] [--json FILE] [--markdown FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import torch

import costate as cs
import costate.jax as cj
from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish

jax.config.update("jax_enable_x64", True)
LENGTH = 1000
"""Steps of the scan."""


def main() -> None:
    chosen = options(__doc__ or "", list(TABLES))
    facts = machine() | {"jax": jax.__version__}
    publish(
        Report(
            "Costate in JAX",
            "python -m benchmarks.bench_jax",
            facts,
            tuple(TABLES[name](chosen) for name in chosen.only),
        ),
        chosen,
    )


def ready(f: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    """Return a call that waits for its result."""
    return lambda: jax.block_until_ready(f(*given))


def calls(chosen: Options) -> Table:
    """Return times of single calls, and of steps inside of a scan [us]."""
    r = cj.robot(cs.load_robot("ur5"))
    x = [jnp.ones(6)] * 3

    def scan(body: Callable[[Any], Any]) -> Callable[..., Any]:
        return jax.jit(lambda q: jax.lax.scan(lambda c, _: (body(c), None), q, None, length=LENGTH)[0])

    def value(q: Any, v: Any, tau: Any) -> Any:
        return (r.forward_dynamics(q, v, tau) ** 2).sum()

    cases = {
        "empty jit call": ready(jax.jit(lambda q, v, tau: q), *x),
        "forward dynamics": ready(jax.jit(lambda *a: r.forward_dynamics(*a)), *x),
        "value and gradient": ready(jax.jit(jax.value_and_grad(value, (0, 1, 2))), *x),
        "scan, empty": ready(scan(lambda c: c * 1.001), x[0]),
        "scan, forward dynamics": ready(scan(lambda c: c + 1e-3 * r.forward_dynamics(c, x[1], x[2])), x[0]),
    }
    found = interleaved(cases, rounds=3 if chosen.smoke else 25)
    rows = tuple((name, f"{1e6 * t / (LENGTH if name.startswith('scan') else 1):.2f}") for name, t in found.items())
    return Table("One UR5", ("", "us per call or step"), rows, "float64, wall time, best of several rounds in turns.")


def batches(chosen: Options) -> Table:
    """Return times of batches, beside torch with as many threads [us]."""
    robot = cs.load_robot("ur5").double()
    f = jax.jit(lambda *a: cj.robot(robot).forward_dynamics(*a))
    g = jax.jit(jax.grad(lambda *a: cj.robot(robot).forward_dynamics(*a).sum(), (0, 1, 2)))

    def backward(tensors: list[torch.Tensor]) -> Any:
        leaves = [t.requires_grad_() for t in tensors]
        return torch.autograd.grad(robot.forward_dynamics(leaves[0], leaves[1], leaves[2]).sum(), leaves)

    rows = []
    for batch in (64, 1024) if chosen.smoke else (64, 1024, 4096, 16384, 65536):
        tensors = [torch.ones(batch, 6, dtype=torch.float64) for _ in range(3)]
        arrays = [jnp.asarray(t.numpy()) for t in tensors]
        plain = [t.clone() for t in tensors]
        cases = {
            "JAX": ready(f, *arrays),
            "torch": lambda plain=plain: robot.forward_dynamics(*plain),
            "JAX, gradient": ready(g, *arrays),
            "torch, gradient": lambda tensors=tensors: backward(tensors),
        }
        found = interleaved(cases, rounds=3 if chosen.smoke else 15)
        rows.append((f"{batch:,}", *(f"{1e6 * t:.0f}" for t in found.values())))
    columns = ("batch", "JAX [us]", "torch [us]", "JAX, gradient [us]", "torch, gradient [us]")
    about = f"Forward dynamics of a UR5, float64; {torch.get_num_threads()} threads of torch, and those of XLA."
    return Table("Batches", columns, tuple(rows), about)


TABLES = {"calls": calls, "batches": batches}

if __name__ == "__main__":
    main()
