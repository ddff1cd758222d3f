"""The panel of a page, as a user works it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.browser import Page


def slide(page: Page, label: str, part: float) -> None:
    """Click on the slider beside a label, so far along."""
    box = page.js(
        f"""(() => {{ let e = [...document.querySelectorAll('label')].find((l) => l.innerText.trim() === {label!r});
            while (!e.querySelector('[role=slider]')) e = e.parentElement;
            const t = e.querySelector('[class*=Slider-track]'); t.scrollIntoView({{block: 'center'}});
            const b = t.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()"""
    )
    page.click(box[0] + part * box[2], box[1] + box[3] / 2)


def press(page: Page, label: str) -> None:
    page.js(f"[...document.querySelectorAll('button')].find((b) => b.innerText.trim() === {label!r}).click()")


def until(condition: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Wait for a page that may be slow to draw, on a machine that may be busy."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    assert found, f"not within {seconds} s"
    return found
