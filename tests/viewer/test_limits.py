"""The page's server among strangers: foreign pages, values out of range, random frames, many tabs."""

from __future__ import annotations

import asyncio
import html
import math
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
import viser
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import costate as cs
from costate.viewer.markdown import as_written
from costate.viewer.origin import TOLD, refusal
from costate.viewer.view import Page, view

PROTOCOL: Any = [f"viser-v{viser.__version__}"]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    found = view(cs.load_robot("ur5"), port=8420, block=False)
    yield found
    found.close()


def port(page: Page) -> int:
    return page.server.get_port()


def control(page: Page, label: str) -> Any:
    found = page.server.gui._gui_input_handle_from_uuid.values()
    return next(c for c in found if getattr(c, "label", "") == label)


def tab(page: Page, **options: Any) -> Any:
    return connect(f"ws://127.0.0.1:{port(page)}", subprotocols=PROTOCOL, compression=None, max_size=None, **options)


CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [2.0, 0.0, 0.0],
    "fov": 1.0,
    "near": 0.01,
    "far": 100.0,
    "image_height": 100,
    "image_width": 100,
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 0.0, 1.0],
}
"""What a tab says first: only then are its messages taken for a user's."""


def send(page: Page, *messages: dict[str, Any], then: Callable[[], None] | None = None) -> None:
    """Send messages from a tab; `then` is called, while it is open, when they have been taken."""

    async def go() -> None:
        async with tab(page) as socket:
            await socket.recv()
            before = set(page.server.get_clients())
            await socket.send(msgspec.msgpack.encode(CAMERA))
            while not set(page.server.get_clients()) - before:
                await asyncio.sleep(0.01)
            (client,) = (c for k, c in page.server.get_clients().items() if k not in before)
            for message in messages:
                await socket.send(msgspec.msgpack.encode(message))
                await asyncio.sleep(0.1)
            # Messages are taken in order: once this one is, the others have been, however busy the machine is.
            await socket.send(msgspec.msgpack.encode(CAMERA | {"position": [3.0, 0.0, 0.0]}))
            while client.camera.position[0] != 3.0:
                await asyncio.sleep(0.01)
            if then is not None:
                then()

    asyncio.run(go())


def update(handle: Any, **updates: Any) -> dict[str, Any]:
    return {"type": "GuiUpdateMessage", "uuid": handle._impl.uuid, "updates": updates}


def until(wanted: Callable[[], bool], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("host", "origin", "welcome"),
    [
        ("127.0.0.1:8080", None, True),
        ("localhost:8080", "http://localhost:8080", True),
        ("[::1]:8080", "http://[::1]:8080", True),
        ("LocalHost:8080", "http://localhost:8080", True),
        ("localhost:8080", "http://localhost:3000", False),  # another server on this machine
        ("localhost:8080", "null", False),  # a file, or a frame in a sandbox
        ("localhost:8080", "https://evil.example", False),
        ("evil.example:8080", "http://evil.example:8080", False),  # a name that leads here
        ("127.0.0.1.evil.example", None, False),
        ("localhost@evil.example", None, False),
        ("[", None, False),
        ("", None, False),
        ("hub.example", "https://hub.example", False),
    ],
)
def test_only_this_page_on_this_machine_is_welcome(host: str, origin: str | None, welcome: bool) -> None:
    assert (refusal([host], [] if origin is None else [origin]) is None) == welcome


def test_hosts_can_be_told_and_headers_come_once() -> None:
    told = frozenset({"hub.example"})
    assert refusal(["hub.example"], ["https://hub.example"], told) is None
    assert refusal(["localhost:8080"], ["https://hub.example"], told) is None
    assert refusal(["localhost:8080"], ["https://evil.example"], told) is not None
    assert refusal([], []) is not None
    assert refusal(["localhost", "evil.example"], []) is not None
    assert refusal(["localhost"], ["http://localhost", "http://evil.example"]) is not None


def test_the_server_refuses_foreign_pages(page: Page) -> None:
    request = urllib.request.Request(page.url, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=300)
    assert refused.value.code == 403 and TOLD in refused.value.read().decode()
    with urllib.request.urlopen(page.url, timeout=300) as answer:
        assert answer.status == 200

    async def attempt(origin: Any) -> int:
        try:
            async with tab(page, origin=origin) as socket:
                await socket.recv()
        except InvalidStatus as error:
            return error.response.status_code
        return 101

    assert asyncio.run(attempt("https://evil.example")) == 403
    assert asyncio.run(attempt(f"http://127.0.0.1:{port(page)}")) == 101


def test_a_slider_keeps_its_range(page: Page) -> None:
    slider, shown = control(page, "elbow_joint"), page.content.shown[0]  # pyright: ignore[reportAttributeAccessIssue]
    k = [j.name for j in shown.model.joints].index("elbow_joint")
    q = shown.model.q_index[k]
    send(page, update(slider, value=1e9))
    until(lambda: shown.q[q] == slider.max)
    send(page, update(slider, value=-1e300))
    until(lambda: shown.q[q] == slider.min)
    send(page, update(slider, value=0.25))
    until(lambda: shown.q[q] == 0.25)
    wrong = (math.nan, math.inf, "1.0", "nan", True, None, [1.0], {"a": 1})
    send(page, *(update(slider, value=value) for value in wrong))
    assert slider.value == 0.25 and shown.q[q] == 0.25
    assert np.isfinite(shown.layers.links).all()


def test_a_tab_sets_values_and_nothing_else(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[bool] = []
    monkeypatch.setattr(page.server, "request_share_url", lambda *_: shared.append(True))
    slider, box = control(page, "wrist_1_joint"), control(page, "frames")
    calls = list(slider._impl.update_cb)
    assert calls
    send(
        page,
        update(slider, update_cb=[]),
        update(slider, removed=True),
        update(slider, value=0.5, sync_cb=None),
        update(box, value="yes"),
        {"type": "ShareUrlRequest"},
        {
            "type": "FileTransferStartUpload",
            "source_component_uuid": slider._impl.uuid,
            "transfer_uuid": "x",
            "filename": "x",
            "mime_type": "x",
            "part_count": 2,
            "size_bytes": 1,
        },
    )
    assert slider._impl.update_cb == calls and not slider._impl.removed and slider._impl.sync_cb is not None
    assert slider.value != 0.5 and box.value is False and not shared
    assert not page.server.gui._current_file_upload_states
    send(page, update(box, value=True))
    until(lambda: box.value is True)


def test_a_choice_is_one_of_those_offered() -> None:
    found = view(cs.load_robot("ur5"), np.zeros((3, 6)), dt=0.1, port=8430, block=False)
    try:
        speed, at = control(found, "speed"), control(found, "time [s]")
        send(found, update(speed, value="1e9"), update(speed, value=4), update(at, value=1e12))
        assert speed.value == "1" and at.value == at.max
        send(found, update(speed, value="4"))
        until(lambda: found.content.speed == 4.0)  # pyright: ignore[reportAttributeAccessIssue]
    finally:
        found.close()


def test_random_frames_leave_the_server_at_work(page: Page) -> None:
    random = np.random.default_rng(7)
    slider = control(page, "shoulder_pan_joint")
    kinds = ["GuiUpdateMessage", "SceneNodeDragMessage", "SceneNodeClickMessage", "ViewerCameraMessage", "nothing"]

    def frame() -> bytes | str:
        way = random.integers(4)
        noise = random.bytes(int(random.integers(1, 200)))
        if way == 0:
            return noise
        if way == 1:
            return noise.hex()
        if way == 2:
            return msgspec.msgpack.encode({"type": str(random.choice(kinds)), "uuid": [1], "updates": noise})
        whole = msgspec.msgpack.encode(update(slider, value=float(random.normal())))
        return whole[: int(random.integers(len(whole)))]

    async def go() -> None:
        for _ in range(150):
            async with tab(page) as socket:
                try:
                    for _ in range(3):
                        await socket.send(frame())
                except ConnectionClosed:
                    pass

    asyncio.run(go())
    until(lambda: not page.server.get_clients())
    send(page, update(slider, value=0.125))
    until(lambda: slider.value == 0.125)


def test_drags_that_no_pointer_makes() -> None:
    world = cs.World([cs.load_robot("ur5")])
    found = view(world, live=True, port=8440, block=False)
    try:
        live: Any = found.content
        nodes = [node for node, _ in live.layers.shapes._groups]

        def drag(phase: str, index: Any, start: Any, end: Any) -> dict[str, Any]:
            return {
                "type": "SceneNodeDragMessage",
                "phase": phase,
                "name": nodes[-1].name,
                "instance_index": index,
                "start_position": start,
                "start_screen_pos": [0.0, 0.0],
                "end_position": end,
                "end_screen_pos": [0.0, 0.0],
                "button": "left",
                "modifier": None,
                "owner": "",
            }

        near = live.links()[0, -1, :, 3].tolist()
        for index, start, end in [
            (0, near, [math.nan] * 3),
            (0, [math.inf] * 3, near),
            (0, [1e12] * 3, near),
            (10**6, near, near),
            (-1, near, near),
            ("0", near, near),
        ]:
            held: list[Any] = []
            send(found, drag("start", index, start, end), then=lambda held=held: held.append(live.hand.grip))
            assert held == [None], (index, start, end)

        def pulled() -> None:
            assert live.hand.grip is not None
            force = max(float(w[:3].norm()) for w in live.hand.wrenches(live.links()).values())
            assert 0 < force < 1e5
            for _ in range(20):
                live.step()
            assert np.isfinite(live.state.numpy()).all() and live.step_number == 20

        send(found, drag("start", 0, near, [1e300] * 3), then=pulled)
    finally:
        found.close()


def test_fifty_tabs(page: Page) -> None:
    slider = control(page, "wrist_2_joint")

    async def go() -> None:
        tabs = [await tab(page) for _ in range(50)]
        for socket in tabs:
            await asyncio.wait_for(socket.recv(), 300)
        for k, socket in enumerate(tabs):
            await socket.send(msgspec.msgpack.encode(update(slider, value=0.01 * (k + 1))))
        while slider.value == 0.0:  # as long as it takes: the limit of a test ends it otherwise
            await asyncio.sleep(0.05)
        for socket in tabs:
            await socket.close()

    asyncio.run(go())
    assert 0.0 < slider.value <= 0.5
    with urllib.request.urlopen(page.url, timeout=300) as answer:
        assert answer.status == 200


def test_names_are_no_markdown() -> None:
    """Nothing with a meaning in Markdown or HTML is left of a name, and a page reads it as it was."""
    name = "</script><img src=x onerror=alert(1)>\"'$x$ `a` [b](javascript:c) | *d* é\n# e &lt; {f}"
    written = as_written(name)
    assert html.unescape(written) == name
    assert not set(re.sub(r"&#\d+;", "", written)) & set("<>\"'`[]()|*#&{}$\n_\\!~")
