"""The worlds' part of the accuracy matrix: steps of every pair of shapes in contact, rollouts, and parameters of every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
import torch

from benchmarks.matrix.cell import Cell, Part, cell_of_input, cells_of
from benchmarks.matrix.robots import arm
from costate.audit.check import GradientReport
from costate.audit.worlds import check_motion, has, parameters
from costate.collision.mesh.files import grid_of
from costate.collision.mesh.hull import hull_of
from costate.collision.shapes import Solid
from costate.model import Shape
from costate.model.rotation import from_rpy
from costate.robot import Robot
from costate.sim import PGS, Body, Compliant, Hard, Newton, Static, World, shapes
from costate.sim.contact.model import ContactModel
from costate.sim.integrate.table import INTEGRATORS
from costate.sim.rollout import rollout_kernel, step_kernel
from costate.sim.setup import Setup

Tensor = torch.Tensor

CORNERS = np.random.default_rng(0).normal(size=(10, 3)) * [0.1, 0.12, 0.08]
CUBE = np.array([[x, y, z] for x in (-0.15, 0.15) for y in (-0.15, 0.15) for z in (-0.15, 0.15)])
SIDES = np.array([[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 5, 1], [0, 4, 5], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4],
                  [1, 5, 7], [1, 7, 3]])  # fmt: skip

SHAPES: dict[str, Callable[[], Shape | Solid]] = {
    "sphere": lambda: shapes.sphere(0.12),
    "capsule": lambda: shapes.capsule(0.07, 0.3),
    "box": lambda: shapes.box((0.2, 0.3, 0.16)),
    "cylinder": lambda: shapes.cylinder(0.1, 0.24),
    "ellipsoid": lambda: shapes.ellipsoid((0.1, 0.15, 0.07)),
    "hull": lambda: hull_of(CORNERS),
    "plane": lambda: shapes.plane(),
    "height field": lambda: shapes.heightfield(0.05 * np.sin(np.arange(12.0))[:, None] + np.zeros(12), (2.0, 2.0)),
    "grid": lambda: grid_of(CUBE, SIDES),
    "difference": lambda: shapes.difference(shapes.box((0.4, 0.4, 0.2)), shapes.cylinder(0.05, 0.4)),
    "socket": lambda: shapes.socket(0.11, 0.2, 0.3, 0.05),
}
CONVEX = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "hull")
PAIRS = [
    *combinations_with_replacement(CONVEX, 2),
    *((a, b) for b in ("plane", "height field", "grid") for a in CONVEX),
    *((a, "difference") for a in CONVEX[:4]),
    ("cylinder", "socket"),
]
"""Pairs that may touch: (the shape that moves, the one that does not)."""

MODELS: dict[str, ContactModel | None] = {
    "Hard": Hard(friction=0.4),
    "Hard, bounce": Hard(friction=0.4, restitution=0.6),
    "PGS": PGS(friction=0.4),
    "Compliant": Compliant(friction=0.4, smoothing=2e-3),
    "Newton": Newton(friction=0.4, cone="pyramidal"),
    # At a restitution of exactly 0 the gradient of restitution jumps.
    "PGS, cone": PGS(friction=0.4, restitution=0.1, cone="cone", correction="split"),
    "PGS, bounce": PGS(friction=0.4, restitution=0.6),
    "Newton, elliptic": Newton(friction=0.4, cone="elliptic", condim=6),
    "no contact": None,
}
MAIN = ("Hard", "PGS", "Compliant", "Newton")
DT = 2e-3
DEPTH = 1e-3
"""Depth by which shapes overlap [m]."""
OF_PAIRS, OF_ROLLOUTS, OF_PARAMETERS = "steps of shapes in contact", "rollouts", "steps and parameters"


def world_parts() -> dict[str, Part]:
    parts: dict[str, Part] = {}
    for model in MODELS:
        parts[f"parameters, {model}"] = partial(parameter_part, model)
        for integrator in INTEGRATORS:
            if offered(integrator, model):
                parts[f"rollout, {integrator}, {model}"] = partial(rollout_part, integrator, model)
    for model in MAIN:
        pairs = [(a, b) for a, b in PAIRS if (model, b) != ("PGS", "difference")]  # a composition, which sweeps refuse
        parts |= {f"{a} on {b}, {model}": partial(pair_part, a, b, model) for a, b in pairs}
    return parts


def offered(integrator: str, model: str) -> bool:
    if model.startswith("Newton"):
        return integrator == "semi_implicit"
    contact = MODELS[model]
    return contact is None or integrator in contact.integrators


# --- pairs of shapes --------------------------------------------------------------------------------------------------


def pair_part(a: str, b: str, model: str) -> list[Cell]:
    """A step of a body that slides on a shape that does not move, in its state and in what there is to know of both shapes."""
    own = SHAPES[a]()
    body = Body("a", [own], 1.0, inertia=np.diag([4e-3, 6e-3, 5e-3]))
    still = Static("b", SHAPES[b]())
    world = World(bodies=[body], scenery=[still], contact=MODELS[model], dt=DT)
    wanted = ["friction", *(f"{kind}:{owner}" for owner in "ab" for kind in ("size", "position", "orientation"))]
    setup = with_parameters(world, [p for p in wanted if has(world.setup, p)])
    inward = np.array([1.0, 0.0, 0.0]) if b == "socket" else np.array([0.0, 0.0, -1.0])
    quick, none = {"second_order": False, "float32": False}, torch.zeros(0, dtype=torch.float64)
    report = check_motion(step_kernel(setup), setup, touching(world, a, inward), none, **quick)
    if "friction" in report.zeros:  # slides off a face that is inclined: the other way it slides up
        report = check_motion(step_kernel(setup), setup, touching(world, a, inward, side=-1), none, **quick)
    return in_contact(cells_of(report, f"{a} - {b}", model, OF_PAIRS), report)


def touching(world: World, shape: str, inward: np.ndarray, seed: int = 1, side: int = 1) -> Tensor:
    """The body "a" turned some way, moved along a direction until it overlaps by DEPTH, sliding to a side and pressed on."""
    rng = np.random.default_rng([seed, len(shape)])
    upright = abs(inward[2]) < 0.5  # in a bore
    R = from_rpy(rng.uniform(-0.02, 0.02, 3) if upright else rng.uniform(0.2, 1.2, 3))
    start = np.array([0.0, 0.003, 0.05]) if upright else np.array([0.013, -0.021, 0.7])
    spin = torch.tensor(rng.uniform(-0.4, 0.4, 3))
    slide = torch.tensor(R.T @ (0.3 * inward + 2.0 * side * np.cross(inward, [0.6, 0.8, 0.3])))  # too fast to stick
    turn = torch.tensor(_quaternion(R))
    low, high, states, k = 0.0, 1.0, turn, 0
    for _ in range(4):  # ever finer grids, the first place that is deep enough
        way = torch.linspace(low, high, 501, dtype=torch.float64)[:, None]
        q = torch.cat([torch.tensor(start) + way * torch.tensor(inward), turn.expand(501, 4)], -1)
        states = torch.cat([q, slide.expand(501, 3), spin.expand(501, 3)], -1)
        deep = world.gaps(states).amin(-1) < -DEPTH
        if not bool(deep.any()):
            raise RuntimeError(f"{shape} does not meet the other shape")
        k = int(deep.nonzero()[0])
        low, high = float(way[max(k - 1, 0)]), float(way[k])
    return states[k]


def _quaternion(R: np.ndarray) -> np.ndarray:
    """xyzw; of turns well below a half."""
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 4 * w * w]) / (4 * w)


def in_contact(cells: list[Cell], report: GradientReport) -> list[Cell]:
    """Cells of a step that friction takes part in; else there was nothing to see."""
    if "friction" not in report.zeros:
        return cells
    return [replace(c, error=None, note="the shapes do not touch") for c in cells]


# --- rollouts and parameters --------------------------------------------------------------------------------------------


def rollout_part(integrator: str, model: str) -> list[Cell]:
    """Twenty steps of an arm in the air, and of a ball that lands while it slides."""
    world, state = landing(MODELS[model], integrator)
    setup = with_parameters(world, [p for p in ("friction", "gravity", "mass:ball/body") if has(world.setup, p)])
    controls = torch.full((20, world.nu), 0.3, dtype=torch.float64)
    report = check_motion(rollout_kernel(setup), setup, state, controls, second_order=False)
    return cells_of(report, integrator, model, OF_ROLLOUTS)


def parameter_part(model: str) -> list[Cell]:
    """A step in a parameter of every kind, second order and float32 included."""
    world, state = landing(MODELS[model], "semi_implicit", fallen=True)
    setup = with_parameters(world, parameters(world.setup))
    control = torch.full((world.nu,), 0.3, dtype=torch.float64)
    report = check_motion(step_kernel(setup), setup, state, control, second_order=True, float32=True)
    cells = cells_of(report, "all inputs", model, OF_PARAMETERS)
    for name in ("state", "control", *setup.parameters):
        cells += cell_of_input(report, name, name.partition(":")[0], model, OF_PARAMETERS)
    return cells


def landing(contact: ContactModel | None, integrator: str, fallen: bool = False) -> tuple[World, Tensor]:
    """An arm, and a ball that slides and falls onto the ground, or that is pressed into it already."""
    # Of two shapes the larger friction counts: where both are the same, there is a kink.
    ball = Body("ball", [shapes.sphere(0.1)], 0.7, friction=0.5)
    ground = Static("ground", shapes.plane(rpy=(0.1, -0.2, 0.3)))
    world = World([Robot(arm("prismatic"))], [ball], [ground], contact=contact, integrator=integrator, dt=DT)
    state = world.initial_state(dtype=torch.float64)
    q, v = world.coordinates("ball")
    along = from_rpy((0.1, -0.2, 0.3))
    state[q][:3] = torch.tensor(along @ [0.01, 0.02, 0.1 - 0.3 * DEPTH if fallen else 0.112])
    state[v] = torch.tensor([*(along @ [2.4, -1.9, -1.1]), 0.5, -0.4, 0.3])  # too fast to stick
    owner = world.setup.scene.model.joints[0].name.split("/")[0]
    own = world.coordinates(owner)
    state[own[0]] = torch.tensor([0.4, 0.1, -0.5])
    state[own[1]] = torch.tensor([0.6, -0.3, 0.8])
    return world, state


def with_parameters(world: World, names: Sequence[str]) -> Setup:
    return replace(world.setup, parameters=tuple(names))
