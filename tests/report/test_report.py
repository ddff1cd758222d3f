"""Reports as files: complete, escaped, and plots that say what the numbers say."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest

import costate as cs
from costate.draw.recording import record
from costate.report import Report
from costate.report.plot import HEIGHT, WIDTH, Plot, plot_html, ticks


def polyline(html: str, k: int = 0) -> np.ndarray:
    path = re.findall(r'<path class="line"[^>]* d="([^"]*)"', html)[k]
    return np.array([[float(x) for x in p.split()] for p in re.split("[ML]", path) if p])


def test_everything_is_in_the_file(tmp_path: Path) -> None:
    import matplotlib.figure

    report = Report("All kinds", "of blocks")
    report.section("Numbers")
    report.text("one\n\ntwo")
    report.facts({"error": 0.123456, "ok": True})
    report.table([["a", 1.5], ["b", None]], ["name", "value"], caption="a table")
    report.plot({"loss": [3.0, 2.0, 1.0]})
    report.heat(np.array([[1.0, -1.0]]), ["x"])
    report.picture(np.zeros((4, 4, 3), np.uint8), "black")
    figure = matplotlib.figure.Figure()
    figure.subplots().plot([1, 2])
    report.figure(figure)
    report.replay(cs.load_robot("ur5"), np.zeros(6))
    text = report.save(tmp_path / "deep" / "report.html").read_text()
    for wanted in (
        "<h2>Numbers</h2>",
        "<p>one</p>",
        "<p>two</p>",
        "<b>0.1235</b>",
        "<b>yes</b>",
        "a table",
        "data:image/png",
    ):
        assert wanted in text
    assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:)?//|@import|url\(["']?http""", text)


def test_text_cannot_break_the_page() -> None:
    evil = '</script><script>alert("x")</script>'
    report = Report(evil, evil)
    report.text(evil)
    report.facts({evil: evil})
    report.table([{evil: evil}])
    report.plot({evil: [1, 2]}, title=evil, x_label=evil)
    report.heat(np.ones((1, 2)), [evil])
    assert "<script>alert" not in report.html()


HOSTILE = "é</script><script>alert(1)</script>\"'$x$ \\frac$ \u2028é\U0001f916<!--]]>"


class Elements(HTMLParser):
    """The elements of a page, and the texts of those that hold data."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.data: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag == "script" and attrs:
            self.data.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script" and self.data:
            self.data[-1] += data


def named_report(folder: Path, name: str, file: str) -> str:
    """Return the page of a robot whose file, links and joints have such names."""
    link, inertia = quoteattr(name), '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    box = '<visual><geometry><box size="1 1 1"/></geometry></visual>'
    path = folder / file
    path.write_text(
        f"<robot name={link}><link name={link}>{box}</link><link name='tip'>{box}<inertial><mass value='1'/>{inertia}"
        f"</inertial></link><joint name={link} type='continuous'><parent link={link}/><child link='tip'/></joint></robot>",
        encoding="utf-8",
    )
    robot = cs.load_robot(path)
    report = Report(robot.model.name, str(path.name))
    report.replay(robot, np.zeros((3, 1)), caption=name, dt=0.1, gradient=np.ones((3, 1)))
    report.table([{link.name: joint.name} for link, joint in zip(robot.model.links, robot.model.joints, strict=False)])
    report.plot({robot.model.joints[0].name: [1.0, 2.0]}, title=name, levels={name: 1.5})
    assert robot.model.links[0].name == name == robot.model.joints[0].name
    return report.save(folder / f"{file}.html").read_text(encoding="utf-8")


def test_names_of_a_robot_add_nothing_to_its_page(tmp_path: Path) -> None:
    """The page has the elements that it has with plain names, and its data give the names back."""
    plain = Elements(named_report(tmp_path, "plain", "plain.urdf"))
    hostile = Elements(named_report(tmp_path, HOSTILE, "<script>alert(1)$x$ é'.urdf"))
    assert hostile.tags == plain.tags
    assert json.loads(hostile.data[0])["links"] == [HOSTILE, "tip"]
    assert Report("\udcff").save(tmp_path / "bytes.html").exists()  # a file name that is no UTF-8


def test_lines_are_where_their_values_are() -> None:
    line = polyline(plot_html(Plot({"y": [0.0, 10.0, 5.0]}, x=[0.0, 1.0, 4.0])))
    x, y = line.T
    assert x[1] - x[0] == pytest.approx((x[2] - x[0]) / 4, abs=0.11)
    assert y[0] - y[1] == pytest.approx(2 * (y[0] - y[2]), abs=0.21)  # upwards is less
    assert (line > 0).all() and (x < WIDTH).all() and (y < HEIGHT).all()


def test_logarithmic_lines_are_straight_for_powers() -> None:
    y = polyline(plot_html(Plot({"y": [1.0, 1e-2, 1e-4]}, log_y=True)))[:, 1]
    assert y[1] - y[0] == pytest.approx(y[2] - y[1], abs=0.11)


def test_gaps_where_values_are_missing() -> None:
    html = plot_html(Plot({"y": [1.0, np.nan, 2.0, 3.0]}))
    assert re.findall(r'd="([^"]*)"', html)[-1].count("M") == 2


def test_thinning_keeps_the_peaks() -> None:
    y = np.zeros(50_000)
    y[31_415] = 7.0
    line = polyline(plot_html(Plot({"y": y})))
    assert len(line) <= 1000
    assert line[:, 1].min() < line[:, 1].max() - 200


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.7, 12.1), (1e-9, 3e-9), (5.0, 5.1)])
def test_ticks_are_few_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 8
    assert low - 1e-12 <= found[0] and found[-1] <= high * (1 + 1e-12)
    assert np.allclose(np.diff(found), found[1] - found[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.plot({}), "has no series"),
        (lambda r: r.plot({"a": [1, 2]}, x=[1]), "series 'a' has 2 values, x has 1"),
        (lambda r: r.table([[1, 2]], ["a"]), "2 cells where the table has 1 columns"),
        (lambda r: r.heat(np.ones((2, 3)), ["a"]), "one name per row"),
        (lambda r: r.replay(cs.load_robot("ur5"), np.zeros(5)), "last dimension must be nq"),
        (lambda r: r.replay(cs.load_robot("ur5"), np.full(6, np.nan)), "not finite"),
        (lambda r: r.replay(cs.load_robot("ur5"), np.zeros(6), trails=["hand"]), "no link 'hand'"),
        (lambda r: r.replay(cs.load_robot("ur5"), np.zeros((3, 6)), gradient=np.zeros((3, 4))), "given"),
        (lambda r: r.replay(cs.load_robot("ur5"), np.zeros(6), contacts=True), "for worlds"),
    ],
)
def test_mistakes_are_said(call, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call(Report("x"))


@pytest.mark.parametrize(("speed", "followed"), [(0.5, False), (20.0, True)])
def test_the_camera_follows_what_goes_far(speed: float, followed: bool) -> None:
    """A ball that rolls away is in the picture all the time, as large as it was at first."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.5)], mass=1.0)
    world = cs.World(bodies=[ball], contact=None, gravity=(0, 0, 0), dt=0.1)
    start = world.initial_state()
    start[7] = speed
    report = Report("A ball")
    report.recording(record(world, world.rollout(start, steps=10)), follow=True)
    (data,) = [json.loads(x) for x in re.findall(r'<script type="application/json">(.*?)</script>', report.html())]
    assert ("follow" in data) == followed
    if followed:
        assert data["links"][data["follow"]] == "ball/body"
        np.testing.assert_allclose(data["high"], [0.5, 0.5, 0.5], atol=1e-3)
