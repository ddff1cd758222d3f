"""The same list of operations in an array library: what torch and JAX make of a straight-line function.

A function comes as plain data (see `operations`); each scalar of it becomes an array over the batch. Imports nothing but the
array library asked for, so that JAX can be measured in an environment of its own:

    python array_peers.py jax < job.json        # {"operations": ..., "inputs": (n, batch)} -> {"seconds": ..., ...}
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

Operation = tuple[str, int, tuple[int, ...], float]
"""(name, register written, registers read, constant): on one list of registers, in order."""

NAMES = ("add", "sub", "mul", "div", "neg", "sq", "twice", "inv", "sqrt", "sin", "cos")


def operations(fn: Any) -> list[Operation]:
    """CasADi's instructions of a function of one vector, with one vector as its result."""
    import casadi as ca

    names = {getattr(ca, f"OP_{name.upper()}"): name for name in NAMES}
    found: list[Operation] = []
    for k in range(fn.n_instructions()):
        op, ins, outs = fn.instruction_id(k), fn.instruction_input(k), fn.instruction_output(k)
        if op == ca.OP_CONST:
            found.append(("const", outs[0], (), fn.instruction_constant(k)))
        elif op == ca.OP_INPUT:
            found.append(("input", outs[0], (ins[1],), 0.0))
        elif op == ca.OP_OUTPUT:
            found.append(("output", outs[1], (ins[0],), 0.0))
        else:
            found.append((names[op], outs[0], tuple(ins), 0.0))
    return found


def evaluate(ops: Sequence[Operation], xp: Any, x: Any) -> Any:
    """Run the operations on x (n, batch) with the functions of torch or jax.numpy; returns (m, batch)."""
    kinds: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "neg": lambda a: -a,
        "sq": lambda a: a * a,
        "twice": lambda a: a + a,
        "inv": lambda a: 1 / a,
        "sqrt": xp.sqrt,
        "sin": xp.sin,
        "cos": xp.cos,
    }
    registers: dict[int, Any] = {}
    results: dict[int, Any] = {}
    for name, target, sources, constant in ops:
        if name == "const":
            registers[target] = constant
        elif name == "input":
            registers[target] = x[sources[0]]
        elif name == "output":
            results[target] = registers[sources[0]]
        else:
            registers[target] = kinds[name](*(registers[s] for s in sources))
    zero = 0 * x[0]
    return xp.stack([zero + results[k] for k in range(len(results))])


def best(run: Callable[[], Any], rounds: int = 15) -> float:
    run()
    found = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - start)
    return found


def measure_jax(job: dict[str, Any]) -> dict[str, Any]:
    """Seconds of value, of value and gradient, and of compiling them; and the values, to be compared."""
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    x = jnp.array(job["inputs"])
    ops = job["operations"]
    value = jax.jit(lambda x: evaluate(ops, jnp, x))
    gradient = jax.jit(jax.value_and_grad(lambda x: evaluate(ops, jnp, x).sum()))
    start = time.perf_counter()
    y = value(x).block_until_ready()
    compiled = time.perf_counter() - start
    start = time.perf_counter()
    gradient(x)[1].block_until_ready()
    compiled_gradient = time.perf_counter() - start
    return {
        "version": jax.__version__,
        "compile": compiled + compiled_gradient,
        "value": best(lambda: value(x).block_until_ready()),
        "gradient": best(lambda: gradient(x)[1].block_until_ready()),
        "result": y[:, :8].tolist(),
    }


if __name__ == "__main__":
    json.dump(measure_jax(json.load(sys.stdin)), sys.stdout)
