"""What mistakes with cloth are answered with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.continuum.cloth.body import Cloth, Rope, sheet
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.topology import hinges_of

FLAT = sheet((3, 3), (0.2, 0.2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cloth(FLAT.points, FLAT.triangles + 5), "there are 9 nodes"),
        (lambda: Cloth(FLAT.points, FLAT.triangles, {"stretch": 1.0}), "there are warp, weft"),
        (lambda: Cloth(FLAT.points, FLAT.triangles, {"warp": np.ones(3)}), "one for each of 8 triangles"),
        (lambda: Cloth(FLAT.points, FLAT.triangles, {"density": 0.0}), "above 0"),
        (lambda: Cloth(FLAT.points, np.array([[0, 1, 1]])), "has no area"),
        (lambda: Rope(np.zeros((2, 3))), "has no length"),
        (lambda: ClothModel([], dt=0.01), "needs a piece of cloth"),
        (lambda: ClothModel([FLAT, FLAT], dt=0.01), "a name of its own"),
        (lambda: ClothModel([FLAT], dt=0.01, pins=[9]), "there are 9 nodes"),
        (lambda: ClothModel([FLAT], dt=0.01, pins=[0, 0]), "pinned twice"),
        (lambda: Collider(cs.shapes.sphere(0.1), -1.0), "0 or more"),
        (lambda: hinges_of(np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]])), "three triangles"),
    ],
)
def test_what_is_built_is_checked(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pins": torch.zeros(2, 1, 3)}, "the model has none"),
        ({"wind": torch.zeros(3)}, "windy=True"),
        ({"gravity": torch.zeros(2)}, "expected \\(..., 3\\)"),
        ({"parameters": {"streng": 1.0}}, "streng"),
        ({"rest": torch.zeros(4, 3)}, "expected \\(..., 9, 3\\)"),
        ({"friction": torch.zeros(2)}, "one of every collider"),
    ],
)
def test_what_is_run_is_checked(given, message: str) -> None:
    model = ClothModel([FLAT], dt=0.01, colliders=[Collider(cs.shapes.plane())])
    with pytest.raises(ValueError, match=message):
        model.run(2, **given)


def test_meshes_are_refused_as_shapes() -> None:
    ground = cs.shapes.heightfield(np.zeros((3, 3)), (1.0, 1.0)) if hasattr(cs.shapes, "heightfield") else None
    if ground is None:
        pytest.skip("there are no height fields")
    with pytest.raises(ValueError, match="with a formula"):
        Collider(ground)


def test_a_step_that_does_not_converge_is_an_error() -> None:
    from costate.continuum.cloth.step import Solver

    model = ClothModel([FLAT], dt=0.1, pins=[0], solver=Solver(1e-14, steps=1, limit=2))
    with pytest.raises(FloatingPointError, match="did not converge"):
        model.run(3)
