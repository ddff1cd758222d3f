"""The heat step that engines are compared on: formulas against a reference, the reference against complex steps and laws."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad

from benchmarks.bench_heat import entrants
from benchmarks.heat_peers import costate_worker
from benchmarks.heat_peers.peers import HEAT_PEERS
from benchmarks.heat_peers.reference import arguments, of_problem, reference_heat_gradient, reference_heat_step
from benchmarks.heat_peers.straight_line import hex_lines
from benchmarks.heat_problem import (
    CASADI,
    DENSITY,
    LATENT,
    MELTING,
    HeatProblem,
    heat_capacity,
    hex_flow,
    hex_flow_stored,
    node_update,
    stored_geometry,
    wall,
)
from benchmarks.peers.process import PeerError, Process

ROUNDING = 1e-13
"""Relative; sums of some hundred numbers of different sizes."""


@pytest.fixture(scope="module")
def problem() -> HeatProblem:
    return wall((6, 4, 3), alive=0.6)


def assembled(p: HeatProblem, geometry: str) -> tuple[np.ndarray, np.ndarray]:
    T, X = p.T[p.elements].T, p.nodes[p.elements].reshape(-1, 24).T
    alive = (p.birth <= p.time).astype(float)
    local = hex_flow(T, X, alive) if geometry == "recomputed" else hex_flow_stored(T, stored_geometry(X), alive)
    sums = [np.zeros(len(p.T)) for _ in local]
    for total, values in zip(sums, local, strict=True):
        np.add.at(total, p.elements, np.array(values).T)
    return sums[0], sums[1]


@pytest.mark.parametrize("geometry", ["recomputed", "stored"])
def test_formulas_and_reference_agree(problem: HeatProblem, geometry: str) -> None:
    p = problem
    flow, capacity = assembled(p, geometry)
    T1 = node_update(p.T, flow, capacity, p.nodes.T, p.area, p.laser, p.power, p.dt)
    assert 0 < (capacity == 0).sum() < len(p.T)  # some nodes are not there yet
    np.testing.assert_allclose(T1, reference_heat_step(**arguments(p)), rtol=ROUNDING)


def test_symbols_give_the_same(problem: HeatProblem) -> None:
    p = problem
    T, X, t, f, c, x, area, power = (
        ca.SX.sym(n, k) for n, k in (("T", 8), ("X", 24), ("t", 1), ("f", 1), ("c", 1), ("x", 3), ("area", 1), ("P", 1))
    )
    element = ca.Function("e", [T, X], [ca.vertcat(*v) for v in hex_flow(ca.vertsplit(T), ca.vertsplit(X))])
    node = ca.Function(
        "n", [t, f, c, x, area, power], [node_update(t, f, c, ca.vertsplit(x), area, p.laser, power, p.dt, CASADI())]
    )
    e = p.elements[0]
    expected = hex_flow(p.T[e], p.nodes[e].ravel())
    for found, numbers in zip(element(p.T[e], p.nodes[e].ravel()), expected, strict=True):
        np.testing.assert_allclose(np.array(found).ravel(), numbers, rtol=ROUNDING, atol=1e-16)
    for capacity in (0.0, 3e-3):
        expected = node_update(p.T[3], 0.2, capacity, p.nodes[3], p.area[3], p.laser, p.power, p.dt)
        assert float(node(p.T[3], 0.2, capacity, p.nodes[3], p.area[3], p.power)) == pytest.approx(
            float(expected), rel=ROUNDING
        )


def test_gradient_of_the_reference_is_that_of_complex_steps(problem: HeatProblem) -> None:
    p = problem
    T_bar, power_bar = reference_heat_gradient(**arguments(p), weights=p.weights)
    h = 1e-30
    steps = 1j * h * np.eye(len(p.T))
    found = [p.weights @ np.imag(reference_heat_step(**arguments(p) | {"T": p.T + step})) / h for step in steps]
    np.testing.assert_allclose(T_bar, found, rtol=1e-12, atol=1e-13)
    by_power = reference_heat_step(**arguments(p) | {"T": p.T + 0j, "power": p.power + 1j * h})
    assert power_bar == pytest.approx(p.weights @ np.imag(by_power) / h, rel=1e-12) and power_bar != 0


def test_heat_is_conserved(problem: HeatProblem) -> None:
    p = problem
    T, X = p.T[p.elements].T, p.nodes[p.elements].reshape(-1, 24).T
    flow, _ = hex_flow(T, X)
    assert np.abs(np.sum(flow, axis=0)).max() < ROUNDING * np.abs(flow).max()
    same = np.full_like(T, 700.0)
    flow, capacity = hex_flow(same, X)
    assert np.abs(flow).max() == 0
    assert np.sum(capacity) == pytest.approx(DENSITY * heat_capacity(700.0) * volume(p), rel=1e-12)


def volume(p: HeatProblem) -> float:
    """Return the volume of all elements by the divergence theorem; faces are bilinear."""
    faces = [(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
    total = 0.0
    for face in faces:
        a, b, c, d = (p.nodes[p.elements[:, n]] for n in face)
        total += (np.cross(a, b) * (c + d) + np.cross(c, d) * (a + b)).sum() / 12
    return float(total)


def test_the_heat_of_fusion_is_that_of_the_metal() -> None:
    found = quad(
        lambda T: heat_capacity(T) - 430 - 0.2 * (T - 300), MELTING - 3e4, MELTING + 3e4, points=[MELTING], limit=500
    )[0]
    assert found == pytest.approx(LATENT, rel=1e-6)


def test_the_wall_of_the_benchmark(tmp_path: Path) -> None:
    p = wall()
    assert p.elements.shape == (15070, 8) and p.nodes.shape == (18216, 3)
    assert (np.diff(p.birth) > 0).all() and np.unique(p.elements).size == len(p.nodes)
    geometry = np.array(stored_geometry(p.nodes[p.elements].reshape(-1, 24).T))
    assert geometry[6::7].min() > 0
    p.save(tmp_path / "wall.npz")
    again = HeatProblem.load(tmp_path / "wall.npz")
    assert again.power == p.power and (again.T == p.T).all() and (again.elements == p.elements).all()


@pytest.mark.parametrize("geometry", ["recomputed", "stored"])
def test_lines_of_source_compute_an_element(problem: HeatProblem, geometry: str) -> None:
    e = problem.elements[0]
    T, X = problem.T[e], problem.nodes[e].ravel()
    G = stored_geometry(X)
    lines, flow, capacity = hex_lines(repr, geometry)
    names = (
        {f"T{n}": T[n] for n in range(8)}
        | {f"X{n}": x for n, x in enumerate(X)}
        | {f"G{n}": x for n, x in enumerate(G)}
    )
    exec("\n".join(lines), names | {"alive": 1.0}, names)
    expected = hex_flow(T, X, 1.0) if geometry == "recomputed" else hex_flow_stored(T, G, 1.0)
    assert [names[f] for f in flow] == expected[0] and [names[c] for c in capacity] == expected[1]


@pytest.mark.parametrize("geometry", ["recomputed", "stored"])
def test_costate_computes_the_step_and_its_gradient(problem: HeatProblem, geometry: str) -> None:
    case = costate_worker.make(problem, "float64", geometry, "gradient")
    for found, expected in zip(case.read(case.run()), of_problem(problem), strict=True):
        np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


def test_an_engine_that_is_missing_is_named(tmp_path: Path) -> None:
    left_out: list[str] = []
    peer = Process(replace(HEAT_PEERS["warp"], name="nowhere"), Path(sys.executable))
    try:
        assert entrants(tmp_path / "wall.npz", [peer], ("float64",), left_out) == []
    finally:
        peer.stop()
    assert len(left_out) == 1 and left_out[0].startswith("Warp (ended with code 1")


def test_a_peer_answers(problem: HeatProblem, tmp_path: Path) -> None:
    file, out = tmp_path / "wall.npz", tmp_path / "found.npz"
    problem.save(file)
    what = {"problem": str(file), "dtype": "float64", "geometry": "recomputed", "mode": "gradient"}
    peer = Process(HEAT_PEERS["numpy"], Path(sys.executable))
    try:
        assert peer.ask(60, do="hello")["geometries"] == ["recomputed"]
        told = peer.ask(60, do="result", save=str(out), **what)
        with np.load(out) as found:
            for name, expected in zip(("T", "T_bar", "power_bar"), of_problem(problem), strict=True):
                np.testing.assert_array_equal(found[name], expected)
                assert told[name] == np.abs(expected).sum()
        timed = peer.ask(60, do="time", repeats=2, **what)
        assert 0 < timed["time"] < told["first"] + 60 and timed["processor"] >= 0
        with pytest.raises(PeerError, match="float32"):
            peer.ask(60, do="time", **what | {"dtype": "float32"})
    finally:
        peer.stop()
