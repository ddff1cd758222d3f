"""Identification: parameters and their confidence against the truth, another optimiser, and the general covariance."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import least_squares
from tests.gradients import Tolerances, check_gradients

from costate.optimise import covariance
from costate.tasks.identify_contact import IdentifyContact
from costate.train.solve import Outcome, solve

NUMBERS = range(20)


@pytest.fixture(scope="module")
def bounce() -> IdentifyContact:
    return IdentifyContact()


@pytest.fixture(scope="module")
def pole() -> IdentifyContact:
    return IdentifyContact(system="cart_pole")


@pytest.fixture(scope="module")
def found(pole: IdentifyContact) -> Outcome:
    return solve("identify_cart_pole", NUMBERS, task=pole)


def test_the_first_flight_is_a_parabola(bounce: IdentifyContact) -> None:
    z = bounce.records(bounce.encode(bounce.truth)[None])[:, 0, 0, 1]
    t = torch.arange(20, dtype=torch.float64) * 0.01
    assert torch.allclose(z[:20], 0.35 - 9.81 / 2 * t**2, atol=9.81 * 0.2 * 0.01 / 20)


def test_friction_restitution_and_mass_are_found_through_bounces(bounce: IdentifyContact) -> None:
    found = solve("identify_contact", range(6), task=bounce)
    assert found.solved.all()
    assert (bounce.decode(found.x) / bounce.truth - 1).abs().max() < 0.01


def test_gradient_through_bounces(bounce: IdentifyContact) -> None:
    p = bounce.problems([0])
    x = bounce.encode(bounce.truth)[None]
    # A bounce that moves into another substep makes a small jump: stay within one.
    check_gradients(
        lambda x: p.residuals(x) / 1e3,
        (x,),
        step=1e-5,
        float32=False,
        tolerances=Tolerances(finite_difference=1e-3, value=1e-10),
    )


def test_the_jacobian_is_the_slope_of_the_record(bounce: IdentifyContact) -> None:
    """By differences so wide that bounces move over many substeps: they see the slope of the motion, not that of one substep. Where
    a bounce passes a sample meanwhile, the record has a corner: these samples, a few of hundreds, are left out."""
    x = bounce.encode(bounce.truth)[None]
    p = bounce.problems([0])
    for k in range(3):
        e = torch.eye(3, dtype=torch.float64)[k][None]
        slope = torch.func.jvp(p.residuals, (x,), (e,))[1][0]
        wide = (p.residuals(x + 0.02 * e) - p.residuals(x - 0.02 * e))[0] / 0.04
        off = (wide - slope).abs().sort().values
        assert off[: round(0.95 * len(off))].norm() < 1e-3 * slope.norm()


def test_intervals_of_bounces_hold_the_truth_as_often_as_they_say(bounce: IdentifyContact) -> None:
    """100 noisy records, each fitted from the truth: the intervals are about the noise, and not about first guesses."""
    numbers = range(100)
    p = bounce.problems(numbers)
    x = bounce.encode(bounce.truth).expand(100, -1).clone()
    for _ in range(4):  # Gauss-Newton, near the minimum
        J = torch.stack(
            [torch.func.jvp(p.residuals, (x,), (e.expand_as(x).contiguous(),))[1] for e in torch.eye(3).double()], -1
        )
        x = x - torch.linalg.lstsq(J, p.residuals(x)[..., None]).solution[..., 0]
    inside = (bounce.decode(x) - bounce.truth).abs() <= bounce.confidence(p.residuals, x)
    # 95 of 100 +- 2.2 for each parameter.
    assert (inside.sum(0) >= 88).all() and inside.sum() >= 276


def test_every_guess_leads_to_the_truth(found: Outcome) -> None:
    assert int(found.solved.sum()) >= 18


def test_intervals_hold_the_truth_as_often_as_they_say(pole: IdentifyContact, found: Outcome) -> None:
    width = pole.confidence(pole.problems(NUMBERS).residuals, found.x)
    inside = (pole.decode(found.x) - pole.truth).abs() <= width
    # 80 intervals of 95 %: 76 +- 1.9 inside; 70 is three standard deviations below.
    assert 70 <= int(inside.sum()) <= 80


def test_intervals_are_those_of_the_general_covariance(pole: IdentifyContact, found: Outcome) -> None:
    p = pole.problems([0])
    C = covariance(lambda x: {"r": p.residuals(x[None])[0]}, found.x[0])
    slopes = torch.stack([u.slope(found.x[0, k]) for k, u in enumerate(pole.setup.unknowns)])
    ratio = pole.confidence(p.residuals, found.x[:1])[0] / (1.96 * C.diagonal().sqrt() * slopes)
    assert ratio == pytest.approx(
        torch.ones(4), abs=0.01
    )  # of hundreds of readings, Student's distribution is nearly normal


def test_another_optimiser_finds_the_same(pole: IdentifyContact, found: Outcome) -> None:
    p = pole.problems([3])

    def residuals(x):
        return p.residuals(torch.as_tensor(x)[None])[0].numpy()

    other = least_squares(residuals, pole.encode(pole.truth).numpy() + 0.05, xtol=1e-12, ftol=1e-12)
    assert torch.allclose(found.x[3], torch.as_tensor(other.x), atol=1e-5)
