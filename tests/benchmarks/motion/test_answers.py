"""The reference of the motion against derivatives on paper."""

from __future__ import annotations

import pytest

from benchmarks.motion.answers import Answer, bounces, discs, drop, rack
from benchmarks.motion.reference import truth


def of_reference(answer: Answer) -> float:
    return answer.scale * float(truth(answer.kind, answer.start, answer.by).slope[answer.at])


@pytest.mark.parametrize("answer", [*drop(), *bounces()], ids=lambda a: a.derivative)
def test_closed_forms(answer: Answer) -> None:
    assert of_reference(answer) == pytest.approx(answer.formula, rel=1e-12)


def test_two_discs() -> None:
    """The second disc leaves along the line of centres, with (1 + e) / 2 of the approach: differences of that by hand."""

    def place(x1: float, e: float) -> tuple[float, float]:
        dx, dy, u, w = 0.1 - x1, 0.09, 1.0, 0.05
        along, square = dx * u + dy * w, u * u + w * w
        time = (along - (along**2 - square * (dx**2 + dy**2 - 0.04)) ** 0.5) / square
        n = (dx - u * time) / 0.2, (dy - w * time) / 0.2
        speed = (1 + e) / 2 * (n[0] * u + n[1] * w) * (1 - time)
        return 0.1 + speed * n[0], 0.09 + speed * n[1]

    h = 1e-6
    expected = [(place(-0.5 + h, e)[k] - place(-0.5 - h, e)[k]) / (2 * h) for e in (1.0, 0.0) for k in range(2)]
    assert [of_reference(a) for a in discs()] == pytest.approx(expected, rel=1e-7)
    assert expected == pytest.approx([0.785, 0.447, 0.393, 0.224], abs=5e-4)


def test_the_break_reaches_the_last_row() -> None:
    """Five rows, so at least five impacts lie between the first ball and the last one; there are more."""
    answer = rack()[0]
    assert truth(answer.kind, answer.start, answer.by).impacts > 20
