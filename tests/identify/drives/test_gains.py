"""Gains of drives from a run without and a run with a known payload, in simulation and on a measured robot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.identify.motions import Array, motion, with_friction

import costate as cs
from costate.identify.drives.gains import drive_gains
from costate.identify.regressor import inertia_of, inertial_vector
from costate.model import Inertia, Model
from costate.robot import Robot

UR10E = Path(__file__).parents[4] / "shared" / "data" / "ur10e"
PUBLISHED = np.array([14.87, 13.26, 11.13, 10.62, 11.03, 11.47])
"""Gains that the authors of the measurements give [N m/A]."""
HEADER = "t q1-6 v1-6 current1-6"


def with_payload(model: Model, link: str, mass: float) -> Model:
    own = inertial_vector(model.link(link).inertia)
    more = inertial_vector(Inertia(mass, np.array([0.05, 0.02, 0.1]), 0.01 * np.eye(3)))
    links = tuple(replace(x, inertia=inertia_of(own + more)) if x.name == link else x for x in model.links)
    return replace(model, links=links)


@pytest.mark.parametrize(("name", "link"), [("ur5", "wrist_3_link"), ("iiwa7", "iiwa_link_7")])
def test_gains_of_simulated_drives(name: str, link: str) -> None:
    """1 % noise in currents: the gains are found within three standard deviations, which are small where gravity acts."""
    model = with_friction(name)
    rng = np.random.default_rng(0)
    gains = rng.uniform(8, 15, model.nv)

    def currents(robot: Model, seed: int) -> dict[str, Array]:
        log = motion(robot, n=1500, seed=seed)
        tau = log["tau"] + 0.01 * np.sqrt((log["tau"] ** 2).mean(0)) * rng.normal(size=log["tau"].shape)
        return {**log, "tau": tau / gains}

    runs = currents(model, 2), currents(with_payload(model, link, 3.0), 3)
    found = drive_gains(Robot(model), runs[0], runs[1], 3.0, link)
    assert (np.abs(found.values - gains) < 3.5 * found.std).all()
    assert (found.std[1] < 0.02 * gains[1]) and (found.std < 0.3 * gains).all()
    np.testing.assert_allclose(found.moment, 3.0 * np.array([0.05, 0.02, 0.1]), atol=0.1)


@pytest.mark.study
@pytest.mark.skipif(not UR10E.is_dir(), reason="the measured logs are not here")
def test_gains_of_a_ur10e() -> None:
    """The payload of 2.6 kg gives the published gains of the four joints that carry it to 10 %."""
    found = drive_gains(
        UR10E / "ur10e.urdf",
        UR10E / "ur-20_02_19_15harm50sec.csv",
        UR10E / "ur-20_01_13-load_2600.csv",
        2.6,
        header=HEADER,
    )
    print("\ngains", found.values.round(2), "+-", (1.96 * found.std).round(2), "published", PUBLISHED)
    assert (np.abs(found.values / PUBLISHED - 1)[:4] < 0.1).all()


@pytest.mark.study
@pytest.mark.skipif(not UR10E.is_dir(), reason="the measured logs are not here")
def test_friction_of_a_ur10e() -> None:
    """Point-to-point motion of a UR10e by the model of an exciting one: errors of the wrists are halved by the law of friction."""
    results = {}
    for law in ("coulomb_viscous", "combined"):
        result = cs.identify(
            UR10E / "ur10e.urdf",
            UR10E / "ur-20_02_19_15harm50sec.csv",
            gains=tuple(PUBLISHED),
            header=HEADER,
            friction=law,
            validate=UR10E / "ur-20_01_17-ptp_10_points.csv",
        )
        assert result.validation is not None
        results[law] = result.validation
        print(
            f"\n{law}: all rows {100 * result.validation.all.round(3)} %, moving {100 * result.validation.moving.round(3)} %"
        )
    plain, law = results["coulomb_viscous"], results["combined"]
    assert (law.all < plain.all).all()
    assert law.all[4] < 0.55 * plain.all[4] and law.moving[4] < 0.13 and law.moving[5] < 0.25
