"""States that are not finite, far beyond anything physical, or too fast for their step, and whose they are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from costate.model import Model
from costate.physics.joints import JOINTS
from costate.sim.integrate.advance import single_bodies
from costate.sim.setup import Setup

LARGEST = 1e8
"""Entries of a state beyond this [m, rad, m/s, rad/s] mean that the step diverges."""
TURN = 0.5
"""Angle that a body may turn by in a substep [rad] before a world says something."""
TURN_EULER = 0.1
"""The same where forces of inertia are those at the start of the substep, which gains energy."""

_peek = torch._C._functorch.peek_interpreter_stack  # pyright: ignore  # None outside of torch.func transforms


class SimulationError(RuntimeError):
    """A state that is not finite, or that diverges."""


def check_state(model: Model, state: Tensor, step: int) -> float:
    """Raise if any entry of a state (..., nx) after a step is not finite or too large; return the largest magnitude. Of a single
    state in a microsecond or two."""
    if state.dim() == 1 and _peek() is None:
        values = state.tolist()
        if all(-LARGEST < x < LARGEST for x in values):
            return max(max(values), -min(values)) if values else 0.0
    return check_states(model, state[None], step)


def check_states(model: Model, states: Tensor, first_step: int, every: int = 1) -> float:
    """Raise if any entry of states (T, ..., nx), so many steps apart, is not finite or too large: name step, sample, body;
    return the largest magnitude."""
    if _peek() is not None or not states.numel():  # values cannot be looked at inside of transforms
        return 0.0
    values = states.detach()
    # In the order of a roll-out's memory: torch copies states that lie otherwise.
    low, high = torch.aminmax(values.movedim(0, -2))
    if float(low) > -LARGEST and float(high) < LARGEST:  # false for NaN
        return max(-float(low), float(high))
    bad = ~(values.abs() < LARGEST)
    step = int(bad.flatten(1).any(1).nonzero()[0])
    *sample, element = bad[step].nonzero()[0].tolist()
    value = float(values[(step, *sample, element)])
    what = "is not finite" if value != value or abs(value) == float("inf") else f"diverges ({value:.3g})"
    raise SimulationError(
        f"the state {what} after step {every * step + first_step}, sample {tuple(sample)}, {owner_of(model, element)}: "
        "reduce dt, raise substeps, or soften gains and contact; World(check=False) turns this check off"
    )


def turns_fast(setup: Setup, states: Tensor, largest: float) -> str | None:
    """Return a note on the body of states (..., nx) that turns furthest in a substep, if that is too far to follow.

    largest: Bound of all entries, which most often says enough.
    """
    model, bound = setup.scene.model, TURN if setup.coasts or setup.method.stages > 1 else TURN_EULER
    if largest * setup.dt <= bound:
        return None
    round_ones = {i for i, _ in single_bodies(model)} if bound == TURN_EULER else set()
    turns: dict[str, float] = {}
    for j, i in zip(model.joints, model.v_index, strict=True):
        if j.kind in ("floating", "spherical") and not (i in round_ones and _is_round(model, j.child)):
            at = setup.nq + i + len(JOINTS[j.kind].linear)
            turns[j.child] = float(states.detach()[..., at : at + 3].norm(dim=-1).max()) * setup.dt
    body = max(turns, key=turns.__getitem__, default=None)
    if body is None or turns[body] <= bound:
        return None
    why = "" if bound == TURN else f", in which the integrator '{setup.integrator}' gains or loses energy"
    return (
        f"body '{body}' turns by {turns[body]:.2g} rad in a substep of {1e3 * setup.dt:g} ms{why}: "
        f"reduce dt or raise substeps, to stay below {bound:g} rad"
    )


def _is_round(model: Model, link: str) -> bool:
    """Return whether a body turns steadily about every axis, as balls and cubes do: no method gains energy with it."""
    inertia = model.link(link).inertia.matrix
    mean = float(inertia.trace()) / 3
    return bool(abs(inertia - mean * np.eye(3)).max() <= 1e-9 * mean)


def owner_of(model: Model, element: int) -> str:
    """Return the body and joint that an entry of a state belongs to, in words."""
    is_q = element < model.nq
    index, at = (model.q_index, element) if is_q else (model.v_index, element - model.nq)
    for j, start in zip(model.joints, index, strict=True):
        if not j.mimic and start <= at < start + (j.nq if is_q else j.nv):
            return f"body '{j.child}', {'position' if is_q else 'velocity'} {at - start} of joint '{j.name}'"
    if element >= model.nq + model.nv:
        return f"activation {element - model.nq - model.nv}"
    return f"element {element}"
