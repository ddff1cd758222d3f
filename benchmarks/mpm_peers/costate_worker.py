"""The step of particles in Costate.

What is timed is a loop of STEPS steps in one call, as a segment of a roll-out makes them, in the window of the grid that a roll-out
would take; its gradient computes all steps, keeps them, and goes back.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.heat_peers.serve import Case
from benchmarks.mpm_peers.serve import serve
from benchmarks.mpm_problem import DT, FRICTION, GRAVITY, MODULUS, STRENGTH, MpmProblem
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import cube
from costate.continuum.mpm.laws import Law, elastic, muscle
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.tensors import det, rotation
from costate.continuum.mpm.window import around

STEPS = 32


def corotated(F: ca.SX, p: dict[str, ca.SX]) -> ca.SX:
    """Return the stress with both of Lame's constants the same."""
    J = det(F)
    return 2 * p["E"] * (F - rotation(F)) @ F.T + p["E"] * (J - 1) * J * ca.SX.eye(F.shape[0])


def neo_hookean(F: ca.SX, p: dict[str, ca.SX]) -> ca.SX:
    """Return the stress with both of Lame's constants the same."""
    I = ca.SX.eye(F.shape[0])
    return p["E"] * (F @ F.T - I) + p["E"] * ca.log(det(F)) * I


def model(p: MpmProblem) -> MpmModel:
    """Return the model: mass and volume of a particle are 1, so its density is 1, and its spacing one metre."""
    numbers = {"E": MODULUS, "strength": STRENGTH, "fibre_x": 0.0, "fibre_y": 1.0, "fibre_z": 0.0}
    step = muscle(corotated) if p.dim == 2 else elastic(neo_hookean)
    names = numbers if p.dim == 2 else {"E": MODULUS}
    law = Law(step, names, stiffness=lambda v: 3 * v["E"])
    muscles = p.muscle if p.dim == 2 else np.full(len(p.x), -1)
    body = SoftBody(p.x, 1.0, law, {"density": 1.0}, muscles)
    up = "xyz"[p.dim - 1]
    sides = {f"{s}{a}": float("inf") for a in "xyz"[: p.dim] for s in "-+"} | {f"-{up}": FRICTION}
    gravity = (0.0,) * (p.dim - 1) + (GRAVITY,)
    return MpmModel(cube(p.nodes, p.dim), [body], DT[p.dim], 1, gravity, sides)


def make(p: MpmProblem, dtype: str, mode: str) -> Case:
    """Return calls of one step and of STEPS steps, or of both with their gradients."""
    torch.set_num_threads(1)
    m = model(p)
    kind = getattr(torch, dtype)

    def tensor(a: Any) -> torch.Tensor:
        return torch.as_tensor(np.ascontiguousarray(a)).to(kind)

    n, d = p.x.shape
    window = around(m.step, tensor(p.x), tensor(p.v), STEPS)
    given = {"x0": tensor(p.x), "v0": tensor(p.v), "C0": tensor(p.C.reshape(n, -1)), "s0": tensor(p.F.reshape(n, -1))}
    given |= m.rollout.walls(window, kind) | m.rollout.fixed(m._values({}, kind), m._gravity(None, kind))
    row = tensor(np.append(p.act, 0.0)) if d == 2 else torch.zeros(1, dtype=kind)
    weights = tensor(p.weights)
    wrt = ["x0", "v0", "s0", *(["act"] if d == 2 else [])]

    def calls(steps: int) -> Any:
        k = m.rollout.kernel(steps, window.shape)
        inputs = given | {"act": row.repeat(steps, 1)}
        if mode == "forward":
            return lambda: k(**inputs)
        back = k.vjp(wrt, ["x0"])
        if steps == 1:
            return lambda: (k(**inputs).x0, *back(**inputs, x0_bar=weights))
        return lambda: back(**inputs, x0_bar=weights)

    def read(found: Any) -> tuple[np.ndarray, ...]:
        arrays = [a.numpy() for a in (found if mode == "gradient" else (found.x0,))]
        if len(arrays) > 3:
            arrays[3] = arrays[3].reshape(n, d, d)
        return tuple(arrays[:4] + [a.ravel()[:-1] for a in arrays[4:]])

    return Case(calls(1), read, calls(STEPS), STEPS)


if __name__ == "__main__":
    os.environ["COSTATE_CACHE"] = str(Path("costate-cache").resolve())  # so that the first call always compiles
    serve(("torch", "casadi", "llvmlite"), make)
