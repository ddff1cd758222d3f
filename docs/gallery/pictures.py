"""Takes pictures of replays in headless Chromium: one of each for the gallery, and the film of the home page."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.gallery.make import HERE, REPLAYS, packed
from PIL import Image
from tests.browser import Browser, Page

SIZE = (800, 500)
"""Of the window, which the scene fills [pixels]."""
SMALL = (400, 250)
"""Of a picture [pixels]."""
ALONE = """(async (view) => {
  const style = document.createElement("style");
  style.textContent = "body { overflow: hidden } .replay .view.chosen { position: fixed; inset: 0; z-index: 9; height: 100vh }";
  document.head.append(style);
  document.querySelectorAll(".replay .view")[view].classList.add("chosen");
  costateReplays.forEach((r) => { r.playing = false; });
})"""
"""Let one scene fill the window."""
SEEK = """((view, share) => new Promise((done) => {
  const r = costateReplays[view];
  r.seek(r.begin + share * (r.end - r.begin));
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60)));
}))"""
TOUR = ("insertion", "throw", "crawler", "smoke")
"""Replays of the film, each beside the others."""
FRAMES = 24
TILE = (240, 200)
"""Of one replay in the film [pixels]."""


def opened(browser: Browser, folder: Path, name: str, size: tuple[int, int] = SIZE) -> Page:
    """Return a tab in which the scene of a replay fills the window."""
    file = folder / f"{name}.html"
    file.write_bytes(lzma.decompress(packed(name).read_bytes()))
    page = browser.page(file.as_uri(), size)
    page.wait("window.costateReplays?.length > 0")
    page.js(f"{ALONE}({REPLAYS[name].view})")
    return page


def shot(page: Page, name: str, share: float, size: tuple[int, int]) -> Image.Image:
    """Return a picture of a replay after a share of its motion."""
    page.js(f"{SEEK}({REPLAYS[name].view}, {share})")
    return Image.fromarray(page.screenshot(f"gallery_{name}")).resize(size, Image.Resampling.LANCZOS)


def take(names: Sequence[str]) -> None:
    """Keep a picture of each replay."""
    with Browser() as browser, TemporaryDirectory() as folder:
        for name in names:
            page = opened(browser, Path(folder), name)
            page.js(f"{SEEK}({REPLAYS[name].view}, 0)")  # data is unpacked while this waits
            image = shot(page, name, REPLAYS[name].moment, SMALL)
            image.save(HERE / f"{name}.webp", quality=80, method=6)
            page.close()


def film() -> None:
    """Keep a film of some replays beside each other, and a picture for readers who prefer no motion."""
    with Browser() as browser, TemporaryDirectory() as folder:
        films = []
        for name in TOUR:
            page = opened(browser, Path(folder), name, (2 * TILE[0], 2 * TILE[1]))
            page.js(f"{SEEK}({REPLAYS[name].view}, 0)")
            films.append([shot(page, name, k / (FRAMES - 1), TILE) for k in range(FRAMES)])
            page.close()
    together = []
    for images in zip(*films, strict=True):
        frame = Image.new("RGB", (len(images) * TILE[0], TILE[1]))
        for k, image in enumerate(images):
            frame.paste(image, (k * TILE[0], 0))
        together.append(frame)
    times = [125] * (FRAMES - 1) + [1500]
    to = HERE.parent / "pictures" / "tour.webp"
    together[0].save(to, save_all=True, append_images=together[1:], duration=times, loop=0, quality=60, method=6)
    together[FRAMES // 2].save(to.with_name("tour_still.webp"), quality=80, method=6)
    print(f"{to.name} {to.stat().st_size / 1000:.0f} kB")
