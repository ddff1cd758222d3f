"""Reports in a real browser: the replay is there, looks as it should, and plays."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.browser import Browser, Page

import costate as cs
from costate.draw.camera import Camera
from costate.draw.recording import record
from costate.draw.render import frames
from costate.report import Report

STEPS, DT = 40, 0.05

# Mean difference of two pictures, of 255, after both are shrunk eight times: the two renderers shade a little differently
# (gamma, filter of the shadows), which a mean over blocks keeps below 4; another posture of the robot is above 8.
SAME, OTHER = 4.0, 8.0


def swing(robot: cs.Robot) -> torch.Tensor:
    """Configurations (STEPS, 1, nq)."""
    t = torch.linspace(0, 1, STEPS, dtype=torch.float64)[:, None]
    home = torch.tensor(robot.model.home)
    return (home + 1.2 * torch.sin(2 * torch.pi * t) * torch.tensor([1.0, 0.4, -0.4, 0, 0, 0])).unsqueeze(1)


@pytest.fixture(scope="module")
def robot() -> cs.Robot:
    return cs.load_robot("ur5")


@pytest.fixture(scope="module")
def page(browser: Browser, robot: cs.Robot, tmp_path_factory: pytest.TempPathFactory) -> Page:
    q = swing(robot)
    at = q.clone().requires_grad_()
    loss = robot.forward_kinematics(at, "tool0").position.square().sum()
    report = Report("A swing", "UR5")
    report.facts({"loss": float(loss.detach())})
    scene = report.replay(robot, q, dt=DT, trails=["tool0"], gradient=torch.autograd.grad(loss, at)[0])
    report.plot({"pan": q[:, 0, 0]}, x=np.arange(STEPS) * DT, title="Pan", follow=scene)
    path = report.save(tmp_path_factory.mktemp("report") / "swing.html")
    page = browser.page(path.as_uri())
    page.wait("window.costateReplays[0].frame !== undefined")
    return page


def seek(page: Page, time: float) -> None:
    page.js(f"window.costateReplays[0].playing = false; window.costateReplays[0].seek({time})")
    page.wait(f"Math.abs(document.querySelector('.replay').dataset.time - {time}) < 1e-9")
    page.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")


def shrunk(image: np.ndarray, by: int = 8) -> np.ndarray:
    h, w = image.shape[0] // by * by, image.shape[1] // by * by
    return image[:h, :w].reshape(h // by, by, w // by, by, 3).astype(float).mean((1, 3))


def drawn(page: Page, robot: cs.Robot, frame: int, size: tuple[int, int]) -> np.ndarray:
    """What the software renderer makes of a frame from the page's camera."""
    replay = "window.costateReplays[0]"
    eye, target = page.js(f"{replay}.eye"), page.js(f"{replay}.target")
    recording = record(robot, swing(robot), dt=DT, trails=["tool0"])
    camera = Camera(np.array(eye), np.array(target), np.radians(35.0))
    return next(frames(recording, [frame], size, camera))


def test_page_needs_no_network_and_has_no_errors(page: Page) -> None:
    assert len(page.requests) == 1 and page.requests[0].startswith("file:")
    assert page.errors == []


def test_replay_looks_like_the_software_renderers_picture(page: Page, robot: cs.Robot) -> None:
    page.js("document.querySelector('.arrows').click()")
    seek(page, 10 * DT)
    seen = page.screenshot("report_replay", ".replay .view")
    size = seen.shape[1], seen.shape[0]
    expected = drawn(page, robot, 10, size)
    same = np.abs(shrunk(seen) - shrunk(expected))
    other = np.abs(shrunk(seen) - shrunk(drawn(page, robot, 30, size)))
    # Around the robot: everywhere else the two postures agree.
    where = np.abs(shrunk(expected) - shrunk(drawn(page, robot, 30, size))).max(-1) > 12
    assert where.sum() > 50
    assert same.mean() < SAME
    assert same[where].mean() < 0.5 * other[where].mean()
    assert other[where].mean() > OTHER
    page.js("document.querySelector('.arrows').click()")


def test_play_moves_and_pause_stops(page: Page) -> None:
    seek(page, 0.0)
    before = page.screenshot("report_before", ".replay .view")
    box = page.box(".play")
    page.click(box["x"] + 5, box["y"] + 5)
    page.wait("Number(document.querySelector('.replay').dataset.frame) > 4")
    page.click(box["x"] + 5, box["y"] + 5)
    page.wait("!window.costateReplays[0].playing")
    after = page.screenshot("report_after", ".replay .view")
    assert (np.abs(before.astype(int) - after).max(-1) > 25).sum() > 300
    stopped = page.js("document.querySelector('.replay').dataset.time")
    time.sleep(0.3)
    assert page.js("document.querySelector('.replay').dataset.time") == stopped


def test_scrubbing_seeks_and_plots_follow(page: Page) -> None:
    box = page.box(".scrub")
    page.click(box["x"] + 0.5 * box["width"], box["y"] + box["height"] / 2)
    end = (STEPS - 1) * DT
    page.wait(f"Math.abs(document.querySelector('.replay').dataset.time - {end / 2}) < 0.05")
    x = page.wait("Number(document.querySelector('.plot .cursor').getAttribute('x1'))")
    assert abs(x - (58 + 0.5 * (640 - 58 - 12))) < 20


def test_dragging_turns_the_camera_and_hovering_names_a_link(page: Page) -> None:
    box = page.box(".replay .view")
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = page.js("window.costateReplays[0].azimuth")
    page.drag(middle, (middle[0] + 100, middle[1]))
    assert page.js("window.costateReplays[0].azimuth") == pytest.approx(before - 0.8, abs=0.02)
    page.js("window.costateReplays[0].home(); window.costateReplays[0].seek(0)")
    page.wait("window.costateReplays[0].distance > 0 && window.costateReplays[0].time === 0")
    # The base is a disc around the origin: where (0.05, -0.05, 0.01) in it is on the screen follows from the page's own camera.
    at = page.js(
        "(() => { const v = window.costateReplays[0].view, w = v[15] + 0.01 * v[11] + 0.05 * v[3] - 0.05 * v[7];"
        "return [0, 1].map((i) => (v[12 + i] + 0.01 * v[8 + i] + 0.05 * v[i] - 0.05 * v[4 + i]) / w); })()"
    )
    page.mouse("Moved", box["x"] + (1 + at[0]) / 2 * box["width"], box["y"] + (1 - at[1]) / 2 * box["height"])
    assert page.wait("document.querySelector('.replay .name').textContent") == "base_link"


def test_both_themes(page: Page) -> None:
    def brightness() -> float:
        return float(page.screenshot("report_theme").mean())

    first = brightness()
    page.js("document.querySelector('.theme').click()")
    page.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    second = brightness()
    assert min(first, second) < 80 < 180 < max(first, second)


def test_page_of_a_world_with_contacts(browser: Browser, tmp_path: Path) -> None:
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
    world = cs.World(bodies=[ball], scenery=[cs.Static("ground", cs.shapes.plane())], dt=0.01)
    state = world.initial_state()
    state[2] = 0.1
    states = world.rollout(state, torch.zeros(10, world.nu, dtype=torch.float64))
    report = Report("Ball")
    report.replay(world, states, contacts=True)
    page = browser.page(report.save(tmp_path / "ball.html").as_uri())
    page.wait("window.costateReplays[0].frame !== undefined")
    start, vector = (page.js(f"[...window.costateReplays[0].arrows.slice({a}, {a} + 3)]") for a in (0, 3))
    assert start == pytest.approx([0, 0, 0], abs=1e-3)  # where the ball touches the ground
    assert vector[2] > 0 and np.hypot(*vector[:2]) < 1e-6  # and the ground holds it up
    assert page.errors == []
    page.close()
