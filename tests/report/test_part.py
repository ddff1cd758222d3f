"""Growing parts in reports: what stands in the page, and what a real browser makes of it."""

from __future__ import annotations

import base64
import re
import zlib
from typing import Any

import numpy as np
import pytest
from tests.browser import Browser, Page

from costate.continuum import HexMesh, Part, cylinder, wall
from costate.draw.part.growth import Growth, growth_of
from costate.report import Report
from costate.report.part import FRAMES, LEVELS, part_data, part_html, quantised

COUNT = 9
SIZE = (620, 640)
AXES = {"x": 0, "y": 1, "z": 2}
SLOPES = np.array([2e4, -3e4, 5e4])
"""Of the temperature along x, y and z [K/m]."""


def linear_in_space(part: Part, count: int = COUNT) -> Growth:
    """Temperatures that are linear in space and time: what the page interpolates is then known everywhere."""
    times = np.linspace(0, part.path.duration, count)
    T = 700 + 50 * times[:, None] + part.mesh.nodes @ SLOPES
    return growth_of(part.mesh, times, T, path=part.path)


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)


def levels_of(data: dict[str, Any]) -> np.ndarray:
    """Levels (K, N) as the page's script finds them."""
    low, high = unpacked(data["values"], "u1").reshape(2, -1).astype(int)
    numbers = low + 256 * high
    return np.cumsum(np.where(numbers % 2, -(numbers + 1) // 2, numbers // 2).reshape(len(data["times"]), -1), 0)


@pytest.mark.parametrize("make", [wall, cylinder])
def test_the_page_holds_the_mesh_and_values_to_half_a_step(make: Any) -> None:
    growth = linear_in_space(make(height=0.002))
    data = part_data(growth)
    assert np.allclose(
        unpacked(data["nodes"], "<f4").reshape(-1, 3) / growth.metre, growth.mesh.nodes, rtol=1e-6, atol=1e-9
    )
    elements = np.cumsum(unpacked(data["elements"], "<i4").reshape(-1, 8), 0)
    assert np.array_equal(elements, growth.mesh.elements)
    assert data["alive"] == [int((growth.mesh.birth <= t).sum()) for t in growth.times]
    step = (data["most"] - data["least"]) / data["steps"]
    found = data["least"] + step * levels_of(data)
    assert np.abs(found - growth.values).max() <= step / 2 * (1 + 1e-9)
    assert np.abs(found - growth.values).max() > step / 4  # it is a step that counts


def test_equal_values_and_extreme_jumps_are_kept() -> None:
    assert quantised(np.full((2, 3), 5.0))[0].max() == 0
    part = wall(length=0.004, height=0.001)
    T = np.zeros((4, len(part.mesh.nodes)))
    T[1::2] = 1.0  # from one end of the scale to the other and back
    data = part_data(growth_of(part.mesh, [2.0, 3.0, 4.0, 5.0], T))
    assert np.array_equal(levels_of(data), T * LEVELS)


def test_long_histories_are_thinned_and_small() -> None:
    part = cylinder(height=0.003)
    growth = linear_in_space(part, 300)
    text = part_html("part", growth, "temperature")
    nodes = len(part.mesh.nodes)
    assert len(re.findall(r'"times":\[([^]]*)\]', text)[0].split(",")) == FRAMES
    assert len(text) < 0.6 * nodes * FRAMES  # two bytes per value are 2.7 characters


def test_speeds_suit_the_duration_and_others_are_refused() -> None:
    part = wall(length=0.004, height=0.001)
    for duration, speed in ((10.0, 1.0), (100.0, 8.0), (1e6, 128.0)):
        growth = growth_of(part.mesh, [0.0, duration], np.zeros((2, len(part.mesh.nodes))))
        assert f'value="{speed:g}" selected' in part_html("part", growth, "temperature")
    with pytest.raises(ValueError, match=r"a speed out of 0\.1, .*; 3 given"):
        part_html("part", growth, "temperature", speed=3)


# --- in a browser -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown() -> Growth:
    return linear_in_space(wall(length=0.01, height=0.003))


@pytest.fixture(scope="module")
def page(browser: Browser, shown: Growth, tmp_path_factory: pytest.TempPathFactory) -> Page:
    report = Report("Wall")
    name = report.part(shown.mesh, shown.times, shown.values, path=shown.path, caption="a wall")
    report.plot({"T": shown.values[:, 0]}, x=shown.times, follow=name)
    page = browser.page(report.save(tmp_path_factory.mktemp("report") / "wall.html").as_uri(), SIZE)
    page.wait("window.costateReplays[0].frame !== undefined")
    return page


def seek(page: Page, shown: Growth, frame: int, more: str = "") -> None:
    at = shown.times[frame] + 1e-6
    page.js(f"(() => {{ const part = window.costateReplays[0]; part.playing = false; {more}; part.seek({at}); }})()")
    page.wait(f"document.querySelector('.replay').dataset.frame === '{frame}'")
    page.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")


def faces(page: Page) -> int:
    return int(page.js("document.querySelector('.replay').dataset.faces"))


def test_faces_are_those_that_are_exposed(page: Page, shown: Growth) -> None:
    counts = []
    for frame in range(COUNT):
        seek(page, shown, frame)
        counts.append(faces(page))
    assert counts == [len(shown.mesh.surface(t)) for t in shown.times]
    assert len(page.requests) == 1 and page.errors == []


@pytest.mark.parametrize("axis", AXES)
def test_a_cut_shows_what_is_inside(page: Page, shown: Growth, axis: str) -> None:
    k, frame = AXES[axis], 6
    seek(page, shown, frame)
    page.js(f"(() => {{ const e = document.querySelector('.axis'); e.value = '{k}'; e.onchange({{ target: e }}); }})()")
    seek(page, shown, frame, "part.cut.depth = 0.4")
    low, high = shown.box
    centre = shown.mesh.centres[: shown.alive[frame], k]
    kept = centre > low[k] + 0.4 * (high - low)[k] if axis == "y" else centre < high[k] - 0.4 * (high - low)[k]
    left = shown.mesh.elements[: shown.alive[frame]][kept]
    assert 0 < kept.sum() < len(kept)
    assert faces(page) == len(HexMesh(shown.mesh.nodes, left, np.zeros(len(left))).surface())
    page.js("(() => { const e = document.querySelector('.axis'); e.value = '-1'; e.onchange({ target: e }); })()")
    seek(page, shown, frame)
    assert faces(page) == len(shown.mesh.surface(shown.times[frame]))


def test_the_slider_moves_time_and_what_is_seen(page: Page, shown: Growth) -> None:
    box = page.box(".scrub")
    pictures = []
    for share in (0.1, 0.6):
        page.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        page.wait(f"Math.abs(document.querySelector('.replay').dataset.time / {shown.times[-1]} - {share}) < 0.05")
        page.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        pictures.append(page.screenshot(f"part_{share}", ".replay .view").astype(int))
        box = page.box(".scrub")
    assert (np.abs(pictures[1] - pictures[0]).max(-1) > 25).sum() > 2000
    cursor = float(page.js("document.querySelector('.plot .cursor').getAttribute('x1')"))
    frame = int(page.js("document.querySelector('.replay').dataset.frame"))
    assert cursor == pytest.approx(58 + shown.times[frame] / shown.times[-1] * (640 - 58 - 12), abs=0.5)
    assert page.errors == []


def test_the_value_under_the_pointer(page: Page, shown: Growth) -> None:
    frame = COUNT - 1
    seek(page, shown, frame, "part.home()")
    box = page.box(".replay .view")
    for across, down in ((0.5, 0.5), (0.45, 0.6), (0.55, 0.55)):
        page.mouse("Moved", box["x"] + across * box["width"], box["y"] + down * box["height"])
        found = re.fullmatch(
            r"([-\d.]+) K at \((.*)\) mm", page.wait("document.querySelector('.replay .name').textContent")
        )
        assert found
        place = 1e-3 * np.array([float(x) for x in found[2].split(",")])
        expected = 700 + 50 * shown.times[frame] + place @ SLOPES
        # The place is written to 0.1 mm, the value with four digits.
        assert float(found[1]) == pytest.approx(expected, abs=0.05e-3 * np.abs(SLOPES).sum() + 1)


def test_both_themes_and_colours(page: Page, shown: Growth) -> None:
    seek(page, shown, COUNT - 1)
    views = [page.screenshot("part_theme", ".replay .view")]
    page.js("document.querySelector('.theme').click()")
    seek(page, shown, COUNT - 1, "part.edgesOn = true")
    views.append(page.screenshot("part_other_theme", ".replay .view"))
    corners = sorted(float(view[:20, :20].mean()) for view in views)
    assert corners[0] < 80 < 180 < corners[1]
    hot = [(view[..., 0].astype(int) - view[..., 2] > 80).sum() for view in views]
    assert min(hot) > 1000  # of the part, not of the page: it is orange and yellow in both
    assert page.errors == []
