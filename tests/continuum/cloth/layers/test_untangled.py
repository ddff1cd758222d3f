"""Cloth that touches itself: nothing passes through anything, with gradients through contact."""

from __future__ import annotations

import numpy as np
import torch
from tests.gradients import Tolerances, check_gradients

import costate as cs
from benchmarks.study_drops import STEPS, scene, thrown
from costate.continuum.cloth.body import Cloth, sheet
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.measures import crossings
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.step import Solver


def dropped(seed: int, **options) -> tuple[ClothModel, torch.Tensor]:
    """Two sheets above each other, turned and shifted at random, above a floor."""
    rng = np.random.default_rng(seed)
    flat = sheet((4, 4), (0.15, 0.15))
    R = np.linalg.qr(rng.normal(size=(2, 3, 3)))[0]
    first = Cloth(flat.points @ R[0].T + [0, 0, 0.12], flat.triangles, rest=flat.points, name="first")
    second = Cloth(
        flat.points @ R[1].T + [*0.03 * rng.normal(size=2), 0.36], flat.triangles, rest=flat.points, name="second"
    )
    floor = Collider(cs.shapes.plane(), 0.4)
    model = ClothModel([first, second], dt=1 / 100, colliders=[floor], self_contact=True, **options)
    v = torch.zeros(32, 3, dtype=torch.float64)
    v[16:, 2] = -2.0
    return model, v


def test_drops_pass_through_nothing() -> None:
    touched = 0
    for seed in range(2):
        model, v = dropped(seed)
        history = model.run(22, model.start(v=v))
        for x in history.x[::3]:
            assert crossings(model, x) == 0
        assert history.x[..., 2].min() > 0
        touched += int((history.told[:, 3] > 15).sum())
    assert touched > 2  # several steps had to be solved more than once


def test_a_hard_impact_pushes_nothing_below_the_floor() -> None:
    """Drop 746 of the study, in which a barrier that is flatter close to the floor lets a point 0.04 mm below it."""
    model = scene()
    history = model.run(STEPS, model.start(*thrown(model, 746)))
    assert history.x[..., 2].min() > 0


def test_crossings_are_seen() -> None:
    """Two sheets that cross at a right angle are found out, and ones that lie side by side are not."""
    flat = sheet((3, 3), (0.2, 0.2))
    up = flat.points[:, [0, 2, 1]] + [0.013, 0.017, 0.011]
    for shift, expected in ((0.0, True), (0.3, False)):
        model = ClothModel(
            [flat, Cloth(up + np.array([0, 0, shift]), flat.triangles, rest=flat.points, name="other")], dt=0.01
        )
        assert (crossings(model, model.start().x) > 0) == expected


def test_gradients_go_through_contact_of_two_sheets() -> None:
    """A sheet rests on another that hangs by its corners."""
    below = sheet((3, 3), (0.2, 0.2), name="below")
    above = Cloth(0.6 * below.points + [0.006, 0.011, 0.0019], below.triangles, name="above")
    model = ClothModel([below, above], dt=1 / 100, pins=[0, 2, 6, 8], self_contact=True, solver=Solver(1e-9))
    settled = model.run(8).final
    assert len(model.surfaces.near_pairs(settled.x.numpy(), model.thickness)[0]) > 3  # they touch
    weight = torch.randn(18, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    unit = 5e-5

    def outcome(x0, mu, density):
        start = model.start(settled.x + unit * x0, settled.v)
        parameters = {"above.density": 0.3 * (1 + density)}
        history = model.run(2, start, self_friction=0.3 + mu, parameters=parameters)
        return (weight * history.final.x).sum() / unit

    x0 = torch.zeros(18, 3, dtype=torch.float64)
    zero = torch.zeros((), dtype=torch.float64)
    tolerances = Tolerances(finite_difference=1e-4)  # as in test_gradients.py
    check_gradients(
        outcome,
        (x0, zero, zero),
        names=("x0", "friction", "density"),
        float32=False,
        directions=1,
        tolerances=tolerances,
        forward_mode=False,
    )
