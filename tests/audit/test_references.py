"""The engines that values are compared with agree with each other: MuJoCo reads the file, Pinocchio gets our model of it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import costate as cs
from costate.audit.robots import random_inputs, tip
from costate.model import ModelWarning

pytest.importorskip("mujoco")
pytest.importorskip("pinocchio")
gymnasium = pytest.importorskip("gymnasium")
ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"


@pytest.mark.parametrize("name", ["hopper", "ant"])
def test_mujoco_and_pinocchio_agree(name: str) -> None:
    from costate.audit import mujoco_reference, pinocchio_reference

    path = ASSETS / f"{name}.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = cs.load_robot(path).model
    x = {key: value[0].numpy() for key, value in random_inputs(model, 1).items()}
    first, second = (
        r(x, tip(model)) for r in (mujoco_reference.Reference(model, path), pinocchio_reference.Reference(model))
    )
    shared = set(first) & set(second)
    assert {"position", "jacobian", "link_velocity", "mass_matrix", "inverse_dynamics", "forward_dynamics"} <= shared
    for key in shared:
        scale = np.abs(second[key]).max()
        np.testing.assert_allclose(first[key], second[key], rtol=0, atol=1e-9 * scale, err_msg=key)
