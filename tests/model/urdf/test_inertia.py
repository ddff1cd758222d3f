"""Inertias that no body can have: rounding is tolerated, faults are refused, kept or repaired."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import costate as cs
from costate.model import Model, ModelError, ModelWarning, load_model
from costate.model.urdf.inertia import nearest_inertia

ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
TINY = (2e-8, 6e-8, 1e-8, 3e-8, 5e-9, 4e-8)
"""Entries of an indefinite inertia, as small as those of an antenna of a milligram."""


def link(name: str, mass: float, *entries: float) -> str:
    inside = " ".join(f'{key}="{value!r}"' for key, value in zip(ENTRIES, entries, strict=True))
    return f'<link name="{name}"><inertial><mass value="{mass!r}"/><inertia {inside}/></inertial></link>\n'


def arm(tip: str, kind: str = "fixed", mass: float = 1.0) -> str:
    """Return a robot: a base, a forearm of some mass that turns, and a tip on the forearm."""
    return f"""<robot name="r">{link("base", 1.0, 1, 0, 0, 1, 0, 1)}{link("forearm", mass, mass, 0, 0, mass, 0, mass)}{tip}
      <joint name="elbow" type="continuous"><parent link="base"/><child link="forearm"/></joint>
      <joint name="wrist" type="{kind}"><origin xyz="0.1 0.2 0.3" rpy="1 2 3"/><parent link="forearm"/><child link="tip"/></joint>
    </robot>"""


@pytest.fixture
def load(tmp_path: Path):
    def load(text: str, **options) -> tuple[Model, str]:
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = load_model(path, **options)
        assert all(w.category is ModelWarning for w in caught)
        return model, "\n".join(str(w.message) for w in caught)

    return load


@pytest.mark.parametrize("mass, moment", [(0.0, -2.4e-35), (0.1, -2.4e-35), (1.0, -0.9e-12)])
def test_rounding_is_tolerated_and_named(load, mass: float, moment: float) -> None:
    model, said = load(arm(link("tip", mass, moment, 0, 0, 0, 0, 0), kind="continuous", mass=2.0))
    assert "negative by rounding, kept: tip" in said
    assert model.link("tip").inertia.matrix[0, 0] == moment


def test_an_antenna_is_outweighed_by_what_it_is_fixed_to(load) -> None:
    model, said = load(arm(link("tip", 1e-6, *TINY)))
    assert "outweigh them: tip" in said
    assert np.linalg.eigvalsh(model.link("tip").inertia.matrix)[0] < -1e-8


@pytest.mark.parametrize("kind, mass", [("continuous", 1.0), ("fixed", 1e-9)])
def test_a_moving_or_heavier_one_is_refused_with_advice(load, kind: str, mass: float) -> None:
    with pytest.raises(ModelError, match=r":1: <inertia> of <link 'tip'> .*negative.*inertia=\"repair\".*\"keep\""):
        load(arm(link("tip", 1e-6, *TINY), kind, mass).replace("\n", ""))


def test_keep_and_repair(load) -> None:
    text = arm(link("tip", 1e-6, *TINY), "continuous")
    kept, said = load(text, inertia="keep")
    assert "negative principal moments, kept: tip" in said
    xx, xy, xz, yy, yz, zz = TINY
    np.testing.assert_array_equal(kept.link("tip").inertia.matrix, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    repaired, said = load(text, inertia="repair")
    assert "repaired: tip" in said
    low, middle, high = np.linalg.eigvalsh(repaired.link("tip").inertia.matrix)
    assert low > -1e-22 and low + middle >= high * (1 - 1e-12)
    np.testing.assert_array_equal(repaired.link("forearm").inertia.matrix, kept.link("forearm").inertia.matrix)


def test_repair_also_mends_the_triangle_inequality(load) -> None:
    tip = link("tip", 1.0, 1, 0, 0, 1, 0, 3)
    assert "exceeds the sum of the others" in load(arm(tip))[1]
    model, said = load(arm(tip), inertia="repair")
    assert "repaired: tip" in said
    np.testing.assert_allclose(model.link("tip").inertia.matrix, np.diag([1.5, 1.5, 3.0]), rtol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_repair_finds_the_nearest_second_moments(seed: int) -> None:
    """The second moments of mass, S = tr(I) / 2 - I, of the repaired inertia are the nearest positive semidefinite ones."""
    rng = np.random.default_rng(seed)
    given = rng.normal(size=(3, 3))
    given = given + given.T
    S = np.trace(given) / 2 * np.eye(3) - given
    repaired = nearest_inertia(given)
    T = np.trace(repaired) / 2 * np.eye(3) - repaired
    assert np.linalg.eigvalsh(T)[0] > -1e-12
    # S - T is the part that is cut off: negative semidefinite and orthogonal to what is left (optimality of the projection).
    assert np.linalg.eigvalsh(S - T)[-1] < 1e-12
    assert abs(np.trace((S - T) @ T)) < 1e-12


def test_sound_inertias_stay_as_they_are_to_the_last_bit(load) -> None:
    text = arm(link("tip", 0.3, 0.11, 0.01, -0.02, 0.12, 0.003, 0.13), "continuous")
    (kept, quiet), (repaired, also_quiet) = load(text), load(text, inertia="repair")
    assert quiet == also_quiet == ""
    for ours, theirs in zip(kept.links, repaired.links, strict=True):
        np.testing.assert_array_equal(ours.inertia.matrix, theirs.inertia.matrix)


def test_an_unknown_answer_is_refused(load) -> None:
    with pytest.raises(ValueError, match="'mend': use one of refuse, keep, repair"):
        load(arm(link("tip", 1.0, 1, 0, 0, 1, 0, 1)), inertia="mend")


def test_robots_take_the_answer_too(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(arm(link("tip", 1e-6, *TINY), "continuous"))
    with pytest.raises(ModelError, match="negative"):
        cs.load_robot(path)
    with pytest.warns(ModelWarning, match="repaired"):
        assert cs.load_robot(path, inertia="repair").nv == 2
