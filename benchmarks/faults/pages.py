"""Hostile names and requests: names that are code, headers of foreign pages, frames and values that no user sends."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

import msgspec
import numpy as np
from lxml import html

from benchmarks.faults.process import track
from benchmarks.measure.harness import Table
from costate.report import Report
from costate.robot import Robot, load_robot

PIECES = (
    *(
        "<script>",
        "</script>",
        "<img src=x onerror=alert(1)>",
        "<!--",
        "-->",
        "]]>",
        "<![CDATA[",
        "<svg/onload=x>",
        "</title>",
    ),
    *(
        "</style>",
        "</textarea>",
        '"',
        "'",
        "`",
        "&",
        "&lt;",
        "&#60;",
        "\\u003c",
        "\\",
        "\u2028",
        "\u2029",
        "{{x}}",
        "${x}",
        "$x$",
    ),
    *(
        "\\frac{",
        "javascript:x",
        "[a](b)",
        "![a](b)",
        "**",
        "__",
        "|",
        "#",
        "\n",
        "\t",
        "é",
        "机",
        "\U0001f916",
        "\u202e",
        "%s",
        "a b",
    ),
)
"""Pieces of names that mean something in HTML, JavaScript, Markdown, TeX or formats."""
HOSTS = ("127.0.0.1", "localhost", "[::1]", "evil.example", "localhost.evil.example", "127.0.0.1.nip.example", "0", "")


CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [2.0, 0.0, 0.0],
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 0.0, 1.0],
    "fov": 1.0,
    "near": 0.01,
    "far": 100.0,
    "image_height": 100,
    "image_width": 100,
}
"""Message with which a tab begins: before it, the page takes no others."""


def hostile_name(chance: random.Random) -> str:
    """Return a name made of such pieces; names begin and end with a letter, as readers strip blanks."""
    return "n" + "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 12))) + "n"


def _robot(name: str, folder: Path) -> Robot:
    link = quoteattr(name, {"\n": "&#10;", "\t": "&#9;"})
    box = '<visual><geometry><box size="1 1 1"/></geometry></visual>'
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    limit = '<limit lower="-2" upper="2" effort="1" velocity="1"/>'
    ends = f"<parent link={link}/><child link='tip'/>"
    path = folder / "robot.urdf"
    path.write_text(
        f"<robot name={link}><link name={link}>{box}</link><link name='tip'>{box}{inertial}</link>"
        f"<joint name={link} type='revolute'>{ends}<axis xyz='0 0 1'/>{limit}</joint></robot>",
        encoding="utf-8",
    )
    return load_robot(path)


def _page(name: str, folder: Path) -> Any:
    """Return the page of a report on a robot with such names, as a parser of HTML reads it."""
    robot = _robot(name, folder)
    report = Report(robot.model.name, robot.model.links[0].name)
    report.section(name)
    report.text(name)
    report.facts({name: name})
    report.replay(robot, np.zeros((3, 1)), caption=name, dt=0.1, gradient=np.ones((3, 1)))
    report.table([{name: robot.model.joints[0].name}])
    report.plot({robot.model.joints[0].name: [1.0, 2.0]}, title=name, levels={name: 1.5})
    return html.fromstring(report.save(folder / "page.html").read_bytes())


def _skeleton(page: Any) -> Counter[tuple[str, tuple[str, ...]]]:
    """Count elements by tag and by the names of their attributes."""
    return Counter((str(e.tag), tuple(sorted(e.attrib))) for e in page.iter())


def names_in_reports(chance: random.Random) -> str:
    """The page has the elements of one with plain names, and its data give the name back."""
    name = hostile_name(chance)
    with tempfile.TemporaryDirectory() as folder:
        plain, found = _page("plain", Path(folder)), _page(name, Path(folder))
    if _skeleton(plain) != _skeleton(found):
        return f"{name!r} adds {_skeleton(found) - _skeleton(plain)}"
    data = [e.text for e in found.iter("script") if e.get("type") == "application/json"]
    if not any(name in _texts(json.loads(text)) for text in data):
        return f"{name!r} is not in the data of the page"
    return "" if any(name in (e.text or "") for e in found.iter()) else f"{name!r} is not shown"


def _texts(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for each in inner for text in _texts(each)}


# --- the live server ----------------------------------------------------------------------------------------------------


class Live:
    """A page of a robot with hostile names, and what strangers do to it."""

    def __init__(self, seed: int, folder: Path):
        import viser

        from costate.viewer.view import view

        self.chance = random.Random(f"pages {seed}")
        self.page = view(_robot(hostile_name(self.chance), folder), port=8600 + seed % 100, block=False)
        self.port = urlsplit(self.page.url).port or 0
        self.protocol: Any = [f"viser-v{viser.__version__}"]
        controls = self.page.server.gui._gui_input_handle_from_uuid.values()  # pyright: ignore[reportPrivateUsage]
        self.slider: Any = next(c for c in controls if type(c).__name__ == "GuiSliderHandle")

    def headers(self) -> str:
        """Only this machine's names are welcome, and only this page's origin."""
        host = self.chance.choice(HOSTS) + self.chance.choice(("", f":{self.port}", ":1", ":x"))
        origin = self.chance.choice(
            (None, "null", "http://evil.example", f"http://{host}", f"https://{host}.evil.example", host)
        )
        local = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
        sound = local in ("127.0.0.1", "localhost", "[::1]") and origin in (None, f"http://{host}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.putrequest("GET", "/", skip_host=True)
            connection.putheader("Host", host)
            if origin is not None:
                connection.putheader("Origin", origin)
            connection.endheaders()
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            status = 0
        finally:
            connection.close()
        if ":x" in host:
            return "" if not sound or status in (0, 200, 400, 403) else f"Host {host}: {status}"
        return "" if (status == 200) == sound else f"Host {host!r}, Origin {origin!r}: {status}"

    def frame(self) -> bytes | str:
        """Return bytes, text, or a message with wrong kinds, names and values."""
        chance = self.chance
        odd = (None, True, -1, 2**63, 1e308, math.nan, "x" * 100, b"\xff" * 50, [], {}, [[]] * 9, {"a": {"b": [1]}})
        kind = chance.choice(
            ("GuiUpdateMessage", "SceneNodeClickMessage", "ViewerCameraMessage", "ScenePointerMessage", "X", "object")
        )
        keys = ("type", "uuid", "updates", "name", "value", "position", "wxyz", "__class__")
        message = {chance.choice(keys): chance.choice(odd) for _ in range(5)} | {"type": kind}
        data = msgspec.msgpack.encode(message)
        where = chance.randrange(len(data))
        bits = bytes(b ^ (1 << chance.randrange(8)) if k == where else b for k, b in enumerate(data))
        return chance.choice(
            (data, bits, data[:where], chance.randbytes(where + 1), data.hex(), bytes(chance.choice((0, 2**21))))
        )

    def value(self) -> Any:
        chance = self.chance
        return chance.choice(
            (chance.gauss(0, 1e3), math.nan, -math.inf, 2**63, "0.5", None, True, [0.1], {"a": 1}, b"1", -1e-320)
        )

    async def _send(self, *frames: bytes | str) -> None:
        """Send frames as a tab does, after its first message."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import ConnectionClosed

        address, before = f"ws://127.0.0.1:{self.port}", set(self.page.server.get_clients())
        try:
            async with connect(address, subprotocols=self.protocol, compression=None, max_size=None) as socket:
                await socket.send(msgspec.msgpack.encode(CAMERA))
                until = time.monotonic() + 60
                while not set(self.page.server.get_clients()) - before and time.monotonic() < until:
                    await asyncio.sleep(0.01)
                for frame in frames:
                    await socket.send(frame)
                await asyncio.sleep(0.05)
        except ConnectionClosed:
            pass

    def frames(self) -> str:
        """The server stays at work, whatever one connection sends."""
        asyncio.run(self._send(*(self.frame() for _ in range(3))))
        return self._at_work()

    def values(self) -> str:
        """A slider keeps finite numbers of its range, and still takes those that a user gives it."""
        updates: dict[str, Any] = {self.chance.choice(("value", "value", "min", "max", "update_cb")): self.value()}
        self._set(updates)
        value = self.slider.value
        sound = isinstance(value, int | float) and math.isfinite(value) and self.slider.min <= value <= self.slider.max
        if not sound or (self.slider.min, self.slider.max) != (-2, 2):
            return f"the slider has {value!r} after {updates}"
        wanted = round(self.chance.uniform(-2, 2), 2)
        self._set({"value": wanted})
        until = time.monotonic() + 60
        while self.slider.value != wanted and time.monotonic() < until:
            time.sleep(0.02)
        return self._at_work() if self.slider.value == wanted else f"the slider does not take {wanted} after {updates}"

    def _set(self, updates: dict[str, Any]) -> None:
        message = {"type": "GuiUpdateMessage", "uuid": self.slider._impl.uuid, "updates": updates}
        asyncio.run(self._send(msgspec.msgpack.encode(message)))

    def _at_work(self) -> str:
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("GET", "/")
            status = connection.getresponse().status
        except OSError as error:
            return f"the server is gone: {error}"
        finally:
            connection.close()
        return "" if status == 200 else f"the server answers {status} after {time.monotonic() - begun:.0f} s"


def pages(cases: int, seed: int) -> tuple[Table, int]:
    """Run so many cases of each kind."""
    chance = random.Random(f"names {seed}")
    with tempfile.TemporaryDirectory() as folder:
        live = Live(seed, Path(folder))
        kinds: dict[str, tuple[Callable[[], str], int]] = {
            "names in reports: links, joints, captions, plots, tables": (
                lambda: names_in_reports(chance),
                -(-cases // 4),
            ),
            "live page: headers Host and Origin": (live.headers, cases),
            "live page: connections with random frames": (live.frames, cases),
            "live page: values of a slider": (live.values, cases),
        }
        rows, wrong = [], 0
        try:
            for title, (check, count) in kinds.items():
                found = [why for _ in track(range(count), title) if (why := check())]
                for why in found:
                    print(f"{title}: {why}", flush=True)
                rows.append((title, count, len(found)))
                wrong += len(found)
        finally:
            live.page.close()
    note = (
        "Made at random (`--seed`). Names of robots, links and joints are made of pieces of HTML, scripts, Markdown and TeX: "
        "read by libxml2, pages must have the same elements as with plain names, and contain the names as text. The live page "
        "must answer this machine and its own origin only, and keep running after every frame; its slider must stay within its "
        "range."
    )
    return Table("Hostile names and requests", ("", "cases", "wrong"), tuple(rows), note), wrong
