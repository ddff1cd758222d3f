"""Audit of a world: step and rollout are checked in state, control, wrench and a parameter of every kind, in contact and apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from costate.audit.audit import Audit, Watch, silent
from costate.audit.check import GradientReport, Tolerances
from costate.audit.gradcheck import gradcheck
from costate.audit.zeros import why_zero
from costate.kernel import Kernel
from costate.physics.params import KINDS
from costate.robot import Robot
from costate.sim import World
from costate.sim.rollout import rollout_kernel, step_kernel
from costate.sim.setup import SHAPE_PARAMETERS, Setup

STIFF = Tolerances(finite_difference=1e-5, noise=1e-8, second_order=1e-3, float32=1e-2)
"""Tolerances for contact, which makes steps stiff: a millimetre is a hundred newtons, and differences have six digits at best."""
STEP = 1e-4
"""Largest step of the differences: a tenth of a millimetre, or of a milliradian [m or rad]."""
PLACES = ("at the start", "in contact", "apart")
"""Names of the states at which a step is checked."""


def audit_world(
    world: World,
    state: Tensor | None = None,
    control: Tensor | None = None,
    steps: int = 20,
    search: int = 200,
    second_order: bool = False,
    float32: bool = False,
    watch: Watch = silent,
) -> Audit:
    """Check the step and the rollout of a world.

    Args:
        world: World to check.
        state: State at which it starts, (nx,); default: initial state.
        control: Control, held all the time, (nu,); default: zero.
        steps: Number of steps of the rollout that is checked.
        search: Number of steps that are simulated to find a state in contact and one apart.
        second_order: Check the derivative of the gradient of a step, too.
        float32: Compare float32 with float64, too.
        watch: Display of progress.
    """
    state = (world.initial_state(dtype=torch.float64) if state is None else state).double().reshape(-1, world.nx)[0]
    control = (
        torch.zeros(world.nu, dtype=torch.float64) if control is None else control.double().reshape(-1, world.nu)[0]
    )
    contact = world.setup.contact.as_computed()
    setup = replace(world.setup, parameters=parameters(world.setup), wrenches=_pushed(world.setup), contact=contact)
    rollout = rollout_kernel(setup)
    options: dict[str, Any] = {"float32": float32}
    places = {PLACES[0]: state}
    rows: dict[str, GradientReport] = {}
    for name in watch(("looking for contact", *PLACES, "rollout"), "checking"):
        if name == "looking for contact":
            places |= _places(world, state, control, search)
        elif name == "rollout":
            title, controls = f"rollout of {steps} steps", control.expand(steps, -1)
            rows[title] = check_motion(rollout, setup, state, controls, second_order=False, **options)
            _explain(rows[title], world, world.rollout(state, controls).detach(), control)
        elif name in places:
            # A rollout of one step is the step, and it is compiled already; but rollouts have no second derivatives.
            step, u = (step_kernel(setup), control) if second_order else (rollout, control[None])
            rows[f"step, {name}"] = check_motion(step, setup, places[name], u, second_order=second_order, **options)
            _explain(rows[f"step, {name}"], world, places[name], control)
    notes = [f"contact {setup.contact.name}, {setup.integrator}, {setup.substeps} substeps of {setup.dt:g} s"]
    if setup.scene.pairs and setup.contact.acts and not _ever_touches(world, places.values(), control):
        notes.append(
            f"contact was not checked: nothing touches at the start or in {search} steps from it; start from another `state`"
        )
    return Audit("costate gradcheck: world", rows, notes)


def parameters(setup: Setup) -> tuple[str, ...]:
    """Choose parameters: those of the world itself, and one of every other kind that it could have."""
    model = setup.scene.model
    joints = [j for j in model.joints if j.nv == 1]
    moving = [j.child for j in model.joints if j.nv]
    shapes = {i for pair in setup.scene.pairs for i in pair}
    wanted = [*setup.parameters, *setup.contact.parameters, "gravity"]
    wanted += [f"{kind}:{setup.scene.colliders[i].name}" for i in sorted(shapes)[:2] for kind in SHAPE_PARAMETERS]
    wanted += [f"{kind}:{moving[-1]}" for kind, (what, _) in KINDS.items() if what == "link" and moving]
    wanted += [f"{kind}:{joints[-1].name}" for kind, (what, _) in KINDS.items() if what == "joint" and joints]
    return tuple(p for p in dict.fromkeys(wanted) if has(setup, p))


def has(setup: Setup, parameter: str) -> bool:
    """Tell whether a world can have a parameter."""
    try:
        return setup.default(parameter).size > 0
    except ValueError:
        return False


def _pushed(setup: Setup) -> tuple[str, ...]:
    moving = [j.child for j in setup.scene.model.joints if j.nv]
    return tuple(moving[-1:])


def _places(world: World, state: Tensor, control: Tensor, search: int) -> dict[str, Tensor]:
    """Find the first state in contact and the first one apart, where they exist and are not the start."""
    if not world.setup.scene.pairs or not world.setup.contact.acts:
        return {}
    states = world.rollout(state, control.expand(search, -1)).detach()
    touching = (world.contacts(states, control).forces > 1e-6).any(-1)
    found = {}
    for name, which in zip(PLACES[1:], (touching, ~touching), strict=True):
        if bool(which.any()) and not bool(which[0]):
            # Take the third of three in a row, if possible: at the first, finite differences may straddle the switch.
            lasting = (which[:-2] & which[1:-1] & which[2:]).nonzero().flatten()
            found[name] = states[int(lasting[0]) + 2 if len(lasting) else int(which.nonzero()[0])]
    return found


def _ever_touches(world: World, states: Iterable[Tensor], control: Tensor) -> bool:
    return any(bool((world.contacts(x, control).forces > 1e-6).any()) for x in states)


def check_motion(kernel: Kernel, setup: Setup, state: Tensor, controls: Tensor, **options: Any) -> GradientReport:
    """Check the state after a step, or after a rollout, as a function of the state before, the controls, parameters and wrenches.

    States are moved in the tangent space, so that quaternions stay unit. controls: (nu,) with the kernel of a step, (T, nu) with
    that of a rollout.
    """
    robot, steps = Robot(setup.scene.model), controls.shape[:-1]
    kernel = kernel.sized(steps[0]) if steps else kernel
    pushes = [torch.full((*steps, 6), 0.1, dtype=torch.float64) for _ in setup.wrenches]
    given = [torch.as_tensor(setup.default(p)).clone() for p in setup.parameters]

    def after(delta: Tensor, u: Tensor, *rest: Tensor) -> Tensor:
        x = state.to(delta.dtype)
        q = robot.integrate(x[: setup.nq], delta[: setup.nv])
        start = torch.cat([q, x[setup.nq :] + delta[setup.nv :]])
        (found,) = kernel.apply([start, u, *rest])
        return found[-1] if steps else found

    inputs = [torch.zeros(setup.ndx, dtype=torch.float64), controls.clone(), *given, *pushes]
    names = ["state", "control", *setup.parameters, *(f"wrench:{link}" for link in setup.wrenches)]
    used = [k for k, x in enumerate(inputs) if x.numel()]

    def of_used(*values: Tensor) -> Tensor:
        every = [x.to(values[0].dtype) for x in inputs]
        for k, value in zip(used, values, strict=True):
            every[k] = value
        return after(*every)

    chosen, labels = [inputs[k] for k in used], [names[k] for k in used]
    options = {"step": STEP, "directions": 1, "tolerances": STIFF, **options}
    return gradcheck(of_used, chosen, names=labels, **options)


def _explain(report: GradientReport, world: World, state: Tensor, control: Tensor) -> None:
    for name in report.zeros:
        report.zeros[name] = why_zero(world, name, state, control)
