"""Blocks: how the numbers of many entities lie in the lanes.

A field has `count` entities with n numbers each. Sixteen entities make a block: element j of a block holds their j-th numbers, side
by side. So a field is a vector of blocks * n elements, and one with a single number per entity is a plain array. The size of a
block does not depend on the CPU: neither do tables of places, nor the order of sums.
"""

from __future__ import annotations

import numpy as np

BLOCK = 16
"""Entities per block."""


def block_count(count: int) -> int:
    """Return the number of blocks of some entities."""
    return -(-count // BLOCK)


def to_blocks(values: np.ndarray) -> np.ndarray:
    """Return the elements (blocks * n, 16) of numbers (count, n); places behind the last entity are 0."""
    count, n = values.shape
    padded = np.zeros((block_count(count) * BLOCK, n), values.dtype)
    padded[:count] = values
    return padded.reshape(-1, BLOCK, n).transpose(0, 2, 1).reshape(-1, BLOCK)


def from_blocks(elements: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers (count, n) of elements (blocks * n, 16)."""
    n = len(elements) // max(block_count(count), 1)
    return elements.reshape(-1, n, BLOCK).transpose(0, 2, 1).reshape(-1, n)[:count]
