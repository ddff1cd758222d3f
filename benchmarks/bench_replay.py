"""Measure how fast a browser replays particles of a report: frames drawn in a second, without a graphics card.

    python -m benchmarks.bench_replay [--particles 10000 30000 50000] [--seconds 5]

Headless Chromium draws with the processor (SwiftShader), in a window of 800 x 640 pixels: a graphics card is faster.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from tests.browser import Browser

from benchmarks.measure.table import Table
from costate.report import Report

FRAMES = 60
"""Frames of the replay, in two seconds."""
COUNT = """new Promise((done) => {
  const r = costateReplays[0]; const drawn = r.draw.bind(r); let n = 0, spent = 0;
  r.draw = (...given) => { const t = performance.now(); drawn(...given); r.gl.finish(); spent += performance.now() - t; n += 1; };
  let k = 0; const begun = performance.now();
  const next = () => {
    r.seek((k++ %% %(frames)d) * 2 / %(frames)d);
    if (performance.now() - begun < 1000 * %(seconds)f) requestAnimationFrame(next);
    else done([n, spent, performance.now() - begun]);
  };
  requestAnimationFrame(next);
})"""


def replayed(browser: Browser, folder: Path, particles: int, seconds: float) -> tuple[float, float]:
    """Return frames per second, and milliseconds that a frame takes to draw."""
    times = np.linspace(0, 2, FRAMES)
    x = np.random.default_rng(0).uniform(size=(particles, 3)) + 0.1 * np.sin(3 * times)[:, None, None]
    page = Report("particles")
    page.particles(times, x, x[0, :, 2])
    tab = browser.page(f"file://{page.save(folder / 'page.html')}", size=(800, 640))
    tab.wait("window.costateReplays && costateReplays.every((r) => r && r.array && r.frame !== undefined)")
    n, spent, whole = tab.js(COUNT % {"frames": FRAMES, "seconds": seconds})
    return 1000 * n / whole, spent / max(n, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--particles", type=int, nargs="+", default=[10_000, 30_000, 50_000])
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement [s]")
    given = parser.parse_args()
    rows = []
    with Browser() as browser, tempfile.TemporaryDirectory() as folder:
        for count in given.particles:
            rate, ms = replayed(browser, Path(folder), count, given.seconds)
            rows.append((f"{count:,}", f"{rate:.0f}", f"{ms:.1f}"))
    columns = ("particles", "frames per second", "ms to draw one")
    print(Table("Replay of particles, drawn by the processor", columns, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
