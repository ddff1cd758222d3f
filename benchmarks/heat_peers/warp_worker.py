"""The heat step in Warp: a kernel over elements that adds into nodes, and one over nodes.

The element is one straight line of scalar operations. `held` keeps Warp from computing derivatives by positions, which nobody reads
but which it cannot know: without it the gradient takes 1.5 times as long. Launches and their adjoints are recorded once, without a
tape. -O3 and fast_math change nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
import warp as wp  # type: ignore[import-not-found]

from benchmarks.heat_peers.serve import Case, serve
from benchmarks.heat_peers.straight_line import hex_lines, module
from benchmarks.heat_problem import (
    AMBIENT,
    BEAM,
    CONVECTION,
    RADIATION,
    STORED,
    HeatProblem,
    stored_geometry,
)

SOURCE = """
import warp as wp

real = wp.{dtype}
vec = wp.types.vector(3, real)


@wp.func
def held(x: real) -> real:
    return x


@wp.func_grad(held)
def adj_held(x: real, adj_ret: real):
    pass


@wp.kernel
def elements(
    conn: wp.array2d(dtype=wp.int32), T: wp.array(dtype=real), X: wp.array(dtype=vec), G: wp.array2d(dtype=real),
    birth: wp.array(dtype=real), time: real, flow: wp.array(dtype=real), capacity: wp.array(dtype=real)
):
    e = wp.tid()
    alive = real(0.0)
    if birth[e] <= time:
        alive = real(1.0)
    {body}


@wp.kernel
def nodes(
    T: wp.array(dtype=real), flow: wp.array(dtype=real), capacity: wp.array(dtype=real), X: wp.array(dtype=vec),
    area: wp.array(dtype=real), laser: vec, power: wp.array(dtype=real), dt: real, T1: wp.array(dtype=real)
):
    n = wp.tid()
    t = T[n]
    d = X[n] - laser
    beam = real({peak!r}) * wp.exp(real({narrow!r}) * wp.dot(d, d))
    t2 = t * t
    q = power[0] * beam - real({CONVECTION!r}) * (t - real({AMBIENT!r})) - real({RADIATION!r}) * (t2 * t2 - real({cold!r}))
    if capacity[n] > real(0.0):
        T1[n] = t + dt * (flow[n] + area[n] * q) / capacity[n]
    else:
        T1[n] = t
"""


def source(dtype: str, geometry: str) -> str:
    """Return the source of both kernels."""
    lines, flow, capacity = hex_lines(lambda x: f"real({x!r})", geometry)
    body = [line for n in range(8) for line in (f"n{n} = conn[e, {n}]", f"T{n} = T[n{n}]", f"p{n} = X[n{n}]")]
    if geometry == "stored":
        body = [line for line in body if not line.startswith("p")] + [f"G{m} = held(G[e, {m}])" for m in range(STORED)]
    else:
        body += [f"X{3 * n + c} = held(p{n}[{c}])" for n in range(8) for c in range(3)]
    body += lines
    for name, values in (("flow", flow), ("capacity", capacity)):
        body += [f"wp.atomic_add({name}, n{n}, {value})" for n, value in enumerate(values)]
    constants = {"peak": float(3 / (np.pi * BEAM**2)), "narrow": -3 / BEAM**2, "cold": AMBIENT**4}
    physics = {"CONVECTION": CONVECTION, "AMBIENT": AMBIENT, "RADIATION": RADIATION}
    return SOURCE.format(dtype=dtype, body="\n    ".join(body), **constants, **physics)


def make(p: HeatProblem, dtype: str, geometry: str, mode: str) -> Case:
    """Return the recorded launches of a step, or of a step and its gradient."""
    code = module(f"heat_{dtype}_{geometry}", source(dtype, geometry))

    def array(a: Any, kind: Any = code.real, grad: bool = False) -> Any:
        return wp.array(np.asarray(a), dtype=kind, device="cpu", requires_grad=grad)

    conn, X = array(p.elements.astype(np.int32), wp.int32), array(p.nodes.astype(dtype), code.vec)
    G = array(np.array(stored_geometry(p.nodes[p.elements].reshape(-1, 24).T)).T.astype(dtype))
    birth, area, weights = (array(a.astype(dtype)) for a in (p.birth, p.area, p.weights))
    T, T1, flow, capacity = (array(a.astype(dtype), grad=True) for a in (p.T, p.T, 0 * p.T, 0 * p.T))
    power = array([p.power], grad=True)
    by_element = [conn, T, X, G, birth, code.real(p.time), flow, capacity]
    by_node = [T, flow, capacity, X, area, code.vec(*p.laser), power, code.real(p.dt), T1]
    sizes = ((code.elements, len(p.elements), by_element), (code.nodes, len(p.nodes), by_node))
    elements, nodes = (wp.launch(k, dim=n, inputs=a, device="cpu", record_cmd=True) for k, n, a in sizes)
    elements_bar, nodes_bar = (
        wp.launch(k, dim=n, inputs=a, adj_inputs=_grads(a), adjoint=True, device="cpu", record_cmd=True)
        for k, n, a in sizes
    )

    def forward() -> None:
        flow.zero_()
        capacity.zero_()
        elements.launch()
        nodes.launch()

    def gradient() -> None:
        forward()
        wp.copy(T1.grad, weights)
        for a in (T, power, flow, capacity):
            a.grad.zero_()
        nodes_bar.launch()
        elements_bar.launch()

    if mode == "forward":
        return Case(forward, lambda _: (T1.numpy(),))
    return Case(gradient, lambda _: (T1.numpy(), T.grad.numpy(), power.grad.numpy()[0]))


def _grads(arguments: list[Any]) -> list[Any]:
    return [a.grad if isinstance(a, wp.array) else a for a in arguments]


if __name__ == "__main__":
    wp.config.quiet = True
    wp.config.kernel_cache_dir = str(Path("warp-cache").resolve())  # so that the first call always compiles
    wp.init()
    serve(("warp-lang", "numpy"), ("recomputed", "stored"), make)
