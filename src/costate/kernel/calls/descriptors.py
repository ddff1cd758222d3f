"""Descriptors: tensors as the words the entry function reads (see `codegen/driver.py`), and sums over the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from costate.kernel.codegen.driver import ONE_LEVEL

Words = tuple[int, int, int, int, int, int]
"""Data, inner, outer stride, inner stride, row stride, mode."""


def describe(
    t: torch.Tensor, batch: torch.Size | tuple[int, ...], event: int, mode: int = 0
) -> tuple[Words, torch.Tensor]:
    """Return the descriptor of a tensor seen with leading dimensions `batch`, and the tensor it describes (copied only if its
    strides cannot be expressed)."""
    size = t.element_size()
    if t.is_neg():  # torch negates lazily; the memory holds the other sign
        t = t.resolve_neg()
    if not _rows_ok(t.shape, t.stride()):
        t = _compact(t, event)
    if tuple(t.shape[: t.dim() - event]) != tuple(batch):
        t = t.expand(*batch, *t.shape[t.dim() - event :])
    strides = t.stride()
    levels = _levels(batch, strides)
    if levels is None:
        t = t.contiguous()
        strides = t.stride()
        levels = _levels(batch, strides)
        assert levels is not None
    inner, outer, step = levels
    row = strides[-2] if event == 2 else 0
    return (t.data_ptr(), inner, outer * size, step * size, row * size, mode), t


def _rows_ok(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return shape[-1] <= 1 or strides[-1] == 1


def _compact(t: torch.Tensor, event: int) -> torch.Tensor:
    """Return a copy with contiguous rows. What is shared along the batch is copied once and stays shared."""
    lead = t.dim() - event
    once = t[tuple(slice(0, 1) if s == 0 else slice(None) for s in t.stride()[:lead])]
    return once.contiguous().expand(t.shape)


def _levels(batch: Sequence[int], strides: Sequence[int]) -> tuple[int, int, int] | None:
    """Return (inner, outer stride, inner stride) that reach every sample, or None."""
    merged: list[tuple[int, int]] = []
    for n, s in zip(batch, strides, strict=False):
        if n == 1:
            continue
        if merged and merged[-1][1] == s * n:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    if not merged:
        return ONE_LEVEL, 0, 0
    if len(merged) == 1:
        return ONE_LEVEL, 0, merged[0][1]
    if len(merged) == 2:
        return merged[1][0], merged[0][1], merged[1][1]
    return None


def sum_groups(partial: np.ndarray) -> np.ndarray:
    """Sum over the first axis, in order."""
    return np.add.reduce(partial, axis=0)


def sum_to(full: torch.Tensor, batch: Sequence[int], event: int) -> torch.Tensor:
    """Sum leading dimensions down to `batch` (as broadcasting would have expanded them), in a fixed order."""
    lead = full.dim() - event
    target = (1,) * (lead - len(batch)) + tuple(batch)
    axes = [k for k in range(lead) if target[k] == 1 and full.shape[k] != 1]
    rest = [k for k in range(full.dim()) if k not in axes]
    moved = full.permute(*axes, *rest).contiguous()
    rows = int(np.prod([full.shape[k] for k in axes])) if axes else 1
    if not rows:
        return torch.zeros(*batch, *full.shape[lead:], dtype=full.dtype)
    total = np.add.reduce(moved.reshape(rows, -1).numpy(), axis=0) if moved.numel() else moved.numpy()
    return torch.from_numpy(np.atleast_1d(total)).reshape(*batch, *full.shape[lead:])
