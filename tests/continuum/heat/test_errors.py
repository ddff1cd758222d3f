"""What mistakes are answered with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.continuum.heat.parts import BENT, INSULATED, PLAIN, column, small_wall, still

from costate.continuum.heat.model import HeatModel
from costate.continuum.heat.process import Laser, Surroundings
from costate.continuum.heat.stable import stable_step
from costate.continuum.memory import segment_steps

PART = small_wall()


def wall(**options: Any) -> HeatModel:
    """Return a model of the wall with 75 steps in segments of 20."""
    return HeatModel(PART.mesh, PART.path, BENT, **{"dt": 7.5e-3, "segment": 20, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 1.0}, r"dt is 1 s, but explicit steps .* are stable up to 0\.0\d+ s"),
        ({"dt": -1.0}, "dt is -1.0; expected"),
        ({"duration": 0.0}, "duration is 0.0; expected"),
        ({"sensors": [(0, 0, 0), (0, 0, 1.0)]}, r"sensor 1 at \[0.0, 0.0, 1.0\] m lies in no element"),
        ({"segment": None, "memory": "10 kB"}, "memory is '10 kB', but the gradient of 75 steps of 100 numbers takes .* at least"),
        ({"segment": 0}, "segment is 0; expected a number of steps, 1 or more"),
        ({"segment": None, "memory": "10 parsecs"}, "memory is '10 parsecs'; expected a number of bytes"),
    ],
)  # fmt: skip
def test_a_model_says_what_is_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wall(**options)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"power": torch.ones(7)}, ValueError, r"power has shape \(7,\); expected a number, or \(\.\.\., 75\)"),
        ({"power": 1.0, "spots": torch.zeros(75, 2)}, ValueError, r"spots have shape \(75, 2\); expected \(\.\.\., 75, 3\)"),
        ({"power": 1.0, "T0": torch.ones(5)}, ValueError, r"T0 has shape \(5,\); expected a number, or \(\.\.\., 100\)"),
        ({"power": 1.0, "viscosity": 1.0}, TypeError, "no parameter 'viscosity'; there are conductivity, specific_heat"),
        ({"power": 1.0, "conductivity": 9.0}, ValueError, r"conductivity 9, .* stable up to"),
        ({"power": 1.0, "density": torch.tensor([1.0, 0.1])}, ValueError, r"density 0\.1.* stable up to"),
    ],
)  # fmt: skip
def test_a_roll_out_says_what_is_wrong(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wall().run(**given)


@pytest.mark.parametrize("step", [0, 3, 19, 20, 47, 74])
def test_what_is_not_finite_is_named_by_step_and_node(step: int) -> None:
    model = wall()
    power = torch.full((model.steps,), 200.0)
    power[step] = torch.inf
    # The laser is always on, somewhere, even where the path has it off: 0 times infinity is as bad.
    with pytest.raises(FloatingPointError, match=rf"node \d+, at \(.*\) mm, is \S+ after step {step} of 75"):
        model.run(power)


def test_a_temperature_that_is_not_finite_is_named_by_node() -> None:
    T0 = torch.full((len(PART.mesh.nodes),), 300.0)
    T0[17] = torch.nan
    with pytest.raises(FloatingPointError, match=r"node 17, at \(.*\) mm, is nan to begin with"):
        wall().run(0.0, T0)


def test_lasers_and_surroundings_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="shape of the laser is 'cone'; expected 'beam' or 'ball'"):
        Laser(shape="cone")
    with pytest.raises(ValueError, match="radius is 0"):
        Laser(radius=0.0)
    with pytest.raises(ValueError, match="convection is -1"):
        Surroundings(convection=-1.0)
    with pytest.raises(ValueError, match="base is 0"):
        Surroundings(base=0.0)


def test_the_longest_step_is_the_longest_that_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temperatures that change their sign from level to level, in wide elements: their rate is that of a line of nodes."""
    h = 1e-3
    mesh = column(h * np.arange(9), width=1e3)
    longest = stable_step(mesh, PLAIN)
    assert longest == pytest.approx(2 / (4 * 20.0 / (8000.0 * 500.0) / h**2), rel=1e-6)
    sign = 1 - 2 * torch.as_tensor(np.round(mesh.nodes[:, 2] / h) % 2)
    monkeypatch.setattr("costate.continuum.heat.model.stable_step", lambda *_: 2 * longest)
    for share, grows in ((0.99, False), (1.01, True)):
        # A chequerboard fades or grows by the factor 1 - 2 dt / longest in a step.
        model = HeatModel(mesh, still(20.0), PLAIN, dt=share * longest, surroundings=INSULATED, segment=20)
        swing = model.run(0.0, 600 + sign).T[[0, 5], 4] - 600
        rate = float((swing[1] / swing[0]).abs().log() / 100)
        assert (rate > 0) == grows
        assert rate == pytest.approx(np.log(2 * share - 1), abs=1e-6)


def test_memory_chooses_the_segment() -> None:
    assert segment_steps(10_000, 1000, "1 GB") == 32
    n = segment_steps(10_000, 1000, "6 MB")
    assert n > 32
    assert (4 * -(-10_000 // n) + 2 * n) * 8000 <= 6e6 < (4 * -(-10_000 // (n - 1)) + 2 * (n - 1)) * 8000
    assert segment_steps(5, 1000, "1 GB") == 5
