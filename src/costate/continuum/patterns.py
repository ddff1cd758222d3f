"""Tracks of one layer: lines in the plane that the laser follows one after the other, and how they change from layer to layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Track = NDArray[np.float64]
"""A line through points (P, 2) [m] that is followed with the laser on."""


def bead(length: float, layer: int) -> list[Track]:
    """Return one track along x through the origin, forth in even layers and back in odd ones."""
    ends = np.array([[-length / 2, 0.0], [length / 2, 0.0]])
    return [ends if layer % 2 == 0 else ends[::-1]]


def raster(size: tuple[float, float], hatch: float, layer: int) -> list[Track]:
    """Return parallel tracks over a rectangle around the origin, to and fro; along x in even layers, along y in odd ones."""
    along, across = (0, 1) if layer % 2 == 0 else (1, 0)
    rows = _offsets(size[across], hatch)
    tracks = []
    for k, offset in enumerate(rows):
        track = np.zeros((2, 2))
        track[:, along] = np.array([-0.5, 0.5]) * size[along] * (1 if k % 2 == 0 else -1)
        track[:, across] = offset
        tracks.append(track)
    return tracks


def rings(radii: tuple[float, float], hatch: float, layer: int) -> list[Track]:
    """Return circles between an inner and an outer radius, from outside to inside; counter-clockwise in even layers."""
    inner, outer = radii
    centred = (inner + outer) / 2 - _offsets(outer - inner, hatch)
    return [_circle(r, hatch)[:: 1 if layer % 2 == 0 else -1] for r in centred]


def spiral(radii: tuple[float, float], hatch: float, layer: int) -> list[Track]:
    """Return one spiral between an inner and an outer radius; inwards in even layers, outwards in odd ones.

    It begins and ends with a full circle half a hatch from the edges, so that all of the ring is covered.
    """
    inner, outer = radii
    count = len(_offsets(outer - inner, hatch))
    spacing = (outer - inner) / count
    high, low = outer - spacing / 2, inner + spacing / 2
    turns = count - 1
    angles = np.linspace(0, 2 * np.pi * (turns + 2), _points(high, hatch) * (turns + 2) + 1)
    radius = np.clip(high - spacing * (angles / (2 * np.pi) - 1), low, high)
    track = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=1)
    return [track if layer % 2 == 0 else track[::-1]]


def _offsets(width: float, hatch: float) -> NDArray[np.float64]:
    """Return where tracks lie that fill a width about evenly, seen from its middle."""
    count = max(1, round(width / hatch))
    return (np.arange(count) + 0.5) / count * width - width / 2


def _circle(radius: float, step: float) -> Track:
    angles = np.linspace(0, 2 * np.pi, _points(radius, step) + 1)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _points(radius: float, step: float) -> int:
    """Return how many chords a circle gets: no longer than a step, and at least 12."""
    return max(12, int(np.ceil(2 * np.pi * radius / step)))
