"""A real browser for tests: headless Chromium, driven through its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--window-size=1200,900",
    "--remote-debugging-port=0",
)
ARTEFACTS = Path(__file__).parent.parent / "out" / "browser"
"""Where screenshots are kept."""


def find_browser() -> str | None:
    wanted = os.environ.get("COSTATE_CHROMIUM")
    return wanted or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser process. Use as a context; `page()` opens a tab."""

    def __init__(self) -> None:
        path = find_browser()
        if path is None:
            pytest.skip("no Chromium: `make browser` installs it, or COSTATE_CHROMIUM names one")
        self.profile = tempfile.mkdtemp(prefix="costate-browser-")
        command = [path, *OPTIONS, f"--user-data-dir={self.profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        self.port = self._port()

    def _port(self) -> int:
        told = Path(self.profile) / "DevToolsActivePort"
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the browser ended with code {self.process.returncode}")
            if told.exists() and (lines := told.read_text().splitlines()):
                return int(lines[0])
            time.sleep(0.05)
        raise RuntimeError("the browser did not start within 300 s")

    def page(self, url: str = "about:blank", size: tuple[int, int] = (1200, 813)) -> Page:
        """A new tab; size of its window [pixels]. Small ones are drawn faster: all drawing is done by the processor."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=300) as answer:
            target = json.load(answer)
        page = Page(target["webSocketDebuggerUrl"])
        page.call(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False
        )
        if url != "about:blank":
            page.open(url)
        return page

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """One tab."""

    def __init__(self, address: str):
        from websockets.sync.client import connect

        self._socket = connect(address, max_size=None, open_timeout=300, ping_interval=None)
        self._number = 0
        self.requests: list[str] = []
        """Addresses asked for, other than data: and blob:."""
        self.errors: list[str] = []
        """Exceptions, and errors on the console."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        end = time.monotonic() + 600
        while True:
            message = json.loads(self._socket.recv(timeout=max(0.1, end - time.monotonic())))
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message["method"] == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("data:", "blob:")):
                self.requests.append(url)
        elif message["method"] == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif message["method"] == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(str([a.get("description", a.get("value")) for a in params["args"]]))

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def js(self, expression: str) -> Any:
        """The value of an expression; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails'].get('exception', {}).get('description')}")
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = 300.0) -> Any:
        """Until an expression is true; its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.js(condition):
                return value
            time.sleep(0.05)
        raise AssertionError(f"not true within {seconds} s: {condition}; errors of the page: {self.errors}")

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is: x, y, width, height, in the middle of the window as far as possible."""
        script = f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});
            const b = e.getBoundingClientRect(); return {{x: b.x, y: b.y, width: b.width, height: b.height}}; }})()"""
        return self.js(script)

    def screenshot(self, name: str, selector: str | None = None) -> np.ndarray:
        """RGB bytes (height, width, 3) of the window or of an element; kept under out/browser."""
        import io

        from PIL import Image

        clip = {}
        if selector:
            box, scroll = self.box(selector), self.js("[scrollX, scrollY]")
            clip = {"clip": box | {"x": box["x"] + scroll[0], "y": box["y"] + scroll[1], "scale": 1}}
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"])
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        (ARTEFACTS / f"{name}.png").write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    def mouse(self, kind: str, x: float, y: float, **params: Any) -> None:
        """kind: Pressed, Released, Moved, Wheel."""
        held = {"Pressed": 1, "Moved": params.pop("held", 0)}.get(kind, 0)
        button = "left" if kind in ("Pressed", "Released") or held else "none"
        self.call(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=x,
            y=y,
            button=button,
            buttons=held,
            clickCount=int(kind in ("Pressed", "Released")),
            **params,
        )

    def click(self, x: float, y: float) -> None:
        self.mouse("Moved", x, y)
        self.mouse("Pressed", x, y)
        self.mouse("Released", x, y)

    def drag(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        steps: int = 12,
        hold: Callable[[], object] = lambda: None,
    ) -> None:
        """Press at the start, move to the end, and let go once `hold` has returned."""
        self.mouse("Moved", *start)
        self.mouse("Pressed", *start)
        for k in range(1, steps + 1):
            part = k / steps
            self.mouse("Moved", *(a + (b - a) * part for a, b in zip(start, end, strict=True)), held=1)
            time.sleep(0.01)
        hold()
        self.mouse("Released", *end)

    def close(self) -> None:
        self.call("Page.close")
        self._socket.close()
