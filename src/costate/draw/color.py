"""Colour spaces: sRGB, in which colours are given and stored, and linear light, in which they are mixed."""

from __future__ import annotations

import numpy as np

from costate.core.arrays import Array
from costate.draw.compiled.light import LEVELS


def linear(srgb: object) -> Array:
    """Convert sRGB in [0, 1] to linear light."""
    c = np.asarray(srgb, np.float32)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


def encoded(light: Array) -> np.ndarray:
    """Convert linear light to sRGB bytes."""
    c = np.clip(light, 0, 1)
    return np.round(255 * np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055)).astype(np.uint8)


ENCODED = encoded(np.linspace(0, 1, LEVELS))
"""sRGB bytes of linear light from 0 to 1."""
