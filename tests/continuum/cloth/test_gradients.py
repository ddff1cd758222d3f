"""Gradients of cloth against differences: away from contact, in contact, while it sticks and while it slips."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.gradients import Tolerances, check_gradients

import costate as cs
from costate.continuum.cloth.body import Cloth, sheet, straight_rope
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.step import Solver

EXACT = Solver(1e-12)
"""Differences of solutions need solutions that are exact but for rounding."""


def noise(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_state_pins_wind_material_and_rest_shape() -> None:
    model = ClothModel([sheet((5, 4), (0.4, 0.3))], dt=1 / 120, pins=[0, 3], windy=True, solver=EXACT, ties=[19])
    n, steps = model.points, 4
    x0 = model.start().x + 0.01 * noise(1, n, 3)
    pins = x0[[0, 3]] + 0.005 * noise(2, steps, 2, 3)
    ties = torch.cat([20 + noise(3, steps, 1, 1), x0[[19]] + 0.05 * noise(4, steps, 1, 3)], -1)
    young = 500 + 50 * noise(5, len(model.scene.triangles))
    weight = noise(6, n, 3)

    def outcome(x0, v0, pins, ties, wind, young, bending, density, rest):  # noqa: PLR0913
        parameters = {"warp": young, "bending": bending, "density": density}
        h = model.run(steps, model.start(x0, v0), pins=pins, ties=ties, wind=wind, parameters=parameters, rest=rest)
        return (weight * h.x.sum(-3)).sum() + (weight * h.final.v).sum()

    numbers = [torch.tensor(v, dtype=torch.float64) for v in (1e-4, 0.25)]
    rest = model.start().x + 0.003 * noise(7, n, 3) * torch.tensor([1.0, 1.0, 0.0])
    given = (
        x0,
        0.3 * noise(8, n, 3),
        pins,
        ties,
        torch.tensor([1.0, 2.0, 0.7], dtype=torch.float64),
        young,
        *numbers,
        rest,
    )
    names = ("x0", "v0", "pins", "ties", "wind", "young", "bending", "density", "rest")
    check_gradients(outcome, given, names=names, float32=False, directions=1)


NEAR = Tolerances(finite_difference=1e-4)
"""Contact is stiff: solutions are exact to 1e-9 of the weights, and friction changes within 8 um of slip, so differences have to be
taken within 1 um, which leaves about five digits."""


def test_contact_that_slips_and_sticks() -> None:
    """A sheet on a moving ball; some points slip, others stick, others hang in the air. Inputs are in units of 50 um (and /s)."""
    ball = Collider(cs.shapes.sphere(0.1), 0.4, moves=True)
    model = ClothModel([sheet((6, 6), (0.3, 0.3))], dt=1 / 120, colliders=[ball], solver=Solver(1e-9))
    here = torch.cat([torch.zeros(3), torch.eye(3).flatten()]).double()
    start = model.start(model.start().x + torch.tensor([0.0, 0.0, 0.1015]))
    settled = model.run(30, start, poses=here.expand(31, 1, 12)).final
    moved = here + 1e-4 * torch.arange(5, dtype=torch.float64)[:, None, None] * (torch.arange(12) == 0)
    assert 3 < int((settled.x.norm(dim=-1) < 0.1 + model.thickness).sum()) < 30
    weight, unit = noise(6, 36, 3), 5e-5

    def outcome(x0, v0, mu, shift, bending):
        poses = moved + unit * torch.nn.functional.pad(shift, (0, 9))
        begin = model.start(settled.x + unit * x0, settled.v + unit * 100 * v0)
        h = model.run(4, begin, friction=0.3 + mu, poses=poses, parameters={"bending": 1e-5 * (1 + bending)})
        return ((weight * h.final.x).sum() + 0.01 * (weight * h.final.v).sum()) / unit

    zeros = [torch.zeros(n, dtype=torch.float64) for n in ((36, 3), (36, 3), (1,), (5, 1, 3), ())]
    names = ("x0", "v0", "friction", "poses", "bending")
    report = check_gradients(outcome, zeros, names=names, float32=False, directions=1, tolerances=NEAR)
    assert "exactly zero" not in str(report), str(report)


def test_a_rope_with_seams_to_a_curved_cloth() -> None:
    flat = sheet((4, 4), (0.3, 0.3))
    bent = flat.points + np.outer(np.sin(8 * flat.points[:, 0]), [0, 0, 0.03])
    cloth = Cloth(bent, flat.triangles, {"bending": 1e-3})
    rope = straight_rope(bent[15], bent[15] + [0.2, 0, 0], 5)
    model = ClothModel([cloth, rope], dt=1 / 100, pins=[0], seams=[(15, 16)], solver=EXACT)
    weight = noise(6, model.points, 3)

    def outcome(x0, rest, stretch, bending):
        parameters = {"rope.stretch": stretch, "rope.bending": bending}
        return (weight * model.run(3, model.start(x0), parameters=parameters, rest=rest).final.x).sum()

    rest = torch.as_tensor(model.scene.rest)
    numbers = [torch.tensor(v, dtype=torch.float64) for v in (800.0, 1e-3)]
    given = (model.start().x + 0.004 * noise(1, model.points, 3), rest, *numbers)
    check_gradients(outcome, given, names=("x0", "rest", "stretch", "bending"), float32=False, directions=1)


@pytest.mark.parametrize("touching", [False, True])
def test_memory_changes_no_gradient(touching: bool) -> None:
    """Segments are solved again in the backward pass, also where cloth touches itself."""
    found = []
    for memory in ("1 GB", "9 kB"):
        model = ClothModel([sheet((3, 3), (0.3, 0.3))], dt=1 / 100, pins=[0], memory=memory, self_contact=touching)
        v = torch.full((9, 3), 0.1, dtype=torch.float64, requires_grad=True)
        history = model.run(12, model.start(v=v))
        found.append((len(history.times), torch.autograd.grad(history.final.x.square().sum(), v)[0]))
    assert found[0][0] == 13 and found[1][0] < 13
    assert torch.equal(found[0][1], found[1][1])
