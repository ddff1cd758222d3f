"""Types of arrays and colours, named once.

The type of a tensor is torch's own (`from torch import Tensor`): this module does not import torch, so that models and
compiler processes load without it.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Vector = tuple[float, float, float]
Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each from 0 to 1."""
