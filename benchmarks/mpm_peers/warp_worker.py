"""The step of particles in Warp: kernels for particles to grid, grid, and grid to particles.

Launches and their adjoints are recorded once, without a tape.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
import warp as wp  # type: ignore[import-not-found]

from benchmarks.heat_peers.serve import Case
from benchmarks.heat_peers.straight_line import module
from benchmarks.mpm_peers.serve import serve
from benchmarks.mpm_problem import BOUND, DT, FRICTION, GRAVITY, MODULUS, STRENGTH, MpmProblem

SOURCE = """
import warp as wp

real = wp.{dtype}
vec = wp.types.vector({dim}, real)
mat = wp.types.matrix(({dim}, {dim}), real)
DT, E, INV, DX = wp.constant(real({DT})), wp.constant(real({E})), wp.constant(real({nodes}.0)), wp.constant(real(1.0 / {nodes}.0))


@wp.kernel
def p2g(x: wp.array(dtype=vec), v: wp.array(dtype=vec), C: wp.array(dtype=mat), F: wp.array(dtype=mat),
        muscle: wp.array(dtype=wp.int32), act: wp.array(dtype=real), F1: wp.array(dtype=mat),
        grid: wp.array(dtype=vec), mass: wp.array(dtype=real)):
    p = wp.tid()
    X = x[p] * INV
{weights}
    new = (wp.identity(n={dim}, dtype=real) + DT * C[p]) * F[p]
    F1[p] = new
    J = wp.determinant(new)
{stress}
    affine = C[p] - (DT * real(4.0) * INV * INV) * tau
    u = v[p]
{give}


@wp.kernel
def nodes(grid: wp.array(dtype=vec), mass: wp.array(dtype=real), gv: wp.array(dtype=vec)):
    n = wp.tid()
    u = grid[n] / (mass[n] + real(1e-16))
{places}
{walls}
    gv[n] = vec({comps})


@wp.kernel
def g2p(x: wp.array(dtype=vec), gv: wp.array(dtype=vec), x1: wp.array(dtype=vec), v1: wp.array(dtype=vec), C1: wp.array(dtype=mat)):
    p = wp.tid()
    X = x[p] * INV
{weights}
{take}
    v1[p] = nv
    x1[p] = x[p] + DT * nv
    C1[p] = nC * (real(4.0) * INV)
"""


def source(p: MpmProblem, dtype: str) -> str:  # noqa: PLR0915
    """Return the source of all kernels."""
    d, N = p.dim, p.nodes
    weights = []
    for k in range(d):
        weights += [f"b{k} = wp.int32(wp.floor(X[{k}] - real(0.5)))", f"f{k} = X[{k}] - real(b{k})"]
        weights += [f"w{k}0 = real(0.5) * (real(1.5) - f{k}) * (real(1.5) - f{k})"]
        weights += [f"w{k}1 = real(0.75) - (f{k} - real(1.0)) * (f{k} - real(1.0))"]
        weights += [f"w{k}2 = real(0.5) * (f{k} - real(0.5)) * (f{k} - real(0.5))"]
    weights.append("n0 = " + (f"b0 * {N} + b1" if d == 2 else f"(b0 * {N} + b1) * {N} + b2"))
    if d == 2:
        stress = [
            "a = new[0, 0] + new[1, 1]",
            "b = new[1, 0] - new[0, 1]",
            "s = real(1.0) / wp.sqrt(a * a + b * b)",
            "R = mat(a * s, -b * s, b * s, a * s)",
            f"pull = real({STRENGTH}) * act[muscle[p]]",
            "fy = vec(new[0, 1], new[1, 1])",
            "tau = real(2.0) * E * ((new - R) * wp.transpose(new)) + wp.identity(n=2, dtype=real) * (E * (J - real(1.0)) * J)"
            " + pull * wp.outer(fy, fy)",
        ]
    else:
        stress = [
            "I = wp.identity(n=3, dtype=real)",
            "tau = E * (new * wp.transpose(new) - I) + I * (E * wp.log(J))",
        ]
    give, take = [], ["nv = vec()", "nC = mat()"]
    for node in product(range(3), repeat=d):
        offset = int(np.dot(node, [N ** (d - 1 - k) for k in range(d)]))
        name = "".join(map(str, node))
        d_ = ", ".join(f"real({float(i)}) - f{k}" for k, i in enumerate(node))
        w = " * ".join(f"w{k}{i}" for k, i in enumerate(node))
        give += [f"w{name}_ = {w}", f"wp.atomic_add(grid, n0 + {offset}, w{name}_ * (u + affine * (vec({d_}) * DX)))"]
        give += [f"wp.atomic_add(mass, n0 + {offset}, w{name}_)"]
        take += [
            f"u{name} = ({w}) * gv[n0 + {offset}]",
            f"nv = nv + u{name}",
            f"nC = nC + wp.outer(u{name}, vec({d_}))",
        ]
    up = d - 1
    places = [f"i{k} = (n / {N ** (d - 1 - k)}) % {N}" for k in range(d)]
    walls = [f"u{k} = u[{k}]" for k in range(d)] + [f"u{up} = u{up} + DT * real({GRAVITY})"]
    for k in range(d):
        stop = [f"        u{j} = real(0.0)" for j in range(d)]
        if k < up:
            walls += [f"if i{k} < {BOUND} and u{k} < real(0.0):", *(line[4:] for line in stop)]
        else:
            size = " + ".join(f"u{j} * u{j}" for j in range(up))
            walls += [f"if i{k} < {BOUND} and u{k} < real(0.0):"]
            walls += [
                f"    left = real(1.0) - wp.min(real({-FRICTION}) * u{k} / wp.sqrt({size} + real(1e-20)), real(1.0))"
            ]
            walls += [f"    u{j} = u{j} * left" for j in range(up)] + [f"    u{k} = real(0.0)"]
        walls += [f"if i{k} >= {N - BOUND} and u{k} > real(0.0):", *(line[4:] for line in stop)]
    lines = {"weights": weights, "stress": stress, "give": give, "take": take, "places": places, "walls": walls}
    text = {name: "\n".join("    " + line for line in each) for name, each in lines.items()}
    comps = ", ".join(f"u{k}" for k in range(d))
    return SOURCE.format(dtype=dtype, dim=d, nodes=N, DT=DT[d], E=MODULUS, comps=comps, **text)


def make(p: MpmProblem, dtype: str, mode: str) -> Case:
    """Return the recorded launches of a step, or of a step and its gradient."""
    code = module(f"mpm_{p.dim}_{dtype}", source(p, dtype))
    kinds = (code.real, code.vec, code.mat)

    def array(a: Any, grad: bool = True) -> Any:
        a = np.asarray(a, dtype)
        return wp.array(a, dtype=kinds[a.ndim - 1], device="cpu", requires_grad=grad)

    n, d, size = len(p.x), p.dim, p.nodes**p.dim
    x, v, C, F, act = (array(a) for a in (p.x, p.v, p.C, p.F, p.act))
    x1, v1, C1, F1 = (array(0 * a) for a in (p.x, p.v, p.C, p.F))
    grid, gv, mass = array(np.zeros((size, d))), array(np.zeros((size, d))), array(np.zeros(size))
    muscle = wp.array(p.muscle.astype(np.int32), dtype=wp.int32, device="cpu")
    weights = array(p.weights, False)
    stages = (
        (code.p2g, n, [x, v, C, F, muscle, act, F1, grid, mass]),
        (code.nodes, size, [grid, mass, gv]),
        (code.g2p, n, [x, gv, x1, v1, C1]),
    )
    there = [wp.launch(k, dim=m, inputs=a, device="cpu", record_cmd=True) for k, m, a in stages]
    back = [
        wp.launch(k, dim=m, inputs=a, adj_inputs=[b.grad for b in a], adjoint=True, device="cpu", record_cmd=True)
        for k, m, a in stages
    ]

    def forward() -> None:
        grid.zero_()
        mass.zero_()
        for stage in there:
            stage.launch()

    def gradient() -> None:
        forward()
        for a in (x, v, C, F, F1, act, grid, mass, gv, v1, C1):
            a.grad.zero_()
        wp.copy(x1.grad, weights)
        for stage in reversed(back):
            stage.launch()

    if mode == "forward":
        return Case(forward, lambda _: (x1.numpy(),))
    return Case(gradient, lambda _: (x1.numpy(), *(a.grad.numpy() for a in (x, v, F, act))))


if __name__ == "__main__":
    wp.config.quiet = True
    wp.config.kernel_cache_dir = str(Path("warp-cache").resolve())  # so that the first call always compiles
    wp.init()
    serve(("warp-lang", "numpy"), make)
