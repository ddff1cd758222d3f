"""The heat step in Costate: the same formulas as a program over fields, compared with and without stored geometry.

Results are those of one step. What is timed is a loop of STEPS steps in one call, as a roll-out makes them: fields are packed
into blocks once per call. Its gradient computes all steps, keeps their temperatures, and goes back, computing each step again.
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
from benchmarks.heat_peers.serve import Case, serve
from benchmarks.heat_problem import CASADI, STORED, HeatProblem, hex_flow, hex_flow_stored, node_update, stored_geometry
from costate.kernel import Kernel
from costate.kernel.fields import OWN, FieldBuilder
from costate.kernel.ir.program import Program

STEPS = 50


def step(p: HeatProblem, geometry: str) -> Program:
    """Return a step: T, power, (X, birth, area, perhaps stored geometry, numbers) -> T."""
    f = FieldBuilder("heat step")
    nodes, hexes = f.entities("nodes", len(p.nodes)), f.entities("elements", len(p.elements))
    corners = f.table(hexes, nodes, p.elements)
    T = f.carried(nodes)
    (power,) = f.inputs(1)
    X, birth, area = f.carried(nodes, 3), f.carried(hexes), f.carried(nodes)
    shape = f.carried(hexes, STORED) if geometry == "stored" else X[corners]
    (numbers,) = f.inputs(5)  # laser, time, dt

    def element(T: ca.SX, shape: ca.SX, birth: ca.SX, numbers: ca.SX) -> ca.SX:
        alive = birth <= numbers[3]
        if geometry == "stored":
            flow, capacity = hex_flow_stored(ca.vertsplit(T), ca.vertsplit(shape), alive)
        else:
            flow, capacity = hex_flow(ca.vertsplit(T), ca.vertsplit(ca.vec(shape.T)), alive)
        return ca.vertcat(*(x for pair in zip(flow, capacity, strict=True) for x in pair))

    def node(T: ca.SX, sums: ca.SX, X: ca.SX, area: ca.SX, power: ca.SX, numbers: ca.SX) -> ca.SX:
        laser, dt = ca.vertsplit(numbers[:3]), numbers[4]
        return node_update(T, sums[0], sums[1], ca.vertsplit(X), area, laser, power, dt, CASADI())

    (sums,) = f.for_each(hexes, element, [T[corners], shape, birth, numbers], [corners])
    (T1,) = f.for_each(nodes, node, [T, sums, X, area, power, numbers], [OWN])
    return f.program(T1.var)


def kernel(p: HeatProblem, geometry: str, steps: int) -> Kernel:
    """Return the kernel of some steps."""
    g = FieldBuilder("heat steps")
    nodes, hexes = g.entities("nodes", len(p.nodes)), g.entities("elements", len(p.elements))
    T, power = g.field("T", nodes), g.input("power", (steps, 1))
    rest = [g.field("X", nodes, 3), g.field("birth", hexes), g.field("area", nodes)]
    numbers = g.input("numbers", 5)
    shared = [*(r.var for r in rest), *([g.field("G", hexes, STORED).var] if geometry == "stored" else []), numbers]
    (last,), _, _ = g.scan(step(p, geometry), steps, T.var, [power], shared)
    g.field_output("T", g.as_field(last, nodes))
    return g.kernel()


def make(p: HeatProblem, dtype: str, geometry: str, mode: str) -> Case:
    """Return calls of one step and of STEPS steps, or of both with their gradients."""
    torch.set_num_threads(1)
    given: dict[str, Any] = {
        "T": p.T,
        "X": p.nodes,
        "birth": p.birth,
        "area": p.area,
        "numbers": [*p.laser, p.time, p.dt],
    }
    if geometry == "stored":
        given["G"] = np.array(stored_geometry(p.nodes[p.elements].reshape(-1, 24).T)).T
    tensors = {name: torch.tensor(np.asarray(a, dtype)) for name, a in given.items()}
    weights = torch.tensor(p.weights.astype(dtype))

    def calls(steps: int) -> Any:
        k = kernel(p, geometry, steps)
        inputs = tensors | {"power": torch.full((steps, 1), p.power, dtype=weights.dtype)}
        if mode == "forward":
            return lambda: k(**inputs)
        back = k.vjp(["T", "power"])
        return (
            (lambda: (*k(**inputs), *back(**inputs, T_bar=weights)))
            if steps == 1
            else lambda: back(**inputs, T_bar=weights)
        )

    return Case(calls(1), lambda found: tuple(a.numpy().squeeze() for a in found), calls(STEPS), STEPS)


if __name__ == "__main__":
    os.environ["COSTATE_CACHE"] = str(Path("costate-cache").resolve())  # so that the first call always compiles
    serve(("torch", "casadi", "llvmlite"), ("recomputed", "stored"), make)
