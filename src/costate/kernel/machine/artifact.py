"""Artifacts: compiled kernels as data, ready to be stored and linked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Artifact:
    """A compiled kernel, ready to be linked: what the cache stores."""

    images: tuple[bytes, ...]
    """Object files."""
    workspace: int
    """Bytes of workspace per thread."""
    helper_workspace: int
    """Bytes of workspace of a thread that helps with one sample; 0 if none can."""
    n_ops: int
    flops: int
    work: int
    """Operations per sample, loops counted as often as they run (while loops: at most), dynamic ones left out."""
    step_work: int
    """Operations per sample and step of a loop of dynamic length."""
    seconds: float
    """Time it took to compile."""
    imports: tuple[str, ...]
    """External symbols: vector functions and constant grids."""
