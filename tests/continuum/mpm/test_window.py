"""Windows change no bit, and are left behind when particles leave them."""

from __future__ import annotations

import torch
from tests.continuum.mpm.scenes import block, moving

from costate.continuum.mpm import rollout
from costate.continuum.mpm.window import around, whole


def test_the_window_changes_no_bit(monkeypatch) -> None:
    model = block("neo_hookean", dt=1e-3)
    start = moving(model)
    window = around(model.step, start.x, start.v, 10)
    assert window.shape < model.grid.shape
    assert window.origin != (0, 0)
    small = model.run(10, start).final
    assert {shape for _, shape in model.rollout.kernels} == {window.shape}
    monkeypatch.setattr(rollout, "around", lambda step, *_: whole(step.grid))
    large = block("neo_hookean", dt=1e-3).run(10, start).final
    assert torch.equal(small.x, large.x)
    assert torch.equal(small.C, large.C)


def test_particles_that_leave_the_window_are_computed_on_the_whole_grid() -> None:
    model = block("neo_hookean", dt=1e-3)
    start = moving(model)
    x = start.x.clone()
    x[:, 1] += 0.4  # free, then pushed by a wall of strain: faster than it looks
    laws = (start.laws[0] * 0.6,)
    state = type(start)(x, 0 * start.v, start.C, laws)
    spread = model.run(60, state).final.x
    assert model.grid.shape in {shape for _, shape in model.rollout.kernels}
    assert spread[:, 0].max() - spread[:, 0].min() > 0.45
