"""Elements and faces that are there in each step, and the laser, against what mesh and path say about its moment."""

from __future__ import annotations

import numpy as np
import pytest
from tests.continuum.heat import quadrature
from tests.continuum.heat.parts import small_wall

from costate.continuum.heat.timeline import Timeline


@pytest.mark.parametrize("dt", [7.5e-3, 5e-3, 3.3e-3])
def test_faces_exposed_in_each_step_are_those_of_the_elements_alive(dt: float) -> None:
    """With steps of 5 ms, births are at the beginnings of steps."""
    part = small_wall()
    line = Timeline.of(part.mesh, part.path, dt, part.path.duration)
    for k, time in enumerate(line.times):
        assert line.alive[k] == (part.mesh.birth <= time).sum()
        found = []
        for faces in (line.lasting, line.passing):
            first, behind = faces.between[k].astype(int)
            begin, end = faces.steps.T
            there = (begin <= k) & (k < end)
            assert not there[:first].any() and not there[behind:].any()
            found += faces.nodes[there].tolist()
        expected = [sorted(face) for face in quadrature.exposed(part.mesh, float(time))]
        assert sorted(map(sorted, found)) == sorted(expected)


def test_the_laser_is_on_for_as_long_as_on_its_path() -> None:
    part = small_wall()
    for dt in (7.5e-3, 3.3e-3, 0.2):
        line = Timeline.of(part.mesh, part.path, dt, part.path.duration)
        assert line.on.sum() * dt == pytest.approx(part.path.time_on, rel=1e-12)
        assert (line.on >= 0).all() and (line.on <= 1 + 1e-12).all()
        fine = np.linspace(0, 1, 2001)[:-1] + 0.00025
        shares = [part.path.at(t + dt * fine)[1].mean() for t in line.times]
        assert np.abs(line.on - shares).max() < 1e-3


def test_light_falls_where_the_path_has_the_laser_on() -> None:
    """Time and place of the light, summed over steps, are those of the path, also where tracks end within a step."""
    part = small_wall()
    times, x, on = part.path.times, part.path.positions, part.path.on
    expected = ((np.diff(times) * on[1:])[:, None] * (x[1:] + x[:-1]) / 2).sum(0)
    for dt in (7.5e-3, 3.3e-3, 0.09):
        line = Timeline.of(part.mesh, part.path, dt, part.path.duration)
        assert (dt * line.on[:, None] * line.spots).sum(0) == pytest.approx(expected, abs=1e-15)
        assert line.spots[line.on == 0] == pytest.approx(part.path.at(line.times[line.on == 0] + dt / 2)[0])
        fine = dt * (np.linspace(0, 1, 4001)[:-1] + 0.000125)
        for t, share, spot in zip(line.times, line.on, line.spots, strict=True):
            places, lit = part.path.at(t + fine)
            if share > 0.01:
                assert np.abs(places[lit].mean(0) - spot).max() < 2e-5
