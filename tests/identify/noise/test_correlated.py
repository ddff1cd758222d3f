"""Intervals of least squares whose errors go together: closed forms, direct sums, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.identify.motions import guessed, motion, with_friction

import costate as cs
from costate.core.arrays import Array
from costate.identify import Regressor
from costate.identify.noise.correlated import _newey_west, intervals, record_intervals, scatter
from costate.robot import Robot
from costate.tasks.numbers import correlated


def fit(X: Array, e: Array) -> tuple[Array, Array]:
    """Return the error of least squares by noise e (n, channels) in all channels alike, and the residuals."""
    flat = X.reshape(-1, X.shape[2])
    beta = np.linalg.lstsq(flat, e.ravel(), rcond=None)[0]
    return beta, e - X @ beta


def waves(n: int, count: int, channels: int = 1) -> Array:
    """Columns (n, channels, 2 count + 1): a constant, and slow sines and cosines with phases of each channel."""
    t, phase = np.arange(n)[:, None] / n, np.arange(channels)
    columns = [np.ones((n, channels))]
    columns += [f(2 * np.pi * (k + 0.5) * t + k * phase) for k in range(1, count + 1) for f in (np.sin, np.cos)]
    return np.stack(columns, 2)


def test_a_mean_of_correlated_noise_has_the_variance_of_the_closed_form() -> None:
    """The mean of n rows with correlation rho is as good as that of n (1 - rho) / (1 + rho) independent ones."""
    X = np.ones((20_000, 1, 1))
    for rho in (0.0, 0.5, 0.9):
        e = correlated(np.random.default_rng(0).normal(size=(20_000, 1)), rho)
        found = scatter([(X, X, fit(X, e)[1])])
        exact = len(X) * (1 - rho) / (1 + rho)
        # Newey and West's variance, over blocks of 141 rows, is known to 10 %, and the larger one counts; 1 - rho to 3 %.
        assert 0.8 * exact < found.effective[0] < 1.1 * exact
        assert 0.9 / exact < found.covariance[0, 0] < 1.25 / exact
        assert bool(found.notes()) == (rho == 0.9)


def test_white_noise_gives_the_covariance_of_the_textbook() -> None:
    X, e = waves(400, 3), np.random.default_rng(1).normal(size=(400, 1))
    r = fit(X, e)[1]
    found, textbook = scatter([(X, X, r)]), (r**2).sum() / (400 - 7) * np.linalg.inv(X[:, 0].T @ X[:, 0])
    ratio = np.diag(found.covariance) / np.diag(textbook)
    assert (ratio > 1).all() and (ratio < 1.3).all()  # that of Newey and West is larger for some by chance
    assert ratio.min() == pytest.approx(1.0, abs=2e-3)


def test_newey_and_west_are_a_direct_sum() -> None:
    z, wide = np.random.default_rng(2).normal(size=(50, 2)), 7
    pairs = [(t, s) for t in range(50) for s in range(50) if abs(t - s) < wide]
    direct = sum((1 - abs(t - s) / wide) * np.outer(z[t], z[s]) for t, s in pairs)
    np.testing.assert_allclose(_newey_west(z), direct, rtol=1e-12)


def test_cutting_a_log_changes_little() -> None:
    X, e = waves(3000, 3, 2), correlated(np.random.default_rng(3).normal(size=(3000, 2)), 0.8)
    r = fit(X, e)[1]
    whole = scatter([(X, X, r)])
    parts = scatter([(X[a:b], X[a:b], r[a:b]) for a, b in ((0, 1400), (1400, 2990), (2990, 3000))])
    np.testing.assert_allclose(parts.std, whole.std, rtol=0.1)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.99])
def test_coverage_in_slow_noise(rho: float) -> None:
    """7 intervals of each of 150 logs, nearly independent: 95 +- 0.7 %; white noise in place of 0.99 would hold 14 %."""
    X, held, rng = waves(1000, 3), [], np.random.default_rng(4)
    for _ in range(150):
        error, r = fit(X, correlated(rng.normal(size=(1000, 1)), rho))
        found = scatter([(X, X, r)])
        low, high = intervals(error, found.std, found.effective)
        held.append((low <= 0) & (high >= 0))
    assert 0.92 < np.mean(held) < 0.98


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_coverage_of_short_records_of_many_sensors(rho: float) -> None:
    """Readings of 20 sensors, 40 of each, are enough if all have the same noise. 5 intervals of 150 records: 95 +- 0.8 %."""
    X, held, rng = waves(40, 2, 20), [], np.random.default_rng(5)
    for _ in range(150):
        error, r = fit(X, correlated(rng.normal(size=(40, 20)), rho))
        low, high = record_intervals(error, X.reshape(-1, 5), r.ravel(), 40)
        held.append((low <= 0) & (high >= 0))
    assert 0.92 < np.mean(held) < 0.98


def test_identification_knows_correlated_torques() -> None:
    """11 intervals of each of 12 logs. Were those of a log one, the mean would be 95 +- 6 %; it is nearer, and 20 % as if rows were
    independent."""
    true = with_friction("pendulum2")
    clean, prior, held = motion(true), Robot(guessed(true)), []
    level = 0.01 * np.sqrt((clean["tau"] ** 2).mean(0))
    for seed in range(12):
        noise = correlated(np.random.default_rng(seed).normal(size=clean["tau"].shape), 0.95)
        result = cs.identify(prior, {**clean, "tau": clean["tau"] + level * noise}, physical=False)
        truth = result.base.project(Regressor.of(true).pi())
        held.append((result.interval[0] <= truth) & (truth <= result.interval[1]))
        assert np.median(result.scatter.effective) < 0.2 * result.scatter.rows
        assert any("rows say as much as" in note for note in result.notes)
    assert np.mean(held) > 0.82
