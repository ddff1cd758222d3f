"""Hard contact by rows of one system, or by sweeps where many bodies may touch."""

from __future__ import annotations

import pytest
import torch

import costate as cs
from costate.sim.looking import described

FLOOR = cs.Static("floor", cs.shapes.plane())
SWEPT = "Hard, pair by pair by the sweeps of PGS"


def balls(count: int, contact: cs.ContactModel) -> cs.World:
    bodies = [cs.Body(f"ball{k}", [cs.shapes.sphere(0.1)], 1.0, position=(0.19 * k, 0, 0.1)) for k in range(count)]
    return cs.World(bodies=bodies, scenery=[FLOOR], contact=contact, dt=0.005)


def test_many_bodies_are_solved_by_sweeps() -> None:
    """Seven balls and a floor are 28 pairs: the same step as that of `PGS`, bit for bit, and the report says so."""
    hard, swept = balls(7, cs.Hard(friction=0.3)), balls(7, cs.PGS(friction=0.3))
    x = hard.initial_state()
    x[hard.nq :] = torch.randn(hard.nv, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
    assert (hard.step(x) - x).abs().max() > 0.1 and torch.equal(hard.step(x), swept.step(x))
    assert SWEPT in described(hard.setup, hard._contacts)  # as `report` begins


def test_few_bodies_are_rows_of_one_system() -> None:
    for world in (balls(6, cs.Hard()), balls(7, cs.Hard(mapped=False))):
        contact = world.setup.contact
        assert contact.described(world.setup) == "Hard"
    few = balls(3, cs.Hard(mapped=True))
    assert few.setup.contact.described(few.setup) == SWEPT


def test_sweeps_that_are_asked_for_and_not_possible_are_refused() -> None:
    """Pairs of one kind differ in sizes only, and a composition is more than its sizes."""
    shape = cs.shapes.union(cs.shapes.sphere(0.1), cs.shapes.sphere(0.08, (0.1, 0, 0)))
    body = cs.Body("body", [shape], 1.0, inertia=0.01 * torch.eye(3).numpy())
    for contact, instead in ((cs.Hard(mapped=True), r"Leave Hard\(mapped=None\)"), (cs.PGS(), r"Use contact=Hard\(\)")):
        world = cs.World(bodies=[body], scenery=[FLOOR], contact=contact)
        with pytest.raises(ValueError, match=f"pair by pair: body/body/0 is a composition of shapes. {instead}"):
            world.step(world.initial_state())
