"""Particles and grids in reports: what stands in the page, and what a real browser makes of it."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.browser import Browser

from costate.draw.part.colors import table
from costate.draw.particles.cloud import cloud_of, grid_cloud
from costate.report import Report, particles
from costate.report.particles import particles_data

TIMES = np.linspace(0, 1, 6)


def levels_of(text: str, width: int) -> np.ndarray:
    """Return levels (K, width) as the page's script finds them."""
    low, high = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(2, -1).astype(int)
    numbers = low + 256 * high
    return np.cumsum(np.where(numbers % 2, -(numbers + 1) // 2, numbers // 2).reshape(-1, width), 0)


def test_the_page_holds_positions_and_values_to_half_a_step() -> None:
    rng = np.random.default_rng(0)
    x, v = rng.uniform(-3, 2, (6, 50, 3)), rng.normal(size=(6, 50))
    cloud = cloud_of(TIMES, x, v)
    data = particles_data(cloud)
    found = (np.array(data["low"]) + data["step"] * levels_of(data["positions"], 150).reshape(6, 50, 3)) / cloud.metre
    assert np.abs(found - x).max() < 0.51 * data["step"] / cloud.metre
    step = (data["most"] - data["least"]) / data["steps"]
    assert np.abs(data["least"] + step * levels_of(data["values"], 50) - v).max() < 0.51 * step


def test_what_rests_is_there_once() -> None:
    data = particles_data(grid_cloud(TIMES, np.random.default_rng(0).uniform(size=(6, 8, 9))))
    assert levels_of(data["positions"], 3 * 72).shape == (1, 216)
    assert levels_of(data["values"], 72).shape == (6, 72)


def test_large_histories_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(particles, "PLACED", 300)
    x = np.zeros((60, 10, 2))
    x[..., 0] = np.arange(60)[:, None]
    text = particles.particles_html("p", cloud_of(np.arange(60.0), x), "")
    data = json.loads(text.split('<script type="application/json">')[1].split("</script>")[0])
    assert len(data["times"]) == 30 and data["times"][-1] == 59


def test_in_a_browser(tmp_path: Path) -> None:
    """Particles are where they should be, in their colours; the pointer tells their numbers; time chooses the frame."""
    x = np.zeros((6, 2, 2))
    x[:, 1] = [1.0, 1.0]
    x[:, 0, 0] = 0.5 * TIMES
    page = Report("particles")
    page.particles(TIMES, x, [0.0, 7.0], title="kind", unit="kg", radius=0.15)
    grid = np.zeros((6, 4, 4))
    grid[:, 3, 3] = TIMES
    page.grid(TIMES, grid, title="smoke")
    path = page.save(tmp_path / "page.html")
    with Browser() as browser:
        tab = browser.page(f"file://{path}", size=(620, 640))
        tab.wait("window.costateReplays && costateReplays.every((r) => r && r.array && r.frame !== undefined)")
        first = tab.screenshot("particles", "#replay-0 .view").astype(int)
        dark = np.argwhere(np.abs(first - table()[0]).sum(-1) < 90)
        assert len(dark) > 100 and dark[:, 0].mean() > first.shape[0] / 2
        tab.js("costateReplays.forEach((r) => r.seek(1.0))")
        tab.wait("costateReplays.every((r) => r.frame === 5)")
        later = tab.screenshot("particles_later", "#replay-0 .view").astype(int)
        moved = np.argwhere(np.abs(later - table()[0]).sum(-1) < 90)
        assert moved[:, 1].mean() > dark[:, 1].mean() + 20
        to = "costateScene.unit(costateScene.sub(r.position({}), r.eye))"
        assert (
            tab.js(f"(() => {{ const r = costateReplays[0]; return r.told({to.format(1)}); }})()")
            == "particle 1 at (1, 1) m: 7 kg"
        )
        assert tab.js(f"(() => {{ const r = costateReplays[1]; return r.told({to.format(15)}); }})()").startswith(
            "cell 15 at (3.5, 3.5) m: 1"
        )
        cells = tab.screenshot("cells", "#replay-1 .view").astype(int)
        bright = np.argwhere(np.abs(cells - table()[-1]).sum(-1) < 12)
        blue = np.argwhere(np.abs(cells - table()[0]).sum(-1) < 12)
        assert 12 < len(blue) / len(bright) < 18
        assert not tab.errors and tab.requests == [f"file://{path}"]
