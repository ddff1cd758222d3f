"""Curves of a run as PNG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.peers.peer import PEERS
from benchmarks.peers.results import Results
from benchmarks.peers.roofline import Point

MARKERS = "os^vDPX<>*"
WIDTH, HEIGHT = 6.4, 4.2

Curve = Sequence[tuple[float, float]]


def save(results: Results, folder: Path) -> list[Path]:
    """Save the plots for which there are numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    curves = {
        "peers_forward_dynamics.png": (
            _over(results, "forward_dynamics", "batch", "ur5", lambda s: 1 / s),
            ("UR5: forward dynamics, one thread", "batch", "samples per second"),
        ),
        "peers_steps.png": (
            _over(results, "steps", "batch", "standing laikago", lambda s: 1 / s),
            ("Laikago on four feet, one thread", "batch", "robot steps per second"),
        ),
        "peers_memory.png": (
            _over(results, "memory", "steps", "standing laikago", lambda b: max(b, 4096) / 2**20),
            ("Gradient of a roll-out, batch 1", "steps", "peak memory [MB]"),
        ),
    }
    files = [_draw(folder / name, lines, *labels) for name, (lines, labels) in curves.items() if _enough(lines)]
    return files + ([_roofline(folder / "peers_roofline.png", results)] if results.roofline else [])


def _over(results: Results, quantity: str, axis: str, subject: str, of) -> dict[str, Curve]:
    """Peer -> (batch or steps, value) in ascending order."""
    lines: dict[str, dict[float, float]] = {}
    for row in results.find(quantity, subject=subject, threads=1):
        if row.value is not None:
            lines.setdefault(PEERS[row.peer].title, {})[getattr(row, axis)] = of(row.value)
    return {name: sorted(points.items()) for name, points in lines.items()}


def _enough(lines: Mapping[str, Curve]) -> bool:
    return any(len(points) > 1 for points in lines.values())


def _draw(path: Path, lines: Mapping[str, Curve], title: str, x_label: str, y_label: str) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=110)
    axes = figure.subplots()
    ticks = sorted({int(x) for points in lines.values() for x, _ in points})
    for (name, points), marker in zip(lines.items(), MARKERS, strict=False):
        x, y = zip(*points, strict=True)
        ours = name == PEERS["costate"].title
        axes.loglog(
            x, y, marker=marker, markersize=5, linewidth=2.4 if ours else 1.2, label=name, zorder=3 if ours else 2
        )
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axes.minorticks_off()
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, bbox_inches="tight")
    return path


def _roofline(path: Path, results: Results) -> Path:
    import numpy as np
    from matplotlib.figure import Figure

    points = [Point(**p) for p in results.roofline]
    peak, bandwidth = max(p.peak for p in points), max(p.bandwidth for p in points)
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=110)
    axes = figure.subplots()
    x = np.geomspace(min(p.intensity for p in points) / 3, max(p.intensity for p in points) * 3, 200)
    axes.loglog(x, np.minimum(peak, x * bandwidth) / 1e9, color="black", label="roof")
    for k, p in enumerate(points):
        marker = MARKERS[(k + 3 * (k // 10)) % len(MARKERS)]  # a colour that comes again has another marker
        axes.loglog(p.intensity, p.rate / 1e9, marker, color=f"C{k % 10}", label=p.kernel)
    axes.set(
        xlabel="operations per byte",
        ylabel="G operations per second",
        title="Kernels under the roof, one core, float64",
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, bbox_inches="tight")
    return path
