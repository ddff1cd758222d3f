"""Kernels of motion: one control step, and roll-outs of many."""

from __future__ import annotations

from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import DYNAMIC, Program
from costate.sim.setup import Setup
from costate.sim.step import given_inputs, step_inputs, step_program


def step_kernel(setup: Setup) -> Kernel:
    """Build (state, control, parameters, wrenches) -> state after one control step."""
    b = ProgramBuilder("world.step")
    args = step_inputs(b, setup)
    b.output("state", b.call(step_program(setup), *args)[0])
    return b.kernel()


def rollout_kernel(setup: Setup, every: int = 1) -> Kernel:
    """Build (state, controls (steps, every nu), parameters, wrenches (steps, every 6)) -> states (steps + 1, nx).

    every: Steps between states that are kept. The backward pass runs each such stretch again, from the state before it.
    """
    b = ProgramBuilder("world.rollout")
    x = b.input("state", setup.nx)
    u = b.input("controls", (DYNAMIC, every * setup.nu))
    given = given_inputs(b, setup)
    pushes = [b.input(f"wrench:{link}", (DYNAMIC, every * 6)) for link in setup.wrenches]
    body = _stretch(setup, every)
    _, _, (states,) = b.scan(body, DYNAMIC, x, [u, *pushes], given, keep=True)
    b.output("states", states, (DYNAMIC + 1, setup.nx))
    return b.kernel()


def _stretch(setup: Setup, every: int) -> Program:
    """Build (x, u, wrenches, parameters) -> x after some steps; controls and wrenches one step after the other."""
    step = step_program(setup)
    given = len(setup.parameters)
    x, u, *rest = step.inputs
    ordered = Program((x, u, *rest[given:], *rest[:given]), step.stages, step.outputs)
    if every == 1:
        return ordered
    b = ProgramBuilder("stretch")
    sequences = 1 + len(setup.wrenches)
    size_x, *sizes = ordered.in_sizes
    state, *args = b.inputs(size_x, *(every * n for n in sizes[:sequences]), *sizes[sequences:])
    (final,), _, _ = b.scan(ordered, every, state, args[:sequences], args[sequences:])
    return b.program(final)


def stretches(x: Tensor, every: int) -> Tensor:
    """Return (T, ..., n) as (..., T / every, every n)."""
    if every == 1:
        return x.movedim(0, -2)
    parts = x.reshape(x.shape[0] // every, every, *x.shape[1:])
    return parts.movedim((0, 1), (-3, -2)).flatten(-2)


def check_checkpoint(every: int) -> None:
    """Raise an error unless states can be kept after so many steps."""
    if not isinstance(every, int) or every < 1:
        raise ValueError(
            f"checkpoint is {every!r}; expected the number of steps between states that are kept, 1 or more"
        )
