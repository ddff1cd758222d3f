"""Static shapes in one place: what touches them is held once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs

s = cs.shapes
BALL = cs.Body("ball", [s.sphere(0.1)], mass=1.0)


def resting(scenery: list[cs.Static], contact: cs.ContactModel) -> torch.Tensor:
    world = cs.World(bodies=[BALL], scenery=scenery, contact=contact, dt=0.004)
    state = world.initial_state()
    state[2] = 0.09
    return world.step(state)


@pytest.mark.parametrize("contact", [cs.Hard(), cs.Newton(), cs.Compliant()], ids=lambda c: c.name)
def test_alike_shapes_count_once(contact: cs.ContactModel):
    """A plane is the same wherever in it its origin lies, and whichever way it is turned about its normal."""
    once = resting([cs.Static("a", s.plane())], contact)
    moved = cs.model.Transform(translation=np.array([3.0, 1.0, 0.0]))
    assert torch.equal(once, resting([cs.Static("a", s.plane()), cs.Static("b", s.plane())], contact))
    assert torch.equal(
        once, resting([cs.Static("a", s.plane()), cs.Static("b", s.plane(rpy=(0, 0, 1.0)), moved)], contact)
    )


@pytest.mark.parametrize(
    "shape",
    [s.box((1, 2, 0.3), (0, 0, -0.1), (0.1, 0, 0)), s.heightfield(np.arange(12.0).reshape(3, 4), (2, 2)), s.sphere(1)],
)
def test_any_shape(shape: cs.model.Shape):
    world = cs.World(bodies=[BALL], scenery=[cs.Static("a", shape), cs.Static("b", shape)])
    assert world.shape_names == ["ball/body/0", "a"]
    higher = cs.model.Transform(translation=np.array([0.0, 0.0, 1e-3]))
    world = cs.World(bodies=[BALL], scenery=[cs.Static("a", shape), cs.Static("b", shape, higher)])
    assert len(world.setup.scene.pairs) == 2


def test_what_lies_in_one_place_and_differs_is_refused():
    ice, rubber = cs.Static("ice", s.plane(friction=0.01)), cs.Static("rubber", s.plane(friction=1.0))
    with pytest.raises(ValueError, match=r"'ice' and 'rubber' lie in the same place.*'ball/body/0' would touch both"):
        cs.World(bodies=[BALL], scenery=[ice, rubber])
    world = cs.World(bodies=[BALL], scenery=[ice, rubber], collide=[("ball", "ice")])
    assert len(world.setup.scene.pairs) == 1


def test_shapes_that_parameters_move_stay_apart():
    boxes = [cs.Static(name, s.box((1, 1, 1))) for name in ("a", "b")]
    world = cs.World(bodies=[BALL], scenery=boxes, parameters=["position:a", "position:b"])
    assert len(world.setup.scene.pairs) == 2
    assert len(cs.World(bodies=[BALL], scenery=boxes, parameters=["friction:a"]).setup.scene.pairs) == 1
