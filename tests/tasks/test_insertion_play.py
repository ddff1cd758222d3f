"""`costate play insertion` in a real browser: the policy inserts, and the user can drag, push, and set the belt and the noise."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.browser import Browser, Page
from tests.viewer.page_controls import press, slide, until

from costate.draw.camera import Camera
from costate.tasks.insertion import Insertion, InsertionOptions
from costate.tasks.insertion.play.play import DIRECTION, JOINT_NOISE, SPEED, Play, play_insertion
from costate.tasks.insertion.scene import DEPTH
from costate.train.controller import load_policy

POLICY = Path(__file__).parent.parent / "data" / "insertion"
"""A trained controller."""
SIZE = (900, 640)


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    task = Insertion(InsertionOptions().unlimited())  # what the controller was trained for
    page, play = play_insertion(task, load_policy(POLICY), port=8340)
    play.url = page.url  # pyright: ignore[reportAttributeAccessIssue]
    yield play
    page.close()


def cycle(play: Play) -> None:
    """Simulate, without a browser or a clock, until the next episode has been judged."""
    tried = play.tried
    while play.tried == tried:
        play.live.step()


def test_the_policy_inserts_and_the_arm_takes_the_bottle_out_again(play: Play) -> None:
    for _ in range(3):
        cycle(play)
        assert play.seated_error < 5e-4
        assert f"{1e3 * play.seated_error:.2f} mm" in play.told()
        while play.phase != "insert":
            play.live.step()
            assert play.live.state[9:15].abs().max() < 3.3  # rad/s
        assert play.servo.height(play.live.state) > DEPTH  # out of the socket
    assert play.succeeded >= 2


def test_a_knock_disturbs_the_arm(play: Play) -> None:
    def velocities(force: float) -> torch.Tensor:
        play.live.reset()
        if force:
            play.push(force)
        for _ in range(5):
            play.live.step()
        return play.live.state[9:15]

    calm = velocities(0.0)
    assert torch.equal(velocities(0.0), calm)
    assert (velocities(100.0) - calm).norm() > 0.1  # rad/s


def test_the_page(browser: Browser, play: Play) -> None:
    """One page for all of it: a tab takes seconds to draw without a graphics card."""
    runner = threading.Thread(target=play.live.run, daemon=True)
    runner.start()
    page = browser.page(play.url, SIZE)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        page.wait("document.body.innerText.includes('time per action')")
        _reads_out(page, play)
        _drags_the_socket(page, play)
        _sets_the_belt(page, play)
        _adds_noise(page, play)
        pushed = []
        play.push = lambda: pushed.append(1)  # pyright: ignore[reportAttributeAccessIssue]
        press(page, "push the arm")
        until(lambda: pushed)
        page.screenshot("play_insertion")
        assert page.errors == []
    finally:
        play.live.stop()
        runner.join(10)
        page.close()


def _reads_out(page: Page, play: Play) -> None:
    """Error in mm and time per action, as measured."""
    press(page, "pause")
    until(lambda: not play.live.running and _stands(play))
    told = dict(re.findall(r"\| ([^|]+?) \| \**([^|*]+?)\** \|", play.readout.content))
    assert re.fullmatch(r"\d+\.\d\d mm", told["error when seated"])
    assert re.fullmatch(r"\d+ of \d+", told["success"])
    assert 1 < int(told["time per action"].removesuffix(" µs")) < 2_000_000  # a check of the unit, not of the speed
    for value in told.values():  # a page that is slow to draw comes after
        page.wait(f"document.body.innerText.includes({value!r})")
    press(page, "go on")
    until(lambda: play.live.running)


def _stands(play: Play) -> bool:
    """A pause begins when the steps that are due have been made."""
    step = play.live.step_number
    time.sleep(0.3)
    return play.live.step_number == step


def _drags_the_socket(page: Page, play: Play) -> None:
    (client,) = until(play.live.server.get_clients).values()
    camera = Camera(np.array(client.camera.position), np.array(client.camera.look_at), float(client.camera.fov))
    before = play.live.state[6:8].numpy().copy()
    wall, right = np.array([*before, 0.05]), camera.axes()[0]  # a drag is in the plane of the screen
    start, end = (camera.project(wall + d * right, *SIZE)[:2].tolist() for d in (0.0, 0.06))

    def arrived() -> bool:
        return bool(np.linalg.norm(play.live.state[6:8].numpy() - before - 0.06 * right[:2]) < 0.02)

    page.drag((start[0], start[1]), (end[0], end[1]), steps=6, hold=lambda: until(arrived))
    until(lambda: play.live.hand.grip is None)
    assert arrived()


def _sets_the_belt(page: Page, play: Play) -> None:
    slide(page, SPEED, 0.5)
    slide(page, DIRECTION, 0.25)
    until(lambda: play.option(SPEED) > 0.1 and play.option(DIRECTION) < -60)
    expected = play.belt()
    assert expected[1] < -0.1
    until(lambda: torch.allclose(play.live.state[15:17], expected, atol=1e-3))
    before, step = play.live.state[6:8].clone(), play.live.step_number
    until(lambda: play.live.step_number > step + 5)
    assert (play.live.state[6:8] - before).norm() > 0.004


def _adds_noise(page: Page, play: Play) -> None:
    slide(page, JOINT_NOISE, 0.8)
    until(lambda: play.option(JOINT_NOISE) > 3)
