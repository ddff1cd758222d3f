"""Memory of gradients: less of it means more is computed again, and the same gradient."""

from __future__ import annotations

import pytest
import torch
from tests.continuum.mpm.scenes import block, moving

from costate.continuum.mpm.stable import segment_steps


def test_less_memory_gives_the_same_gradient() -> None:
    """320 steps in segments of 16 and of 32; of the long ones only some states are kept."""
    found = []
    for memory in ("1 GB", "1.2 MB"):
        model = block("neo_hookean", dt=1e-3, memory=memory)
        start = moving(model)
        v = start.v.clone().requires_grad_()
        end = model.run(320, model.start(start.x, v))
        end.x[-1].square().sum().backward()
        found.append((len(end.x), end.x[-1].detach(), v.grad))
    assert [frames for frames, _, _ in found] == [21, 11]
    assert torch.equal(found[0][1], found[1][1])
    assert torch.equal(found[0][2], found[1][2])  # type: ignore[arg-type]


def test_segments_fit() -> None:
    state = 98_304
    assert segment_steps(1024, 1, state, 3 * 128**2, "1 GB") == 16
    assert segment_steps(1024, 1, state, 3 * 128**2, "60 MB") == 64
    with pytest.raises(ValueError, match="memory is '20 MB', but a gradient takes 25 MB at least"):
        segment_steps(1024, 1, state, 3 * 128**2, "20 MB")
