"""States that are not finite, or far beyond anything physical, and whose they are."""

from __future__ import annotations

import torch
from torch import Tensor

from costate.model import Model

LARGEST = 1e8
"""Entries of a state beyond this [m, rad, m/s, rad/s] mean that the step diverges."""

_peek = torch._C._functorch.peek_interpreter_stack  # pyright: ignore  # None outside of torch.func transforms


class SimulationError(RuntimeError):
    """A state that is not finite, or that diverges."""


def check_state(model: Model, state: Tensor, step: int) -> None:
    """Raise if any entry of a state (..., nx) after a step is not finite or too large; of a single one, in a microsecond or two."""
    if state.dim() == 1 and _peek() is None and all(-LARGEST < x < LARGEST for x in state.tolist()):
        return
    check_states(model, state[None], step)


def check_states(model: Model, states: Tensor, first_step: int, every: int = 1) -> None:
    """Raise if any entry of states (T, ..., nx), so many steps apart, is not finite or too large: name step, sample and body."""
    if _peek() is not None or not states.numel():  # values cannot be looked at inside of transforms
        return
    values = states.detach()
    # In the order of a roll-out's memory: torch copies states that lie otherwise.
    low, high = torch.aminmax(values.movedim(0, -2))
    if float(low) > -LARGEST and float(high) < LARGEST:  # false for NaN
        return
    bad = ~(values.abs() < LARGEST)
    step = int(bad.flatten(1).any(1).nonzero()[0])
    *sample, element = bad[step].nonzero()[0].tolist()
    value = float(values[(step, *sample, element)])
    what = "is not finite" if value != value or abs(value) == float("inf") else f"diverges ({value:.3g})"
    raise SimulationError(
        f"the state {what} after step {every * step + first_step}, sample {tuple(sample)}, {owner_of(model, element)}: "
        "reduce dt, raise substeps, or soften gains and contact; World(check=False) turns this check off"
    )


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
