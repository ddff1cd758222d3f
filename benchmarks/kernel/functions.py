"""The functions the kernel benchmarks measure: random ones of any size, and a real one."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import torch

from costate.kernel import Kernel
from costate.model.load import load_model
from costate.physics import Parameters, build

BATCH = 4096


def random_program(size: int, seed: int = 0) -> tuple[ca.SX, ca.SX]:
    """Build about `size` operations in the proportions of rigid-body physics: rotations, sums, few sines, few divisions.

    Works on a pool of 40 values, more than there are vector registers, and replaces some of them again and again; rotations
    and scaled sums keep them all near 1, however long the program is.
    """
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 20)
    pool = [x[i] for i in range(20)] + [x[i] - x[(i + 1) % 20] for i in range(20)]
    turns = [(ca.cos(x[i]), ca.sin(x[i])) for i in range(4)]
    ops = 24
    while ops < size:
        i, j = rng.choice(len(pool), 2, replace=False)
        a, b, kind = pool[i], pool[j], rng.random()
        if kind < 0.6:
            c, s = turns[rng.integers(4)]
            pool[i], pool[j] = c * a - s * b, s * a + c * b
            ops += 4  # a multiply-add counts one
        elif kind < 0.95:
            pool[i] = rng.uniform(0.5, 0.8) * a + rng.uniform(0.5, 0.8) * b
            ops += 2
        elif kind < 0.98:
            turns[rng.integers(4)] = ca.cos(a), ca.sin(a)
            ops += 1
        else:
            pool[i] = 2 * a / (1 + b**2)
            ops += 3
    return x, ca.vertcat(*pool[:20], *(pool[20 + k] + pool[k] for k in range(20)))


@cache
def random_kernel(size: int) -> Kernel:
    x, y = random_program(size)
    return Kernel(f"random_{size}", {"x": x}, {"y": y})


@cache
def arm() -> tuple[ca.SX, ca.SX]:
    """Forward dynamics of a six-joint arm: (q, v, tau) in one vector -> accelerations."""
    model = load_model("ur5")
    inputs, outputs = build(model, Parameters.of(model), "forward_dynamics")
    x = ca.SX.sym("x", 3 * model.nv)
    fn = ca.Function("arm", [ca.vertcat(*inputs.values())], list(outputs.values()), {"cse": True})
    return x, fn(x)


@cache
def arm_kernel() -> Kernel:
    x, y = arm()
    return Kernel("arm", {"x": x}, {"y": y})


def arm_jacobian() -> Kernel:
    return arm_kernel().derivative("jacobian", (0,), (0,))


def sample_inputs(kernel: Kernel, batch: int, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        s.name: torch.randn(batch, *s.shape, dtype=torch.float64, generator=generator).to(dtype)
        for s in kernel.signature.inputs
    }
