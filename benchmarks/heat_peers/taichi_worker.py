"""The heat step in Taichi: a kernel over elements that adds into nodes, and one over nodes; gradients by `kernel.grad`.

The element is one straight line of scalar operations, of which Taichi compiles the adjoint in seconds; for loops over small
matrices it needs far more.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
import taichi as ti  # type: ignore[import-not-found]

from benchmarks.heat_peers.serve import Case, serve
from benchmarks.heat_peers.straight_line import hex_lines, module
from benchmarks.heat_problem import AMBIENT, BEAM, CONVECTION, RADIATION, STORED, HeatProblem, stored_geometry

SOURCE = """
import taichi as ti

real = ti.{kind}


@ti.kernel
def clear(flow: ti.template(), capacity: ti.template()):
    ti.loop_config(serialize=True)
    for n in range(flow.shape[0]):
        flow[n] = ti.cast(0.0, real)
        capacity[n] = ti.cast(0.0, real)


@ti.kernel
def elements(
    conn: ti.template(), T: ti.template(), X: ti.template(), G: ti.template(), birth: ti.template(), time: ti.template(),
    flow: ti.template(), capacity: ti.template()
):
    ti.loop_config(serialize=True)
    for e in range(conn.shape[0]):
        alive = ti.select(birth[e] <= time[None], ti.cast(1.0, real), ti.cast(0.0, real))
        {body}


@ti.kernel
def nodes(
    T: ti.template(), flow: ti.template(), capacity: ti.template(), X: ti.template(), area: ti.template(),
    laser: ti.template(), power: ti.template(), dt: ti.template(), T1: ti.template()
):
    ti.loop_config(serialize=True)
    for n in range(T.shape[0]):
        t = T[n]
        x = X[n, 0] - laser[0]
        y = X[n, 1] - laser[1]
        z = X[n, 2] - laser[2]
        beam = ti.cast({peak!r}, real) * ti.exp(ti.cast({narrow!r}, real) * (x * x + y * y + z * z))
        t2 = t * t
        lost = ti.cast({CONVECTION!r}, real) * (t - ti.cast({AMBIENT!r}, real))
        radiated = ti.cast({RADIATION!r}, real) * (t2 * t2 - ti.cast({cold!r}, real))
        q = power[None] * beam - lost - radiated
        there = capacity[n] > ti.cast(0.0, real)
        divisor = ti.select(there, capacity[n], ti.cast(1.0, real))
        T1[n] = ti.select(there, t + dt[None] * (flow[n] + area[n] * q) / divisor, t)


@ti.kernel
def seed(weights: ti.template(), T1: ti.template(), T: ti.template(), flow: ti.template(), capacity: ti.template(),
         power: ti.template()):
    power.grad[None] = ti.cast(0.0, real)
    ti.loop_config(serialize=True)
    for n in range(T.shape[0]):
        T1.grad[n] = weights[n]
        T.grad[n] = ti.cast(0.0, real)
        flow.grad[n] = ti.cast(0.0, real)
        capacity.grad[n] = ti.cast(0.0, real)
"""


def source(dtype: str, geometry: str) -> str:
    """Return the source of all kernels."""
    lines, flow, capacity = hex_lines(lambda x: f"ti.cast({x!r}, real)", geometry)
    body = [line for n in range(8) for line in (f"n{n} = conn[e, {n}]", f"T{n} = T[n{n}]")]
    if geometry == "stored":
        body += [f"G{m} = G[e, {m}]" for m in range(STORED)]
    else:
        body += [f"X{3 * n + c} = X[n{n}, {c}]" for n in range(8) for c in range(3)]
    body += lines
    for name, values in (("flow", flow), ("capacity", capacity)):
        body += [f"{name}[n{n}] += {value}" for n, value in enumerate(values)]
    constants = {"peak": float(3 / (np.pi * BEAM**2)), "narrow": -3 / BEAM**2, "cold": AMBIENT**4}
    physics = {"CONVECTION": CONVECTION, "AMBIENT": AMBIENT, "RADIATION": RADIATION}
    kind = {"float32": "f32", "float64": "f64"}[dtype]
    return SOURCE.format(kind=kind, body="\n        ".join(body), **constants, **physics)


def make(p: HeatProblem, dtype: str, geometry: str, mode: str) -> Case:
    """Return the kernels of a step, or of a step and its gradient, one after the other."""
    code = module(f"heat_{dtype}_{geometry}", source(dtype, geometry))

    def field(a: Any, grad: bool = False) -> Any:
        a = np.asarray(a, dtype)
        found = ti.field(code.real, shape=a.shape, needs_grad=grad)
        found.from_numpy(a)
        return found

    conn = ti.field(ti.i32, shape=p.elements.shape)
    conn.from_numpy(p.elements.astype(np.int32))
    X, birth, area, weights, laser, time, dt = map(field, (p.nodes, p.birth, p.area, p.weights, p.laser, p.time, p.dt))
    G = field(np.array(stored_geometry(p.nodes[p.elements].reshape(-1, 24).T)).T)
    T, T1, flow, capacity, power = (field(a, True) for a in (p.T, p.T, 0 * p.T, 0 * p.T, p.power))
    by_element = conn, T, X, G, birth, time, flow, capacity
    by_node = T, flow, capacity, X, area, laser, power, dt, T1

    def forward() -> None:
        code.clear(flow, capacity)
        code.elements(*by_element)
        code.nodes(*by_node)
        ti.sync()

    def gradient() -> None:
        forward()
        code.seed(weights, T1, T, flow, capacity, power)
        code.nodes.grad(*by_node)
        code.elements.grad(*by_element)
        ti.sync()

    if mode == "forward":
        return Case(forward, lambda _: (T1.to_numpy(),))
    return Case(gradient, lambda _: (T1.to_numpy(), T.grad.to_numpy(), power.grad.to_numpy()))


if __name__ == "__main__":
    ti.init(
        arch=ti.cpu, cpu_max_num_threads=1, default_fp=ti.f64, offline_cache=False
    )  # the first call always compiles
    serve(("taichi", "numpy"), ("recomputed", "stored"), make)
