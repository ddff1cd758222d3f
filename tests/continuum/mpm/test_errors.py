"""Mistakes are answered with what was given, what was expected, and what to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.continuum.mpm.scenes import block, moving

from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid, cube
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.stable import segment_steps
from costate.continuum.mpm.walls import check_contact


def test_a_particle_that_starts_outside_is_named() -> None:
    model = block("neo_hookean")
    x = model.start().x.clone()
    x[7, 0] = 1.2
    with pytest.raises(
        ValueError, match=r"1 particles \(body 7\) are outside of the grid to begin with: the first at \[1.2"
    ):
        model.run(3, model.start(x))


def test_a_particle_that_leaves_the_grid_is_named_with_its_step() -> None:
    model = block("neo_hookean", sides="open", dt=1e-3)
    v = torch.zeros(model.particles, 2, dtype=torch.float64)
    x = model.start().x.clone()
    x[5] = torch.tensor([0.5, 0.75])
    v[5, 1] = 30.0
    with pytest.raises(FloatingPointError, match=r"body 5\).*outside of the grid in step 7 \(t = 0.007 s\)"):
        model.run(40, model.start(x, v))
    v[5, 1] = 60.0
    with pytest.raises(FloatingPointError, match=r"body 5\) move more than one cell.*in step 0 .*\[0.0, 60.0\] m/s"):
        model.run(40, model.start(x, v))


def test_steps_that_are_too_long() -> None:
    with pytest.raises(ValueError, match=r"a substep is 0.02 s.*take substeps=\d+ or more"):
        block("neo_hookean", dt=0.02, substeps=1)
    model = block("neo_hookean", dt=0.02)
    assert model.h <= 0.5 * min(model.limits)
    with pytest.raises(ValueError, match="waves of pressure"):
        model.run(2, parameters={"E": 1e7})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: block("jam"), "no material 'jam'; there are corotated"),
        (lambda: block("sand", parameters={"yield": 3.0}), "has no parameter 'yield'; there are density, E, nu, angle"),
        (lambda: block("sand", spline="linear"), "no spline 'linear'; there are quadratic, cubic"),
        (lambda: block("sand", sides={"-z": 1.0}).step, "no side '-z' of the grid; there are -x, [+]x"),
        (lambda: block("sand", gravity=(0.0, 0.0, -9.81)), "gravity has 3 numbers; the grid has 2 axes"),
        (lambda: block("sand").run(2, act=torch.zeros(2, 3)), r"expected \(..., 2, 0\): steps, muscles"),
        (lambda: block("sand").run(2, parameters={"yield": 3.0}), "no parameter 'yield'; there are E"),
        (lambda: block("sand").start(torch.zeros(4, 2)), r"expected \(..., 196, 2\)"),
        (lambda: SoftBody(np.zeros((3, 4)), 0.1), r"expected \(n, 2\) or \(n, 3\)"),
        (lambda: MpmGrid((4, 4), 0.1), "8 or more each"),
        (lambda: MpmModel(cube(16), [], 1e-3), "at least one body"),
        (lambda: MpmModel(cube(16, 3), block("sand").bodies, 1e-3), "'body' has 2 dimensions, the grid has 3"),
        (lambda: MpmModel(cube(16), [*block("sand").bodies] * 2, 1e-3), "name of its own"),
        *(
            (call, f"{name} of 'body' is {value:g}; expected {said}")
            for name, value, said in (
                ("nu", 0.6, "above -1 and below 0.5"),
                ("nu", -1.5, "above -1 and below 0.5"),
                ("nu", np.nan, "above -1 and below 0.5"),
                ("density", -1.0, r"above 0 \[kg/m\^3\]"),
                ("density", 0.0, r"above 0 \[kg/m\^3\]"),
                ("E", -1000.0, r"above 0 \[Pa\]"),
                ("E", np.inf, r"above 0 \[Pa\]"),
            )
            for call in (
                lambda name=name, value=value: block("neo_hookean", parameters={name: value}),
                lambda name=name, value=value: block("neo_hookean").run(2, parameters={name: value}),
            )
        ),
        (
            lambda: block("neo_hookean").run(2, parameters={"E": torch.tensor([1e3, -2.0])}),
            "E of 'body' is -2; expected above 0",
        ),
        (
            lambda: block("liquid").run(2, parameters={"viscosity": -1.0}),
            "viscosity of 'body' is -1; expected at least 0",
        ),
        (lambda: block("sand", parameters={"angle": 95.0}), r"is 95; expected at least 0 and below 90 \[degrees\]"),
        (lambda: check_contact("rough"), "expected 'sticky', 'slip', 'open', or a coefficient of friction"),
        (lambda: segment_steps(100, 1, 10**6, 0, "1 MB"), "takes .* MB at least: allow more"),
    ],
)
def test_what_is_said(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_that_are_not_finite_are_noticed() -> None:
    model = block("neo_hookean")
    start = moving(model)
    start.v[3, 0] = float("nan")
    with pytest.raises(FloatingPointError, match="body 3"):
        model.run(4, start)
