"""A step run operation by operation in torch is the compiled step.

Its gradient by autograd is not compared: `torch.where` makes NaN of branches that are not taken."""

from __future__ import annotations

import torch

import costate as cs
from benchmarks.sim.torch_tape import TorchProgram
from costate.sim.step import step_program


def test_a_step_of_hard_contact_is_that_of_the_compiled_code() -> None:
    """One ball flies, one strikes the ground within the step, one slides: every branch is taken by some sample."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    ground = cs.Static("ground", cs.shapes.plane())
    world = cs.World(bodies=[ball], scenery=[ground], contact=cs.Hard(friction=0.3), dt=0.01)
    x = world.initial_state(3)
    x[:, 2] = torch.tensor([1.0, 0.105, 0.1])
    x[:, 7:10] = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, -2.0], [1.0, 0.0, 0.0]])
    u = torch.zeros(3, 0, dtype=x.dtype)
    ours, theirs = world.step(x, u), TorchProgram(step_program(world.setup))(x, u)[0]
    torch.testing.assert_close(theirs, ours, rtol=1e-12, atol=1e-12)
