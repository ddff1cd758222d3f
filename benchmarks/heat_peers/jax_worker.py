"""The heat step in JAX: small matrix products over all elements, sums at nodes through tables of incidence.

Of the forms that were tried this is the fastest on a CPU. Arithmetic on arrays with a number per element, as `hex_flow` does it,
takes more than 10 times as long (XLA repeats much of it), one large product instead of four 1.3 times; scatters (`.at[].add`)
are a little slower than tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]

from benchmarks.heat_peers.reference import SIGNS, shape_functions
from benchmarks.heat_peers.serve import Case, serve
from benchmarks.heat_problem import DENSITY, HeatProblem, conductivity, heat_capacity, node_update

jax.config.update("jax_enable_x64", True)
N, DN = shape_functions(SIGNS / np.sqrt(3))


def make(p: HeatProblem, dtype: str, geometry: str, mode: str) -> Case:
    """Return the compiled step, or the step and its gradient."""
    step = _step(p, np.dtype(dtype), geometry)
    T, power, weights = (jnp.asarray(np.asarray(a, dtype)) for a in (p.T, p.power, p.weights))
    given = [
        p.nodes.T,
        p.area,
        (p.birth <= p.time)[:, None],
        p.laser,
        p.dt,
    ]  # arguments: XLA would compute with constants once
    if geometry == "stored":
        given.append(np.array(_geometry(list(p.nodes[p.elements].transpose(2, 0, 1)), list(DN.transpose(1, 0, 2)))))
    rest = [jnp.asarray(np.asarray(a, dtype)) for a in given]

    def gradient(T: Any, power: Any, *rest: Any) -> tuple[Any, ...]:
        T1, pull = jax.vjp(lambda T, power: step(T, power, *rest), T, power)
        return T1, *pull(weights)

    run = jax.jit(gradient if mode == "gradient" else lambda *given: (step(*given),))
    return Case(lambda: jax.block_until_ready(run(T, power, *rest)), lambda found: tuple(np.asarray(a) for a in found))


def _step(p: HeatProblem, d: np.dtype, geometry: str) -> Callable[..., Any]:
    gather, summed = _gather_and_sum(p.elements, len(p.nodes), d)
    slopes, N_ = [jnp.asarray(DN[:, c].astype(d)) for c in range(3)], jnp.asarray(N.astype(d))

    def step(T: Any, power: Any, X: Any, area: Any, alive: Any, laser: Any, dt: Any, stored: Any = None) -> Any:
        if geometry == "stored":
            a, b, c, e, f, g, volume = stored
        else:
            a, b, c, e, f, g, volume = _geometry([X[k][p.elements] for k in range(3)], slopes)
        local = gather(T)
        t = local @ N_.T
        u, v, w = (local @ s.T for s in slopes)
        k = conductivity(t)
        q = (k * (a * u + b * v + c * w), k * (b * u + e * v + f * w), k * (c * u + f * v + g * w))
        flow = -(q[0] @ slopes[0] + q[1] @ slopes[1] + q[2] @ slopes[2])
        capacity = (DENSITY * heat_capacity(t) * volume) @ N_
        return node_update(T, summed(flow * alive), summed(capacity * alive), X, area, laser, power, dt, jnp)

    return step


def _geometry(x: list[Any], slopes: list[Any]) -> tuple[Any, ...]:
    """Return det(J) J^-1 J^-T (upper triangle) and det(J) at the Gauss points, each (E, 8); x: three arrays (E, 8)."""
    J = [[x[c] @ slopes[d].T for c in range(3)] for d in range(3)]
    cof = [[_minor(J, r, c) for c in range(3)] for r in range(3)]
    det = sum(J[0][c] * cof[0][c] for c in range(3))
    inverse = 1 / det
    metric = [sum(cof[r][c] * cof[s][c] for c in range(3)) * inverse for r in range(3) for s in range(r, 3)]
    return *metric, det


def _minor(J: Any, r: int, c: int) -> Any:
    r1, r2, c1, c2 = (r + 1) % 3, (r + 2) % 3, (c + 1) % 3, (c + 2) % 3
    return J[r1][c1] * J[r2][c2] - J[r1][c2] * J[r2][c1]


def _gather_and_sum(elements: np.ndarray, count: int, d: np.dtype) -> tuple[Any, Any]:
    """Return the gather from nodes to elements and the sum back, each the other's transpose."""
    flat = elements.ravel()
    order = np.argsort(flat, kind="stable")
    place = np.arange(len(flat)) - np.searchsorted(flat[order], np.arange(count))[flat[order]]
    table = np.full((place.max() + 1, count), len(flat))
    table[place, flat[order]] = order
    rows, conn = [jnp.asarray(row.astype(np.int32)) for row in table], jnp.asarray(elements.astype(np.int32))

    def total(values: Any) -> Any:
        padded = jnp.concatenate([values.reshape(-1), jnp.zeros(1, d)])
        return sum(padded[row] for row in rows)

    gather, summed = jax.custom_vjp(lambda a: a[conn]), jax.custom_vjp(total)
    gather.defvjp(lambda a: (a[conn], None), lambda _, bar: (total(bar),))
    summed.defvjp(lambda a: (total(a), None), lambda _, bar: (bar[conn],))
    return gather, summed


if __name__ == "__main__":
    serve(("jax", "jaxlib", "numpy"), ("stored", "recomputed"), make)
