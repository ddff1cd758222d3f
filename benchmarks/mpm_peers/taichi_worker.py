"""The step of particles in Taichi: kernels for particles to grid, grid, and grid to particles; gradients by `kernel.grad`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
import taichi as ti  # type: ignore[import-not-found]

from benchmarks.heat_peers.serve import Case
from benchmarks.heat_peers.straight_line import module
from benchmarks.mpm_peers.serve import serve
from benchmarks.mpm_problem import BOUND, DT, FRICTION, GRAVITY, MODULUS, STRENGTH, MpmProblem

SOURCE = """
import taichi as ti

real, dim, N = ti.{kind}, {dim}, {nodes}
DT, E, GRAVITY, FRICTION, STRENGTH, BOUND = {DT}, {E}, {GRAVITY}, {FRICTION}, {STRENGTH}, {BOUND}
DX, INV = 1.0 / {nodes}, float({nodes})


@ti.kernel
def clear(grid: ti.template(), mass: ti.template()):
    ti.loop_config(serialize=True)
    for I in ti.grouped(mass):
        grid[I] = ti.Vector.zero(real, dim)
        mass[I] = ti.cast(0.0, real)


@ti.kernel
def clear_grads(v: ti.template(), grid: ti.template(), mass: ti.template(), x: ti.template(), pv: ti.template(), C: ti.template(),
                F: ti.template(), F1: ti.template(), act: ti.template()):
    ti.loop_config(serialize=True)
    for I in ti.grouped(mass):
        v.grad[I] = ti.Vector.zero(real, dim)
        grid.grad[I] = ti.Vector.zero(real, dim)
        mass.grad[I] = ti.cast(0.0, real)
    ti.loop_config(serialize=True)
    for p in range(x.shape[0]):
        x.grad[p] = ti.Vector.zero(real, dim)
        pv.grad[p] = ti.Vector.zero(real, dim)
        C.grad[p] = ti.Matrix.zero(real, dim, dim)
        F.grad[p] = ti.Matrix.zero(real, dim, dim)
        F1.grad[p] = ti.Matrix.zero(real, dim, dim)
    for m in range(act.shape[0]):
        act.grad[m] = ti.cast(0.0, real)


@ti.kernel
def p2g(x: ti.template(), v: ti.template(), C: ti.template(), F: ti.template(), muscle: ti.template(), act: ti.template(),
        F1: ti.template(), grid: ti.template(), mass: ti.template()):
    ti.loop_config(serialize=True)
    for p in range(x.shape[0]):
        base = ti.cast(x[p] * INV - 0.5, ti.i32)
        fx = x[p] * INV - ti.cast(base, real)
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
        new = (ti.Matrix.identity(real, dim) + DT * C[p]) @ F[p]
        F1[p] = new
        J = new.determinant()
        tau = ti.Matrix.zero(real, dim, dim)
        if ti.static(dim == 2):
            a, b = new[0, 0] + new[1, 1], new[1, 0] - new[0, 1]
            s = 1.0 / ti.sqrt(a * a + b * b)
            R = ti.Matrix([[a * s, -b * s], [b * s, a * s]])
            A = ti.Matrix([[0.0, 0.0], [0.0, 1.0]]) * (STRENGTH * act[muscle[p]])
            tau = 2.0 * E * (new - R) @ new.transpose() + ti.Matrix.identity(real, dim) * (E * (J - 1.0) * J)
            tau += new @ A @ new.transpose()
        else:
            tau = E * (new @ new.transpose() - ti.Matrix.identity(real, dim)) + ti.Matrix.identity(real, dim) * (E * ti.log(J))
        affine = -(DT * 4.0 * INV * INV) * tau + C[p]
        for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * dim)))):
            dpos = (ti.cast(offset, real) - fx) * DX
            weight = ti.cast(1.0, real)
            for k in ti.static(range(dim)):
                weight *= w[offset[k]][k]
            grid[base + offset] += weight * (v[p] + affine @ dpos)
            mass[base + offset] += weight


@ti.kernel
def nodes(grid: ti.template(), mass: ti.template(), v: ti.template()):
    ti.loop_config(serialize=True)
    for I in ti.grouped(mass):
        u = grid[I] / (mass[I] + 1e-16)
        u[dim - 1] += DT * GRAVITY
        for k in ti.static(range(dim)):
            if ti.static(k < dim - 1):
                if I[k] < BOUND and u[k] < 0:
                    u *= 0.0
            else:
                if I[k] < BOUND and u[k] < 0:
                    size = ti.cast(1e-20, real)
                    for j in ti.static(range(dim - 1)):
                        size += u[j] * u[j]
                    share = ti.min(-FRICTION * u[k] / ti.sqrt(size), 1.0)
                    for j in ti.static(range(dim - 1)):
                        u[j] *= 1.0 - share
                    u[k] = 0.0
            if I[k] >= N - BOUND and u[k] > 0:
                u *= 0.0
        v[I] = u


@ti.kernel
def g2p(x: ti.template(), gv: ti.template(), x1: ti.template(), v1: ti.template(), C1: ti.template()):
    ti.loop_config(serialize=True)
    for p in range(x.shape[0]):
        base = ti.cast(x[p] * INV - 0.5, ti.i32)
        fx = x[p] * INV - ti.cast(base, real)
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
        new_v = ti.Vector.zero(real, dim)
        new_C = ti.Matrix.zero(real, dim, dim)
        for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * dim)))):
            dpos = ti.cast(offset, real) - fx
            weight = ti.cast(1.0, real)
            for k in ti.static(range(dim)):
                weight *= w[offset[k]][k]
            u = gv[base + offset]
            new_v += weight * u
            new_C += 4.0 * INV * weight * u.outer_product(dpos)
        v1[p] = new_v
        x1[p] = x[p] + DT * new_v
        C1[p] = new_C


@ti.kernel
def seed(weights: ti.template(), x1: ti.template(), v1: ti.template(), C1: ti.template()):
    ti.loop_config(serialize=True)
    for p in range(x1.shape[0]):
        x1.grad[p] = weights[p]
        v1.grad[p] = ti.Vector.zero(real, dim)
        C1.grad[p] = ti.Matrix.zero(real, dim, dim)
"""


def make(p: MpmProblem, dtype: str, mode: str) -> Case:  # noqa: PLR0915
    """Return the kernels of a step, or of a step and its gradient, one after the other."""
    kind = {"float32": "f32", "float64": "f64"}[dtype]
    numbers = {
        "DT": DT[p.dim],
        "E": MODULUS,
        "GRAVITY": GRAVITY,
        "FRICTION": FRICTION,
        "STRENGTH": STRENGTH,
        "BOUND": BOUND,
    }
    code = module(f"mpm_{p.dim}_{dtype}", SOURCE.format(kind=kind, dim=p.dim, nodes=p.nodes, **numbers))
    real, d, n = code.real, p.dim, len(p.x)

    def field(a: np.ndarray, grad: bool = True) -> Any:
        a = np.asarray(a, dtype)
        rank = a.ndim - 1
        makers = (
            lambda: ti.field(real, shape=a.shape[:1], needs_grad=grad),
            lambda: ti.Vector.field(d, real, shape=a.shape[:1], needs_grad=grad),
            lambda: ti.Matrix.field(d, d, real, shape=a.shape[:1], needs_grad=grad),
        )
        found = makers[rank]()
        found.from_numpy(a)
        return found

    x, v, C, F, act = (field(a) for a in (p.x, p.v, p.C, p.F, p.act))
    x1, v1, C1, F1 = (field(0 * a) for a in (p.x, p.v, p.C, p.F))
    weights = field(p.weights, False)
    muscle = ti.field(ti.i32, shape=n)
    muscle.from_numpy(p.muscle.astype(np.int32))
    shape = (p.nodes,) * d
    grid, gv = (ti.Vector.field(d, real, shape=shape, needs_grad=True) for _ in range(2))
    mass = ti.field(real, shape=shape, needs_grad=True)
    give, take = (x, v, C, F, muscle, act, F1, grid, mass), (x, gv, x1, v1, C1)

    def forward() -> None:
        code.clear(grid, mass)
        code.p2g(*give)
        code.nodes(grid, mass, gv)
        code.g2p(*take)
        ti.sync()

    def gradient() -> None:
        forward()
        code.clear_grads(gv, grid, mass, x, v, C, F, F1, act)
        code.seed(weights, x1, v1, C1)
        code.g2p.grad(*take)
        code.nodes.grad(grid, mass, gv)
        code.p2g.grad(*give)
        ti.sync()

    if mode == "forward":
        return Case(forward, lambda _: (x1.to_numpy(),))
    return Case(gradient, lambda _: (x1.to_numpy(), *(a.grad.to_numpy() for a in (x, v, F, act))))


if __name__ == "__main__":
    ti.init(arch=ti.cpu, cpu_max_num_threads=1, default_fp=ti.f64, offline_cache=False)
    serve(("taichi", "numpy"), make)
