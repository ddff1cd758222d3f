"""Audit of a world: step and rollout, in state, control, wrench and a parameter of every kind, away from contact and in it."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from costate.audit.audit import Audit
from costate.audit.check import GradientReport, Tolerances
from costate.audit.gradcheck import gradcheck
from costate.audit.zeros import why_zero
from costate.kernel import Kernel
from costate.physics.params import KINDS
from costate.robot import Robot
from costate.sim import World
from costate.sim.setup import CONTACT_PARAMETERS, SHAPE_PARAMETERS, Setup
from costate.sim.step import rollout_kernel, step_kernel

Tensor = torch.Tensor

STIFF = Tolerances(finite_difference=1e-5, noise=1e-8, second_order=1e-3, float32=1e-2)
"""Contact makes steps stiff, a millimetre is a hundred newtons: differences are good to six digits at best."""
STEP = 1e-4
"""Largest step of the differences: a tenth of a millimetre, or of a milliradian."""


def load_world(path: Path) -> tuple[World, Tensor | None, Tensor | None]:
    """World, state and control of a Python file that defines `world` or `make_world()`, and maybe `state` and `control`."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    names = runpy.run_path(str(path), run_name="costate_gradcheck")
    world = names.get("world") or (names["make_world"]() if "make_world" in names else None)
    if not isinstance(world, World):
        raise ValueError(f"{path} defines no world: set `world`, or define make_world()")
    return world, names.get("state"), names.get("control")


def audit_world(
    world: World,
    state: Tensor | None = None,
    control: Tensor | None = None,
    steps: int = 20,
    search: int = 200,
    second_order: bool = False,
    float32: bool = False,
) -> Audit:
    """Check step and rollout.

    Args:
        state: Where it starts, (nx,); default: initial state.
        control: Held all the time, (nu,); default: zero.
        steps: Of the rollout that is checked.
        search: Steps that are simulated to find a state apart from contact and one in it.
    """
    state = (world.initial_state() if state is None else state).double().reshape(-1, world.nx)[0]
    control = (
        torch.zeros(world.nu, dtype=torch.float64) if control is None else control.double().reshape(-1, world.nu)[0]
    )
    setup = replace(world.setup, parameters=parameters(world.setup), wrenches=_pushed(world.setup))
    options: dict[str, Any] = {"second_order": second_order, "float32": float32}
    rows: dict[str, GradientReport] = {}
    step, robot = step_kernel(setup), Robot(setup.scene.model)
    for name, x in _places(world, state, control, search).items():
        rows[f"step, {name}"] = _check(step, setup, robot, x, control, **options)
        _explain(rows[f"step, {name}"], world, x, control)
    kernel = rollout_kernel(setup).sized(steps)
    name, controls = f"rollout of {steps} steps", control.expand(steps, -1)
    rows[name] = _check(kernel, setup, robot, state, controls, **options)
    _explain(rows[name], world, world.rollout(state, controls).detach(), control)
    notes = [f"contact {type(setup.contact).__name__}, {setup.integrator}, {setup.substeps} substeps of {setup.dt:g} s"]
    return Audit("costate gradcheck: world", rows, notes)


def parameters(setup: Setup) -> tuple[str, ...]:
    """The world's own, and one of every kind that it could have."""
    model = setup.scene.model
    joints = [j for j in model.joints if j.nv == 1]
    moving = [j.child for j in model.joints if j.nv]
    shapes = {i for pair in setup.scene.pairs for i in pair}
    wanted = [*setup.parameters, *CONTACT_PARAMETERS, "gravity"]
    wanted += [f"{kind}:{setup.scene.colliders[i].name}" for i in sorted(shapes)[:2] for kind in SHAPE_PARAMETERS]
    wanted += [f"{kind}:{moving[-1]}" for kind, (what, _) in KINDS.items() if what == "link" and moving]
    wanted += [f"{kind}:{joints[-1].name}" for kind, (what, _) in KINDS.items() if what == "joint" and joints]
    return tuple(p for p in dict.fromkeys(wanted) if _has(setup, p))


def _has(setup: Setup, parameter: str) -> bool:
    try:
        return setup.default(parameter).size > 0
    except ValueError:
        return False


def _pushed(setup: Setup) -> tuple[str, ...]:
    moving = [j.child for j in setup.scene.model.joints if j.nv]
    return tuple(moving[-1:])


def _places(world: World, state: Tensor, control: Tensor, search: int) -> dict[str, Tensor]:
    """States to look at: the first one, the first one in contact, the first one apart."""
    found = {"at the start": state}
    if not world.setup.scene.pairs or world.setup.contact is None:
        return found
    states = world.rollout(state, control.expand(search, -1)).detach()
    touching = (world.contacts(states, control).forces > 1e-6).any(-1)
    for name, which in (("in contact", touching), ("apart", ~touching)):
        later = which.nonzero().flatten()
        if len(later) and bool(touching[0]) != (name == "in contact"):
            # Not the very first: there finite differences would straddle the switch.
            found[name] = states[min(int(later[0]) + 2, len(states) - 1)]
    return found


def _check(kernel: Kernel, setup: Setup, robot: Robot, state: Tensor, control: Tensor, **options: Any):
    """State in the tangent space, so that quaternions stay unit; the last state of a rollout."""
    specs = kernel.signature.inputs[2:]
    pushes = [torch.full(s.shape, 0.1, dtype=torch.float64) for s in specs if s.name.startswith("wrench:")]
    given = [torch.as_tensor(setup.default(p)).clone() for p in setup.parameters]

    def after(delta: Tensor, u: Tensor, *rest: Tensor) -> Tensor:
        x = state.to(delta.dtype)
        q = robot.integrate(x[: setup.nq], delta[: setup.nv])
        start = torch.cat([q, x[setup.nq :] + delta[setup.nv :]])
        (out,) = kernel.apply([start, u, *rest])
        return out if out.dim() == 1 else out[-1]

    inputs = [torch.zeros(2 * setup.nv, dtype=torch.float64), control.clone(), *given, *pushes]
    names = ["state", "control", *setup.parameters, *(f"wrench:{link}" for link in setup.wrenches)]
    used = [k for k, x in enumerate(inputs) if x.numel()]

    def of_used(*values: Tensor) -> Tensor:
        every = [x.to(values[0].dtype) for x in inputs]
        for k, value in zip(used, values, strict=True):
            every[k] = value
        return after(*every)

    chosen, labels = [inputs[k] for k in used], [names[k] for k in used]
    return gradcheck(of_used, chosen, names=labels, step=STEP, directions=1, tolerances=STIFF, **options)


def _explain(report: GradientReport, world: World, state: Tensor, control: Tensor) -> None:
    for name in report.zeros:
        report.zeros[name] = why_zero(world, name, state, control)
