"""Strips of colour over time: a row per quantity, blue below zero, red above."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

import numpy as np

from costate.core.display import number
from costate.draw.marks import ramp

COLUMNS = 600
"""Longer rows are thinned; of each stretch the value farthest from zero is kept."""


def strip_source(values: np.ndarray) -> str:
    """Return one row of values in [-1, 1] as the source of an image."""
    from PIL import Image

    buffer = io.BytesIO()
    pixels = np.round(255 * ramp(_thinned(values))).astype(np.uint8)[None]
    Image.fromarray(pixels).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _thinned(values: np.ndarray) -> np.ndarray:
    if len(values) <= COLUMNS:
        return values
    return np.array([s[np.abs(s).argmax()] for s in np.array_split(values, COLUMNS)])


def strips_html(values: np.ndarray, names: Sequence[str]) -> str:
    """Return rows (rows, steps) as HTML, each scaled by its own largest value, which is written beside it."""
    if values.ndim != 2 or len(values) != len(names):
        raise ValueError(
            f"a heat strip needs one name per row: values have shape {values.shape}, {len(names)} names given"
        )
    rows = []
    for name, row in zip(names, np.nan_to_num(values), strict=True):
        top = float(np.abs(row).max(initial=0.0))
        image = f'<img src="{strip_source(row / (top or 1.0))}" alt="">'
        rows.append(
            f'<tr><td>{escape(name)}</td><td class="wide"><div class="strip">{image}<div class="now"></div></div></td>'
            f"<td>&#177;{number(top)}</td></tr>"
        )
    return f'<div class="strips"><table>{"".join(rows)}</table></div>'


def heat_html(values: np.ndarray, names: Sequence[str], title: str, legend: str) -> str:
    caption = f"<figcaption>{escape(legend)}</figcaption>" if legend else ""
    return (
        f'<figure class="heat"><div class="title">{escape(title)}</div>{strips_html(values, names)}{caption}</figure>'
    )
