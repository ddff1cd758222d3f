"""The viewer in a real browser: it shows the robot where it is, and does what is asked of it."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.browser import Browser, Page
from tests.viewer.page_controls import press, slide, until

import costate as cs
from costate.draw.camera import Camera
from costate.draw.poses import motion_of
from costate.draw.raster import rasterize
from costate.draw.render import bodies
from costate.model import Model
from costate.viewer.view import Page as View
from costate.viewer.view import view

RED = (0.9, 0.02, 0.02, 1.0)
SIZE = (900, 560)
LEFT_OF_PANEL, BELOW_NOTICE = SIZE[0] - 340, 190
"""The panel and a notice cover the rest of the window [pixels]."""


def painted(model: Model) -> Model:
    """All in red, which nothing else on the page is."""
    links = [
        replace(link, visuals=tuple(replace(s, color=RED) for s in link.visuals or link.collisions))
        for link in model.links
    ]
    return replace(model, links=tuple(links))


def red(image: np.ndarray) -> np.ndarray:
    r, g, b = np.moveaxis(image.astype(int), -1, 0)
    found = (r > 2 * g + 15) & (r > 2 * b + 15)
    found[:BELOW_NOTICE], found[:, LEFT_OF_PANEL:] = False, False
    return found


def expected(viewer: View, model: Model, q: Any, size: tuple[int, int]) -> np.ndarray:
    """Where the software renderer sees the robot from the tab's camera."""
    *_, client = viewer.server.get_clients().values()  # a busy machine may have lost the connection before
    camera = Camera(np.array(client.camera.position), np.array(client.camera.look_at), float(client.camera.fov))
    corners = bodies(motion_of(model, q), 0).corners
    screen = camera.project(corners, *size)
    screen[..., 2] = -1 / screen[..., 2]
    mask = rasterize(screen, *size)[1] >= 0
    mask[:BELOW_NOTICE], mask[:, LEFT_OF_PANEL:] = False, False
    return mask


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def opened(browser: Browser, viewer: View) -> Page:
    page = browser.page(viewer.url, SIZE)
    page.wait("!!document.querySelector('canvas') && document.body.innerText.includes('costate')")
    end = time.monotonic() + 300
    while time.monotonic() < end and not viewer.server.get_clients():
        time.sleep(0.05)
    return page


def seen(page: Page, name: str, wanted: Any, seconds: float = 300.0) -> np.ndarray:
    """A screenshot that satisfies a condition, waited for; else the last one."""
    end = time.monotonic() + seconds
    while True:
        image = page.screenshot(name)
        if wanted(image) or time.monotonic() > end:
            return image
        time.sleep(0.2)


@pytest.fixture(scope="module")
def model() -> Model:
    return painted(cs.load_robot("ur5").model)


@pytest.fixture(scope="module")
def robots(model: Model) -> Iterator[View]:
    viewer = view(model, port=8300, block=False)
    yield viewer
    viewer.close()


def test_the_robot_is_seen_and_a_slider_moves_it(browser: Browser, robots: View, model: Model) -> None:
    page = opened(browser, robots)
    home = torch.tensor(model.home)
    image = seen(page, "view_robot", lambda i: red(i).sum() > 3000)
    size = image.shape[1], image.shape[0]
    assert overlap(red(image), expected(robots, model, home, size)) > 0.85
    slide(page, "shoulder_lift_joint", 0.32)
    shown = robots.content.shown[0]  # pyright: ignore[reportAttributeAccessIssue]
    until(lambda: shown.q[1] != model.home[1])  # pyright: ignore[reportOptionalSubscript]
    lower, upper = model.lower[1], model.upper[1]
    assert shown.q[1] == pytest.approx(lower + 0.32 * (upper - lower), abs=0.1)
    now = torch.tensor(shown.q)
    wanted = expected(robots, model, now, size)
    moved = seen(page, "view_slider", lambda i: overlap(red(i), wanted) > 0.85)
    assert overlap(red(moved), wanted) > 0.85
    assert overlap(red(moved), red(image)) < 0.7
    assert page.errors == []
    assert all("127.0.0.1" in address for address in page.requests)  # nothing from elsewhere
    page.close()


def test_the_server_outlives_its_tabs(browser: Browser, robots: View) -> None:
    pages = [browser.page(size=(160, 120)) for _ in range(3)]
    for page in pages:
        page.call("Page.navigate", url=robots.url)
    end = time.monotonic() + 300
    for k, page in enumerate(pages):
        page.call("Page.bringToFront")  # a tab behind another one draws nothing, and says nothing of its camera
        while len(robots.server.get_clients()) <= k and time.monotonic() < end:
            time.sleep(0.05)
    assert len(robots.server.get_clients()) == len(pages)
    for page in pages:
        page.close()
    while robots.server.get_clients() and time.monotonic() < end:
        time.sleep(0.1)
    assert not robots.server.get_clients()
    with urllib.request.urlopen(robots.url, timeout=300) as answer:
        assert answer.status == 200


def test_a_motion_is_played(browser: Browser, model: Model) -> None:
    t = torch.linspace(0, 1, 60, dtype=torch.float64)[:, None]
    q = torch.tensor(model.home) + t * torch.tensor([1.5, 0.3, 0, 0, 0, 0], dtype=torch.float64)
    viewer = view(model, q, dt=0.05, port=8310, gradient=torch.ones_like(q), trails=["tool0"], block=False)
    try:
        page, player = opened(browser, viewer), viewer.content
        before = seen(page, "view_motion", lambda i: red(i).sum() > 3000)
        press(page, "play")
        until(lambda: player.time > 1.0)  # pyright: ignore[reportAttributeAccessIssue]
        page.wait("[...document.querySelectorAll('button')].some((b) => b.innerText.trim() === 'pause')")
        press(page, "pause")
        page.wait("[...document.querySelectorAll('button')].some((b) => b.innerText.trim() === 'play')")
        slide(page, "time [s]", 0.75)
        until(lambda: abs(player.time - 0.75 * 2.95) < 0.2)  # pyright: ignore[reportAttributeAccessIssue]
        frame = round(player.time / 0.05)  # pyright: ignore[reportAttributeAccessIssue]
        wanted = expected(viewer, model, q[frame], (before.shape[1], before.shape[0]))
        after = seen(page, "view_motion_later", lambda i: overlap(red(i), wanted) > 0.7)
        # Arrows of the gradient cover a part of the robot, and are red themselves.
        assert overlap(red(after), wanted) > 0.7
        assert overlap(red(after), red(before)) < 0.6
        assert page.errors == []
        page.close()
    finally:
        viewer.close()


def drag_ball(page: Page, image: np.ndarray, at: tuple[float, float], grips: list[Any]) -> None:
    """Drag a ball of 0.2 m by 200 pixels to the left, let go once it has come half of the way, and look where it is."""
    half = 100 * 0.2 / np.sqrt(red(image).sum() / np.pi)  # 100 pixels [m], by the radius of the ball in the picture

    def followed() -> bool:
        return bool(grips) and float(np.linalg.norm(grips[-1][1])) > half

    page.drag(at, (at[0] - 200, at[1]), steps=6, hold=lambda: until(followed))
    moved = seen(page, "view_dragged", lambda i: np.nonzero(red(i))[1].mean() < at[0] - 40)
    assert np.nonzero(red(moved))[1].mean() < at[0] - 40
    goal, centre = grips[-1]
    assert np.linalg.norm(goal - centre) < np.linalg.norm(goal)  # nearer to the pointer than where it started


def test_a_body_is_dragged(browser: Browser) -> None:
    ball = cs.shapes.sphere(0.2)
    body = cs.Body("ball", [replace(ball, color=RED)], mass=1.0)
    world = cs.World(bodies=[body], contact=None, gravity=(0, 0, 0), dt=0.005)
    viewer = view(world, live=True, port=8320, options={"gain": (1.0, 0.0, 2.0)}, block=False)
    live = viewer.content
    grips: list[tuple[np.ndarray, np.ndarray]] = []

    def note(now: Any) -> None:
        if (grip := now.hand.grip) is not None:
            grips.append((grip.goal, now.state[:3].numpy().copy()))
        elif grips and now.running:
            now.show()
            now._toggle()  # let go, the ball would drift out of sight before a slow page is drawn

    live.on_step = note  # pyright: ignore[reportAttributeAccessIssue]
    runner = threading.Thread(target=live.run, daemon=True)  # pyright: ignore[reportAttributeAccessIssue]
    runner.start()
    try:
        page = opened(browser, viewer)
        image = seen(page, "view_live", lambda i: red(i).sum() > 1000)
        y, x = (float(v.mean()) for v in np.nonzero(red(image)))
        drag_ball(page, image, (x, y), grips)
        slide(page, "gain", 0.9)
        until(lambda: live.options["gain"].value > 1.5)  # pyright: ignore[reportAttributeAccessIssue]
        assert live.options["gain"].value == pytest.approx(1.8, abs=0.15)  # pyright: ignore
        press(page, "start again")
        until(lambda: live.state[:3].norm() < 1e-6)  # pyright: ignore[reportAttributeAccessIssue]
        assert page.errors == []
        page.close()
    finally:
        viewer.close()
        runner.join(5)
