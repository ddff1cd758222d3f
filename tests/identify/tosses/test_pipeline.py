"""Identification from tosses: simulated ones with known numbers, and the recorded ones of a cube."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.identify.tosses.throws import BOX, DT, TRUTH, thrown

from costate.identify.tosses import TossOptions, identify_tosses
from costate.identify.tosses.fit import loss_of
from costate.identify.tosses.thrown import start_of, usual_unknowns, values
from costate.model import Shape
from costate.sim.scene import shapes

CUBE = Path(__file__).parents[4] / "shared" / "data" / "contactnets_cube.npz"
QUICK = TossOptions(unknowns=tuple(TRUTH), train=9, rows=40, iterations=40)


@pytest.fixture(scope="module")
def found():
    return identify_tosses(BOX, thrown(noise=2e-5)[0], QUICK)


def test_known_numbers_are_found(found) -> None:
    assert found.values["friction"][0] == pytest.approx(0.2, abs=0.01)  # started at 0.25
    assert found.values["restitution"][0] == pytest.approx(0.12, abs=0.04)  # started at 0.2
    assert found.values["com"] == pytest.approx(TRUTH["com"], abs=5e-4)  # started at 0, up to 2 mm away


def test_tosses_held_out_are_predicted_better(found) -> None:
    turn = {name: e.turn.mean() for name, e in found.errors.items()}
    assert turn["found, from the first row"] < turn["as given, from the first row"] / 2
    assert turn["found, from 6 rows"] < turn["as given, from 6 rows"] / 2
    assert not set(found.train) & set(found.test) and len(found.test) == 3
    assert found.errors["found, from 6 rows"].turn.shape == (34, 3)  # rows that were seen are not judged


def test_the_summary_names_all_numbers_with_intervals(found) -> None:
    text = found.summary()
    assert all(name in text for name in ("friction", "restitution", "com x", "held out"))
    assert all((half > 0).all() for half in found.half_widths.values())


@pytest.mark.parametrize(
    "unknowns",
    [
        tuple(TRUTH),
        pytest.param(usual_unknowns("hard", BOX.shape), marks=pytest.mark.study),
        pytest.param(usual_unknowns("newton", BOX.shape), marks=pytest.mark.study),
    ],
)
def test_the_loss_has_the_gradient_of_its_values(unknowns: tuple[str, ...]) -> None:
    world = BOX.world("newton" if "solref" in unknowns else "hard", DT, 1, unknowns)
    rows = thrown(count=2, rows=14)[0].windows(np.arange(2), 0, 14)
    raws = start_of(world, unknowns)
    sizes = [raw.numel() for raw in raws.values()]

    def loss(flat: torch.Tensor) -> torch.Tensor:
        named = dict(zip(raws, flat.split(sizes), strict=True))
        states = world.rollout(rows[0].to(flat), steps=13, params=values(world, named, BOX.length))
        return loss_of(states, rows.to(flat), BOX.length)

    random = torch.Generator().manual_seed(1)
    check_gradients(loss, (0.01 * torch.randn(sum(sizes), generator=random, dtype=torch.float64),))


def test_an_inertia_stays_possible_whatever_the_raw_numbers() -> None:
    world = BOX.world("hard", DT, 1, ("inertia",))
    random = torch.Generator().manual_seed(2)
    for _ in range(20):
        raw = 2 * torch.randn(6, generator=random, dtype=torch.float64)
        (I,) = values(world, {"inertia": raw}, BOX.length).values()
        a, b, c = torch.linalg.eigvalsh(I.reshape(3, 3))
        assert a > 0 and a + b > c


def test_mistakes_are_answered() -> None:
    tosses = thrown(count=3, rows=10)[0]
    with pytest.raises(ValueError, match="3 tosses have 10 rows"):
        identify_tosses(BOX, tosses, TossOptions(train=3, rows=10))
    with pytest.raises(ValueError, match="'solref' with contact 'hard'"):
        identify_tosses(BOX, tosses, TossOptions(train=2, rows=10, unknowns=("solref",)))
    with pytest.raises(ValueError, match="width"):
        _ = dataclasses.replace(BOX, shape=Shape("mesh", np.ones(3))).length


@pytest.mark.study
@pytest.mark.skipif(not CUBE.is_file(), reason="needs the tosses of ContactNets, see docs/real_data.md")
def test_tosses_of_a_real_cube() -> None:
    cube = dataclasses.replace(
        BOX, shape=shapes.box((0.1048,) * 3), mass=0.37, friction=0.18, restitution=0.125, inertia=0.00081 * np.eye(3)
    )
    result = identify_tosses(cube, CUBE)
    print(result.summary())
    errors = result.errors["found, from the first row"].row()
    assert len(result.test) == 470
    assert errors["position, mean [% of width]"] <= 17 and errors["rotation, mean [deg]"] <= 14
