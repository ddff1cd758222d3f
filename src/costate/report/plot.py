"""Line plots as inline SVG, coloured by the page's style sheet so that they follow its theme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from costate.core.display import number, ticks
from costate.report.inline import inline_json

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 10, 40
POINTS = 800
"""Longer series are thinned to about as many points: the least and the greatest of each stretch are kept."""
COLORS = 8


@dataclass(frozen=True, eq=False)
class Plot:
    series: Mapping[str, Any]
    x: Any = None
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    log_y: bool = False
    markers: bool = False
    follow: str = ""
    levels: Mapping[str, float] = field(default_factory=dict)
    """Name -> height of a dashed line across, such as a limit."""
    bars: bool = False
    """Bars around x, side by side, instead of lines."""


def plot_html(plot: Plot) -> str:
    x, lines = _data(plot)
    x_low, x_high = _range(x)
    y_all = np.concatenate([*lines.values(), np.array([*plot.levels.values(), *[0.0] * plot.bars])])
    y_low, y_high = _log_range(y_all) if plot.log_y else _padded(*_range(y_all))
    if plot.bars:  # they stand on the axis, and the outer ones are as wide as the others
        y_low, half = 0.0, (x_high - x_low) / max(2 * (len(x) - 1), 1)
        x_low, x_high = x_low - half, x_high + half

    def to_x(v: Any) -> Any:
        return LEFT + (v - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def to_y(v: Any) -> Any:
        v = np.log10(v) if plot.log_y else v
        return HEIGHT - BOTTOM - (v - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    parts = _axes(plot, (x_low, x_high), (y_low, y_high), to_x, to_y)
    for k, y in enumerate(lines.values()):
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append(_bars(to_x(x), to_y(y), k) if plot.bars else _line(to_x(x), to_y(y), k, plot.markers))
    parts += [_level(name, to_y(y)) for name, y in plot.levels.items()]
    parts.append(f'<line class="cursor" y1="{TOP}" y2="{HEIGHT - BOTTOM}" visibility="hidden"/>')
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot.title, quote=True)}">{"".join(parts)}</svg>'
    return _figure(plot, svg, x, lines, x_low, x_high)


def _figure(plot: Plot, svg: str, x: np.ndarray, lines: dict[str, np.ndarray], low: float, high: float) -> str:
    keys = "".join(
        f'<span><i style="background:var(--c{k % COLORS})"></i>{escape(name)}</span>' for k, name in enumerate(lines)
    )
    readout = {
        "left": LEFT,
        "width": WIDTH - LEFT - RIGHT,
        "total": WIDTH,
        "low": low,
        "high": high,
        "label": plot.x_label or "x",
        "x": _short(x),
        "series": [{"name": name, "y": _short(y)} for name, y in lines.items()],
    }
    data = inline_json(readout)
    follow = f' data-follow="{escape(plot.follow, quote=True)}"' if plot.follow else ""
    return (
        f'<figure class="plot"{follow}><div class="title">{escape(plot.title)}</div><div class="legend">{keys}</div>{svg}'
        f'<div class="tip">&nbsp;</div><script type="application/json">{data}</script></figure>'
    )


def _data(plot: Plot) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    lines = {name: np.asarray(_plain(y), float).ravel() for name, y in plot.series.items()}
    if not lines:
        raise ValueError(f"plot {plot.title!r} has no series")
    count = len(next(iter(lines.values())))
    x = np.arange(count, dtype=float) if plot.x is None else np.asarray(_plain(plot.x), float).ravel()
    for name, y in lines.items():
        if len(y) != len(x):
            raise ValueError(f"plot {plot.title!r}: series {name!r} has {len(y)} values, x has {len(x)}")
    if not len(x):
        raise ValueError(f"plot {plot.title!r} has no points")
    keep = _thinned(x, list(lines.values()))
    return x[keep], {name: y[keep] for name, y in lines.items()}


def _plain(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def _thinned(x: np.ndarray, lines: list[np.ndarray]) -> np.ndarray:
    if len(x) <= POINTS:
        return np.arange(len(x))
    keep = {0, len(x) - 1}
    for stretch in np.array_split(np.arange(len(x)), max(1, POINTS // (2 * len(lines)))):
        for y in lines:
            part = np.where(np.isfinite(y[stretch]), y[stretch], 0.0)
            keep |= {int(stretch[part.argmin()]), int(stretch[part.argmax()])}
    return np.array(sorted(keep))


def _range(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0))


def _padded(low: float, high: float) -> tuple[float, float]:
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def _log_range(values: np.ndarray) -> tuple[float, float]:
    """Return exponents of the decades around the values; those that are not positive have no place."""
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (np.log10(positive.min()), np.log10(positive.max())) if len(positive) else (0.0, 1.0)
    return float(np.floor(low)), float(max(np.ceil(high), np.floor(low) + 1))


def _axes(plot: Plot, xs: tuple[float, float], ys: tuple[float, float], to_x: Any, to_y: Any) -> list[str]:
    parts = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for t in ticks(*xs):
        parts.append(f'<line class="grid" x1="{to_x(t):.1f}" x2="{to_x(t):.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{to_x(t):.1f}" y="{bottom + 15}" text-anchor="middle">{number(t, 6)}</text>')
    every = max(1, round((ys[1] - ys[0]) / 6))
    values = [10.0**k for k in range(int(ys[0]), int(ys[1]) + 1, every)] if plot.log_y else ticks(*ys)
    for t in values:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{to_y(t):.1f}" y2="{to_y(t):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{to_y(t) + 4:.1f}" text-anchor="end">{number(t, 4)}</text>')
    parts.append(f'<path class="frame" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(plot.x_label)}</text>')
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">{escape(plot.y_label)}</text>'
    )
    return parts


def _line(x: np.ndarray, y: np.ndarray, k: int, markers: bool) -> str:
    """Return a path with gaps where a value is not finite."""
    color = f"var(--c{k % COLORS})"
    path, pen = [], "M"
    for px, py in zip(x, y, strict=True):
        if not np.isfinite(py):
            pen = "M"
            continue
        path.append(f"{pen}{px:.1f} {py:.1f}")
        pen = "L"
    dots = ""
    if markers:
        at = (f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3"/>' for px, py in zip(x, y, strict=True) if np.isfinite(py))
        dots = f'<g fill="{color}">{"".join(at)}</g>'
    return f'<path class="line" stroke="{color}" d="{"".join(path)}"/>{dots}'


def _bars(x: np.ndarray, y: np.ndarray, k: int) -> str:
    """Return bars down to the bottom of the plot, as wide as x is apart."""
    width = float(np.diff(x).min()) if len(x) > 1 else 20.0
    boxes = (
        f'<rect x="{px - width / 2 + 0.5:.1f}" y="{py:.1f}" width="{max(width - 1, 0.5):.1f}" height="{HEIGHT - BOTTOM - py:.1f}"/>'
        for px, py in zip(x, y, strict=True)
        if np.isfinite(py) and py < HEIGHT - BOTTOM
    )
    return f'<g class="bars" fill="var(--c{k % COLORS})">{"".join(boxes)}</g>'


def _level(name: str, y: float) -> str:
    line = f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text class="level" x="{WIDTH - RIGHT - 4}" y="{y - 4:.1f}" text-anchor="end">{escape(name)}</text>'


def _short(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]
